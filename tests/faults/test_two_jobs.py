"""What another job wrote meanwhile is no reason to stop, and is not written again. Without a JVM."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdc_sync.core.migration.migration import CreateTable, Migration
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.stops import missing_row
from cdc_sync.errors import TargetMoved
from cdc_sync.runtime import write
from cdc_sync.runtime.write import write_range
from cdc_sync.runtime.write_plan import Outcome, WritePlan
from cdc_sync.targets.memory.target import MemoryTarget
from tests.history.versions import versions
from tests.plan.model import ROUTE
from tests.test_gaps import AT_100, Broker, Reader, advance, sync_of


def test_a_row_that_is_missing_stops_a_table_only_if_nobody_else_changed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    first = versions()[0]
    route, target = replace(ROUTE, table=first.table), MemoryTarget()
    held = Progress(version=1, offsets={"t": {0: 5}})
    target.migrate(
        route.target,
        Migration(version=1, schema=first.schema, steps=(CreateTable(schema=first.schema),)),
        Progress(version=1),
    )
    target.mark(route.target, held, None)
    ranges = (OffsetRange(topic="t", partition=0, start=5, end=9),)
    plan = WritePlan(
        table=first.table,
        route=route,
        head=first,
        ranges=ranges,
        converters=(),
        exact=True,
        progress=held,
        held=held,
        may_append=True,
    )
    stopped = Outcome(progress=held, stop=missing_row(ranges))
    monkeypatch.setattr(write, "_write_range", lambda *_: stopped)
    context = cast(Any, SimpleNamespace(target=target))

    assert write_range(context, plan) == stopped
    target.mark(route.target, replace(held, offsets={"t": {0: 9}}), held)
    with pytest.raises(TargetMoved):
        write_range(context, plan)


def test_what_another_job_brought_further_than_this_one_has_looked_is_not_written_twice() -> None:
    table = Reader(Broker({0: 0}, {0: 300}), AT_100)
    sync = sync_of(table)
    advance(sync, {0: 120})
    table.knowing(progress=replace(AT_100, offsets={"t": {0: 139}}))  # read anew, behind what the other job wrote

    advance(sync, {0: 130})
    advance(sync, {0: 160})

    assert [(item.start, item.end) for step in table.steps for item in step] == [(100, 120), (139, 160)]
