"""Schema changes in words."""

from __future__ import annotations

import pytest

from cdc_sync.core.migration.wording import change_text, phrases, type_text
from cdc_sync.core.schema.changes import (
    AddColumn,
    ChangePrimaryKey,
    DropColumn,
    JoinColumn,
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
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
    Field,
    ListType,
    MapType,
    StructType,
)

NAMES = {1: "id", 2: "qty", 3: "note"}
NOTE = Column(id=3, name="note", type=STRING)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (AddColumn(column=NOTE, after=2), "add column note STRING after qty, rows from before read NULL"),
        (
            AddColumn(
                column=Column(id=3, name="note", type=STRING, optional=False, default="it's", initial="it's"),
                after=None,
            ),
            "add column note STRING first, NOT NULL, default 'it''s', rows from before read 'it''s'",
        ),
        (DropColumn(column=NOTE, after=2), "drop column note STRING"),
        (JoinColumn(column=NOTE, after=2, into=1, into_name="memo"), "join column note into column memo"),
        (RenameColumn(id=2, old="qty", new="quantity"), "rename column qty to quantity"),
        (UpdateColumnType(id=2, old=INT32, new=INT64), "change type of column qty from INT to BIGINT"),
        (UpdateColumnNullability(id=2, old=False, new=True), "allow NULL in column qty"),
        (UpdateColumnNullability(id=2, old=True, new=False), "forbid NULL in column qty"),
        (UpdateColumnComment(id=2, old=None, new="how many"), "set comment of column qty to 'how many'"),
        (UpdateColumnComment(id=2, old="how many", new=None), "remove comment of column qty"),
        (UpdateColumnDefault(id=2, old=None, new=True), "set default of column qty to TRUE"),
        (UpdateColumnDefault(id=2, old=5, new=None), "remove default of column qty"),
        (MoveColumn(id=2, old_after=1, new_after=None), "move column qty first"),
        (MoveColumn(id=2, old_after=1, new_after=3), "move column qty after note"),
        (RetireColumn(id=2, name="qty"), "keep column qty, which the source no longer has"),
        (ReviveColumn(id=2, name="qty"), "fill column qty again, which the source has again"),
        (ChangePrimaryKey(old=(1,), new=(1, 2)), "change primary key from (id) to (id, qty)"),
        (ChangePrimaryKey(old=(1,), new=()), "change primary key from (id) to none"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_change_reads_as_a_database_administrator_would_say_it(change: SchemaChange, words: str) -> None:
    assert change_text(change, NAMES) == words


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        (BOOLEAN, "BOOLEAN"),
        (INT8, "TINYINT"),
        (FLOAT32, "FLOAT"),
        (FLOAT64, "DOUBLE"),
        (DecimalType(precision=10, scale=2), "DECIMAL(10, 2)"),
        (BINARY, "BINARY"),
        (DATE, "DATE"),
        (TIMESTAMP, "TIMESTAMP"),
        (TIMESTAMP_TZ, "TIMESTAMP WITH TIME ZONE"),
        (
            StructType(fields=(Field(id=1, name="a", type=INT32), Field(id=2, name="b", type=STRING))),
            "STRUCT<a: INT, b: STRING>",
        ),
        (ListType(element_id=1, element=STRING), "ARRAY<STRING>"),
        (MapType(key_id=1, key=STRING, value_id=2, value=INT64), "MAP<STRING, BIGINT>"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_type_reads_as_in_sql(type_: DataType, words: str) -> None:
    assert type_text(type_) == words


def schema(*names: str) -> InternalSchema:
    columns = tuple(Column(id=number, name=name, type=STRING) for number, name in enumerate(names, 1))
    return InternalSchema(columns=columns, primary_key=(), last_column_id=len(names))


def test_a_swap_of_names_is_told_without_its_temporary_name() -> None:
    changes = (
        RenameColumn(id=1, old="a", new="__cdc_sync_tmp_1"),
        RenameColumn(id=2, old="b", new="a"),
        RenameColumn(id=1, old="__cdc_sync_tmp_1", new="b"),
    )

    told = phrases(changes, schema("a", "b"), schema("b", "a"))

    assert [phrase.text for phrase in told] == ["rename column a to b", "rename column b to a"]


def test_a_phrase_says_which_kind_of_change_it_tells_of_and_which_column() -> None:
    told = phrases(
        (UpdateColumnType(id=2, old=INT32, new=INT64), ChangePrimaryKey(old=(), new=(1,))), None, schema("a", "b")
    )

    assert [(phrase.kind, phrase.column) for phrase in told] == [("UpdateColumnType", 2), ("ChangePrimaryKey", None)]
