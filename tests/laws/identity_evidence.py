"""Evidence as the job would have it: the same facts in the words of each source."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from random import Random

from cdc_sync.events import KafkaPosition, SourcePosition
from cdc_sync.evidence.catalogue import CatalogueReading, structure_at
from cdc_sync.evidence.column_log import ColumnLog, LoggedColumn, Structure, Token
from cdc_sync.evidence.messages import MessageLog
from cdc_sync.evidence.records import LogicalMessage
from tests.laws.identity_course import DATABASE, POSTGRES, Course, Row, State, Told
from tests.laws.identity_model import KINDS, Col


def messages_of(course: Course, *, plain: bool) -> tuple[LogicalMessage, ...]:
    """Write what was told as our trigger does, or as a plain home-made one, which leaves out drops and baselines."""
    told = [item for item in course.told if not plain or (item.tag and item.columns is not None)]
    return tuple(
        LogicalMessage(
            position=item.position,
            kafka=KafkaPosition(topic="server.message", partition=0, offset=offset),
            database=DATABASE,
            prefix="ddl" if plain else "cdc_sync",
            content=json.dumps(_plain(item) if plain else _ours(item), ensure_ascii=False).encode(),
        )
        for offset, item in enumerate(told)
    )


def message_log(messages: Sequence[LogicalMessage]) -> ColumnLog:
    gathered = MessageLog()
    for message in messages:
        gathered.add(message)
    return gathered.log()


def is_told_whole(course: Course) -> bool:
    """Whether a plain trigger tells all: it was there when the table was created."""
    return bool(course.told) and course.told[0].tag == "CREATE TABLE"


def _ours(told: Told) -> dict[str, object]:
    body: dict[str, object] = {
        "v": 1,
        "kind": "drop" if told.columns is None else "command" if told.tag else "baseline",
        "cluster": "7123456789",
        "tag": told.tag,
        "schema": "public",
        "table": told.table,
        "relid": told.relid,
    }
    if told.columns is not None:
        body["columns"] = _attributes(told.columns)
    return {**body, "query": told.statement}


def _plain(told: Told) -> dict[str, object]:
    return {
        "tag": told.tag,
        "object": told.object,
        "relid": str(told.relid),
        "cols": _attributes(told.columns or ()),
        "query": told.statement,
    }


def _attributes(columns: Sequence[Col]) -> list[dict[str, object]]:
    return [
        {"attnum": column.number, "name": column.name, "type": KINDS[column.kind].postgres, "notnull": column.key}
        for column in sorted(columns, key=lambda column: column.number)
    ]


def readings_of(course: Course, rows: Sequence[Row]) -> tuple[CatalogueReading | None, ...]:
    """Read the catalogue whenever one of these rows is planned, while the source is up to three changes ahead."""
    random = chosen(course, 1)
    places = [state.position.parts[0] for state in course.states]
    found, now = [], 0
    for row in rows:
        now = max(now, row.known_at)
        here = bisect_right(places, now) - 1
        ahead = min(here + random.choices((0, 1, 2, 3), (6, 2, 1, 1))[0], len(places) - 1)
        now = max(now, places[ahead])
        found.append(_reading(course.states[ahead], now) if ahead >= 0 else None)
    return tuple(found)


def _reading(state: State, lsn: int) -> CatalogueReading | None:
    if state.columns is None:
        return None
    return CatalogueReading(
        position=SourcePosition(kind="postgresql", parts=(lsn, lsn)),
        table=POSTGRES,
        relid=state.relid,
        # Only what events show: the numbers of the others count as dropped, and they never come back.
        columns=tuple(
            (column.number, column.name, KINDS[column.kind].postgres)
            for column in state.columns
            if not (column.is_excluded or column.generated)
        ),
        highest=state.highest,
    )


def catalogue_logs(course: Course, rows: Sequence[Row]) -> Callable[[int], tuple[ColumnLog, ...]]:
    """Tell for every row what the readings so far prove of it and the rows before it; nothing if it is not certain."""
    readings = readings_of(course, rows)
    found: list[Structure] = []
    done: list[tuple[ColumnLog, ...]] = []

    def logs(number: int) -> tuple[ColumnLog, ...]:
        while len(done) <= number:
            row = rows[len(done)]
            known = [reading for reading in readings[: len(done) + 1] if reading is not None]
            certain = structure_at(known, POSTGRES, row.position, [column.name for column in row.columns])
            tokens = {column.name: column.token for column in certain.columns} if certain is not None else {}
            found.append(_structure(row, tokens))
            done.append((ColumnLog("catalogue", found),) if len(tokens) == len(row.columns) else ())
        return done[number]

    return logs


_TABLE = LoggedColumn(name="\0", token=Token(era="table", number=0))
"""Says that a structure in between, of which nothing is certain, is not another table's."""


def _structure(row: Row, tokens: Mapping[str, Token]) -> Structure:
    """Return the structure at a row if all of it is certain; else one that can be compared with no other.

    A structure is taken to be complete, so one with some of the columns would say that the others are gone.
    """
    if len(tokens) < len(row.columns):
        tokens = {c.name: Token(era=("not known", row.position), number=c.name) for c in row.columns}
    columns = tuple(
        LoggedColumn(name=c.name, token=tokens[c.name], type=f"not known at {row.position}") for c in row.columns
    )
    return Structure(
        table=POSTGRES, position=row.position, columns=(*columns, _TABLE), statement="read from the catalogue"
    )  # fmt: skip


def chosen(course: Course, salt: int) -> Random:
    """Return what chooses whatever else has to be chosen for a course, the same in every run."""
    return Random(course.pick * 31 + salt)
