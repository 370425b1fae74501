"""A shop of two tables, and a target whose replies are lost."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import pytest
from pyspark.sql import DataFrame

from cdc_sync.core.migration.migration import Migration
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.errors import TargetError
from cdc_sync.targets.protocol import Batch
from cdc_sync.testing import INT32, INT64, TEXT, SourceTable, Wal, column, decimal
from tests.conftest import Produce

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
        self.send()

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
        self.send()

    def alter(self) -> None:
        """A column whose default existing rows have to get, then a rename in the middle, each with a row."""
        self.orders.add_column(column("units", INT32, optional=False, default=7), initial=7)
        self.orders.insert(id=50, buyer="seven", units=1)
        self.orders.rename_column("buyer", "customer")
        self.orders.insert(id=51, customer="renamed", units=2)
        self.stock.update({"sku": 0}, left=0)
        self.send()

    def grow(self) -> None:
        """Only inserts, which are appended without a merge."""
        for number in range(1000, 1005):
            self.orders.insert(id=number)
            self.stock.insert(shop="south", sku=number)
        self.send()

    def send(self) -> None:
        for table in self.tables:
            self._produce(table.topic, table.records[self._written[table.topic] :])
            self._written[table.topic] = len(table.records)


class LostReplies:
    """Every commit of a format's targets succeeds, and the first ones tell the job that they failed."""

    def __init__(self, patch: pytest.MonkeyPatch, format_: type[Any]) -> None:
        self._left = 0
        self.lost = 0
        write, migrate = format_.write, format_.migrate

        def lossy_write(target: Any, name: TargetName, batch: Batch) -> None:
            write(target, name, batch)
            self._lose(f"write {name}")

        def lossy_migrate(
            target: Any, name: TargetName, migration: Migration, progress: Progress, said: Said = None
        ) -> None:
            migrate(target, name, migration, progress, said)
            self._lose(f"migrate {name}")

        patch.setattr(format_, "write", lossy_write)
        patch.setattr(format_, "migrate", lossy_migrate)

    def lose(self, count: int) -> None:
        self._left = count

    def _lose(self, what: str) -> None:
        if self._left:
            self._left -= 1
            self.lost += 1
            raise TargetError(f"Cannot {what}: the connection was lost")
