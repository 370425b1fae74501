"""Bytes of any schema, marked, are read by the union of all schemas as what they are by their own; fastavro reads."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
from fastavro.utils import generate_one
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.core.debezium.avro_union import MEMBER, branch_mark, union_of

_NAMES = st.sampled_from(["a", "b", "Value"])
_SPACES = st.sampled_from([None, "", "x", "x.y"])
_PLAIN = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string", {"type": "long"}])


@st.composite
def types(draw: st.DrawFn, declared: dict[str, bool], space: str, depth: int) -> Any:
    """Return a type that may declare and name others; `declared` are the full names, and whether they are whole."""
    kind = draw(st.sampled_from(["plain", "named", "optional", "array", "map", "record"])) if depth else "plain"
    if kind == "named" and (
        named := [spelt for name, whole in declared.items() if whole for spelt in _spellings(name, space)]
    ):
        return draw(st.sampled_from(named))
    if kind == "optional":
        inner = draw(types(declared, space, depth - 1))
        return inner if inner == "null" or isinstance(inner, list) else ["null", inner]
    if kind in ("array", "map"):
        return {"type": kind, "items" if kind == "array" else "values": draw(types(declared, space, depth - 1))}
    return draw(records(declared, space, depth)) if kind == "record" else draw(_PLAIN)


def _spellings(name: str, space: str) -> list[str]:
    """Return how a declared type may be named: in full, or without its namespace within it."""
    within, _, last = name.rpartition(".")
    # A name without a namespace means the enclosing one's first, so it is no name of a type that has none.
    return [last] if within == space else [name] if within else []


@st.composite
def records(draw: st.DrawFn, declared: dict[str, bool], space: str, depth: int) -> Any:
    name, own = draw(_NAMES), draw(_SPACES)
    within = space if own is None else own
    full = f"{within}.{name}" if within else name
    if full in declared or (not within and space):
        return "string"
    declared[full] = False
    fields = [
        {"name": f"f{number}", "type": draw(types(declared, within, depth - 1))}
        for number in range(draw(st.integers(0, 3)))
    ]
    declared[full] = True
    namespace = {} if own is None else {"namespace": own}
    return {"type": "record", "name": name, **namespace, "fields": fields}


@st.composite
def writers(draw: st.DrawFn) -> list[Any]:
    return [draw(types({}, "", 3)) for _ in range(draw(st.integers(1, 4)))]


def _written(schema: Any, value: Any) -> bytes:
    data = io.BytesIO()
    fastavro.schemaless_writer(data, schema, value)
    return data.getvalue()


def _read(schema: Any, data: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(data), schema, None)


@settings(max_examples=300, deadline=None)
@given(writers())
def test_the_union_reads_the_bytes_of_every_writer(several: list[Any]) -> None:
    union = fastavro.parse_schema(json.loads(union_of([json.dumps(writer) for writer in several])))
    for number, writer in enumerate(several):
        # A copy: the library writes into what it is given.
        own = fastavro.parse_schema(json.loads(json.dumps(writer)))
        body = _written(own, generate_one(own))
        assert repr(_read(union, branch_mark(number) + body)[MEMBER]) == repr(_read(own, body))


def test_a_name_means_the_enclosing_namespace_first_and_then_none() -> None:
    inner = {"type": "record", "name": "i", "namespace": "", "fields": [{"name": "x", "type": "int"}]}
    outer = {
        "type": "record",
        "name": "n.o",
        "fields": [{"name": "first", "type": inner}, {"name": "again", "type": "i"}],
    }
    ((branch,)) = json.loads(union_of([json.dumps(outer)]))
    first, again = branch["fields"][0]["type"]["fields"]
    assert again["type"] == first["type"]["name"]


@given(st.integers(0, 2**31))
def test_the_mark_is_a_long(number: int) -> None:
    assert branch_mark(number) == _written("long", number)
