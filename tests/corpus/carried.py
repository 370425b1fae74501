"""What the events of a JSON capture carry for each cell, read with nothing but Python's own JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.corpus.reader import database, topics

Position = tuple[int, ...]
"""Where in the source an event, or a statement of the script, took place; comparable within one database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change of a row.

    Attributes:
        fields: the Connect schema of each field of the row, by name, in order.
    """

    op: str
    position: Position
    fields: Mapping[str, Mapping[str, Any]]
    after: Mapping[str, Any] | None


@cache
def events(base: str) -> Mapping[str, Sequence[Event]]:
    """Return the events of each table, by its name in the truth; `base` is `postgres` or `mariadb`."""
    found: dict[str, list[Event]] = {}
    for messages in topics(f"{base}-json").values():
        for message in messages:
            document = json.loads(message.value) if message.value else None
            if document is None or not (document["schema"]["name"] or "").endswith(".Envelope"):
                continue
            source = document["payload"]["source"]
            after = next(field for field in document["schema"]["fields"] if field["field"] == "after")
            event = Event(
                op=document["payload"]["op"],
                position=event_position(source),
                fields={field["field"]: field for field in after["fields"]},
                after=document["payload"]["after"],
            )
            found.setdefault(f"{source.get('schema') or source['db']}.{source['table']}", []).append(event)
    return found


def event_position(source: Mapping[str, Any]) -> Position:
    """Return where an event took place, from its block `source`."""
    if "lsn" in source:
        return (source["lsn"],)
    return (int(source["file"].rpartition(".")[2]), source["pos"])


def script_position(capture: str, after: Any) -> Position:
    """Return where a statement of the script ended, comparable with events."""
    if database(capture) == "postgres":
        high, low = after.split("/")
        return (int(high, 16) << 32 | int(low, 16),)
    return (int(after[0].rpartition(".")[2]), after[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What the last event of a row says of one column.

    Attributes:
        schema: the field's Connect schema.
        value: as sent.
        moved: later events of the table show the columns of this one in another order.
        outdated: a later event of the table shows the column with another type.
    """

    schema: Mapping[str, Any]
    value: Any
    moved: bool = False
    outdated: bool = False

    @property
    def is_default_of_nullable(self) -> bool:
        """Whether the value is the default that the schema of a nullable field shows."""
        return bool(
            self.schema["optional"] and self.schema.get("default") is not None and self.value == self.schema["default"]
        )


def last_rows(
    base: str, table: str, key: Sequence[str], *, upto: Position | None = None
) -> dict[tuple[Any, ...], dict[str, Carried]]:
    """Return what the last event with an `after` of each key carries, of all events or of those up to a position."""
    found = {}
    told = [event for event in events(base).get(table, ()) if upto is None or event.position <= upto]
    for place, event in enumerate(told):
        if event.after is not None and all(name in event.after for name in key):
            moved = _order(event, told[-1]) != _order(told[-1], event)
            found[tuple(event.after[name] for name in key)] = {
                name: Carried(
                    schema=event.fields[name], value=value, moved=moved, outdated=_outdated(event, told[place:], name)
                )
                for name, value in event.after.items()
            }
    return found


def names_with_defaults(base: str, table: str, *, upto: Position | None = None) -> frozenset[str]:
    """Return the columns that an event shows with a default, of all events of a table or of those up to a position."""
    told = (event for event in events(base).get(table, ()) if upto is None or event.position <= upto)
    return frozenset(name for event in told for name, field in event.fields.items() if "default" in field)


def _outdated(event: Event, later: Sequence[Event], name: str) -> bool:
    kind = _type_of(event.fields[name])
    return any(name in other.fields and _type_of(other.fields[name]) != kind for other in later)


def _type_of(field: Mapping[str, Any]) -> list[Any]:
    return [field.get(part) for part in _TYPE]


_TYPE = ("type", "name", "parameters", "items")


def _order(event: Event, other: Event) -> list[str]:
    return [name for name in event.fields if name in other.fields]
