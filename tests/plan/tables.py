"""A table to plan for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.history.history import History
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.planning.observation import TablePlan
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.plan.model import ROUTE, Event, observations, topic


class Table(SourceTable):
    """A table `t` with the columns `id`, `a`, `z`; what is planned is everything it wrote."""

    def __init__(self, *columns: ConnectSchema, **options: Any) -> None:
        start = columns or (column("id", INT32, optional=False), column("a", INT32), column("z", TEXT))
        super().__init__("t", start, null_is_default=False, **options)
        self._rows = 0
        self.row()

    def row(self, **values: object) -> Table:
        self._rows += 1
        name = self.key[0] if self.key else self.columns[0].field or ""
        self.insert({name: self._rows, **values})
        return self

    def events(self) -> list[Event]:
        (only,) = topic(self.records)
        return only

    def plan(self, route: Any = ROUTE, **options: Any) -> TablePlan:
        events = self.events()
        return plan_table(None, observations(None, _firsts(events), events), route, ICEBERG, **options)

    def history(self, route: Any = ROUTE) -> History:
        plan = self.plan(route)
        assert plan.refusal is None, plan.refusal
        return History(table=self.id, versions=plan.versions)


def _firsts(events: Sequence[Event]) -> list[Event]:
    pairs = zip([None, *events], events, strict=False)
    return [event for before, event in pairs if before is None or before.known.digest != event.known.digest]
