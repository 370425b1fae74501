"""From records to rows of the head: values, problems, several schemas at once, and what a delete carries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.schema_book import SchemaBook
from cdc_sync.core.history.history import History
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.model.positions import SourcePosition
from cdc_sync.core.planning.column_mappings import readings, with_declared_key
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.core.planning.problems import (
    AMBIGUOUS_NULL,
    HALF_OF_A_PAIR,
    KEY_IS_FALLBACK,
    KEY_MAY_BE_MADE_UP,
    LOST,
    MALFORMED,
    NO_IMAGE,
    NO_KEY,
    PLACEHOLDER_FOUND,
    TRUNCATE,
    UNKNOWN_OPERATION,
    UNKNOWN_SCHEMA,
)
from cdc_sync.core.schema.projection import Constant, Untold
from cdc_sync.spark.columns import value_column
from cdc_sync.spark.compile import convert, unchangeable
from cdc_sync.spark.converter import Converter, Decoding
from cdc_sync.spark.latest import latest
from cdc_sync.spark.placeholders import PLACEHOLDER
from cdc_sync.spark.unchanged import OVERFLOWN, UNREAD, UNSENT
from cdc_sync.testing import BYTES, DATE, INT32, INT64, TEXT, Record, SourceTable, Wal, array, column, decimal, struct
from tests.plan.model import ROUTE, observations, stretches, topic
from tests.spark.records import frame, one

pytestmark = pytest.mark.spark


def table(*columns: Any, **options: Any) -> SourceTable:
    more = columns or (column("a", TEXT),)
    return SourceTable("t", [column("id", INT32, optional=False), *more], **{"null_is_default": False, **options})


def history(t: SourceTable) -> History:
    (events,) = topic(t.records)
    plan = plan_table(None, observations(None, stretches(events, events, None), events), ROUTE, ICEBERG)
    assert plan.refusal is None, plan.refusal
    return History(table=t.id, versions=plan.versions)


def converters(t: SourceTable, known: History, declared: tuple[str, ...] | None = None) -> tuple[Converter, ...]:
    book, found = SchemaBook(), {}
    for record in t.records:
        if record.value is None or (record.key is None and declared is None):
            continue
        item = book.learn(record.key, record.value)
        assert item.schema is not None
        assert item.fingerprint is not None
        found[item.digest] = [
            Converter(
                key_form=item.key_form,
                value_form=item.value_form,
                table=t.id,
                schema=with_declared_key(item.schema, replace(ROUTE, key=declared)),
                projection=reading.projection,
                from_position=reading.from_position,
                to_position=reading.to_position,
            )
            for reading in readings(known, item.schema, item.fingerprint, known.head.position)
        ]
    return tuple(converter for several in found.values() for converter in several)


def converted(
    session: SparkSession,
    t: SourceTable,
    extra: Iterable[Record] = (),
    *,
    refuse_ambiguous_null: bool = False,
    declared: tuple[str, ...] | None = None,
    numbers: bool = False,
) -> DataFrame:
    known = history(t)
    records = [record for record in (*t.records, *extra) if record.value is not None]
    head = known.head.schema
    decoding = Decoding(refuse_ambiguous_null=refuse_ambiguous_null, images=declared is not None, numbers=numbers)
    return convert(frame(session, one(records)), converters(t, known, declared), head, decoding)


def by_offset(found: DataFrame) -> list[Row]:
    return sorted(found.collect(), key=lambda row: row.offset)


def problems(found: DataFrame) -> list[str | None]:
    return [row.problem for row in by_offset(found)]


def values(rows: Sequence[Row], width: int) -> list[tuple[object, ...]]:
    return [tuple(row[value_column(id_)] for id_ in range(1, width + 1)) for row in rows]


def changed(record: Record, old: bytes, new: bytes) -> Record:
    assert record.value is not None
    assert old in record.value
    return replace(record, value=record.value.replace(old, new))


def test_rows_carry_place_operation_lsn_and_values(session: SparkSession) -> None:
    t = table(column("p", decimal(6, 2)))
    t.insert(id=1, p=Decimal("1.50"))
    t.update({"id": 1}, p=None)
    t.delete({"id": 1})
    rows = by_offset(converted(session, t))
    assert [(row.partition, row.offset, row.op) for row in rows] == [(0, 0, "c"), (0, 1, "u"), (0, 2, "d")]
    assert [row.lsn for row in rows] == sorted(row.lsn for row in rows)
    assert values(rows, 2) == [(1, Decimal("1.50")), (1, None), (1, None)]
    assert {row.problem for row in rows} == {None}


def test_a_delete_carries_only_its_key(session: SparkSession) -> None:
    t = table(column("a", TEXT, optional=False), full_identity=True)
    t.insert(id=7, a="x")
    t.delete({"id": 7})
    (_, deleted) = by_offset(converted(session, t))
    assert (deleted.op, values([deleted], 2)) == ("d", [(7, None)])


def test_each_record_tells_whether_its_decimals_are_numbers(session: SparkSession) -> None:
    """`decimal.format` shows in no schema, and may be switched while the topic goes on."""
    t = table(column("p", decimal(38, 2)), column("l", array(decimal(6, 1))), column("n", TEXT))
    text = t.insert(id=1, p=Decimal("1.50"), l=[Decimal("2.5")], n='"p":7')[0]
    records = [
        text,
        changed(changed(text, b'"p":"AJY="', b'"p":123456789012345678901234567890.12'), b'["GQ=="]', b"[3.5,null]"),
        changed(changed(text, b'"p":"AJY="', b'"p":null'), b'["GQ=="]', b"null"),
        changed(text, b'"p":"AJY="', b'"p":12.345'),
        changed(changed(text, b'"p":"AJY="', b'"p":1.50'), b'["GQ=="]', b'["1234"]'),
    ]
    t.records[:] = [text]
    assert problems(converted(session, t, records[1:])) == [None, MALFORMED, None, MALFORMED, MALFORMED]
    rows = by_offset(converted(session, t, records[1:], numbers=True))
    assert [row.problem for row in rows] == [None, None, None, MALFORMED, MALFORMED]
    assert values(rows[:3], 3) == [
        (1, Decimal("1.50"), [Decimal("2.5")]),
        (1, Decimal("123456789012345678901234567890.12"), [Decimal("3.5"), None]),
        (1, None, None),
    ]


def test_what_cannot_be_applied_is_named(session: SparkSession) -> None:
    t = table(column("a", TEXT), column("d", DATE))
    (good,) = t.insert(id=1, a="x", d=None)
    other = table(column("b", TEXT)).insert(id=1)
    renamed = SourceTable("u", t.columns, null_is_default=False)
    renamed.topic = t.topic
    extra: dict[str, tuple[Record, str]] = {
        "another schema": (other[0], UNKNOWN_SCHEMA),
        "another table of the same columns": (renamed.insert(id=1)[0], UNKNOWN_SCHEMA),
        "another key": (replace(good, key=b"1"), UNKNOWN_SCHEMA),
        "no key": (replace(good, key=None), UNKNOWN_SCHEMA),
        "a string for a number": (changed(good, b'"id":1', b'"id":"one"'), MALFORMED),
        "cut short": (replace(good, value=(good.value or b"")[:-20]), MALFORMED),
        "a null key column": (changed(good, b'"id":1', b'"id":null'), NO_KEY),
        "an operation of the future": (changed(good, b'"op":"c"', b'"op":"x"'), UNKNOWN_OPERATION),
        "a truncate": (changed(good, b'"op":"c"', b'"op":"t"'), TRUNCATE),
        "an unchanged large value": (t.insert(id=2, a=PLACEHOLDER)[0], PLACEHOLDER_FOUND),
        "a day no calendar has": (changed(good, b'"d":null', b'"d":2147483647'), LOST + "d"),
    }
    t.records[:] = [good]
    found = problems(converted(session, t, [record for record, _ in extra.values()]))
    assert dict(zip(["good", *extra], found, strict=True)) == {
        "good": None,
        **{name: problem for name, (_, problem) in extra.items()},
    }


def test_half_of_a_surrogate_pair_is_no_text(session: SparkSession) -> None:
    texts = {
        rb"\ud83d\ude00": False,
        rb"\uD83D\uDE00 and \uD83D\uDE00": False,
        rb"\\ud83d": False,
        rb"\\\ud83d": True,
        rb"a\ud83d": True,
        rb"\ude00\ud83d": True,
        rb"\ud83d\ud83d\ude00": True,
        rb"\udE00": True,
        rb"\u00e9": False,
    }
    t = table()
    (good,) = t.insert(id=1, a="here")
    t.records = [changed(good, b'"here"', b'"' + text + b'"') for text in texts]
    rows = by_offset(converted(session, t))
    assert [row.problem for row in rows] == [HALF_OF_A_PAIR if is_half else None for is_half in texts.values()]
    whole = [row["c2"] for row in rows if row.problem is None]
    assert whole == [json.loads(b'"' + text + b'"') for text, is_half in texts.items() if not is_half]


def test_a_key_the_connector_made_up_is_found(session: SparkSession) -> None:
    t = table(column("a", TEXT, optional=False))
    t.insert(id=0, a="x")
    (deleted, _) = t.delete({"id": 0})
    by_index = changed(deleted, b'"before":{"id":0,"a":""}', b'"before":{"id":0,"a":"real"}')
    assert problems(converted(session, t, [by_index])) == [None, None, KEY_IS_FALLBACK]


def test_a_key_the_connector_made_up_in_part_is_found(session: SparkSession) -> None:
    t = table(column("part", INT32, optional=False), column("a", TEXT, optional=False), key=("part", "id"))
    t.insert(id=0, part=5, a="x")
    (deleted, _) = t.delete({"id": 0})
    by_index = changed(deleted, b'"part":5,"a":""}', b'"part":5,"a":"real"}')
    assert problems(converted(session, t, [by_index])) == [None, None, KEY_IS_FALLBACK]


def test_a_delete_is_told_whose_key_may_be_made_up_where_no_row_has_it(session: SparkSession) -> None:
    columns = (column("part", INT32, optional=False), column("a", TEXT))
    for full, connector, wanted in (
        (False, b"postgresql", True),
        (True, b"postgresql", False),
        (False, b"mysql", False),
    ):
        t = table(*columns, key=("part", "id"), full_identity=full)
        t.insert(id=2, part=0, a="x")
        t.delete({"id": 2})
        t.insert(id=2, part=1, a="x")
        t.delete({"id": 2})
        t.records = [
            record
            if record.value is None
            else changed(record, b"connector.postgresql.", b"connector." + connector + b".")
            for record in t.records
        ]
        known, records = history(t), [record for record in t.records if record.value is not None]
        rows = frame(session, one(records))
        told = convert(rows, converters(t, known), known.head.schema, Decoding(tell_made_up=True))
        assert [row["made_up"] for row in by_offset(told)] == [False, wanted, False, False]
        at_first = convert(rows, converters(t, known), known.head.schema, Decoding(tell_made_up=False))
        assert problems(at_first) == [None, KEY_MAY_BE_MADE_UP if wanted else None, None, None]


def test_a_value_in_a_column_that_accepts_null_proves_that_a_key_of_zero_is_real(session: SparkSession) -> None:
    t = table(column("a", TEXT, optional=False), column("n", INT32), full_identity=True)
    for n in (7, None):
        t.insert(id=0, a="real", n=n)
        t.delete({"id": 0})
    assert problems(converted(session, t)) == [None, None, None, KEY_IS_FALLBACK]


def test_no_connector_but_that_of_postgres_makes_keys_up(session: SparkSession) -> None:
    t = table(column("a", TEXT, optional=False), full_identity=True)
    t.insert(id=0, a="real")
    t.delete({"id": 0})
    assert problems(converted(session, t)) == [None, KEY_IS_FALLBACK]
    t.records = [
        record if record.value is None else changed(record, b"connector.postgresql.Source", b"connector.mysql.Source")
        for record in t.records
    ]
    assert problems(converted(session, t)) == [None, None]


def test_a_default_is_what_the_connector_makes_up_where_there_is_one(session: SparkSession) -> None:
    t = table(column("a", TEXT, optional=False, default="new"), column("at", DATE, optional=False, default=19_000))
    t.insert(id=0, a="x")
    t.delete({"id": 0})
    assert problems(converted(session, t)) == [None, None]
    by_default = SourceTable(
        "t", [column("id", INT32, optional=False, default=7), column("a", TEXT, optional=False)], full_identity=True
    )
    by_default.insert(id=7, a="real")
    by_default.delete({"id": 7})
    assert problems(converted(session, by_default)) == [None, KEY_IS_FALLBACK]


def test_a_number_of_any_scale_is_made_up_as_zero(session: SparkSession) -> None:
    members = (column("scale", INT32, optional=False), column("value", BYTES, optional=False))
    number = column("n", struct("io.debezium.data.VariableScaleDecimal", *members), optional=False)
    t = table(number, column("at", TEXT, optional=False), full_identity=True)
    for value in ("AA==", "AQ=="):
        t.insert(id=0, n={"scale": 0, "value": value}, at="00:00:00Z")
        t.delete({"id": 0})
    assert problems(converted(session, t)) == [None, None, None, KEY_IS_FALLBACK]


class TestADeclaredKey:
    COLUMNS = (column("a", TEXT, optional=False), column("n", INT32, optional=False))

    def deletes(
        self, session: SparkSession, declared: tuple[str, ...], *rows: dict[str, object], **options: Any
    ) -> list[str | None]:
        t = table(*self.COLUMNS, **options)
        for row in rows:
            t.insert(row)
            t.delete(row)
        return problems(converted(session, t, declared=declared))[1::2]

    def test_that_is_the_record_key_is_believed(self, session: SparkSession) -> None:
        row: dict[str, object] = {"id": 0, "a": "real", "n": 1}
        assert self.deletes(session, ("id",), row, full_identity=True) == [None]

    def test_is_believed_where_records_have_none(self, session: SparkSession) -> None:
        row: dict[str, object] = {"id": 0, "a": "real", "n": 1}
        assert self.deletes(session, ("id",), row, full_identity=True, key=()) == [None]

    def test_that_a_default_identity_does_not_hold_is_no_image(self, session: SparkSession) -> None:
        row: dict[str, object] = {"id": 1, "a": "real", "n": 1}
        assert self.deletes(session, ("a",), row) == [NO_IMAGE]
        assert self.deletes(session, ("a",), row, full_identity=True) == [None]

    def test_may_be_empty_where_the_image_shows_more_than_a_default_one(self, session: SparkSession) -> None:
        shown: dict[str, object] = {"id": 1, "a": "", "n": 1}
        only_key: dict[str, object] = {"id": 1, "a": "", "n": 0}
        found = self.deletes(session, ("a",), shown, only_key, full_identity=True)
        assert found == [None, NO_IMAGE]

    def test_of_an_index_that_makes_the_record_key_up_is_real(self, session: SparkSession) -> None:
        for code in ("real", ""):
            by_index: dict[str, object] = {"id": 0, "a": code, "n": 0}
            assert self.deletes(session, ("a",), by_index, full_identity=True) == [None]


def test_a_null_that_may_be_a_default_is_found_where_the_converter_replaces_it(session: SparkSession) -> None:
    def two(*, null_is_default: bool) -> SourceTable:
        t = table(column("a", TEXT, default="x"), null_is_default=null_is_default)
        t.insert(id=1, a=None)
        t.insert(id=2, a="y")
        return t

    replaced, kept = two(null_is_default=True), two(null_is_default=False)
    assert problems(converted(session, replaced, refuse_ambiguous_null=True)) == [AMBIGUOUS_NULL, None]
    assert problems(converted(session, replaced)) == [None, None]
    assert problems(converted(session, kept, refuse_ambiguous_null=True)) == [None, None]


def test_records_of_several_schemas_become_rows_of_one(session: SparkSession) -> None:
    t = table(column("a", INT32), column("z", TEXT))
    t.insert(id=1, a=1, z="old")
    t.add_column(column("n", TEXT, default="d"), initial="d")
    t.insert(id=2, a=2, z="more", n="n")
    t.rename_column("a", "b")
    t.insert(id=4, b=4)
    t.drop_column("z")
    t.insert(id=3, b=3, n=None)
    known = history(t)
    ids = {c.name: c.id for c in known.head.schema.columns}
    rows = by_offset(converted(session, t))
    found = [tuple(row[value_column(ids[name])] for name in ("id", "b", "n")) for row in rows]
    assert found == [(1, 1, "d"), (2, 2, "n"), (4, 4, "d"), (3, 3, None)]


def test_one_text_that_stood_for_two_columns_is_read_by_position(session: SparkSession) -> None:
    t = table()
    t.insert(id=1, a="gone")
    t.drop_column("a")
    t.insert(id=2)
    t.add_column(column("a", TEXT))
    t.insert(id=3, a="new")
    (new,) = (c.id for c in history(t).head.schema.columns if c.name == "a")
    rows = by_offset(converted(session, t))
    assert [row[value_column(new)] for row in rows] == [None, None, "new"]
    assert {row.problem for row in rows} == {None}


def test_two_texts_that_both_stood_for_other_columns_before_are_read_by_position(session: SparkSession) -> None:
    t = table(column("x", TEXT), column("v", TEXT))
    t.insert(id=1, x="gone", v="gone")
    t.drop_column("v")
    t.insert(id=2, x="gone")
    t.drop_column("x")
    t.insert(id=3)
    t.add_column(column("x", TEXT))
    t.insert(id=4, x="new")
    t.add_column(column("v", TEXT))
    t.insert(id=5, x="newer", v="new")
    ids = {c.name: c.id for c in history(t).head.schema.columns}
    rows = by_offset(converted(session, t))
    assert [(row[value_column(ids["x"])], row[value_column(ids["v"])]) for row in rows] == [
        (None, None),
        (None, None),
        (None, None),
        ("new", None),
        ("newer", "new"),
    ]
    assert {row.problem for row in rows} == {None}


def test_texts_whose_later_columns_have_other_types_are_not_read_together(session: SparkSession) -> None:
    t = table(column("x", TEXT))
    t.insert(id=1, x="gone")
    t.drop_column("x")
    t.insert(id=2)
    t.add_column(column("x", INT32))
    t.insert(id=3, x=3)
    t.drop_column("x")
    t.insert(id=4)
    t.add_column(column("x", TEXT))
    t.insert(id=5, x="new")
    t.alter_column("x", lambda _: column("x", INT32))
    t.insert(id=6, x=6)
    known = history(t)
    (new,) = (c.id for c in known.head.schema.columns if c.name == "x")
    rows = by_offset(converted(session, t))
    assert [row.problem for row in rows][:4] == [None] * 4
    assert [row[value_column(new)] for row in rows][:4] == [None] * 4
    assert rows[5][value_column(new)] == 6


def test_a_bounded_converter_takes_nothing_outside_its_range(session: SparkSession) -> None:
    t = table()
    for number in range(3):
        t.insert(id=number)
    known = history(t)
    (events,) = topic(t.records)
    (whole,) = converters(t, known)
    middle: SourcePosition = events[1].source.position
    bounded = (replace(whole, from_position=middle, to_position=events[2].source.position),)
    found = convert(frame(session, one(t.records)), bounded, known.head.schema, Decoding())
    assert problems(found) == [UNKNOWN_SCHEMA, None, UNKNOWN_SCHEMA]


def test_crafted_names_and_values_stay_what_they_are(session: SparkSession) -> None:
    name = '"a`,\\.b é\u2028😀,"payload":'
    t = table(column(name, TEXT, default=name))
    t.insert({"id": 1, name: name})
    t.insert({"id": 2, name: '{"schema":{},"payload":"}"}'})
    rows = by_offset(converted(session, t))
    assert values(rows, 2) == [(1, name), (2, '{"schema":{},"payload":"}"}')]


@pytest.mark.parametrize("name", ["\u0e44\u0e17\u0e22", "\U0001f600", "a\U0010ffff.b", "caf\u00e9"])
def test_texts_that_look_like_numbers_are_texts_however_their_column_is_spelt(session: SparkSession, name: str) -> None:
    t = table(column(name, TEXT))
    for id_ in range(4):
        t.insert({"id": id_, name: "12"})
    spelt = next(form for form in (_quoted_by_jackson(name), name) if form.encode() in (t.records[0].value or b""))
    raw, escaped = (json.dumps(name, ensure_ascii=ascii_)[1:-1] for ascii_ in (False, True))
    number = (t.records[3].value or b"").replace(b':"12"', b":12")
    t.records[1:] = [
        _spelt_in_payload(t.records[1], spelt, raw),
        _spelt_in_payload(t.records[2], spelt, escaped),
        Record(key=t.records[3].key, value=number),
    ]
    assert [problem is None for problem in problems(converted(session, t))] == [True, True, True, False]


def _quoted_by_jackson(name: str) -> str:
    units = (character.encode("utf-16-be").hex().upper() for character in name)
    return "".join(
        character if len(unit) == 4 else f"\\u{unit[:4]}\\u{unit[4:]}"
        for character, unit in zip(name, units, strict=True)
    )


def _spelt_in_payload(record: Record, name: str, other: str) -> Record:
    schema, marker, payload = (record.value or b"").partition(b',"payload":')
    return Record(key=record.key, value=schema + marker + payload.replace(name.encode(), other.encode()))


def test_the_last_event_of_each_key_is_left(session: SparkSession) -> None:
    t = table(wal=Wal())
    t.insert(id=1, a="first")
    t.update({"id": 1}, a="last")
    t.insert(id=2, a="x")
    t.delete({"id": 2})
    t.insert(id=3, a="back")
    t.delete({"id": 3})
    t.insert(id=3, a=None)
    t.snapshot()
    updated = t.update({"id": 1}, a="only updated")
    known = history(t)
    found = latest(converted(session, t), known.head.schema)
    rows = {row["c1"]: (row.deleted, row.created, row["c2"]) for row in found.collect()}
    assert rows == {1: (False, True, "only updated"), 2: (True, True, None), 3: (False, True, None)}
    t.records[:] = updated
    (row,) = latest(converted(session, t), history(t).head.schema).collect()
    assert (row.deleted, row.created, row["c2"]) == (False, False, "only updated")


def test_constants_of_every_kind_come_out_typed(session: SparkSession) -> None:
    t = table()
    t.insert(id=1)
    known = history(t)
    (whole,) = converters(t, known)
    type_ = known.head.schema.columns[0].type
    fixed = replace(
        whole,
        projection=replace(
            whole.projection,
            columns=(
                whole.projection.columns[0],
                Constant(id=2, value=5, target=type_),
            ),
        ),
    )
    found = convert(frame(session, one(t.records)), (fixed,), known.head.schema, Decoding())
    assert values(by_offset(found), 2) == [(1, 5)]


def test_an_update_leaves_a_column_as_it_is_that_its_schema_does_not_show(session: SparkSession) -> None:
    t = table(column("n", INT32))
    t.insert(id=1, n=5)
    t.update({"id": 1}, n=6)
    t.delete({"id": 1})
    known = history(t)
    (whole,) = converters(t, known)
    untold = Untold(id=2, target=known.head.schema.columns[1].type)
    fixed = replace(whole, projection=replace(whole.projection, columns=(whole.projection.columns[0], untold)))
    records = frame(session, one(t.records))
    with_headers = records.withColumn("headers", F.lit(None).cast("array<struct<key:string,value:binary>>"))
    found = convert(with_headers, (fixed,), known.head.schema, Decoding(keep_unchanged=True))
    assert [(row.problem, row["c2"], row["u2"]) for row in by_offset(found)][:3] == [
        (None, None, False),
        (None, None, True),
        (None, None, False),
    ]
    assert problems(convert(records, (fixed,), known.head.schema, Decoding()))[:3] == [None, PLACEHOLDER_FOUND, None]


@pytest.mark.parametrize("full", [False, True], ids=["default identity", "full identity"])
def test_null_in_an_array_without_a_placeholder_is_in_doubt_in_updates(session: SparkSession, *, full: bool) -> None:
    t = table(column("nums", array(decimal(12, 2))), column("ints", array(INT32)), full_identity=full)
    t.insert(id=1, nums=[Decimal(1)], ints=[None, None])
    t.update({"id": 1}, nums=None, ints=None)
    t.insert(id=2)
    known = history(t)
    of_no_key_update = F.array(F.struct(F.lit("trace").alias("key"), F.lit(b"").alias("value")))
    records = frame(session, one(t.records)).withColumn("headers", of_no_key_update)
    head, all_ = known.head.schema, converters(t, known)
    found = by_offset(convert(records, all_, head, Decoding(keep_unchanged=True, unsent=True)))
    doubt = None if full else UNSENT
    assert [(row["u2"], row["q2"], row["q4"]) for row in found] == [
        (False, None, UNREAD),
        (not full, doubt, None),
        (False, None, None),
    ]
    assert unchangeable(all_, head, Decoding(keep_unchanged=True, unsent=True)) == (2, 4)
    at_first = problems(convert(records, all_, head, Decoding(unsent=True)))
    assert at_first == [PLACEHOLDER_FOUND, None if full else PLACEHOLDER_FOUND, None]
    assert problems(convert(records, all_, head, Decoding())) == [None, None, None]


def test_a_column_that_the_stream_never_shows_is_kept_by_updates_and_in_doubt_in_new_rows(
    session: SparkSession,
) -> None:
    t = table(column("n", TEXT))
    t.insert(id=1)
    t.update({"id": 1}, n=None)
    t.insert(id=2, n="from a snapshot")
    known = history(t)
    all_ = tuple(replace(item, unread=frozenset({"n"})) for item in converters(t, known))
    headers = F.array(F.struct(F.lit("trace").alias("key"), F.lit(b"").alias("value")))
    rows = frame(session, one(t.records)).withColumn("headers", headers)
    found = by_offset(convert(rows, all_, known.head.schema, Decoding(keep_unchanged=True, unsent=True)))
    assert [(row["u2"], row["q2"]) for row in found] == [(False, UNREAD), (True, UNSENT), (False, None)]


def test_a_negative_number_of_an_unsigned_column_is_in_doubt_also_in_a_key(session: SparkSession) -> None:
    t = table(column("u", INT64), column("n", INT64), key=("u",))
    t.insert(id=1, u=2**63 - 1, n=-1)
    t.insert(id=2, u=-1, n=-1)
    known = history(t)
    all_ = tuple(replace(item, unsigned=frozenset({"u"})) for item in converters(t, known))
    rows = frame(session, one(t.records))
    assert problems(convert(rows, all_, known.head.schema, Decoding())) == [None, PLACEHOLDER_FOUND]
    rows = rows.withColumn("headers", F.lit(None).cast("array<struct<key:string,value:binary>>"))
    found = by_offset(convert(rows, all_, known.head.schema, Decoding(keep_unchanged=True)))
    assert [(row["c2"], row["q2"], row.problem) for row in found] == [(2**63 - 1, None, None), (-1, OVERFLOWN, None)]


@pytest.mark.parametrize(
    ("first", "second", "old", "new"),
    [
        (TEXT, INT32, "seven", 7),
        (decimal(12, 2), decimal(8, 2), Decimal("9999999999.99"), Decimal("1.50")),
        (DATE, TEXT, 19000, "x"),
    ],
    ids=["another type", "a narrower one", "a number once"],
)
def test_a_name_that_stood_for_a_dropped_column_of_another_type_disturbs_nobody(
    first: ConnectSchema, second: ConnectSchema, old: object, new: object, session: SparkSession
) -> None:
    t = table(column("a", first), column("b", TEXT))
    t.insert(id=1, a=old, b="one")
    t.drop_column("a")
    t.insert(id=2, b="two")
    t.add_column(column("a", second))
    t.insert(id=3, a=new, b="three")
    rows = by_offset(converted(session, t))
    assert [row.problem for row in rows] == [None, None, None]
    assert [(row[value_column(3)], row[value_column(4)]) for row in rows] == [
        ("one", None),
        ("two", None),
        ("three", new),
    ]


def test_a_name_that_was_the_keys_and_is_another_columns_now_does_not_mix_them(session: SparkSession) -> None:
    t = table(column("a", TEXT))
    t.insert(id=1, a="one")
    t.rename_column("id", "number")
    t.insert(number=2, a="two")
    t.add_column(column("id", INT64))
    t.insert(number=3, a="three", id=5_000_000_000)
    t.update({"number": 3}, id=None)
    rows = by_offset(converted(session, t))
    assert [row.problem for row in rows] == [None] * 4
    assert [(row[value_column(1)], row[value_column(3)]) for row in rows] == [
        (1, None),
        (2, None),
        (3, 5_000_000_000),
        (3, None),
    ]
