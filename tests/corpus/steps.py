"""The script of a capture step by step: how far the topics tell of each, and what the source was then."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from cdc_sync.core.planning.status import TableStatus
from tests.corpus.carried import Position, event_position, events, script_position
from tests.corpus.images import Image
from tests.corpus.reader import PREFIXES, Message, database, history, script, topics


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a statement of the script did, as far as events carry it.

    Attributes:
        number: the script's.
        position: where the source stood after it.
        ends: by topic, the offset behind the last record that the source wrote up to there.
        tables: by name, the newest line of the history of each table that an event of this step is of.
    """

    number: int
    position: Position
    ends: Mapping[str, int]
    tables: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A table as a run had it after a step."""

    step: Step
    table: str
    status: TableStatus
    image: Image | None


@cache
def steps(capture: str) -> tuple[Step, ...]:
    """Return the steps that an event is of, in order; what else was written is read with the next of them.

    Both captures of a database have the same records at the same offsets; positions are read from the JSON one.
    """
    prefix, base = PREFIXES[capture], database(capture)
    places = {
        name.replace(PREFIXES[f"{base}-json"], prefix, 1): _positions(messages)
        for name, messages in topics(f"{base}-json").items()
    }
    assert {name: len(found) for name, found in places.items()} == {
        name: len(messages) for name, messages in topics(capture).items()
    }
    found: list[Step] = []
    before: Position = ()
    for line in script(capture):
        at = max(before, script_position(capture, line["pos_after"]))
        moved = (name for name, told in events(base).items() if any(before < event.position <= at for event in told))
        tables = {name: then for name in moved if (then := _line_at(capture, name, at)) is not None}
        if tables:
            ends = {name: sum(place <= at for place in told) for name, told in places.items()}
            found.append(Step(number=line["step"], position=at, ends=ends, tables=tables))
        before = at
    return tuple(found)


def _positions(messages: Sequence[Message]) -> list[Position]:
    """Return where in the source each record was written; those that do not say follow the one before."""
    found: list[Position] = []
    for message in messages:
        document = json.loads(message.value) if message.value else None
        source = (document["payload"] or {}).get("source") if document else None
        place = event_position(source) if source else ()
        found.append(max(place, found[-1] if found else ()))
    return found


def _line_at(capture: str, table: str, at: Position) -> Mapping[str, Any] | None:
    lines = (line for line in history(capture) if line["table"] == table)
    return next((line for line in reversed([*lines]) if script_position(capture, line["pos_after"]) <= at), None)
