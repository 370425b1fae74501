"""What a run leaves behind may be lost, except the tables: the next run neither loses nor repeats anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TypeAlias

import pytest
from pyspark.sql import DataFrame

from cdc_sync.errors import TargetError
from cdc_sync.migrate.migration import Migration
from cdc_sync.naming import TargetName
from cdc_sync.progress import Progress
from cdc_sync.targets.base import Batch
from cdc_sync.targets.iceberg import IcebergTarget
from cdc_sync.testing import INT32, INT64, TEXT, SourceTable, Wal, column, decimal
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

Said: TypeAlias = Mapping[int, DataFrame] | None


class Shop:
    """Two tables of one source, changed in every way that matters to progress."""

    def __init__(self, prefix: str, produce: Produce) -> None:
        self._wal = wal = Wal()
        self._produce = produce
        self.orders = SourceTable(
            "orders",
            [column("id", INT32, optional=False), column("buyer", TEXT), column("amount", decimal(8, 2))],
            prefix=prefix,
            wal=wal,
            null_is_default=False,
        )
        self.stock = SourceTable(
            "stock",
            [column("shop", TEXT, optional=False), column("sku", INT64, optional=False), column("left", INT32)],
            key=("shop", "sku"),
            prefix=prefix,
            wal=wal,
            null_is_default=False,
        )
        self._written = {self.orders.topic: 0, self.stock.topic: 0}

    @property
    def tables(self) -> tuple[SourceTable, SourceTable]:
        return self.orders, self.stock

    def open(self) -> None:
        """The rows that were there when the connector came, as its snapshot shows them."""
        for number in range(5):
            self.orders.insert(id=number, buyer=f"buyer {number}")
            self.stock.insert(shop="north", sku=number, left=10)
        self._wal.last_commit = None
        for table in self.tables:
            table.records.clear()
            table.snapshot()
        self._send()

    def trade(self) -> None:
        """Insert, update, delete and change keys; the same key more than once."""
        for number in range(10, 14):
            self.orders.insert(id=number, amount=Decimal("1.50"))
            self.orders.update({"id": number}, amount=None)
        self.orders.update({"id": 1}, id=101)
        self.orders.delete({"id": 2})
        self.stock.update({"sku": 3}, left=9)
        self.stock.update({"sku": 3}, sku=33)
        self.stock.delete({"sku": 4})
        self._send()

    def alter(self) -> None:
        """A column whose default existing rows have to get, then a rename in the middle, each with a row."""
        self.orders.add_column(column("units", INT32, optional=False, default=7), initial=7)
        self.orders.insert(id=50, buyer="seven", units=1)
        self.orders.rename_column("buyer", "customer")
        self.orders.insert(id=51, customer="renamed", units=2)
        self.stock.update({"sku": 0}, left=0)
        self._send()

    def grow(self) -> None:
        """Only inserts, which are appended without a merge."""
        for number in range(1000, 1005):
            self.orders.insert(id=number)
            self.stock.insert(shop="south", sku=number)
        self._send()

    def _send(self) -> None:
        for table in self.tables:
            self._produce(table.topic, table.records[self._written[table.topic] :])
            self._written[table.topic] = len(table.records)


def test_a_deleted_checkpoint_loses_nothing_and_repeats_nothing(pipeline: NewPipeline, produce: Produce) -> None:
    shop, lake = Shop("checkpoint", produce), pipeline("checkpoint")
    shop.open()
    shop.trade()
    lake.run()
    before = lake.commits(*shop.tables)
    lake.delete_checkpoint()

    lake.run()

    assert lake.commits(*shop.tables) == before, "a run without new events commits nothing"
    assert_equal(lake, *shop.tables)
    shop.alter()
    lake.delete_checkpoint()
    lake.run()
    assert_equal(lake, *shop.tables)


def test_a_new_pipeline_name_goes_on_where_the_tables_are(pipeline: NewPipeline, produce: Produce) -> None:
    shop, lake = Shop("renamed", produce), pipeline("renamed")
    shop.open()
    shop.alter()
    lake.run()
    before = lake.commits(*shop.tables)
    again = lake.named("other")

    again.run()

    assert again.commits(*shop.tables) == before, "a run without new events commits nothing"
    shop.trade()
    shop.grow()
    again.run()
    assert_equal(again, *shop.tables)
    assert again.history_files() == lake.history_files()


def test_a_new_pipeline_name_meets_an_alter_before_it_has_read_anything(
    pipeline: NewPipeline, produce: Produce
) -> None:
    shop, lake = Shop("altered", produce), pipeline("altered")
    shop.open()
    lake.run()
    shop.alter()
    again = lake.named("other")

    again.run()

    assert_equal(again, *shop.tables)
    assert {status.version for status in again.statuses().values()} == {1, 3}


class LostReplies:
    """Every commit of the Iceberg target succeeds, and the first ones tell the job that they failed."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._left = 0
        self.lost = 0
        write, migrate = IcebergTarget.write, IcebergTarget.migrate

        def lossy_write(target: IcebergTarget, name: TargetName, batch: Batch) -> None:
            write(target, name, batch)
            self._lose(f"write {name}")

        def lossy_migrate(
            target: IcebergTarget, name: TargetName, migration: Migration, progress: Progress, said: Said = None
        ) -> None:
            migrate(target, name, migration, progress, said)
            self._lose(f"migrate {name}")

        patch.setattr(IcebergTarget, "write", lossy_write)
        patch.setattr(IcebergTarget, "migrate", lossy_migrate)

    def lose(self, count: int) -> None:
        self._left = count

    def _lose(self, what: str) -> None:
        if self._left:
            self._left -= 1
            self.lost += 1
            raise TargetError(f"Cannot {what}: the connection was lost")


@pytest.mark.parametrize("change", [Shop.grow, Shop.trade, Shop.alter], ids=["append", "merge", "migration"])
def test_a_commit_whose_reply_is_lost_is_not_made_again(
    change: Callable[[Shop], None], pipeline: NewPipeline, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"lost-{change.__name__}"
    shop, lake, replies = Shop(prefix, produce), pipeline(prefix), LostReplies(monkeypatch)
    shop.open()
    lake.run()
    change(shop)
    replies.lose(2)

    lake.run()

    assert replies.lost == 2
    assert_equal(lake, *shop.tables)
    assert {status.state for status in lake.statuses().values()} == {"running"}
    for table in shop.tables:
        contents = [marker[0] for marker in lake.progress_of_snapshots(table)]
        written = [end for number, end in enumerate(contents) if number == 0 or end != contents[number - 1]]
        assert written == sorted(set(written)), "no range of offsets is in two commits"
