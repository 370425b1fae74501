"""The whole job into every format but the default one, which all other tests are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from cdc_sync.targets.delta.target import DeltaTarget
from cdc_sync.targets.hudi.target import HudiTarget
from cdc_sync.targets.parquet.target import ParquetTarget
from cdc_sync.testing import INT64, TEXT, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal
from tests.faults.shop import LostReplies, Shop

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@dataclass(frozen=True)
class Format:
    name: str
    target: type[Any]


FORMATS = [
    pytest.param(Format("delta", DeltaTarget), marks=pytest.mark.delta, id="delta"),
    pytest.param(Format("hudi", HudiTarget), marks=pytest.mark.hudi, id="hudi"),
    pytest.param(Format("hudi_on_read", HudiTarget), marks=pytest.mark.hudi, id="hudi_on_read"),
    pytest.param(Format("parquet", ParquetTarget), marks=pytest.mark.parquet, id="parquet"),
]


@pytest.mark.parametrize("format_", FORMATS)
def test_a_table_lives_through_every_change_whatever_is_lost_on_the_way(
    format_: Format, pipeline: NewPipeline, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"lives-{format_.name}"
    shop, lake = Shop(prefix, produce), pipeline(prefix, format=format_.name)
    replies = LostReplies(monkeypatch, format_.target)
    shop.open()
    lake.run()
    shop.trade()
    replies.lose(2)
    run_twice(lake)
    assert_equal(lake, *shop.tables)

    shop.alter()
    replies.lose(3)
    run_twice(lake)
    assert_equal(lake, *shop.tables)

    shop.orders.drop_column("amount")
    shop.orders.insert(id=70, customer="without an amount", units=1)
    shop.orders.add_column(column("amount", TEXT))
    shop.orders.insert(id=71, customer="with another", units=1, amount="a word")
    shop.stock.alter_column("left", lambda _: column("left", INT64))
    shop.stock.update({"sku": 0}, left=2**40)
    shop.send()
    replies.lose(3)
    again = lake.named("other")
    run_twice(again)
    assert_equal(again, *shop.tables)
    assert replies.lost == 8
    assert {status.state for status in again.statuses().values()} == {"running"}


def run_twice(lake: Pipeline) -> None:
    """A run tries a table that failed once more, and all replies that are lost may be of one table."""
    lake.run()
    lake.run()
