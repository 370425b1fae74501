"""A reader of one partition whose source's log may begin anew, batch by batch, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cdc_sync.core.history.history import History
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.model.incarnations import Began, Moment, extended, fall, placed, reach
from cdc_sync.core.planning.observation import Refusal
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.testing import SourceTable
from tests.plan.model import ROUTE, Event, grown, observations, stretches, topic


def events_of(table: SourceTable) -> list[Event]:
    (events,) = topic(table.records)
    return events


def moment(event: Event) -> Moment:
    source = event.source
    return Moment(position=source.position, at=source.at, incremental=source.incremental)


class Reader:
    """Reads events in batches; what it knows of incarnations between two batches is what its history says."""

    def __init__(self, events: Sequence[Event], route: Route = ROUTE) -> None:
        self._events = list(events)
        self._route = route
        self.history: History | None = None
        self.refusal: Refusal | None = None

    def run(self, ends: Iterable[int] = ()) -> Reader:
        start = 0
        for end in (*ends, len(self._events)):
            if self.refusal is None:
                self._read(start, end)
            start = end
        return self

    def _read(self, start: int, end: int) -> None:
        began = self._begun(start, end)
        seen = [self._placed(event, began) for event in self._events[start:end]]
        everything = [self._placed(event, began) for event in self._events]
        found = observations(self.history, stretches(seen, seen, self.history), everything)
        given = [replace(item, began=began[: item.position.incarnation]) for item in found]
        plan = plan_table(self.history, given, self._route, ICEBERG)
        self.history, self.refusal = grown(self.history, plan), plan.refusal

    def _begun(self, start: int, end: int) -> Began:
        began = () if self.history is None else self.history.began
        while True:
            before = reach(map(moment, self._events[:start]), began)
            falls = []
            for event in self._events[start:end]:
                found = fall(before, moment(event), began)
                falls += [] if found is None else [found]
                before = reach((moment(event),), began, before)
            longer = extended(began, falls)
            if longer == began:
                return began
            began = longer

    @staticmethod
    def _placed(event: Event, began: Began) -> Event:
        source = event.source
        return replace(event, source=replace(source, position=placed(source.position, source.at, began)))
