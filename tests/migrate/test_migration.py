"""The steps that lead one target from what it is to the head."""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.capabilities import HUDI_ON_READ, ICEBERG
from cdc_sync.core.migration.migration import AlterTable, Backfill, CreateTable, RewriteTable, migration, stages
from cdc_sync.core.schema.changes import AddColumn, RenameColumn
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.evolve import apply
from cdc_sync.core.schema.types import INT64
from tests.history.versions import versions

FIRST, ADDED, RENAMED = versions()


def kinds(stamped: Version | None, rows_at: Version | None, head: Version) -> list[str]:
    return [type(step).__name__ for step in migration(stamped, rows_at, head).steps]


def test_a_missing_table_is_created_with_the_heads_columns() -> None:
    made = migration(None, None, RENAMED)
    assert made.steps == (CreateTable(schema=RENAMED.schema),)
    assert (made.version, made.schema) == (3, RENAMED.schema)


def test_a_table_is_created_as_it_is_to_be_kept() -> None:
    (step,) = migration(None, None, RENAMED, capabilities=HUDI_ON_READ).steps
    assert step == CreateTable(schema=RENAMED.schema, evolution="on_read")


def test_a_table_at_the_head_needs_nothing() -> None:
    assert all(migration(version, version, version).steps == () for version in versions())
    assert migration(FIRST, None, FIRST).steps == ()


def test_changes_are_one_step_and_the_back_fill_comes_after_it() -> None:
    alter, fill = migration(FIRST, FIRST, RENAMED).steps
    assert isinstance(alter, AlterTable)
    assert [type(change) for _, change in alter.steps] == [RenameColumn, AddColumn]
    assert fill == Backfill(columns=(RENAMED.schema.column(5),))


def test_each_change_stands_beside_the_schema_it_is_applied_to() -> None:
    (alter, _) = migration(FIRST, FIRST, RENAMED).steps
    assert isinstance(alter, AlterTable)
    schema = FIRST.schema
    for before, change in alter.steps:
        assert before == schema
        schema = apply(schema, change)
    assert schema == RENAMED.schema


def test_an_interrupted_migration_is_finished() -> None:
    assert kinds(RENAMED, FIRST, RENAMED) == ["Backfill"]
    assert kinds(ADDED, FIRST, RENAMED) == ["AlterTable", "Backfill"]
    assert kinds(RENAMED, RENAMED, RENAMED) == []


def test_a_table_without_rows_is_not_filled() -> None:
    assert kinds(FIRST, None, RENAMED) == ["AlterTable"]


def test_columns_that_read_null_are_not_filled() -> None:
    column = replace(ADDED.schema.columns[-1], initial=None)
    schema = replace(ADDED.schema, columns=(*ADDED.schema.columns[:-1], column))
    assert kinds(FIRST, FIRST, replace(ADDED, schema=schema)) == ["AlterTable"]


def test_columns_that_are_only_kept_are_not_filled() -> None:
    column = replace(ADDED.schema.columns[-1], retired=True)
    schema = replace(ADDED.schema, columns=(*ADDED.schema.columns[:-1], column))
    assert kinds(ADDED, FIRST, replace(ADDED, schema=schema)) == []


def test_a_version_without_changes_moves_the_stamp_all_the_same() -> None:
    again = replace(RENAMED, number=4, changes=())
    assert migration(RENAMED, RENAMED, again).steps == (AlterTable(steps=()),)


def _retyped(version: Version) -> Version:
    """The version after, in which a text that was there from the first on became a number."""
    columns = tuple(replace(it, type=INT64) if it.id == 2 else it for it in version.schema.columns)
    after = replace(version.schema, columns=columns)
    changes = diff(version.schema, after)
    return replace(version, number=version.number + 1, schema=after, changes=changes)


def test_a_type_that_does_not_widen_rewrites_the_rows_and_fills_new_columns_on_the_way() -> None:
    head = _retyped(RENAMED)
    (step,) = migration(FIRST, FIRST, head).steps
    assert isinstance(step, RewriteTable)
    assert (step.version, step.before) == (1, FIRST.schema)
    assert [column.id for column in step.filled] == [5]
    assert migration(head, head, head).steps == ()
    assert [type(step) for step in migration(FIRST, None, head).steps] == [AlterTable]


def test_a_version_that_rewrites_is_reached_from_the_one_before_it() -> None:
    history = History(table=FIRST.table, versions=(*versions(), _retyped(RENAMED)))
    assert [version.number for version in stages(history, 1, ICEBERG)] == [3, 4]
    assert [version.number for version in stages(history, 3, ICEBERG)] == [3, 4]
    assert [version.number for version in stages(history, 4, ICEBERG)] == [4]
    assert [version.number for version in stages(history, None, ICEBERG)] == [4]
