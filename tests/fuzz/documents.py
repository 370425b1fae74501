"""Damage to the document that a JSON record holds: wrong values, types, names, depths, members twice."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.fuzz.octets import Corpus, Mutant, Mutation, cut_out, doubled, flipped, truncated

HOSTILE_NAMES = (
    "",
    " ",
    "a.b",
    "`; drop table x; --",
    "'\"\\",
    "${x}",
    "\u202eevil",
    "\u0000",
    "𝒳😀",
    "\ud800",
    "a\nb",
    ',"payload":',
    "before",
    "__debezium_unavailable_value",
    "_cdc_op",
    "N" * 300,
    "é" * 256,
    "*",
    "c1",
    "$",
    "{}",
)

WRONG_VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    7.5,
    1e308,
    2**31,
    2**63,
    -(2**64),
    10**400,
    "",
    "text",
    "AAAA",
    "=",
    "NaN",
    "9" * 50,
    [],
    [None],
    [[]],
    {},
    {"a": {}},
    {"scale": 10**9, "value": "AQ=="},
    {"scale": -(2**31), "value": "AQ=="},
    "infinity",
    "+294276-12-31T23:59:59.999999Z",
    "0000-00-00",
)

_TYPES = (
    "struct",
    "array",
    "map",
    "int8",
    "int32",
    "int64",
    "float",
    "double",
    "bytes",
    "string",
    "boolean",
    "int33",
    "",
)
_SEMANTICS = (
    "org.apache.kafka.connect.data.Decimal",
    "io.debezium.data.VariableScaleDecimal",
    "io.debezium.time.Date",
    "io.debezium.time.MicroTimestamp",
    "io.debezium.time.ZonedTimestamp",
    "io.debezium.data.Bits",
    "io.debezium.data.geometry.Point",
    "nobody.knows.This",
    "io.debezium.connector.common.Heartbeat",
    "x.Envelope",
)


def _document_changed(record: Mutant, rng: random.Random, change: Callable[[Any, random.Random], Any]) -> Mutant:
    """Change the document, or flip a bit where an earlier change left none."""
    try:
        document = json.loads(record.value or b"")
    except (ValueError, RecursionError):
        return flipped(record, rng, ())
    changed = change(document, rng)
    text = changed if isinstance(changed, str) else _text(changed)
    return replace(record, value=text.encode("utf-8", "surrogatepass"))


def _text(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _node_replaced(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    def change(document: Any, rng: random.Random) -> Any:
        holder, place = _somewhere(document, rng)
        if holder is not None:
            holder[place] = rng.choice(WRONG_VALUES)
        return document

    return _document_changed(record, rng, change)


def _member_renamed(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    def change(document: Any, rng: random.Random) -> Any:
        holder, place = _somewhere(document, rng, only=dict)
        if holder is not None:
            holder[rng.choice(HOSTILE_NAMES)] = holder.pop(place)
        return document

    return _document_changed(record, rng, change)


def _member_removed(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    def change(document: Any, rng: random.Random) -> Any:
        holder, place = _somewhere(document, rng)
        if holder is not None:
            del holder[place]
        return document

    return _document_changed(record, rng, change)


def _field_renamed(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    """A column with a hostile name, in schema and payload alike."""

    def change(document: Any, rng: random.Random) -> Any:
        rows = [field for field in _fields(document) if field.get("field") in ("before", "after")]
        names = [field.get("field") for row in rows[:1] for field in _fields({"schema": row})]
        if not names:
            return document
        old, new = rng.choice(names), rng.choice(HOSTILE_NAMES)
        for row in rows:
            for field in _fields({"schema": row}):
                if field.get("field") == old:
                    field["field"] = new
        payload = document.get("payload")
        for side in ("before", "after"):
            image = payload.get(side) if isinstance(payload, dict) else None
            if isinstance(image, dict) and old in image:
                image[new] = image.pop(old)
        return document

    return _document_changed(record, rng, change)


def _type_changed(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    """Another type, semantic name, parameter or default, in one or both rows."""

    def change(document: Any, rng: random.Random) -> Any:
        rows = [field for field in _fields(document) if field.get("field") in ("before", "after")]
        columns = [_fields({"schema": row}) for row in rows]
        if not columns or not columns[0]:
            return document
        place, what = rng.randrange(len(columns[0])), rng.randrange(5)
        for fields in columns if rng.random() < 0.8 else columns[:1]:
            if place < len(fields):
                _retype(fields[place], what, random.Random(rng.random()))
        return document

    return _document_changed(record, rng, change)


def _retype(field: dict[str, Any], what: int, rng: random.Random) -> None:
    match what:
        case 0:
            field["type"] = rng.choice(_TYPES)
        case 1:
            field["name"] = rng.choice(_SEMANTICS)
        case 2:
            field["parameters"] = {
                rng.choice(
                    ("scale", "connect.decimal.precision", "length", "__debezium.source.column.name")
                ): rng.choice(("-1", "2147483648", "x", "", "0", "38", "10" * 40, rng.choice(HOSTILE_NAMES)))
            }
        case 3:
            field["default"] = rng.choice(WRONG_VALUES)
        case _:
            field["optional"] = rng.choice((True, False, None, "yes", 1))


def _member_doubled(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    """A member twice in one object, which JSON allows and nobody agrees about."""

    def change(document: Any, rng: random.Random) -> Any:
        holder, place = _somewhere(document, rng, only=dict)
        if holder is None:
            return document
        mark = "\ue000doubled"
        holder[mark] = rng.choice(WRONG_VALUES)
        return _text(document).replace(json.dumps(mark, ensure_ascii=False), json.dumps(place, ensure_ascii=False))

    return _document_changed(record, rng, change)


def _nested_deep(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    depth = rng.choice((30, 70, 1000, 20_000))
    opening, closing = rng.choice((("[", "]"), ('{"a":', "}"), ('{"type":"array","optional":true,"items":', "}")))

    def change(document: Any, rng: random.Random) -> Any:
        holder, place = _somewhere(document, rng)
        if holder is None:
            return document
        mark = "\ue000deep"
        holder[place] = mark
        return _text(document).replace(json.dumps(mark, ensure_ascii=False), opening * depth + "0" + closing * depth)

    return _document_changed(record, rng, change)


def _huge_number(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    number = rng.choice(
        # A bare NaN is no JSON, but Spark's parser takes it for a text of three letters between quotes.
        ("1e999999999", "-1e-999999999", "9" * 5000, "0." + "3" * 5000, "01", "+1", "1e400")
    )

    def change(document: Any, rng: random.Random) -> Any:
        holder, place = _somewhere(document, rng)
        if holder is None:
            return document
        mark = "\ue000number"
        holder[place] = mark
        return _text(document).replace(json.dumps(mark, ensure_ascii=False), number)

    return _document_changed(record, rng, change)


def _wrapper_changed(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    """Payload or schema null, missing, in another order, with white space, with more beside them, or no wrapper."""

    def change(document: Any, rng: random.Random) -> Any:
        if not isinstance(document, dict):
            return document
        schema, payload = document.get("schema"), document.get("payload")
        variants: tuple[Any, ...] = (
            {"schema": schema, "payload": None},
            {"schema": None, "payload": payload},
            {"schema": None, "payload": None},
            {"payload": payload, "schema": schema},
            {"schema": schema},
            {"payload": payload},
            {"schema": schema, "payload": payload, "more": 1},
            {"more": ',"payload":', "schema": schema, "payload": payload},
            {"schema": payload, "payload": schema},
            payload,
            json.dumps(document, indent=1, ensure_ascii=False),
            json.dumps(document, ensure_ascii=True, separators=(",", ":")),
            " " + _text(document),
            _text(document) + "\n",
            "\ufeff" + _text(document),
        )
        return rng.choice(variants)

    return _document_changed(record, rng, change)


def _fields(document: Any) -> list[dict[str, Any]]:
    schema = document.get("schema") if isinstance(document, dict) else None
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []


def _somewhere(document: Any, rng: random.Random, *, only: type | None = None) -> tuple[Any, Any]:
    """Walk down to some member of an object or array; (None, None) if there is none."""
    holder, place = None, None
    node = document
    while isinstance(node, (dict, list)) and node:
        next_place = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        if only is None or isinstance(node, only):
            holder, place = node, next_place
        if holder is not None and rng.random() < 0.15:
            break
        node = node[next_place]
    return holder, place


DOCUMENTS: tuple[Mutation, ...] = (
    _node_replaced,
    _node_replaced,
    _node_replaced,
    _member_renamed,
    _member_removed,
    _field_renamed,
    _type_changed,
    _type_changed,
    _member_doubled,
    _nested_deep,
    _huge_number,
    _wrapper_changed,
    _wrapper_changed,
)


def damaged_schema(text: str, *, seed: int) -> str:
    """Damage a registered Avro schema."""
    rng = random.Random(seed)
    record = Mutant(kind="", key=None, value=text.encode())
    changes = (_node_replaced, _member_renamed, _member_removed, _member_doubled, _nested_deep, _huge_number)
    found = rng.choice((*changes, truncated, cut_out, doubled))(record, rng, ())
    return (found.value or b"").decode("utf-8", "replace")
