"""A folder of revisions: the plain form, the full one, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from cdc_sync.api import migrate
from cdc_sync.config.migrations import load_migrator, load_revisions
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.revisions.actions import (
    Action,
    AddColumn,
    CastColumn,
    NewColumn,
    PartitionBy,
    Place,
    RenameColumn,
    SetProperties,
)
from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning
from cdc_sync.core.schema.types import INT32, DecimalType
from cdc_sync.errors import ConfigError

PARTITIONING = Partitioning.parse(["month(day)", "bucket(4, id)"])
CREATE = """
actions:
  - create_table:
      columns:
        - {name: id, type: bigint}
        - {name: qty, type: int}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "migrator.yaml").write_text("name: reports\nstate: ./state\n")
    return tmp_path


def put(folder: Path, path: str, text: str) -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dedent(text).lstrip("\n"))
    return file


def test_the_plain_form_is_ordered_by_release_and_file_name(folder: Path) -> None:
    put(folder, "v1.0.0/migrate.example1/revision1.yaml", CREATE)
    put(folder, "v1.10.0/migrate.example1/2.yaml", "actions: [{drop_column: {name: qty}}]")
    put(folder, "v1.9.0/migrate.example1/10.yaml", "actions: [{rename_column: {from: b, to: qty}}]")
    put(
        folder,
        "v1.9.0/migrate.example1/9.yaml",
        "actions: [{add_column: {name: b, type: 'decimal(5, 2)', after: id, comment: price, fill: {value: 1}}}]",
    )
    put(folder, "v1.9.0/migrate.a%2Eb/1.yaml", CREATE)
    put(folder, ".git/anything.yaml", "- none of ours")

    found = load_revisions(folder)

    assert [(item.id, item.parents) for item in found if item.table.name == "example1"] == [
        ("v1.0.0/migrate.example1/revision1", ()),
        ("v1.9.0/migrate.example1/9", ("v1.0.0/migrate.example1/revision1",)),
        ("v1.9.0/migrate.example1/10", ("v1.9.0/migrate.example1/9",)),
        ("v1.10.0/migrate.example1/2", ("v1.9.0/migrate.example1/10",)),
    ]
    assert found[2].actions == (
        AddColumn(
            column=NewColumn(name="b", type=DecimalType(precision=5, scale=2), comment="price"),
            place=Place(after="id"),
            fill="1.00",
        ),
    )
    assert found[3].actions == (RenameColumn(old="b", new="qty"),)
    assert TargetName(namespace="migrate", name="a.b") in {item.table for item in found}
    assert load_migrator(folder).root.endswith("/state/reports")


def test_ids_and_parents_may_be_said(folder: Path) -> None:
    put(folder, "r1/s.t/a.yaml", "revision: first\nparents: []" + CREATE)
    put(folder, "r1/s.t/b.yaml", "revision: left\nparents: [first]\nactions: [{drop_column: {name: qty}}]")
    put(folder, "r1/s.t/c.yaml", "revision: right\nparents: [first]\nactions: [{comment: {column: id, text: x}}]")
    put(
        folder,
        "r2/s.t/d.yaml",
        "parents: [left, right]\ndepends_on: [r1/s.u/a]\nactions: [{move_column: {name: id, first: true}}]",
    )
    put(folder, "r1/s.u/a.yaml", CREATE)

    checked = migrate.check(folder)

    assert checked.revisions == ("first", "left", "right", "r1/s.u/a", "r2/s.t/d")


def test_what_a_revision_does_has_one_text_however_it_is_written(folder: Path) -> None:
    put(folder, "r1/s.t/a.yaml", "# why\ndescription: the first\n" + CREATE)
    put(
        folder,
        "r1/s.u/a.yaml",
        "actions: [{create_table: {columns: [{type: BIGINT, name: id}, {type: integer, name: qty}]}}]",
    )
    put(
        folder,
        "r1/s.v/a.yaml",
        "actions: [{create_table: {columns: [{type: BIGINT, name: id}, {type: bigint, name: qty}]}}]",
    )

    one, same, other = load_revisions(folder)

    assert one.digest == same.digest != other.digest


