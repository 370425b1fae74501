"""A client of Trino's and Presto's statement protocol, which is one, but for the names of its headers."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.readers.comparison import Shown
from bench.readers.values import Value


class QueryError(Exception):
    """The engine refused or failed; the text is its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A result: names and types of the columns as the engine signs them, and rows as its JSON has them."""

    names: tuple[str, ...]
    types: tuple[Mapping[str, Any], ...]
    rows: tuple[Sequence[Any], ...]

    def shown(self) -> Shown:
        """Return the rows in the form that is compared, without Hudi's own columns."""
        kept = [place for place, name in enumerate(self.names) if not name.startswith("_hoodie_")]
        return Shown(
            columns=tuple(self.names[place] for place in kept),
            rows=tuple(
                {self.names[place]: _value(self.types[place], row[place]) for place in kept} for row in self.rows
            ),
        )


def query(url: str, product: str, statement: str) -> Answer:
    """Run one statement to its end.

    Args:
        url: of the coordinator.
        product: `Trino` or `Presto`, as in the headers' names.
        statement: without a semicolon.

    Raises:
        QueryError: the engine says that it failed.
    """
    headers = {
        f"X-{product}-User": "readers",
        f"X-{product}-Source": "cdc_sync",
        f"X-{product}-Time-Zone": "UTC",
        # Without it Trino cuts moments to milliseconds, for clients that know no others.
        f"X-{product}-Client-Capabilities": "PARAMETRIC_DATETIME",
    }
    page = _fetch(urllib.request.Request(f"{url}/v1/statement", statement.encode(), headers))
    columns: list[Mapping[str, Any]] = []
    rows: list[Sequence[Any]] = []
    while True:
        columns = page.get("columns") or columns
        rows += page.get("data") or []
        if "error" in page:
            raise QueryError(f"{page['error']['errorName']}: {page['error'].get('message')}")
        if "nextUri" not in page:
            break
        page = _fetch(urllib.request.Request(page["nextUri"], headers=headers))
    return Answer(
        names=tuple(column["name"] for column in columns),
        types=tuple(column["typeSignature"] for column in columns),
        rows=tuple(rows),
    )


def _fetch(request: urllib.request.Request) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return dict(json.load(answer))
    except (urllib.error.URLError, OSError) as error:
        raise QueryError(str(error)) from error


def _value(type_: Mapping[str, Any], value: Any) -> Value:
    """Return a value of the engine's JSON in the form that is compared."""
    if value is None:
        return None
    if isinstance(value, str) and type_["rawType"] in ("array", "map", "row"):
        value = json.loads(value)  # as Presto sends them
    arguments = [item["value"] for item in type_.get("arguments", ())]
    match type_["rawType"]:
        case "boolean":
            return ["bool", str(value).lower()]
        case "tinyint" | "smallint" | "integer" | "bigint":
            return ["int", str(value)]
        case "real" | "double":
            return ["float", repr(float(value))]
        case "decimal":
            return ["decimal", value]
        case "varchar" | "char":
            return ["text", value]
        case "varbinary":
            return ["bytes", base64.b64decode(value).hex()]
        case "date":
            return ["date", value]
        case "timestamp":
            return ["local", _moment(value)]
        case "timestamp with time zone":
            return ["instant", _moment(value.removesuffix(" UTC"))]
        case "array":
            return ["list", [_value(arguments[0], item) for item in value]]
        case "map":
            pairs = [[_value(arguments[0], key), _value(arguments[1], item)] for key, item in value.items()]
            return ["map", sorted(pairs, key=repr)]
        case "row":
            names = [(argument.get("fieldName") or {}).get("name") for argument in arguments]
            types = [_field_type(argument) for argument in arguments]
            return ["struct", {name: _value(of, item) for name, of, item in zip(names, types, value, strict=True)}]
    raise QueryError(f"no form for values of type {type_['rawType']}")


def _field_type(argument: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the type of a row's field, which Presto writes as text."""
    found = argument["typeSignature"]
    return {"rawType": found} if isinstance(found, str) else dict(found)


def _moment(text: str) -> str:
    day, _, time = text.partition(" ")
    clock, _, fraction = time.partition(".")
    # Three more digits, where an engine shows them, have to be zeros: no table here holds any.
    return f"{day}T{clock}.{fraction[:6]:0<6}{fraction[6:].rstrip('0')}"
