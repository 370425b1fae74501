"""A change is applied only where it fits, and can be turned around."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.schema.changes import (
    AddColumn,
    ChangePrimaryKey,
    DropColumn,
    MoveColumn,
    RenameColumn,
    RetireColumn,
    ReviveColumn,
    SchemaChange,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
)
from cdc_sync.core.schema.evolve import apply, apply_all, left_neighbour
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT32, INT64, STRING, ListType
from cdc_sync.errors import SchemaError
from tests.schema.tables import known

TABLE = known("id a z")
NEW = Column(id=9, name="n", type=ListType(element_id=12, element=INT32))


def names(schema: InternalSchema) -> str:
    return " ".join(column.name for column in schema.columns)


def test_columns_are_added_where_the_change_says() -> None:
    assert names(apply(TABLE, AddColumn(column=NEW, after=None))) == "n id a z"
    assert names(apply(TABLE, AddColumn(column=NEW, after=2))) == "id a n z"
    assert names(apply(TABLE, AddColumn(column=NEW, after=3))) == "id a z n"


def test_ids_of_added_columns_and_their_members_are_never_handed_out_again() -> None:
    added = apply(TABLE, AddColumn(column=NEW, after=None))
    assert added.last_column_id == 12
    assert apply(added, DropColumn(column=NEW, after=None)).last_column_id == 12


def test_ids_of_new_members_of_a_changed_type_count_too() -> None:
    change = UpdateColumnType(id=2, old=INT32, new=ListType(element_id=7, element=INT32))
    assert apply(TABLE, change).last_column_id == 7


def test_columns_move_behind_a_neighbour() -> None:
    assert names(apply(TABLE, MoveColumn(id=3, old_after=2, new_after=None))) == "z id a"
    assert names(apply(TABLE, MoveColumn(id=1, old_after=None, new_after=2))) == "a id z"


def test_the_key_can_be_reordered() -> None:
    assert apply(TABLE, ChangePrimaryKey(old=(1,), new=(3, 1))).primary_key == (3, 1)


def test_changes_are_applied_one_after_the_other() -> None:
    steps = (RenameColumn(id=2, old="a", new="b"), RenameColumn(id=2, old="b", new="c"))
    assert names(apply_all(TABLE, steps)) == "id c z"


RETIRED = known("id a z", retired="a")
MISFITS: dict[str, tuple[InternalSchema, SchemaChange]] = {
    "added twice": (TABLE, AddColumn(column=TABLE.columns[1], after=None)),
    "added under a name that is taken": (TABLE, AddColumn(column=replace(NEW, name="a"), after=None)),
    "added behind nothing": (TABLE, AddColumn(column=NEW, after=99)),
    "dropped but not there": (TABLE, DropColumn(column=NEW, after=None)),
    "dropped but different": (TABLE, DropColumn(column=replace(TABLE.columns[1], type=INT64), after=1)),
    "dropped from another place": (TABLE, DropColumn(column=TABLE.columns[1], after=3)),
    "dropped from the key": (TABLE, DropColumn(column=TABLE.columns[0], after=None)),
    "renamed from another name": (TABLE, RenameColumn(id=2, old="b", new="c")),
    "renamed to a name that is taken": (TABLE, RenameColumn(id=2, old="a", new="z")),
    "renamed but not there": (TABLE, RenameColumn(id=9, old="a", new="c")),
    "retyped from another type": (TABLE, UpdateColumnType(id=2, old=STRING, new=INT64)),
    "made nullable twice": (TABLE, UpdateColumnNullability(id=2, old=False, new=True)),
    "another comment": (TABLE, UpdateColumnComment(id=2, old="x", new=None)),
    "another default": (TABLE, UpdateColumnDefault(id=2, old=1, new=2)),
    "moved from another place": (TABLE, MoveColumn(id=2, old_after=3, new_after=None)),
    "moved behind itself": (TABLE, MoveColumn(id=2, old_after=1, new_after=2)),
    "retired twice": (RETIRED, RetireColumn(id=2, name="a")),
    "revived but live": (TABLE, ReviveColumn(id=2, name="a")),
    "another key": (TABLE, ChangePrimaryKey(old=(2,), new=(1,))),
    "a key of unknown columns": (TABLE, ChangePrimaryKey(old=(1,), new=(9,))),
}


@pytest.mark.parametrize("kind", MISFITS)
def test_a_change_that_does_not_fit_is_refused(kind: str) -> None:
    schema, change = MISFITS[kind]
    with pytest.raises(SchemaError, match="Cannot"):
        apply(schema, change)


def test_the_left_neighbour_of_the_first_column_is_nothing() -> None:
    assert (left_neighbour(TABLE, 1), left_neighbour(TABLE, 3)) == (None, 2)
    with pytest.raises(SchemaError, match="no column has id 9"):
        left_neighbour(TABLE, 9)
