"""The benchmark of readers: the history plays, and a reader that shows one value otherwise is found out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from functools import lru_cache

import pytest

from bench.readers.comparison import Shown, differences, wanted
from bench.readers.history import STEPS, ToldTable, new_table, played
from bench.readers.sql import Answer
from bench.readers.values import Row, encode, encode_map, same


@lru_cache(maxsize=1)
def source() -> ToldTable:
    return played("readers")


def test_the_history_has_thirty_steps_and_every_one_writes_something() -> None:
    assert len(STEPS) >= 30
    table = new_table("readers")
    for step in STEPS:
        before = len(table.records)
        step.do(table)
        assert len(table.records) > before, step.title


def test_the_same_history_is_played_each_time() -> None:
    assert wanted(played("readers")) == wanted(source())


def test_every_column_has_a_value_and_a_null_at_the_end() -> None:
    for column in source().columns:
        values = [row[column.field or ""] for row in source().rows]
        assert any(value is not None for value in values), column.field
        assert column.field in ("id", "level") or None in values, column.field


def test_a_reader_that_shows_all_is_equal_in_whatever_order_it_shows_rows() -> None:
    shown = wanted(source())
    assert list(differences(source(), replace(shown, rows=shown.rows[::-1]))) == []


def _changed(change: Callable[[Row], Mapping[str, object]]) -> Shown:
    first, *others = wanted(source()).rows
    return Shown(columns=wanted(source()).columns, rows=({**first, **change(first)}, *others))  # type: ignore[dict-item]


@pytest.mark.parametrize("name", [column.field for column in played("x").columns if column.field != "id"])
def test_a_value_that_is_null_or_another_is_found(name: str) -> None:
    (lost,) = differences(source(), _changed(lambda row: {name: ["text", "old"] if row[name] is None else None}))
    assert f"row int 0: {name} is " in lost


def test_rows_that_are_missing_twice_there_or_strange_are_found() -> None:
    shown = wanted(source())
    assert "is there 0 times" in next(differences(source(), replace(shown, rows=shown.rows[1:])))
    assert "is there 2 times" in next(differences(source(), replace(shown, rows=(*shown.rows, shown.rows[0]))))
    other: Row = {**shown.rows[0], "id": ["int", "77"]}
    assert list(differences(source(), replace(shown, rows=(*shown.rows, other)))) == [
        "row int 77 is there, and not in the source"
    ]


def test_columns_in_another_order_are_found() -> None:
    shown = wanted(source())
    (found,) = differences(source(), replace(shown, columns=shown.columns[::-1]))
    assert found.startswith("columns are ")


def test_what_types_of_a_reader_do_not_tell_apart_is_the_same() -> None:
    at = datetime(2024, 2, 29, 1, 2, 3, 4)
    assert same(encode(at), encode(at.replace(tzinfo=timezone.utc)))
    assert same(encode(Decimal("1.50")), encode(Decimal("1.5")))
    assert same(encode(0.1), encode(0.10000000149011612), single=True)
    assert same(encode(float("nan")), encode(float("nan")))
    assert same(encode(b"a"), encode("a"))
    assert same(encode_map([("a", 1), ("b", None)]), encode_map([("b", None), ("a", 1)]))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (1, True),
        (1, "1"),
        (1, 1.0),
        (0.1, 0.10000000149011612),
        (None, ""),
        ([], None),
        (["a", None], ["a"]),
        ({"x": 1, "y": 2}, {"y": 2, "x": 1}),
        (Decimal("1.5"), 1.5),
        (datetime(2024, 1, 1, 0, 0, 0, 123456), datetime(2024, 1, 1, 0, 0, 0, 123000)),
    ],
)
def test_what_is_another_value_or_kind_is_not_the_same(ours: object, theirs: object) -> None:
    assert not same(encode(ours), encode(theirs))


def test_an_answer_of_trino_or_presto_has_the_form_that_is_compared() -> None:
    text, local = {"rawType": "varchar"}, {"rawType": "timestamp"}
    pairs = {"rawType": "map", "arguments": [{"value": text}, {"value": {"rawType": "bigint"}}]}
    field = {"fieldName": {"name": "x"}, "typeSignature": {"rawType": "double"}}
    answer = Answer(
        names=("_hoodie_file_name", "at", "pairs", "place", "data"),
        types=(text, local, pairs, {"rawType": "row", "arguments": [{"value": field}]}, {"rawType": "varbinary"}),
        rows=(("f", "2024-02-29 01:02:03.5", {"k": 7, "n": None}, ["Infinity"], "AP8="),),
    )
    assert answer.shown() == Shown(
        columns=("at", "pairs", "place", "data"),
        rows=(
            {
                "at": encode(datetime(2024, 2, 29, 1, 2, 3, 500_000)),
                "pairs": encode_map([("k", 7), ("n", None)]),
                "place": encode({"x": float("inf")}),
                "data": encode(b"\x00\xff"),
            },
        ),
    )
