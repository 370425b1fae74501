"""Many revisions as one: the same table in a new lake, and nothing to do in one that has them all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.api import migrate
from cdc_sync.cli.app import main
from cdc_sync.config.migrations import load_revisions
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.wording import type_text
from cdc_sync.core.revisions.actions import Adopt, CommentColumn, CreateTable, PartitionBy, RenameColumn
from cdc_sync.core.revisions.applied import Log, differences, from_json, to_json
from cdc_sync.core.revisions.compile import compiled
from cdc_sync.core.revisions.order import problems
from cdc_sync.core.revisions.squash import resolved, squashed
from cdc_sync.core.revisions.steps import next_entry, pending, undo_entry, work
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.schema.type_words import parse_type, type_words
from cdc_sync.errors import ConfigError, RefusedError
from tests.revisions.test_steps import CREATE, Lake, chain, revision


def told(schema: InternalSchema) -> list[tuple[str, str, str | None]]:
    columns = (column for column in schema.columns if not column.name.startswith("__cdc_sync"))
    return [(column.name, type_text(column.type), column.comment or None) for column in columns]


@settings(max_examples=200)
@given(st.integers(min_value=0))
def test_a_squashed_chain_makes_the_table_of_the_chain_and_goes_on_from_it(seed: int) -> None:
    chance = Random(seed)
    revisions, lake = chain(chance), Lake()
    for item in revisions:
        lake.carry_out(next_entry(item, lake.log, lake.held), chance, kills=False)
    upto = chance.randrange(1, len(revisions) + 1)
    one = replace(squashed(revisions[:upto]), id="squash", file="squash.yaml")
    left = [one, *revisions[upto:]]

    assert told(compiled(one.actions, None).schema) == told(lake.entries[upto - 1].schema)
    assert one.replaces == tuple(item.id for item in revisions[:upto])
    assert differences(lake.log, {item.id: item for item in left}) == ()
    assert pending(left, lake.log) == (one,)
    before = lake.held
    entry = next_entry(one, lake.log, lake.held)
    assert from_json(to_json(entry), "x") == entry
    lake.carry_out(entry, chance, kills=False)
    assert before is not None
    assert lake.held is not None
    assert lake.held.columns == before.columns
    assert [item.revision for item in lake.log.in_effect] == [item.id for item in left]
    assert pending(left, lake.log) == ()
    again = replace(squashed(left), id="again")
    assert again.replaces == (*(item.id for item in revisions[:upto]), "squash", *(item.id for item in left[1:]))


def test_a_lake_that_has_some_of_it_is_refused_and_a_new_one_makes_the_table() -> None:
    first, last = revision(CREATE, id_="1"), revision(CommentColumn(name="a", comment="x"), id_="2")
    one = replace(squashed([first, last]), id="squash", file="squash.yaml")
    lake, new = Lake(), Lake()
    lake.carry_out(next_entry(first, lake.log, None), Random(1), kills=False)

    with pytest.raises(
        RefusedError, match=r"squash.yaml: it stands for 2 revisions, and s\.t has some of them, but not 2"
    ):
        next_entry(one, lake.log, lake.held)
    made = next_entry(one, new.log, None)
    assert (made.created, made.replaces) == (True, ())
    new.carry_out(made, Random(1), kills=False)
    lake.carry_out(next_entry(last, lake.log, lake.held), Random(1), kills=False)
    lake.carry_out(next_entry(one, lake.log, lake.held), Random(1), kills=False)
    with pytest.raises(RefusedError, match="Cannot take squash back: it stands for 2 revisions"):
        undo_entry(lake.log, one)
    assert work(lake.log.entries[-1], Log(table=lake.log.table, entries=lake.log.entries[:-1]), 2, ICEBERG).fill is None
    with pytest.raises(RefusedError, match="1 adopts it, and only the lake knows its columns"):
        squashed([revision(Adopt(), id_="1")])


def test_what_the_table_is_divided_by_goes_with_its_columns() -> None:
    by_a = PartitionBy(partitioning=Partitioning.parse(["a"]))
    revisions = [
        revision(CREATE, id_="1"),
        revision(by_a, id_="2"),
        revision(RenameColumn(old="a", new="d"), id_="3"),
    ]

    (made,) = squashed(revisions).actions
    assert isinstance(made, CreateTable)
    assert str(made.partitioning) == "d"


def test_others_are_known_by_the_one_that_stands_for_them() -> None:
    one = revision(CREATE, id_="s", replaces=("1", "2"))
    child = replace(revision(CommentColumn(name="a", comment="x"), id_="3"), parents=("2",))
    other = replace(child, id="4", parents=("3",), depends_on=("1", "2"))

    assert [(it.parents, it.depends_on) for it in resolved([one, child, other])] == [
        ((), ()),
        (("s",), ()),
        (("3",), ("s",)),
    ]
    assert problems(resolved([one, child, other])) == ()
    (still,) = problems([one, revision(CREATE, id_="1")])[:1]
    assert still.text == "it replaces '1', whose file is still there; take that away"
    (wrong,) = problems([revision(Adopt(), id_="s", replaces=("1",))])
    assert wrong.text == "it replaces others; only a revision that has create_table does"


@pytest.mark.parametrize(
    "text",
    [
        "tinyint",
        "int",
        "decimal(18, 2)",
        "timestamptz",
        "timestamp_ntz",
        "array<map<string, struct<`a b`: bigint, `c``d`: array<double>>>>",
    ],
)
def test_types_are_written_as_they_are_read(text: str) -> None:
    assert parse_type(type_words(parse_type(text))) == parse_type(text)


def test_the_command_prints_a_file_that_can_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "migrator.yaml").write_text("name: x")
    files = {
        "v1": "actions: [{create_table: {columns: [{name: a, type: int, comment: 'x: y'}], partition_by: [a]}}]",
        "v2": "actions: [{add_column: {name: b, type: 'struct<c: int>'}}]",
        "v3": "actions: [{rename_column: {from: a, to: d}}]",
    }
    for release, text in files.items():
        folder = tmp_path / release / "s.t"
        folder.mkdir(parents=True)
        (folder / "1.yaml").write_text(text)

    assert main(["migrate", "squash", str(tmp_path), "s.t", "--upto", "v2"]) == 0
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed) == {
        "replaces": ["v1/s.t/1", "v2/s.t/1"],
        "actions": [
            {
                "create_table": {
                    "columns": [
                        {"name": "a", "type": "int", "comment": "x: y"},
                        {"name": "b", "type": "struct<`c`: int>"},
                    ],
                    "partition_by": ["a"],
                }
            }
        ],
    }
    (tmp_path / "v2/s.t/1.yaml").write_text(printed)
    (tmp_path / "v1/s.t/1.yaml").unlink()
    with pytest.raises(ConfigError, match=r"it replaces 'v2/s\.t/1', which is its own name; give it another one"):
        load_revisions(tmp_path)
    (tmp_path / "v2/s.t/1.yaml").rename(tmp_path / "v2/s.t/all.yaml")
    assert migrate.check(tmp_path).revisions == ("v2/s.t/all", "v3/s.t/1")
    assert main(["migrate", "squash", str(tmp_path), "s.x"]) == 5
    assert main(["migrate", "squash", str(tmp_path), "s.t", "--upto", "v9"]) == 5
    assert "Cannot find release v9: there are v2, v3" in capsys.readouterr().err
