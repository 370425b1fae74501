"""What a target holds is decided once, and its own columns are nobody else's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.migration.migration import AlterTable, CreateTable, migration
from cdc_sync.core.migration.modes import METADATA, Mode, mode_remedy, taken_name
from cdc_sync.core.schema.changes import ChangePrimaryKey
from tests.history.versions import versions

FIRST, ADDED, RENAMED = versions()


def test_metadata_names_are_taken_in_a_changelog_in_any_case() -> None:
    assert [taken_name(name, "append") for name, _ in METADATA] == [name for name, _ in METADATA]
    assert taken_name("_CDC_Op", "append") == "_cdc_op"
    assert taken_name("cdc_op", "append") is None
    assert taken_name("_cdc_op", "upsert") is None


def test_another_mode_than_the_tables_is_refused_with_what_to_do() -> None:
    assert mode_remedy("append", "append") is None
    refused = mode_remedy("append", "upsert")
    assert refused is not None
    reason, remedy = refused
    assert "holds a changelog (mode: append)" in reason
    assert remedy == "set mode: append again, or give the table another target and snapshot it again"


def test_a_changelog_is_created_as_one_and_never_filled() -> None:
    assert migration(None, None, RENAMED, mode="append").steps == (CreateTable(schema=RENAMED.schema, mode="append"),)
    assert [type(step) for step in migration(FIRST, FIRST, RENAMED, mode="append").steps] == [AlterTable]
    assert migration(RENAMED, FIRST, RENAMED, mode="append").steps == ()


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_another_key_only_moves_the_stamp(mode: Mode) -> None:
    without = replace(FIRST, number=2, schema=replace(FIRST.schema, primary_key=()))
    (alter,) = migration(FIRST, FIRST, without, mode=mode).steps
    assert isinstance(alter, AlterTable)
    assert [type(change) for _, change in alter.steps] == [ChangePrimaryKey]
