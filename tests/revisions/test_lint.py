"""What is right in a file and may not be meant: golden findings, with their lines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cdc_sync.cli.app import main
from cdc_sync.core.migration.capabilities import DELTA, HUDI, ICEBERG, Capabilities
from cdc_sync.core.revisions.actions import (
    Action,
    AddColumn,
    CastColumn,
    CommentColumn,
    DropColumn,
    MoveColumn,
    NewColumn,
    PartitionBy,
    Place,
    RenameColumn,
)
from cdc_sync.core.revisions.lint import CODES, lint
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.schema.types import INT32, INT64, STRING
from tests.revisions.test_steps import revision, schema_of

BASE = schema_of(a=INT32, b=STRING)
ADD = AddColumn(column=NewColumn(name="c", type=INT32))


@pytest.mark.parametrize(
    ("actions", "capabilities", "codes"),
    [
        ((ADD,), ICEBERG, []),
        ((replace(ADD, place=Place(first=True)),), HUDI, ["MG401"]),
        ((CommentColumn(name="a", comment="x"),), ICEBERG, []),
        ((MoveColumn(name="a", place=Place(after="b")),), ICEBERG, []),
        ((MoveColumn(name="a", place=Place(after="b")),), HUDI, ["MG401"]),
        ((DropColumn(name="a"),), ICEBERG, ["MG201"]),
        ((DropColumn(name="a"),), HUDI, ["MG201", "MG401"]),
        ((DropColumn(name="a"), ADD), ICEBERG, ["MG201", "MG402"]),
        ((RenameColumn(old="a", new="c"),), ICEBERG, ["MG301"]),
        ((RenameColumn(old="a", new="c"),), DELTA, ["MG301"]),
        ((CastColumn(name="a", type=INT64),), ICEBERG, []),
        ((CastColumn(name="a", type=INT64),), DELTA, ["MG401"]),
        ((CastColumn(name="a", type=STRING),), ICEBERG, ["MG401"]),
        ((CastColumn(name="b", type=INT32),), ICEBERG, ["MG203", "MG401"]),
        ((CastColumn(name="b", type=INT32, lost="null"),), ICEBERG, ["MG202", "MG401"]),
        ((CastColumn(name="b", type=INT32, way="expand"),), ICEBERG, ["MG203"]),
        ((PartitionBy(partitioning=Partitioning.parse(["a"])),), ICEBERG, []),
        ((PartitionBy(partitioning=Partitioning.parse(["a"])),), DELTA, ["MG401"]),
    ],
)
def test_what_is_found(actions: tuple[Action, ...], capabilities: Capabilities, codes: list[str]) -> None:
    item = revision(*actions, id_="1", file="f.yaml", lines=tuple(range(3, 3 + len(actions))))
    found = lint(item, BASE, capabilities)

    assert [it.code for it in found] == codes
    assert {it.line for it in found} <= set(item.lines)
    assert lint(replace(item, allow=tuple(CODES)), BASE, capabilities) == ()


def test_of_an_adopted_table_less_is_known() -> None:
    actions = (DropColumn(name="x"), CastColumn(name="y", type=INT32), RenameColumn(old="z", new="w"))

    assert [it.code for it in lint(revision(*actions), None, ICEBERG)] == ["MG201", "MG203", "MG301"]


def test_the_command_tells_them_with_their_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "migrator.yaml").write_text("name: x")
    for release, text in (
        ("v1", "actions: [{create_table: {columns: [{name: a, type: string}, {name: b, type: int}]}}]"),
        ("v2", "allow: [MG301]\nactions:\n- rename_column: {from: b, to: c}\n- cast_column: {name: a, to: int}"),
    ):
        (tmp_path / release / "s.t").mkdir(parents=True)
        (tmp_path / release / "s.t/1.yaml").write_text(text)
    file = f"{tmp_path}/v2/s.t/1.yaml"

    assert main(["migrate", "check", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{file}:4: MG203 a becomes INT: it is refused when it is applied if a value has no place in the new type",
        f"{file}:4: MG401 iceberg cannot do this in place; way: expand does it unit by unit: "
        "all rows are written anew, in one commit",
        "2 revisions can be used.",
    ]
    assert main(["migrate", "check", str(tmp_path), "--strict"]) == 2
    capsys.readouterr()
    assert main(["migrate", "check", str(tmp_path), "--sarif"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert [it["ruleId"] for it in run["results"]] == ["MG203", "MG401"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": file}, "region": {"startLine": 4}}
    assert main(["migrate", "check", str(tmp_path), "--json"]) == 0
    assert [it["code"] for it in json.loads(capsys.readouterr().out)["findings"]] == ["MG203", "MG401"]
    (tmp_path / "v2/s.t/1.yaml").write_text("allow: [MG999]\nactions: [{drop_column: {name: a}}]")
    assert main(["migrate", "check", str(tmp_path)]) == 2
    assert "1.yaml:1:9: Cannot use allow[0]" in capsys.readouterr().err
    (tmp_path / "v2/s.t/1.yaml").write_text("actions:\n- drop_column: {name: a}\n- drop_column: {name: x}")
    assert main(["migrate", "check", str(tmp_path)]) == 2
    assert "1.yaml:3: Cannot use actions[1]: it names column 'x'" in capsys.readouterr().err
