"""Log lines: one per event, on stderr, without secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import stamina
import structlog

from cdc_sync.cli import log
from cdc_sync.config import Secret
from cdc_sync.errors import TargetError
from cdc_sync.storage.state import StateStore
from tests.plan.model import ROUTE

PASSWORD = Secret("hunter2", reference="${env:PW}", parts=(("hunter2", "${env:PW}"),))


@pytest.fixture(autouse=True)
def _defaults_afterwards() -> Iterator[None]:
    yield
    structlog.reset_defaults()
    stamina.instrumentation.set_on_retry_hooks(None)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_people_read_key_and_value(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure()

    structlog.get_logger().info("batch done", table="inv.orders", rows=7, note="two words")

    [line] = lines(capsys)
    assert line.split(" ", 1)[1] == 'info    batch done table=inv.orders rows=7 note="two words"'


def test_a_dry_run_says_only_what_fails(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(only_errors=True)
    structlog.get_logger().warning("table paused")
    structlog.get_logger().error("table failed")
    assert [line.split()[1] for line in lines(capsys)] == ["error"]


def test_machines_read_json(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(as_json=True)

    structlog.get_logger().warning("batch done", offsets={"a": (1, 2)})

    [line] = lines(capsys)
    event = json.loads(line)
    del event["time"]
    assert event == {"event": "batch done", "level": "warning", "offsets": {"a": [1, 2]}}


@pytest.mark.parametrize("as_json", [False, True])
def test_no_line_shows_a_secret(capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    log.configure(as_json=as_json, secrets=[PASSWORD])

    structlog.get_logger().info("login", password=PASSWORD, url="x://me:hunter2@db", deep={"a": ["hunter2"]})

    [line] = lines(capsys)
    assert "hunter2" not in line
    assert line.count("${env:PW}") == 3


def test_an_exception_stays_in_its_line_and_shows_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(secrets=[PASSWORD])

    try:
        raise ValueError("bad hunter2")
    except ValueError:
        structlog.get_logger().exception("failed")

    [line] = lines(capsys)
    assert "ValueError: bad ${env:PW}" in line


def test_debug_events_show_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure()
    structlog.get_logger().debug("detail")
    log.configure(verbose=True)
    structlog.get_logger().debug("detail")

    assert len(lines(capsys)) == 1


def test_a_repetition_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure()
    answers = iter([ValueError("away"), None])

    def ask() -> None:
        error = next(answers)
        if error is not None:
            raise error

    with stamina.set_testing(False):
        stamina.retry(on=ValueError, attempts=2, wait_initial=0.01, wait_jitter=0)(ask)()

    [line] = lines(capsys)
    assert "will try again" in line
    assert "attempt=1 wait_s=0.01 cause=away" in line


@pytest.mark.spark
def test_a_failure_that_nobody_thought_of_shows_its_place_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from tests.faults.actors import actor_of

    log.configure(as_json=True)
    table = actor_of(ROUTE, state=StateStore(str(tmp_path)))
    for error in (KeyError("c6"), KeyError("c6"), TargetError("Cannot write"), KeyError("c7")):
        try:
            raise error
        except Exception as raised:
            table.fail(raised)

    told = [json.loads(line) for line in lines(capsys)]
    assert [line["error"] for line in told] == ["KeyError: 'c6'", "Cannot write", "KeyError: 'c7'"]
    assert ["test_logging.py" in line.get("exception", "") for line in told] == [True, False, True]


@pytest.mark.parametrize("as_json", [False, True])
def test_nothing_in_a_text_steers_a_terminal(capsys: pytest.CaptureFixture[str], *, as_json: bool) -> None:
    log.configure(as_json=as_json)
    name = "evil\x1b[2J\u202egnp\x9b\ud800"
    structlog.get_logger().warning("table paused", table=name)
    [line] = lines(capsys)
    assert line.isprintable()
    assert "evil\\u001b[2J\\u202egnp\\u009b\\ud800" in line
    if as_json:
        assert json.loads(line)["table"] == name