def test_all_mistakes_of_all_files_are_named_with_their_places(folder: Path) -> None:
    put(
        folder,
        "r1/s.t/a.yaml",
        """
        revison: x
        actions:
          - add_column: {name: total, type: 'decimal(18;2)'}
          - add_column: {name: n, type: int, fill: {value: one}}
          - add_column: {name: n, type: int, fill: {value: 1, sql: a}}
          - {drop_column: {name: a}, rename_column: {from: b, to: c}}
          - add_column: {name: n, type: int, after: a, first: true}
          - move_column: {name: n}
          - cast_column: {name: n, to: timestamp}
          - drop_column:
          - create_table: {columns: [{name: a, type: int}, {name: A, type: int}], partition_by: ['day(']}
        """,
    )
    put(folder, "r1/s/a.yaml", CREATE)
    put(folder, "r1/s.u/a.yaml", "actions: []")

    with pytest.raises(ConfigError) as found:
        load_revisions(folder)

    said = [str(error).removeprefix(f"{folder}/") for error in (found.value, *found.value.others)]
    assert [text.split(": ", 1)[0] for text in said] == [
        "r1/s/a.yaml:1:1",
        "r1/s.t/a.yaml:1:1",
        "r1/s.t/a.yaml:3:37",
        "r1/s.t/a.yaml:4:52",
        "r1/s.t/a.yaml:5:38",
        "r1/s.t/a.yaml:6:5",
        "r1/s.t/a.yaml:7:55",
        "r1/s.t/a.yaml:8:5",
        "r1/s.t/a.yaml:9:32",
        "r1/s.t/a.yaml:10:17",
        "r1/s.t/a.yaml:11:59",
        "r1/s.u/a.yaml:1:1",
    ]
    for part, text in zip(
        [
            "it must be <release>/<schema>.<table>/<name>.yaml",
            "unknown key; did you mean 'revision'?",
            "must be a type",
            "must be a whole number of 32 bits, not 'one'",
            "must say value or sql, one of the two",
            "must be one action, not 2",
            "says first and after",
            "does not say where the column goes",
            "must say timestamptz",
            "write {} where there is nothing to say",
            "is a column's name already",
            "must not be empty",
        ],
        said,
        strict=True,
    ):
        assert part in text


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("partition_by: {by: [month(day), 'bucket(4, id)']}", PartitionBy(partitioning=PARTITIONING)),
        ("partition_by: {by: []}", PartitionBy(partitioning=UNPARTITIONED)),
        (
            "properties: {set: {b: 'true', a: x}, unset: [c]}",
            SetProperties(values=(("a", "x"), ("b", "true"), ("c", None))),
        ),
        (
            "cast_column: {name: a.b, to: int, lost: 'null', way: expand}",
            CastColumn(name="a.b", type=INT32, lost="null", way="expand"),
        ),
    ],
)
def test_an_action_is_read(folder: Path, text: str, action: Action) -> None:
    put(folder, "r1/s.t/a.yaml", f"{CREATE}\n")
    put(folder, "r1/s.t/b.yaml", f"actions: [{{{text}}}]")

    assert load_revisions(folder)[1].actions == (action,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("partition_by: {by: ['weekly(day)']}", "b.yaml:1:32: Cannot use actions[0].partition_by.by[0]"),
        ("properties: {}", "it says nothing; add set: {NAME: VALUE} or unset: [NAME]"),
        ("properties: {set: {a: x}, unset: [b, a]}", "unset[1]: it is set and unset; say one of the two"),
        ("properties: {unset: [cdc_sync.schema-version]}", "properties.unset: it must not have cdc_sync's own"),
        ("properties: {set: {delta.columnMapping.mode: none}}", "properties.set: it must not have cdc_sync's own"),
        ("cast_column: {name: a, to: int, way: sideways}", "cast_column.way"),
    ],
)
def test_an_action_that_says_something_wrong_is_refused(folder: Path, text: str, said: str) -> None:
    put(folder, "r1/s.t/a.yaml", CREATE)
    put(folder, "r1/s.t/b.yaml", f"actions: [{{{text}}}]")

    with pytest.raises(ConfigError) as found:
        load_revisions(folder)

    assert said in str(found.value)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"r1/s.t/a.yaml": "revision: x\n" + CREATE, "r1/s.u/a.yaml": "revision: x\n" + CREATE},
            "r1/s.u/a.yaml:1:1: Cannot use this revision: its id is that of",
        ),
        (
            {"r1/s.t/a.yaml": "parents: [nobody]\n" + CREATE},
            "Cannot use this revision: its parent 'nobody' is in no file",
        ),
        (
            {"r1/s.t/a.yaml": "depends_on: [nobody]\n" + CREATE},
            "it depends on 'nobody', which is in no file",
        ),
        (
            {
                "r1/s.t/a.yaml": "revision: x\n" + CREATE,
                "r1/s.u/a.yaml": "parents: [x]\nactions: [{drop_column: {name: a}}]",
            },
            "its parent 'x' is of s.t; say depends_on",
        ),
        (
            {"r1/s.t/a.yaml": "actions: [{drop_column: {name: a}}]"},
            "it is the first of its table: it has to create_table or adopt it",
        ),
        (
            {"r1/s.t/a.yaml": CREATE, "r1/s.t/b.yaml": CREATE},
            "create_table and adopt stand alone, in the first revision of a table",
        ),
        (
            {
                "r1/s.t/a.yaml": "revision: a\n" + CREATE,
                "r1/s.t/b.yaml": "revision: b\nactions: [{drop_column: {name: id}}]",
                "r1/s.t/c.yaml": "revision: c\nparents: [a]\nactions: [{drop_column: {name: id}}]",
            },
            "s.t has 2 heads, b and c: write a revision whose parents they are",
        ),
        (
            {
                "r1/s.t/a.yaml": "revision: a\ndepends_on: [b]\n" + CREATE,
                "r1/s.u/a.yaml": "revision: b\ndepends_on: [a]\n" + CREATE,
            },
            "it comes before itself: ",
        ),
    ],
)
def test_revisions_that_cannot_be_put_in_an_order_are_refused(folder: Path, files: dict[str, str], said: str) -> None:
    for path, text in files.items():
        put(folder, path, text)

    with pytest.raises(ConfigError) as found:
        migrate.check(folder)

    assert said in str(found.value)


