"""The command line as people and machines meet it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from typer.testing import CliRunner

from cdc_sync.api import commands
from cdc_sync.cli import render as output
from cdc_sync.cli.app import app
from cdc_sync.config import Config
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.status import StateName, TableStatus
from cdc_sync.errors import RefusedError, SetupError
from cdc_sync.runtime.reports import RunReport
from tests.cli.runner import CommandLine

_COMMANDS = ["validate", "run", "status", "history", "diff", "replay", "demo"]


def test_help_lists_every_command() -> None:
    result = CliRunner().invoke(app, ["--help"])

    assert result.exit_code == 0
    assert all(f" {name} " in result.output for name in _COMMANDS)


def test_alone_it_shows_its_help_and_ends_as_a_wrong_command_line_does(cdc_sync: CommandLine) -> None:
    ran = cdc_sync()

    assert (ran.exit_code, ran.err) == (2, "")
    assert ran.out == cdc_sync("-h").out == cdc_sync("--help").out
    assert "validate" in ran.out


def test_every_command_knows_the_short_name_of_help(cdc_sync: CommandLine) -> None:
    assert cdc_sync("run", "-h").out == cdc_sync("run", "--help").out != ""


@pytest.mark.parametrize("name", _COMMANDS)
def test_every_command_explains_itself_and_takes_json_and_verbose(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})

    assert result.exit_code == 0
    assert "--json" in result.output
    assert "--verbose" in result.output


def test_the_version_is_the_packages(cdc_sync: CommandLine) -> None:
    ran = cdc_sync("--version")

    assert (ran.exit_code, ran.out) == (0, "cdc-sync 0.1.0\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "Cannot read the command line: Missing argument 'CONFIG'; see cdc-sync --help"),
        (["replay", "c.yaml"], "Cannot read the command line: Missing option '--into'; see cdc-sync --help"),
        (["status", "c.yaml", "--foo"], "Cannot read the command line: No such option: --foo; see cdc-sync --help"),
    ],
)
def test_a_command_line_that_cannot_be_understood_is_one_line_on_stderr(
    cdc_sync: CommandLine, arguments: list[str], message: str
) -> None:
    ran = cdc_sync(*arguments)

    assert (ran.exit_code, ran.out, ran.err) == (2, "", f"cdc-sync: {message}\n")


def test_with_json_a_failure_is_the_one_document_on_stdout(cdc_sync: CommandLine, tmp_path: Path) -> None:
    ran = cdc_sync("validate", tmp_path / "none.yaml", "--json")

    assert ran.exit_code == 2
    assert ran.json == {
        "error": f"{tmp_path}/none.yaml: Cannot read the file: No such file or directory",
        "exit_code": 2,
    }
    assert ran.err == ""


def test_json_may_stand_before_the_command_too(cdc_sync: CommandLine, tmp_path: Path) -> None:
    assert cdc_sync("--json", "validate", tmp_path / "none.yaml").json["exit_code"] == 2


def test_a_wrong_configuration_is_one_line_with_its_place(cdc_sync: CommandLine, config: Path) -> None:
    config.write_text(config.read_text() + "jobs: {}\n")

    ran = cdc_sync("status", config)

    assert (ran.exit_code, ran.out) == (2, "")
    assert ran.err == f"cdc-sync: {config}:12:1: Cannot use jobs: unknown key; did you mean 'job'?\n"


def test_validate_sums_a_configuration_up(cdc_sync: CommandLine, config: Path, tmp_path: Path) -> None:
    ran = cdc_sync("validate", config)

    assert ran.exit_code == 0
    assert ran.out.replace(str(tmp_path), "DIR") == (
        "The configuration of pipeline 'inventory' can be used.\n"
        "  state    DIR/state/inventory\n"
        "  kafka    '127.0.0.1:9'\n"
        "  topics   shop.inv.orders, shop.inv.customers\n"
        "  tables   1 rule\n"
        "  target   iceberg, jdbc catalog lake, warehouse DIR/warehouse\n"
    )


def test_validate_shows_references_instead_of_secrets(cdc_sync: CommandLine, config: Path) -> None:
    ran = cdc_sync("validate", config, "--json")

    assert ran.json["config"]["kafka"]["properties"]["sasl.password"] == "${file:${config_dir}/password}"
    assert ran.json["config"]["job"]["trigger_interval"] == "1s"
    assert "hunter2" not in ran.out


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        (
            "properties: {session.timout.ms: 1}",
            "session.timout.ms is no setting of librdkafka; did you mean session.timeout.ms?",
        ),
        ("driver_properties: {zebra: 1}", "zebra is no setting of librdkafka; remove it, or fix its name"),
        (
            "properties: {sasl.login.read.timeout.ms: 1}",
            "sasl.login.read.timeout.ms is a setting of Java's client only; move it to kafka.spark_properties",
        ),
        (
            "properties: {security.protocol: SSL2}",
            'Invalid value "SSL2" for configuration property "security.protocol"; fix it there',
        ),
    ],
)
def test_validate_refuses_settings_that_the_client_would_refuse(
    cdc_sync: CommandLine, config: Path, section: str, reason: str
) -> None:
    lines = config.read_text().splitlines()
    config.write_text("\n".join(f"  {section}" if "sasl.password" in line else line for line in lines))

    ran = cdc_sync("validate", config)

    assert (ran.exit_code, ran.out) == (2, "")
    assert ran.err == f"cdc-sync: Cannot use kafka.properties or kafka.driver_properties: {reason}\n"


def test_a_report_shows_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    output.show(RunReport(batches=1, tables=(), other_records={"shop.public.up_long": 2}), as_json=False)

    lines = ("batches        1", "tables         -", "other_records:", "  shop.public.up_long  2", "unread         -")
    assert capsys.readouterr().out == "\n".join((*lines, "problem        -", ""))


def test_validate_warns(cdc_sync: CommandLine, config: Path) -> None:
    config.write_text(
        config.read_text().replace("PLAINTEXT", "SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: me")
    )

    ran = cdc_sync("validate", config)

    assert "warning: security.protocol SASL_PLAINTEXT sends the password in clear; use SASL_SSL\n" in ran.out


def test_validate_with_check_fails_when_kafka_does_not_answer(cdc_sync: CommandLine, config: Path) -> None:
    ran = cdc_sync("validate", config, "--check")

    assert (ran.exit_code, ran.out) == (4, "")
    assert ran.err.startswith("cdc-sync: Cannot list topics: no usable answer from Kafka at '127.0.0.1:9'")


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def run(config: Config, *, once: bool, standby: bool, stop: threading.Event, **followed: object) -> object:
        raise error

    monkeypatch.setattr(commands, "run", run)


@pytest.mark.parametrize(("error", "exit_code"), [(SetupError("no Java"), 3), (RefusedError("t is paused"), 5)])
def test_each_class_of_errors_has_its_exit_code(
    cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, exit_code: int
) -> None:
    failing(monkeypatch, error)

    ran = cdc_sync("run", config)

    assert (ran.exit_code, ran.err) == (exit_code, f"cdc-sync: {error}\n")


def test_an_unexpected_failure_is_one_line_without_secrets(
    cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, KeyError("hunter2\nand more"))

    ran = cdc_sync("run", config)

    assert ran.exit_code == 1
    assert ran.err == (
        "cdc-sync: Cannot go on: KeyError: '${file:PASSWORD}\\nand more'; --verbose shows where, please report it\n"
    ).replace("PASSWORD", f"{config.parent}/password")


def test_a_jvm_that_has_ended_is_said_to_have(
    cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(config: Config, *, once: bool, standby: bool, stop: threading.Event, **followed: object) -> object:
        nobody = JavaGateway(gateway_parameters=GatewayParameters(port=9))
        return nobody.jvm.java.lang.System.currentTimeMillis()

    monkeypatch.setattr(commands, "run", run)

    ran = cdc_sync("run", config)

    assert ran.exit_code == 4
    assert ran.err.startswith("cdc-sync: Cannot go on: the JVM that Spark runs in has ended")
    assert "report it" not in ran.err


def test_another_connection_that_is_refused_is_not_taken_for_the_jvm(
    cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, ConnectionRefusedError("no"))

    ran = cdc_sync("run", config)

    assert (ran.exit_code, "ConnectionRefusedError: no" in ran.err) == (1, True)


def test_verbose_shows_where_an_error_came_from_without_secrets(
    cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, KeyError("hunter2"))

    ran = cdc_sync("run", config, "--verbose")

    assert "Traceback (most recent call last)" in ran.err
    assert "in failing" not in ran.err
    assert "hunter2" not in ran.err


def test_run_gives_its_options_and_a_stop_event_and_shows_the_report(
    cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[bool, bool]] = []

    def run(config: Config, *, once: bool, standby: bool, stop: threading.Event, **followed: object) -> object:
        assert not stop.is_set()
        assert threading.current_thread() is not threading.main_thread()
        given.append((once, standby))
        return Ran(pipeline=config.pipeline.name, tables=[{"table": "a", "rows": 1}], refused=[])

    monkeypatch.setattr(commands, "run", run)

    assert cdc_sync("run", config, "--once").out == (
        "pipeline  inventory\ntables:\n    table  a\n    rows   1\n\nrefused   -\n"
    )
    assert cdc_sync("run", config, "--standby", "--json").json["pipeline"] == "inventory"
    assert given == [(True, False), (False, True)]


@dataclass(frozen=True)
class Ran:
    """A report of a run that needs no PySpark."""

    pipeline: str
    tables: list[dict[str, object]]
    refused: list[str]
    exit_code: ClassVar[int] = 5


def test_a_run_to_the_end_tells_of_tables_that_did_not_get_there(
    cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        commands, "run", lambda config, once, standby, stop, **followed: Ran(pipeline="p", tables=[], refused=[])
    )

    assert cdc_sync("run", config, "--once").exit_code == 5
    assert cdc_sync("run", config).exit_code == 0  # it was asked to stop


@pytest.mark.parametrize(
    ("states", "exit_code"),
    [
        ((), 0),
        (("running", "gone"), 0),
        (("running", "failing"), 4),
        (("waiting",), 4),
        (("failing", "paused", "waiting"), 5),
    ],
)
def test_the_worst_table_decides_how_a_run_to_the_end_ends(states: tuple[StateName, ...], exit_code: int) -> None:
    tables = tuple(
        TableStatus(table=TableId(database="d", schema="s", table=f"t{place}"), target="s.t", state=state)
        for place, state in enumerate(states)
    )

    assert RunReport(batches=1, tables=tables, other_records={}).exit_code == exit_code


def test_a_run_that_had_no_topic_to_read_is_not_done() -> None:
    assert RunReport(batches=0, tables=(), other_records={}, problem="no topic is read").exit_code == 4
    assert RunReport(batches=0, tables=(), other_records={}, unread={"shop.orders": "no right"}).exit_code == 4


def test_replay_gives_its_options(cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replay(config: Config, *, into: str, batch_size: int | None) -> object:
        return (into, batch_size)

    monkeypatch.setattr(commands, "replay", replay)

    assert cdc_sync("replay", config, "--into", "d", "--batch-size", 7, "--json").json == ["d", 7]
