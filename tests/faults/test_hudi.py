"""The job with Hudi tables: through every ALTER TABLE and a crash between migration and write, the source's rows."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from pyspark.sql import DataFrame

from cdc_sync.core.migration.migration import Migration
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.errors import TargetError
from cdc_sync.targets.hudi.target import HudiTarget
from cdc_sync.testing import INT32, INT64, TEXT, SourceTable, column, decimal
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.hudi]

_numbers = count(1)


class Shop:
    """A table whose new records are sent before each run."""

    def __init__(self, lake: Pipeline, produce: Produce) -> None:
        self.lake = lake
        self.table = SourceTable(
            "orders",
            [column("id", INT32, optional=False), column("buyer", TEXT), column("amount", decimal(8, 2))],
            prefix=lake.prefix,
            null_is_default=False,
        )
        self._produce, self._sent = produce, 0

    def run(self) -> None:
        self._produce(self.table.topic, self.table.records[self._sent :])
        self._sent = len(self.table.records)
        self.lake.run()

    def assert_equal(self) -> None:
        assert_equal(self.lake, self.table)


@pytest.fixture
def shop(pipeline: NewPipeline, produce: Produce) -> Shop:
    rules = "[{pattern: '.*', renames: {buyer: customer}}]"
    return Shop(pipeline(f"hudi-{next(_numbers)}", rules=rules, format="hudi"), produce)


def test_a_table_goes_through_every_kind_of_change(shop: Shop) -> None:
    table = shop.table
    for number in range(5):
        table.insert(id=number, buyer=f"buyer {number}", amount=Decimal("1.50"))
    shop.run()
    shop.assert_equal()

    table.add_column(column("units", INT32, optional=False, default=7), initial=7)
    table.insert(id=10, buyer="seven", units=1)
    table.rename_column("buyer", "customer")
    table.update({"id": 1}, customer="renamed")
    table.delete({"id": 2})
    shop.run()
    shop.assert_equal()

    table.alter_column("units", lambda _: column("units", INT64), convert=lambda value: value)
    table.insert(id=11, units=2**40)
    table.alter_column("amount", lambda _: column("amount", TEXT), convert=lambda value: value and str(value))
    table.insert(id=12, amount="a lot")
    table.drop_column("customer")
    table.update({"id": 3}, amount="none")
    table.add_column(column("customer", INT32))
    table.insert(id=13, customer=5)
    table.update({"id": 4}, id=104)
    shop.run()
    shop.assert_equal()


def test_a_crash_after_a_migration_s_commit_repeats_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    table = shop.table
    for number in range(3):
        table.insert(id=number, buyer=f"buyer {number}", amount=Decimal("1.00"))
    shop.run()
    table.alter_column("amount", lambda _: column("amount", TEXT), convert=lambda value: value and str(value))
    table.insert(id=7, amount="much")
    migrate = HudiTarget.migrate

    def unanswered(
        self: HudiTarget,
        name: TargetName,
        migration: Migration,
        progress: Progress,
        said: Mapping[int, DataFrame] | None = None,
    ) -> Any:
        migrate(self, name, migration, progress, said)
        raise TargetError("the reply was lost")

    with monkeypatch.context() as crash:
        crash.setattr(HudiTarget, "migrate", unanswered)
        shop.run()
    shop.run()
    shop.assert_equal()
