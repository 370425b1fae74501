"""Every column of either side is compared, or named with a reason."""

from __future__ import annotations

import pytest

from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import BINARY, DATE, INT32, STRING, DataType, Field, ListType, MapType, StructType
from cdc_sync.operations.verify import mysql_sql, postgres_sql
from cdc_sync.operations.verify.columns import SourceColumn, SourceTypes, pair_columns
from cdc_sync.operations.verify.dialect import NULL
from cdc_sync.operations.verify.queries import Relation

POSTGRES = SourceTypes(dialect=postgres_sql.POSTGRES, templates=postgres_sql.TYPES, reasons=postgres_sql.REASONS)
MYSQL = SourceTypes(dialect=mysql_sql.MYSQL, templates=mysql_sql.TYPES, reasons=mysql_sql.REASONS)


def tracked(*columns: Column) -> InternalSchema:
    return InternalSchema(columns=columns, primary_key=(), last_column_id=100)


def reason(type_: DataType, source: SourceColumn, types: SourceTypes = POSTGRES) -> str:
    """Return why a column of this type is not compared."""
    compared, left = pair_columns(tracked(Column(id=1, name="a", type=type_)), [source], types)
    assert compared == ()
    (only,) = left
    assert only.column == "a"
    return only.reason


def test_columns_are_paired_by_their_present_names() -> None:
    schema = tracked(
        Column(id=4, name="renamed", type=STRING),
        Column(id=2, name="kept", type=INT32, retired=True),
        Column(id=3, name="behind", type=DATE),
    )
    there = [SourceColumn(name="new", type="int4"), SourceColumn(name="renamed", type="text")]
    compared, left = pair_columns(schema, [*there, SourceColumn(name="kept", type="int4")], POSTGRES)
    assert [(item.id, item.name) for item in compared] == [(4, "renamed")]
    assert {item.column: item.reason.split(";")[0] for item in left} == {
        "kept": "the target has no such column",
        "behind": "the source has no column of this name now",
        "new": "the target has no such column",
    }


@pytest.mark.parametrize(
    ("type_", "source", "types", "said"),
    [
        (STRING, SourceColumn(name="a", type="tstzrange"), POSTGRES, "depends on the time zone of the connector"),
        (STRING, SourceColumn(name="a", type="interval"), POSTGRES, "source's type interval and the target's"),
        (STRING, SourceColumn(name="a", type="bytea"), POSTGRES, "source's type bytea and the target's"),
        (STRING, SourceColumn(name="a", type="json"), MYSQL, "binary JSON in other words"),
        (STRING, SourceColumn(name="a", type="text", reason="it is generated"), POSTGRES, "it is generated"),
        (STRING, SourceColumn(name="a", type="text", is_list=True), POSTGRES, "source's type text[] and"),
        (ListType(element_id=9, element=STRING), SourceColumn(name="a", type="text"), POSTGRES, "type text and"),
        (
            MapType(key_id=8, key=STRING, value_id=9, value=STRING),
            SourceColumn(name="a", type="hstore"),
            POSTGRES,
            "JSON or as a map",
        ),
        (
            StructType(fields=(Field(id=9, name="a", type=BINARY),)),
            SourceColumn(name="a", type="circle"),
            POSTGRES,
            "source's type circle",
        ),
    ],
)
def test_a_column_without_a_common_text_says_why(
    type_: DataType, source: SourceColumn, types: SourceTypes, said: str
) -> None:
    assert said in reason(type_, source, types)


def test_a_name_stays_one_identifier() -> None:
    for types, wanted in ((POSTGRES, '"a""b{c}`"'), (MYSQL, '`a"b{c}```')):
        word = "text" if types is POSTGRES else "varchar"
        name = 'a"b{c}`'
        (column,), _ = pair_columns(
            tracked(Column(id=1, name=name, type=STRING)), [SourceColumn(name=name, type=word)], types
        )
        assert wanted in column.source.part
        assert column.target.part == f"coalesce(md5(c1), '{NULL}')"


def test_what_is_asked_of_a_table() -> None:
    schema = tracked(Column(id=1, name="id", type=INT32), Column(id=2, name="note", type=STRING))
    there = [SourceColumn(name="id", type="int4"), SourceColumn(name="note", type="text")]
    (key, note), _ = pair_columns(schema, there, POSTGRES)
    relation = Relation(dialect=POSTGRES.dialect, table='"s"."t"', key=(key.source,), columns=(key.source, note.source))
    rows = (
        "(select md5(convert_to(array_to_string(array[coalesce((\"id\")::text, 'N')], ','), 'UTF8')) as k, "
        "md5(convert_to(array_to_string(array[coalesce((\"id\")::text, 'N'), "
        "coalesce(md5(convert_to((\"note\")::text, 'UTF8')), 'N')], ','), 'UTF8')) as h from \"s\".\"t\") as r"
    )
    assert relation.sums(2) == (
        f"select substr(k, 1, 2), count(*), sum(('x0' || substr(h, 1, 15))::bit(64)::bigint) from {rows} group by 1"
    )
    assert relation.digests(["ab", "cd"]) == (
        f"select k, h, count(*) from {rows} where substr(k, 1, 2) in ('ab', 'cd') group by 1, 2"
    )
    whole = "0" * 32
    assert relation.values([whole], 0, 1).endswith(f' as v1 from "s"."t") as r where k in (\'{whole}\')')


def test_without_a_key_a_row_is_known_by_all_it_holds() -> None:
    (column,), _ = pair_columns(
        tracked(Column(id=1, name="a", type=INT32)), [SourceColumn(name="a", type="int")], MYSQL
    )
    relation = Relation(dialect=MYSQL.dialect, table="t", key=(), columns=(column.source,))
    assert relation.key_digest == relation.row_digest