def test_a_chain_that_does_not_fit_its_own_columns_is_refused_without_the_lake(folder: Path) -> None:
    put(folder, "r1/s.t/a.yaml", CREATE)
    put(folder, "r1/s.t/b.yaml", "actions: [{comment: {column: id, text: x}}, {drop_column: {name: quantity}}]")
    put(folder, "r1/s.u/a.yaml", "actions: [{adopt: {}}]")
    put(folder, "r1/s.u/b.yaml", "actions: [{drop_column: {name: only_the_lake_knows}}]")

    with pytest.raises(ConfigError) as found:
        migrate.check(folder)

    assert str(found.value) == (
        f"{folder}/r1/s.t/b.yaml:1: Cannot use actions[1]: it names column 'quantity', which the table does not have "
        "by then; it has id, qty"
    )


def test_partitions_of_columns_that_are_not_there_are_refused_without_the_lake(folder: Path) -> None:
    put(folder, "r1/s.t/a.yaml", "actions: [{create_table: {columns: [{name: a, type: int}], partition_by: [b]}}]")

    with pytest.raises(
        ConfigError, match=r"Cannot use actions\[0\]: it is partitioned by b, and there is no column 'b'"
    ):
        migrate.check(folder)


def test_the_settings_are_checked_as_a_pipelines_are(folder: Path) -> None:
    (folder / "migrator.yaml").write_text("name: a/b\n")
    with pytest.raises(ConfigError, match="because a folder is named after it"):
        load_migrator(folder)
    (folder / "migrator.yaml").write_text("nme: a\n")
    with pytest.raises(ConfigError, match="unknown key; did you mean 'name'"):
        load_migrator(folder / "migrator.yaml")
    (folder / "migrator.yaml").write_text("- a\n")
    with pytest.raises(ConfigError, match="it must be a mapping of keys such as name and state, not a list"):
        load_migrator(folder)
