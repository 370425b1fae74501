"""JSON values of another type than declared, which Spark's parser would take, and those that only look like it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.forms import Document, Opaque
from cdc_sync.core.planning.problems import LOST, MALFORMED
from cdc_sync.spark.columns import OFFSET
from cdc_sync.spark.compile import convert
from cdc_sync.spark.converter import Decoding
from cdc_sync.spark.eventreader import EventReader
from cdc_sync.spark.recognise import are_text, digest
from cdc_sync.testing import DATE, FLOAT32, FLOAT64, INT64, TEXT, TIMESTAMP_TZ, Record, SourceTable, column
from tests.spark.records import frame, one
from tests.spark.test_convert import by_offset, changed, converted, converters, history, problems, table, values

pytestmark = pytest.mark.spark

_INFINITY, _NAN = float("inf"), float("nan")


def test_a_text_that_lost_its_quotes_is_set_aside(session: SparkSession) -> None:
    t = table(column("a", TEXT), column("z", TIMESTAMP_TZ))
    (good,) = t.insert(id=1, a="x")
    extra = {
        text: changed(good, b'"a":"x"', b'"a":' + text.encode())
        for text in ("[null]", "{}", '{"b":"x"}', "[]", "1e400", "7", "-1", "0.5", "true", "false", "NaN")
    }
    instant = changed(good, b'"z":null', b'"z":20240101')
    found = problems(converted(session, t, [*extra.values(), instant]))
    assert dict(zip(["good", *extra], found, strict=False)) == {"good": None, **dict.fromkeys(extra, LOST + "a")}
    assert found[-1] == LOST + "z"


def test_a_text_that_looks_like_something_else_is_a_text(session: SparkSession) -> None:
    t = table(column("a", TEXT))
    texts = (
        "[null]",
        "{}",
        '{"a":7}',
        '["a"]',
        "1e400",
        "7",
        "-1",
        "+1",
        "true",
        "false",
        "NaN",
        "null",
        "",
        '"a":7',
        '"x"',
        '"',
    )
    for number, text in enumerate(texts):
        t.insert(id=number, a=text)
    rows = by_offset(converted(session, t))
    assert values(rows, 2) == list(enumerate(texts))
    assert {row.problem for row in rows} == {None}


def test_a_number_beyond_a_double_is_set_aside_and_an_infinity_is_not(session: SparkSession) -> None:
    t = table(column("f", FLOAT64), column("g", FLOAT32))
    (good,) = t.insert(id=1, f=0.5, g=_INFINITY)
    t.insert(id=2, f=-_INFINITY, g=-_INFINITY)
    t.insert(id=3, f=_NAN, g=_NAN)
    beyond = [changed(good, b'"f":0.5', b'"f":' + text) for text in (b"1e999999999", b"-1e400", b"NaN", b"-Infinity")]
    single = changed(good, b'"g":"Infinity"', b'"g":1e39')
    found = problems(converted(session, t, [*beyond, single]))
    assert found == [None] * 3 + [LOST + "f"] * 4 + [LOST + "g"]


def test_white_space_within_the_payload_does_not_matter(session: SparkSession) -> None:
    t = table(column("a", TEXT), column("f", FLOAT64))
    (good,) = t.insert(id=1, a="7", f=_INFINITY)
    spaced = [changed(good, b'"a":"7"', text) for text in (b'"a": "7"', b'"a" :"7"', b'"a"\n:\t"7"', b'"a": 7')]
    spaced.append(changed(good, b'"f":"', b'"f" : "'))
    assert problems(converted(session, t, spaced)) == [None, None, None, None, LOST + "a", None]


def test_of_a_member_that_is_there_twice_the_last_counts(session: SparkSession) -> None:
    t = table(column("a", TEXT))
    (good,) = t.insert(id=1, a="x")
    twice = {
        b'"a":"x","a":"y"': (None, "y"),
        b'"a":["x"],"a":"y"': (None, "y"),
        b'"a":"x","a":["y"]': (LOST + "a", '["y"]'),
        b'"a":"x","a":null': (None, None),
    }
    rows = by_offset(converted(session, t, [changed(good, b'"a":"x"', text) for text in twice]))[1:]
    assert [(row.problem, value) for row, (_, value) in zip(rows, values(rows, 2), strict=True)] == list(twice.values())


def test_what_stands_behind_the_payload_is_not_read(session: SparkSession) -> None:
    t = table(column("a", TEXT))
    (good,) = t.insert(id=1, a="x")
    assert good.value is not None
    more = (
        b',"payload":null, "b":1}',
        b',"schema":null}',
        b"\xff",
        b"]",
        good.value[good.value.index(b',"payload"') :],
    )
    rows = by_offset(converted(session, t, [replace(good, value=good.value[:-1] + text) for text in more]))
    assert values(rows, 2) == [(1, "x")] * 6
    assert problems(converted(session, t, [replace(good, value=good.value[:-1])])) == [None, MALFORMED]


def test_an_object_in_place_of_a_time_does_not_convert(session: SparkSession) -> None:
    t = table(column("z", TIMESTAMP_TZ))
    (good,) = t.insert(id=1, z="2024-01-02T03:04:05Z")
    others = (b'{"at":"2024-01-02T03:04:05Z"}', b'["2024-01-02T03:04:05Z"]', b"{}", b"2024", b"-1", b"true")
    shown = [changed(good, b'"z":"2024-01-02T03:04:05Z"', b'"z":' + text) for text in others]
    assert problems(converted(session, t, shown)) == [None, *[LOST + "z"] * len(others)]


def test_bytes_that_are_no_text_are_found_beside_others_of_which_they_would_be_one(session: SparkSession) -> None:
    rows = [(b"a", b"\xc3", b"\xa9"), (None, b"\xc3\xa9", b""), (None, None, None), (b"\x80", b"b", None)]
    given = session.createDataFrame([tuple(map(bytearray_of, row)) for row in rows], "a binary, b binary, c binary")
    texts = [F.col(name).cast("string") for name in given.columns]
    assert [row[0] for row in given.select(are_text(texts)).collect()] == [False, True, True, False]


def bytearray_of(data: bytes | None) -> bytearray | None:
    return None if data is None else bytearray(data)


def test_a_key_that_is_a_text_is_known_in_deletes_too(session: SparkSession) -> None:
    t = SourceTable("t", [column("id", TEXT, optional=False)], null_is_default=False)
    t.insert(id="7")
    deleted, _ = t.delete({"id": "7"})
    assert problems(converted(session, t, [changed(deleted, b'"id":"7"', b'"id":7')])) == [None, None, LOST + "id"]


def test_texts_are_told_apart_in_any_layout(session: SparkSession) -> None:
    t = table(column("a", TEXT), column("f", FLOAT64))
    (good,) = t.insert(id=1, a="[1]", f=_INFINITY)
    assert good.value is not None
    document = json.loads(good.value)
    laid = [json.dumps(document, indent=2).encode()]
    document["payload"]["after"]["a"] = [1]
    laid.append(json.dumps(document, indent=2).encode())
    records = frame(session, one([Record(key=good.key, value=value) for value in laid]))
    known = history(t)
    (wanted, same) = (row[0] for row in records.select(digest(headers=False)).collect())
    assert wanted == same
    (converter,) = converters(t, known)
    spaced = replace(converter, key_form=Opaque(), value_form=Document(digest=wanted))
    assert problems(convert(records, (spaced,), known.head.schema, Decoding())) == [None, LOST + "a"]


def test_a_table_whose_name_is_no_text_is_nobodys(session: SparkSession) -> None:
    t = table(column("a", TEXT))
    (good,) = t.insert(id=1, a="x")
    odd = SourceTable("{1", t.columns, null_is_default=False).insert(id=1, a="x")
    names = (b'"table":{"a":"t"}', b'"table":[null]', b'"table":7')
    records = [good, *odd, *(changed(good, b'"table":"t"', name) for name in names)]
    found = frame(session, one(records)).select(OFFSET, EventReader().event().alias("event"))
    tables = [row.event and row.event.source.table for row in by_offset(found)]
    assert tables == ["t", "{1", None, None, None]


def _as_if_for_the_head(session: SparkSession, old: ConnectSchema, new: ConnectSchema, **row: Any) -> list[Any]:
    """Convert a row of the old type and one of the new, where no version has the new one."""
    before, after = table(column("a", old)), table(column("a", new))
    before.insert(id=1, **row)
    after.insert(id=2, **row)
    known = history(before)
    head = known.head.schema
    both = (*converters(before, known), *converters(after, known))
    found = convert(frame(session, one([*before.records, *after.records])), both, head, Decoding())
    return problems(found)


@pytest.mark.parametrize(
    ("old", "new"),
    [(DATE, TEXT), (TIMESTAMP_TZ, INT64), (INT64, TEXT), (TEXT, INT64)],
    ids=lambda it: it.name or it.type,
)
def test_a_type_that_no_version_has_is_not_cast(session: SparkSession, old: ConnectSchema, new: ConnectSchema) -> None:
    """Of a change that is refused, or of a late event: once, a cast that Spark does not have failed the whole table."""
    assert _as_if_for_the_head(session, old, new, a=None) == [None, LOST + "a"]


def test_a_type_that_cannot_be_read_at_all_spoils_only_its_own_records(session: SparkSession) -> None:
    unreadable = ConnectSchema(type="struct", name="s")
    assert _as_if_for_the_head(session, TEXT, unreadable, a=None) == [None, LOST + "a"]


def test_a_narrower_type_that_no_version_has_is_widened(session: SparkSession) -> None:
    assert _as_if_for_the_head(session, INT64, ConnectSchema(type="int32"), a=None) == [None, None]
