"""Evidence that comes after the decision: what was split is said, what was joined is found."""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.lineage.audit import Joined, Split, audit
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.routes import Join
from cdc_sync.core.planning.merge_columns import join_version
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT32
from tests.evidence.test_proof import at, history, log
from tests.schema.tables import known


def _then(recorded: History, schema: InternalSchema, pos: int) -> History:
    changes = diff(recorded.head.schema, schema)
    return recorded.extended(
        replace(recorded.head, number=len(recorded.versions) + 1, schema=schema, changes=changes, position=at(pos))
    )


def _schema(*columns: tuple[int, str, bool]) -> InternalSchema:
    made = tuple(Column(id=id_, name=name, type=INT32, retired=retired) for id_, name, retired in columns)
    return InternalSchema(columns=made, primary_key=(1,), last_column_id=max(column.id for column in made))


RENAMED = log((5, "id=1 a=2", ""), (20, "id=1 b=2", "alter t rename a to b"))
REPLACED = log((5, "id=1 a=2", ""), (20, "id=1 a=3", "alter t drop a, add a int"))


def test_a_rename_recorded_as_two_columns_is_a_split() -> None:
    recorded = _then(history(known("id a")), _schema((1, "id", False), (2, "a", True), (3, "b", False)), 30)
    assert audit(recorded, RENAMED, None) == (Split(version=2, old="a", new="b"),)


def test_a_split_that_was_joined_since_is_none() -> None:
    recorded = _then(history(known("id a")), _schema((1, "id", False), (2, "a", True), (3, "b", False)), 30)
    version = join_version(recorded, Join(table=recorded.table, kept=2, joined=3, old="a", new="b", after=2), ICEBERG)
    assert isinstance(version, Version)
    assert audit(recorded.extended(version), RENAMED, at(40)) == ()


def test_a_rename_recorded_as_one_is_right() -> None:
    recorded = _then(history(known("id a")), _schema((1, "id", False), (2, "b", False)), 30)
    assert audit(recorded, RENAMED, at(35)) == ()


def test_two_columns_recorded_as_one_are_found() -> None:
    recorded = _then(history(known("id a")), _schema((1, "id", False), (2, "a", False), (3, "n", False)), 30)
    found = log((5, "id=1 a=2", ""), (20, "id=1 a=3", "drop and add"), (21, "id=1 a=3 n=4", "add n"))
    assert audit(recorded, found, None) == (Joined(version=2, name="a", statement="drop and add"),)


def test_rows_written_before_their_statement_was_known_are_found() -> None:
    assert audit(history(known("id a")), REPLACED, at(30)) == (
        Joined(version=1, name="a", statement="alter t drop a, add a int"),
    )


def test_rows_written_before_the_statement_are_right() -> None:
    assert audit(history(known("id a")), REPLACED, at(15)) == ()
    assert audit(history(known("id a")), REPLACED, None) == ()


def test_a_name_taken_back_and_forth_is_right() -> None:
    found = log((5, "id=1 a=2", ""), (20, "id=1 b=2", "to b"), (21, "id=1 a=2", "back"))
    assert audit(history(known("id a")), found, at(30)) == ()


def test_what_is_not_known_is_not_claimed() -> None:
    found = log((5, "id=1 a=2", ""), (20, "id=x:1 a=x:3", "?"))
    assert audit(history(known("id a")), found, at(30)) == ()
