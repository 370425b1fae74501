"""The steps that lead one target from what it is to the head."""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.history.revision import Version
from cdc_sync.migrate.migration import AlterTable, Backfill, CreateTable, migration
from cdc_sync.schema.changes import AddColumn, RenameColumn
from cdc_sync.schema.evolve import apply
from tests.history.versions import versions

FIRST, ADDED, RENAMED = versions()


def kinds(stamped: Version | None, rows_at: Version | None, head: Version) -> list[str]:
    return [type(step).__name__ for step in migration(stamped, rows_at, head).steps]


def test_a_missing_table_is_created_with_the_heads_columns() -> None:
    made = migration(None, None, RENAMED)
    assert made.steps == (CreateTable(schema=RENAMED.schema),)
    assert (made.version, made.schema) == (3, RENAMED.schema)


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
