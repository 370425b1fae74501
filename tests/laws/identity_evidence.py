"""Evidence as the job would have it: the same facts in the words of each source."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

from cdc_sync.core.lineage.catalogue import Attribute, CatalogueReading, Moment, Stamp
from cdc_sync.core.lineage.column_log import ColumnLog
from cdc_sync.core.lineage.kept import NOTHING_KEPT, Kept
from cdc_sync.core.lineage.messages import MessageLog
from cdc_sync.core.lineage.records import LogicalMessage
from cdc_sync.core.model.positions import KafkaPosition
from tests.laws.identity_course import DATABASE, POSTGRES, Course, Row, State, Told
from tests.laws.identity_model import KINDS, Col


def messages_of(course: Course, *, plain: bool) -> tuple[LogicalMessage, ...]:
    """Write what was told as our trigger does, or as a plain home-made one, which leaves out drops and baselines."""
    told = [item for item in course.told if not plain or (item.tag and item.columns is not None)]
    before = dict(_before(told))
    return tuple(
        LogicalMessage(
            position=item.position,
            kafka=KafkaPosition(topic="server.message", partition=0, offset=offset),
            database=DATABASE,
            prefix="ddl" if plain else "cdc_sync",
            content=json.dumps(_plain(item) if plain else _ours(item, before.get(offset)), ensure_ascii=False).encode(),
        )
        for offset, item in enumerate(told)
    )


def _before(told: Sequence[Told]) -> Iterator[tuple[int, Told]]:
    """Yield what each command's table was before it; nothing else tells of a table, for it is locked."""
    last: dict[int, Told] = {}
    for offset, item in enumerate(told):
        if item.relid in last:
            yield offset, last[item.relid]
        last[item.relid] = item


def message_log(messages: Sequence[LogicalMessage]) -> ColumnLog:
    gathered = MessageLog()
    for message in messages:
        gathered.add(message)
    return gathered.log()


def is_told_whole(course: Course) -> bool:
    """Whether a plain trigger tells all: it was there when the table was created."""
    return bool(course.told) and course.told[0].tag == "CREATE TABLE"


def _ours(told: Told, before: Told | None) -> dict[str, object]:
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
        if before is not None and told.tag:
            columns = _attributes(before.columns or ())
            body["before"] = {"schema": "public", "table": before.table, "columns": columns}
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


EVERY = 10_000_000
"""Microseconds between the readings that the job makes all the time, `evidence.catalogue.every`."""


class Reader:
    """Reads the catalogue as the job does while it plans the rows of a course, in their order.

    One reading is made when a row is planned that no earlier one reaches; meanwhile the source is up to three changes
    ahead. There are others at fixed intervals of the source's time: of a table that a snapshot showed first from its
    first row on, for it may have been there long before the job; of a table that was created in the stream from then
    on, for the job runs already and reads all tables that it has a route for.
    """

    def __init__(self, course: Course, *, times: bool = True, every: int | None = EVERY) -> None:
        """Begin before the first row.

        Args:
            course: what the source went through.
            times: the server keeps the times of commits (`track_commit_timestamp`).
            every: microseconds from one reading to the next; None for those only that planning asks for.
        """
        self._course, self._times = course, times
        self._random = chosen(course, 1)
        self._places = [state.position.parts[0] for state in course.states]
        self._regular = list(_regular(course, every, self._random) if every is not None else ())
        self._now = 0
        self.kept = NOTHING_KEPT

    def plan(self, row: Row) -> Kept:
        """Return what is kept when a row is planned."""
        states, places = self._course.states, self._places
        moment = Moment(lsn=row.position.parts[-1], commit=row.commit, snapshot=row.snapshot)
        is_unread, self._now = self._now == 0 and self._course.rows[0].snapshot, max(self._now, row.known_at)
        ahead = self._random.choices((0, 1, 2, 3), (6, 2, 1, 1))[0]
        state = states[min(bisect_right(places, self._now) - 1 + ahead, len(places) - 1)]
        self._now = max(self._now, state.position.parts[0])
        while self._regular and self._regular[0][0] <= self._now:
            lsn, at, earlier = self._regular.pop(0)
            if not is_unread and lsn > self.kept.reach:
                self._take(earlier, lsn, at)
        if not self.kept.covers(moment):
            self._take(state, self._now, max(state.at, row.commit.at if row.commit is not None else 0))
        if not self.kept.covers(moment):
            self.kept = self.kept.with_missed(moment.lsn)
        return self.kept

    def _take(self, state: State, lsn: int, at: int) -> None:
        reading = _reading(state, lsn, at, times=self._times)
        if reading is not None:
            self.kept = self.kept.with_reading(reading)


def _regular(course: Course, every: int, random: Random) -> Iterator[tuple[int, int, State]]:
    """Yield LSN, time and what is there for the last of the regular readings between each two commits."""
    commits = {state.position.parts[0]: state.at for state in course.states}
    commits |= {row.known_at: row.commit.at for row in course.rows if row.commit is not None}
    places, start = [state.position.parts[0] for state in course.states], random.randrange(every)
    ordered = sorted(commits.items())
    for (lsn, at), (_, end) in pairwise(ordered):
        last = end - 1 - (end - 1 - start) % every
        place = bisect_right(places, lsn) - 1
        if last >= at and place >= 0:
            yield lsn, last, course.states[place]


def _reading(state: State, lsn: int, at: int, *, times: bool) -> CatalogueReading | None:
    if state.attributes is None:
        return None
    attributes = state.attributes if times else tuple(map(_without_time, state.attributes))
    return CatalogueReading(
        table=POSTGRES,
        begun=lsn,
        ended=lsn,
        taken=at,
        relid=state.relid,
        named=state.named if times else replace(state.named, at=None),
        schema_named=Stamp(xid=3, at=0 if times else None),
        attributes=attributes,
    )


def _without_time(attribute: Attribute) -> Attribute:
    assert attribute.stamp is not None
    return replace(attribute, stamp=replace(attribute.stamp, at=None))


def chosen(course: Course, salt: int) -> Random:
    """Return what chooses whatever else has to be chosen for a course, the same in every run."""
    return Random(course.pick * 31 + salt)
