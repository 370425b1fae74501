"""`cdc-sync migrate`: the example of the documentation without the lake, and the whole way on it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml

from cdc_sync.cli.app import main

ROOT = Path(__file__).parent.parent.parent
TABLE = "reports.sales"
EXAMPLE_FINDINGS = ["MG301", "MG203", "MG401"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = tmp_path / "migrations"
    shutil.copytree(ROOT / "conf/migrations", copy)
    settings = (copy / "migrator.yaml").read_text()
    for name in ("state", "warehouse"):
        settings = settings.replace(f"./{name}", str(tmp_path / name))
    (copy / "migrator.yaml").write_text(settings)
    return copy


def test_the_example_of_the_documentation_can_be_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "check", str(folder)]) == 0
    *findings, last = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in findings] == EXAMPLE_FINDINGS
    assert last == "3 revisions can be used."
    assert main(["migrate", "check", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [it.pop("code") for it in found.pop("findings")] == EXAMPLE_FINDINGS
    assert found == {
        "name": "reports",
        "revisions": [
            "v1.0.0/reports.sales/1_create",
            "v1.1.0/reports.sales/1_price",
            "v1.1.0/reports.sales/2_quantity",
        ],
    }


def test_the_schema_for_editors_is_the_one_that_is_checked_in(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "schema"]) == 0
    printed = capsys.readouterr().out
    assert (ROOT / "conf/migrations/revision.schema.json").read_text() == printed
    check = jsonschema.Draft7Validator(json.loads(printed))

    for file in (ROOT / "conf/migrations").glob("*/*/*.yaml"):
        check.validate(yaml.safe_load(file.read_text()))
    for wrong in (
        "revison: x\nactions: [{drop_column: {name: a}}]",
        "actions: [{drop_column: {nme: a}}]",
        "actions: [{}]",
    ):
        assert not check.is_valid(yaml.safe_load(wrong))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["up"], 2, "nobody can be asked here: say --yes to do it"),
        (["down", TABLE], 2, "nobody can be asked here"),
        (["history", TABLE], 5, "Cannot show the history of reports.sales: no revision was applied to it"),
        (["history", "sales"], 5, "Cannot find 'sales': a table is schema.name"),
        (["history"], 0, ""),
    ],
)
def test_what_needs_no_lake(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    command, *rest = arguments

    assert main(["migrate", command, str(folder), *rest]) == code

    assert said in capsys.readouterr().err


def test_a_folder_without_settings_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "check", str(tmp_path)]) == 2
    assert "migrator.yaml: Cannot read the file: No such file or directory" in capsys.readouterr().err


@pytest.mark.iceberg
def test_the_whole_way(folder: Path, spark: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    def run(command: str, *arguments: str) -> tuple[int, list[str]]:
        spark()
        code = main(["migrate", command, str(folder), *arguments])
        return code, capsys.readouterr().out.splitlines()

    code, said = run("plan")
    assert code == 2
    assert not (folder.parent / "state").exists(), "a plan writes nothing down"
    assert said[:3] == [
        "reports.sales gets v1.0.0/reports.sales/1_create: makes the table",
        "  what was sold, by day",
        "  CREATE TABLE reports.sales (day DATE, article STRING, qty INT, remark STRING) PARTITIONED BY (day)",
    ]
    assert run("status") == (0, ["reports.sales: no revision applied, 3 pending"])
    assert run("up", TABLE, "--yes") == (
        0,
        [
            "reports.sales gets v1.0.0/reports.sales/1_create: done",
            "reports.sales gets v1.1.0/reports.sales/1_price: done",
            "reports.sales gets v1.1.0/reports.sales/2_quantity: done",
        ],
    )
    assert run("plan") == (0, ["Nothing is to be done: every revision is applied."])
    code, said = run("plan", "--json")
    assert json.loads("\n".join(said)) == {"name": "reports", "steps": [], "fills": [], "problems": []}
    assert run("up", "--yes") == (0, ["Nothing was to be done."])
    assert run("down", TABLE, "--yes") == (0, ["reports.sales takes back v1.1.0/reports.sales/2_quantity: done"])
    assert run("status") == (0, ["reports.sales: at v1.1.0/reports.sales/1_price, 1 pending"])
    assert run("backfill") == (0, ["Nothing was to be done."])
    _, history = run("history", TABLE)
    assert history[0] == TABLE
    assert history[-3:] == [
        "  4  takes back v1.1.0/reports.sales/2_quantity",
        "     change type of column quantity from DECIMAL(12, 3) to INT",
        "     move column remark after price",
    ]
