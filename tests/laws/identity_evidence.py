"""Evidence as the job would have it: the same facts in the words of each source."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from cdc_sync.events import KafkaPosition
from cdc_sync.evidence.catalogue import Attribute, CatalogueReading, Moment
from cdc_sync.evidence.column_log import ColumnLog
from cdc_sync.evidence.kept import NOTHING_KEPT, Kept
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


def readings_of(course: Course, rows: Sequence[Row], *, times: bool = True) -> Callable[[int], Kept]:
    """Tell for every row which readings of the catalogue are kept when it is planned.

    One is made when a row is planned that no earlier one reaches; meanwhile the source is up to three changes ahead.

    Args:
        course: what the source went through.
        rows: those that are planned, in this order.
        times: the server keeps the times of commits (`track_commit_timestamp`).
    """
    random = chosen(course, 1)
    places = [state.position.parts[0] for state in course.states]
    done: list[Kept] = []

    def kept(number: int) -> Kept:
        while len(done) <= number:
            row, before = rows[len(done)], done[-1] if done else NOTHING_KEPT
            moment = Moment(lsn=row.position.parts[-1], commit=row.commit, snapshot=row.snapshot)
            ahead = random.choices((0, 1, 2, 3), (6, 2, 1, 1))[0]
            if before.covers(moment):
                done.append(before)
                continue
            now = max(row.known_at, before.reach)
            state = course.states[min(bisect_right(places, now) - 1 + ahead, len(places) - 1)]
            reading = _reading(state, row, max(now, state.position.parts[0]), times=times)
            done.append(before.with_missed(moment.lsn) if reading is None else before.with_reading(reading))
        return done[number]

    return kept


def _reading(state: State, row: Row, lsn: int, *, times: bool) -> CatalogueReading | None:
    if state.attributes is None:
        return None
    attributes = state.attributes if times else tuple(map(_without_time, state.attributes))
    return CatalogueReading(
        table=POSTGRES,
        begun=lsn,
        ended=lsn,
        taken=max(state.at, row.commit.at if row.commit is not None else 0),
        relid=state.relid,
        named=state.named if times else replace(state.named, at=None),
        attributes=attributes,
    )


def _without_time(attribute: Attribute) -> Attribute:
    assert attribute.stamp is not None
    return replace(attribute, stamp=replace(attribute.stamp, at=None))


def chosen(course: Course, salt: int) -> Random:
    """Return what chooses whatever else has to be chosen for a course, the same in every run."""
    return Random(course.pick * 31 + salt)
