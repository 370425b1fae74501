"""The whole job into Iceberg tables of every kind of catalog, while replies of the catalog are lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdc_sync.config import Config
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.runtime.reports import RunReport
from cdc_sync.targets.iceberg.target import IcebergTarget
from cdc_sync.testing import TEXT, column
from tests.conftest import Produce
from tests.faults.catalogs import CATALOGS, Catalog, InCatalog
from tests.faults.pipeline import assert_equal
from tests.faults.shop import LostReplies, Shop

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


@pytest.fixture(params=CATALOGS)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    folder = tmp_path / "catalog"
    folder.mkdir()
    with CATALOGS[request.param](folder) as made:
        yield made


def test_tables_live_through_every_change_whatever_names_them(
    catalog: Catalog,
    kafka: KafkaServer,
    run_once: Callable[[Config], RunReport],
    produce: Produce,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    prefix = f"catalogs-{request.node.callspec.id}"
    shop = Shop(prefix, produce)
    lake = InCatalog(
        folder=tmp_path, servers=kafka.bootstrap_servers, prefix=prefix, run_once=run_once, catalog=catalog
    )
    replies = LostReplies(monkeypatch, IcebergTarget)
    shop.open()
    lake.run()
    shop.trade()
    shop.alter()
    replies.lose(2)
    lake.run()
    lake.run()
    assert_equal(lake, *shop.tables)

    # A column that goes and another of its name, and a type that Iceberg cannot change in place: a rewrite.
    shop.orders.drop_column("amount")
    shop.orders.insert(id=70, customer="without an amount", units=1)
    shop.orders.add_column(column("amount", TEXT))
    shop.orders.insert(id=71, customer="with another", units=1, amount="a word")
    shop.stock.alter_column("left", lambda _: column("left", TEXT))
    shop.stock.insert(shop="south", sku=9, left="none")
    shop.send()
    replies.lose(2)
    again = lake.named("other")
    again.run()
    again.run()

    for row in shop.stock.rows:
        row["left"] = None if row["left"] is None else str(row["left"])
    assert_equal(again, *shop.tables)
    assert replies.lost == 4
    assert {status.state for status in again.statuses().values()} == {"running"}
