"""`cdc-sync forget`: nothing is left of a table that left the pipeline but its target, history and dead letters."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_sync.core.migration.operator_requests import Hold, Skip
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.dead_letters import DeadLetter
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.storage.state import StateStore
from tests.cli.runner import CommandLine

ORDERS, OTHERS = (TableId(database="shop", schema="inv", table=name) for name in ("orders", "orders_2"))
PLACE = KafkaPosition(topic="left", partition=0, offset=4)


@pytest.fixture
def root(config: Path) -> Path:
    return Path(f"{config.parent}/state/inventory")


@pytest.fixture
def store(root: Path) -> StateStore:
    made = StateStore(str(root), create=True)
    for table in (ORDERS, OTHERS):
        made.save(TableStatus(table=table, target=f"inv.{table.table}", state="running", offsets={"left": {0: 5}}))
        made.requests.add(Hold(table=table, by="ann@host", at="now"))
        made.requests.add(Skip(table=table, place=PLACE, by="ann@host", at="now", why="of no use"))
        made.save_maintained(table, 7.0)
        made.save_passed(table, "marker", {("left", 0): 7})
    letter = DeadLetter(
        topic=PLACE.topic,
        partition=PLACE.partition,
        offset=PLACE.offset,
        timestamp=None,
        code=Code.RECORD_VALUE,
        reason="r",
        table=ORDERS,
        key=None,
        value=None,
    )
    made.dead_letters.add([letter])
    return made


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_all_that_is_written_of_it_goes_and_of_no_other(
    cdc_sync: CommandLine, config: Path, root: Path, store: StateStore
) -> None:
    before = files(root)
    told = cdc_sync("forget", config, "inv.orders", "--dry-run")
    assert "would be forgotten" in told.out
    assert files(root) == before

    ran = cdc_sync("forget", config, "inv.orders", "--yes")

    assert ran.out == (
        "shop.inv.orders: is forgotten, and what was said of it; its target inv.orders, history and dead letters stay\n"
    )
    left = files(root)
    assert [path for path in left if "inv.orders_2" in path] == [path for path in before if "inv.orders_2" in path]
    assert [path for path in left if "inv.orders" in path and "orders_2" not in path] == []
    assert [letter.place for letter in store.dead_letters.letters()] == [PLACE]
    assert "orders " not in cdc_sync("status", config).out


def test_one_that_is_followed_is_not(cdc_sync: CommandLine, config: Path, store: StateStore) -> None:
    store.save(TableStatus(table=ORDERS, target="inv.orders", state="running", offsets={}))

    ran = cdc_sync("forget", config, "inv.orders", "--yes")

    assert ran.exit_code == 5
    assert "Cannot forget shop.inv.orders: the configuration follows it" in ran.err
    assert store.load(ORDERS) is not None
