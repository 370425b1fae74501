"""`cdc-sync pause` and `resume`: what is asked of the job, and that nothing is without a yes."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cdc_sync.core.migration.operator_requests import Hold
from cdc_sync.core.model.lease import Lease, Pulse
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.status import StateName, TableStatus
from cdc_sync.runtime.lease import this_process
from cdc_sync.storage.leases import Leases
from cdc_sync.storage.state import StateStore
from tests.cli.runner import CommandLine


def named(name: str, state: StateName = "running") -> TableStatus:
    table = TableId(database="shop", schema="inv", table=name)
    return replace(TableStatus(table=table, target=f"inv.{name}", state="running"), state=state)


ORDERS = named("orders").table
ITEMS = named("items", "paused").table
OLD = named("old", "gone").table


class Terminal(io.StringIO):
    """Somebody who answers."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def root(config: Path) -> str:
    return f"{config.parent}/state/inventory"


@pytest.fixture
def store(root: str) -> StateStore:
    made = StateStore(root, create=True)
    for status in (named("orders"), named("items", "paused"), named("old", "gone")):
        made.save(status)
    return made


def test_a_table_is_paused_with_who_and_why_and_resumed(cdc_sync: CommandLine, config: Path, store: StateStore) -> None:
    ran = cdc_sync("pause", config, "orders", "--why", "the disk is full", "--yes")

    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "shop.inv.orders: is paused until `cdc-sync resume`",
        "No job runs; the next one takes it up when it starts.",
    ]
    hold = store.requests.get(Hold, ORDERS)
    assert hold is not None
    assert "@" in hold.by
    assert hold.why == "the disk is full"
    assert cdc_sync("pause", config, "orders", "--yes").out == "shop.inv.orders: is paused by an operator already\n"
    assert store.requests.get(Hold, ORDERS) == hold

    ran = cdc_sync("resume", config, "orders", "--yes")

    assert ran.out.splitlines()[0] == "shop.inv.orders: goes on, or says again why it cannot"
    assert (store.requests.get(Hold, ORDERS), ORDERS in store.requests.tables_with("resumes")) == (None, True)


def test_one_that_paused_by_itself_can_be_resumed_and_one_that_runs_need_not_be(
    cdc_sync: CommandLine, config: Path, store: StateStore
) -> None:
    ran = cdc_sync("resume", config, "--all", "--yes", "--json")

    assert {item["table"]: item["is_new"] for item in ran.json["tables"]} == {
        "shop.inv.items": True,
        "shop.inv.old": False,
        "shop.inv.orders": False,
    }
    resumed = store.requests.tables_with("resumes")
    assert [table in resumed for table in (ITEMS, OLD, ORDERS)] == [True, False, False]


def test_nothing_is_read_of_a_table_that_is_gone(cdc_sync: CommandLine, config: Path, store: StateStore) -> None:
    ran = cdc_sync("pause", config, "--all", "--yes")

    assert "shop.inv.old: is gone at the source: nothing is read of it" in ran.out
    assert [store.requests.get(Hold, table) is None for table in (ITEMS, OLD, ORDERS)] == [False, True, False]


@pytest.mark.parametrize("word", ["pause", "resume"])
def test_it_shows_what_it_would_do_and_does_nothing_without_a_yes(
    cdc_sync: CommandLine, config: Path, store: StateStore, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    def asked() -> list[bool]:
        return [store.requests.get(Hold, ITEMS) is not None, ITEMS in store.requests.tables_with("resumes")]

    refused = cdc_sync(word, config, "items")
    assert (refused.exit_code, asked()) == (2, [False, False])
    assert "--yes" in refused.err
    told = cdc_sync(word, config, "items", "--dry-run")
    assert (told.exit_code, told.out.splitlines()[-1]) == (0, "Nothing is asked of the job yet.")
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert cdc_sync(word, config, "items").exit_code == 1
    assert asked() == [False, False]

    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    ran = cdc_sync(word, config, "items")

    assert ran.exit_code == 0
    assert ran.out.splitlines()[1] == "Nothing is asked of the job yet."
    assert "Go on?" in ran.err
    assert asked() == [word == "pause", word == "resume"]


def test_it_says_when_a_job_runs(cdc_sync: CommandLine, config: Path, store: StateStore, root: str) -> None:
    lease = Lease(number=1, job="a", process=this_process(), version="1", started=0, pulse=Pulse())
    assert Leases(root, create=True).make(lease)

    ran = cdc_sync("pause", config, "orders", "--yes")

    assert ran.out.splitlines()[1] == "The job takes it up within seconds; `cdc-sync status` shows it."


@pytest.mark.parametrize("arguments", [(), ("orders", "--all")])
def test_it_is_said_which_tables(
    cdc_sync: CommandLine, config: Path, store: StateStore, arguments: tuple[str, ...]
) -> None:
    ran = cdc_sync("pause", config, *arguments, "--yes")

    assert (ran.exit_code, ran.out) == (2, "")
    assert "name tables, or say --all" in ran.err


def test_a_table_that_nobody_knows_is_refused_and_nothing_is_done(
    cdc_sync: CommandLine, config: Path, store: StateStore
) -> None:
    ran = cdc_sync("pause", config, "orders", "order", "--yes")

    assert (ran.exit_code, store.requests.get(Hold, ORDERS)) == (1, None)
    assert "did you mean shop.inv.orders" in ran.err
