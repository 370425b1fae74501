"""The changes between two versions, in the order that always works, and no more of them than needed."""

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
    UpdateColumnDefault,
    UpdateColumnNullability,
)
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.evolve import apply_all
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.types import INT32
from cdc_sync.errors import SchemaError
from tests.schema.tables import known

TABLE = known("id a b c")


def with_names(schema: InternalSchema, names: str) -> InternalSchema:
    columns = tuple(replace(column, name=name) for column, name in zip(schema.columns, names.split(), strict=True))
    return replace(schema, columns=columns)


def ordered(schema: InternalSchema, *ids: int, key: tuple[int, ...] = (1,)) -> InternalSchema:
    return replace(schema, columns=tuple(schema.column(id_) for id_ in ids), primary_key=key)


def renames(changes: tuple[SchemaChange, ...]) -> list[str]:
    return [f"{change.old}>{change.new}" for change in changes if isinstance(change, RenameColumn)]


def test_a_chain_of_renames_begins_at_the_free_end() -> None:
    assert renames(diff(TABLE, with_names(TABLE, "id b c d"))) == ["c>d", "b>c", "a>b"]


def test_a_swap_goes_by_way_of_a_temporary_name() -> None:
    assert renames(diff(TABLE, with_names(TABLE, "id b a c"))) == [
        "a>__cdc_sync_tmp_2",
        "b>a",
        "__cdc_sync_tmp_2>b",
    ]


def test_a_temporary_name_that_somebody_uses_is_avoided() -> None:
    before = with_names(TABLE, "id a b __cdc_sync_tmp_2")
    assert renames(diff(before, with_names(TABLE, "id b a __cdc_sync_tmp_2")))[0] == "a>__cdc_sync_tmp_2_"


def test_a_dropped_name_is_free_for_a_rename_and_a_renamed_one_for_an_addition() -> None:
    after = with_names(ordered(TABLE, 1, 3, 4), "id a c")
    new = replace(TABLE.columns[2], id=5)
    after = replace(after, columns=(*after.columns, new), last_column_id=5)
    assert diff(TABLE, after) == (
        DropColumn(column=TABLE.columns[1], after=1),
        RenameColumn(id=3, old="b", new="a"),
        AddColumn(column=new, after=4),
    )


def test_one_column_that_moved_is_one_move() -> None:
    assert diff(TABLE, ordered(TABLE, 4, 1, 2, 3)) == (MoveColumn(id=4, old_after=3, new_after=None),)
    assert diff(TABLE, ordered(TABLE, 2, 3, 4, 1)) == (MoveColumn(id=1, old_after=None, new_after=4),)


def test_columns_added_in_the_middle_need_no_move() -> None:
    new = replace(TABLE.columns[1], id=5, name="n")
    after = replace(TABLE, columns=(*TABLE.columns[:2], new, *TABLE.columns[2:]), last_column_id=5)
    assert diff(TABLE, after) == (AddColumn(column=new, after=2),)


def test_the_key_changes_last_because_new_columns_may_be_in_it() -> None:
    new = replace(TABLE.columns[1], id=5, name="n")
    after = replace(TABLE, columns=(*TABLE.columns, new), primary_key=(1, 5), last_column_id=5)
    assert diff(TABLE, after) == (AddColumn(column=new, after=4), ChangePrimaryKey(old=(1,), new=(1, 5)))


def test_a_key_column_leaves_the_key_before_it_is_dropped() -> None:
    after = ordered(TABLE, 2, 3, 4, key=(2,))
    assert diff(TABLE, after) == (
        ChangePrimaryKey(old=(1,), new=(2,)),
        DropColumn(column=TABLE.columns[0], after=None),
    )


def test_a_key_column_that_is_replaced_by_a_new_one_is_taken_out_first_and_put_in_last() -> None:
    new = replace(TABLE.columns[0], id=5, name="key")
    after = replace(TABLE, columns=(new, *TABLE.columns[1:]), primary_key=(5,), last_column_id=5)
    changes = diff(TABLE, after)
    assert [type(change).__name__ for change in changes] == [
        "ChangePrimaryKey",
        "DropColumn",
        "AddColumn",
        "ChangePrimaryKey",
    ]
    assert apply_all(TABLE, changes) == after


def test_columns_are_retired_and_revived() -> None:
    retired = known("id a b c", retired="b")
    assert diff(TABLE, retired) == (RetireColumn(id=3, name="b"),)
    assert diff(retired, TABLE) == (ReviveColumn(id=3, name="b"),)


def test_false_and_zero_are_different_defaults() -> None:
    before = replace(TABLE, columns=(replace(TABLE.columns[0], default=False),), primary_key=(1,))
    after = replace(before, columns=(replace(TABLE.columns[0], default=0),))
    (change,) = diff(before, after)
    assert isinstance(change, UpdateColumnDefault)
    assert (change.old is False, change.new) == (True, 0)


def test_kinds_of_change_come_one_after_the_other_not_column_by_column() -> None:
    columns = (
        TABLE.columns[0],
        *(replace(column, optional=False, default=7) for column in TABLE.columns[1:]),
    )
    changes = diff(TABLE, replace(TABLE, columns=columns))
    assert [type(change) for change in changes] == [UpdateColumnNullability] * 3 + [UpdateColumnDefault] * 3


def test_schemas_of_different_tables_are_not_compared() -> None:
    other = replace(TABLE, columns=(*TABLE.columns[:3], replace(TABLE.columns[3], initial="7")))
    with pytest.raises(SchemaError, match="initial value of column 4"):
        diff(TABLE, other)


def test_two_thousand_columns_are_compared_fast() -> None:
    wide = known(" ".join(f"c{number}" for number in range(2_000)))
    new = replace(wide.columns[1], id=2_001, name="n", type=INT32)
    after = replace(wide, columns=(*wide.columns, new), last_column_id=2_001)
    assert diff(wide, after) == (AddColumn(column=new, after=2_000),)
