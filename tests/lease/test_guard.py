"""A job that may have lost the lease changes nothing: it asks before each effect, and begins none. Without a JVM."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdc_sync.config.models import Limits
from cdc_sync.core.lineage.coverage import Coverage
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.table.state import TableState
from cdc_sync.errors import LeaseLost
from cdc_sync.runtime import stream as streaming
from cdc_sync.runtime.executor import Executor
from cdc_sync.runtime.maintenance import MaintenanceSchedule
from cdc_sync.runtime.stream import stream
from cdc_sync.runtime.table_files import TableFiles
from cdc_sync.storage.state import StateStore
from tests.plan.model import ROUTE

NOTHING = cast(Any, None)


def lost() -> None:
    raise LeaseLost("another job has taken this one's place")


CONFIG = SimpleNamespace(limits=Limits())
CONTEXT = cast(Any, SimpleNamespace(guard=lost, config=CONFIG))  # nothing else of it may be touched
EFFECTS: dict[str, Callable[[], object]] = {
    "a step": lambda: Executor(CONTEXT)(NOTHING, NOTHING, NOTHING),
    "a step when a table is taken up": lambda: Executor(CONTEXT).load(NOTHING, NOTHING, NOTHING),
    "rows": lambda: Executor(CONTEXT)._written(NOTHING),
    "maintenance": lambda: MaintenanceSchedule(CONTEXT).maintain(
        cast(Any, SimpleNamespace(table=ROUTE.table, state=SimpleNamespace(failure=None)))
    ),
}


@pytest.mark.parametrize("effect", EFFECTS.values(), ids=EFFECTS)
def test_nothing_is_begun_without_the_lease(effect: Callable[[], object]) -> None:
    with pytest.raises(LeaseLost):
        effect()


def test_no_status_is_written_over_the_one_of_the_job_that_has_the_lease_now(tmp_path: Path) -> None:
    store = StateStore(str(tmp_path), create=True)
    files = TableFiles(store, ROUTE.table, lost)

    with pytest.raises(LeaseLost):
        files.report(TableState(route=ROUTE), Coverage())

    assert store.tables() == ()


def test_a_status_keeps_since_when_it_is_so_until_the_state_is_another(tmp_path: Path) -> None:
    store = StateStore(str(tmp_path), create=True)
    files, state = TableFiles(store, ROUTE.table), TableState(route=ROUTE)
    files.report(state, Coverage())
    first = store.load(ROUTE.table)
    assert first is not None
    assert first.since is not None

    assert first.dated(None, "now").since == "now"
    assert first.dated(first, "now") == first

    other = cast(Any, first).__class__(table=TableId(database="d", schema="s", table="t"), target="t", state="paused")
    assert other.dated(first, "now").since == "now"


def test_a_lost_lease_ends_the_stream_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def follow(*_: object, **__: object) -> bool:
        tries.append(1)
        lost()
        return False

    monkeypatch.setattr(streaming, "_follow", follow)
    kafka = SimpleNamespace(attempts=5, outage_timeout=SimpleNamespace(total_seconds=lambda: 60.0))
    context = cast(Any, SimpleNamespace(config=SimpleNamespace(kafka=kafka)))

    with pytest.raises(LeaseLost):
        stream(cast(Any, SimpleNamespace(batches=0)), context, once=False, stop=threading.Event())

    assert tries == [1]
