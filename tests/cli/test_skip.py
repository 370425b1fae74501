"""`cdc-sync skip`: one record that a table stands before is passed, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cdc_sync.core.migration.operator_requests import Skip
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.core.planning.stops import SKIPPABLE
from cdc_sync.storage.state import StateStore
from tests.cli.runner import CommandLine

ORDERS = TableId(database="shop", schema="inv", table="orders")
PAUSED = TableStatus(
    table=ORDERS,
    target="inv.orders",
    state="paused",
    code=Code.ROW_MISSING.value,
    reason="an update names a row that the target never had",
    remedy="snapshot it again",
    paused_at="shop.inv.orders[0]@41",
)
PLACE = ("--at", "shop.inv.orders[0]@41", "--why", "deleted by hand")


@pytest.fixture
def store(config: Path) -> StateStore:
    made = StateStore(f"{config.parent}/state/inventory", create=True)
    made.save(PAUSED)
    return made


def test_the_record_that_a_table_stands_before_is_passed(
    cdc_sync: CommandLine, config: Path, store: StateStore
) -> None:
    assert cdc_sync("skip", config, "orders", *PLACE, "--dry-run").exit_code == 0
    assert store.requests.all(Skip, ORDERS) == ()

    ran = cdc_sync("skip", config, "orders", *PLACE, "--yes")

    assert ran.out.splitlines() == [
        "shop.inv.orders: goes on without shop.inv.orders[0]@41, which becomes a dead letter",
        "No job runs; the next one takes it up when it starts.",
    ]
    (word,) = store.requests.all(Skip, ORDERS)
    assert (str(word.place), word.why) == ("shop.inv.orders[0]@41", "deleted by hand")
    assert "@" in word.by
    assert store.requests.skipped(ORDERS) == {word.place}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (replace(PAUSED, paused_at="shop.inv.orders[0]@42"), "shop.inv.orders stands before shop.inv.orders[0]@42"),
        (replace(PAUSED, paused_at=None), "stands before no record"),
        (replace(PAUSED, state="running"), "shop.inv.orders is running, and stands before no record"),
        (replace(PAUSED, code=Code.UNPROVEN.value), "(unproven-change) changes the table"),
    ],
)
def test_no_other_record_is(
    cdc_sync: CommandLine, config: Path, store: StateStore, status: TableStatus, said: str
) -> None:
    store.save(status)

    ran = cdc_sync("skip", config, "orders", *PLACE, "--yes")

    assert ran.exit_code == 5
    assert said in ran.err
    assert store.requests.all(Skip, ORDERS) == ()


def test_what_changes_a_table_is_not_skipped() -> None:
    assert {Code.UNPROVEN, Code.TRUNCATE, Code.KEY, Code.RECREATED, Code.TYPE, Code.PAUSED}.isdisjoint(SKIPPABLE)
