"""Several source tables in one Iceberg table, through the whole job: each has its own rows, columns and changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.api import commands, requests
from cdc_sync.config.models import Maintenance
from cdc_sync.core.model.positions import TableId
from cdc_sync.errors import RefusedError
from cdc_sync.runtime.maintenance import maintain
from cdc_sync.targets.iceberg.target import IcebergTarget
from cdc_sync.testing import INT32, INT64, TEXT, SourceTable, Wal, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.lost import LostCalls
from tests.faults.pipeline import Pipeline
from tests.faults.told import ToldTable

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]
ALL = TableId(database="", schema="shop", table="orders")
RULES = r"""
  - {pattern: 'shop\.public\.orders_.*', target: shop.orders, merge: {}}
  - {table: shop.public.prices, policy: {rename_table: follow}}"""


class Shop:
    """Two tables of one source, and what of them was sent."""

    def __init__(self, prefix: str, produce: Produce) -> None:
        wal = Wal()
        self.prefix = prefix
        self.one = ToldTable(prefix, "orders_1", wal=wal)
        self.two = ToldTable(prefix, "orders_2", wal=wal, relid=20000)
        self._produce = produce
        self._sent = dict.fromkeys(self.tables, (0, 0))
        for table in self.tables:
            for number in range(3):
                table.insert(id=number, z=f"z {number}", a=f"{table.id.table} {number}")

    @property
    def tables(self) -> tuple[ToldTable, ToldTable]:
        return self.one, self.two

    def send(self) -> None:
        for table, (told, sent) in self._sent.items():
            self._produce(f"{self.prefix}.message", table.messages[told:])
            self._produce(table.topic, table.records[sent:])
            self._sent[table] = len(table.messages), len(table.records)


def lake_of(pipeline: NewPipeline, prefix: str, policy: str = "{}") -> Pipeline:
    return pipeline(
        prefix, rules=RULES, settings=f"evidence: {{messages: [{prefix}.message], wait: 0s}}\npolicy: {policy}"
    )


def assert_merged(lake: Pipeline, *sources: SourceTable) -> None:
    """The table has the columns of all sources, and of each its rows; what a source does not have is NULL in them."""
    data = lake.read(ALL)
    fields = {column.field or "" for source in sources for column in source.columns}
    assert set(data.column_names) == fields | {"_source_table"}
    found: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(data.to_pylist(), key=lambda row: str(row["id"])):
        found.setdefault(row.pop("_source_table"), []).append(row)
    wanted = {
        str(source.id): sorted(
            ({**dict.fromkeys(fields), **row} for row in source.rows), key=lambda row: str(row["id"])
        )
        for source in sources
        if source.rows
    }
    assert found == wanted


def run_until_it_goes_well(lake: Pipeline) -> None:
    for _ in range(8):
        lake.run()
        if all(status.state != "failing" for status in lake.statuses().values()):
            return
    raise AssertionError({name: status.reason for name, status in lake.statuses().items()})


def test_every_change_of_either_table_lives_through_whatever_is_lost_on_the_way(
    pipeline: NewPipeline, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, lake = Shop("merged-lives", produce), lake_of(pipeline, "merged-lives", "{drop_table: drop}")
    one, two = shop.tables
    calls = ("migrate", "write", "change_rows", "remove_rows")
    lost = LostCalls(monkeypatch, *((IcebergTarget, call) for call in calls), times=20)

    def settle() -> None:
        shop.send()
        run_until_it_goes_well(lake)
        assert_merged(lake, one, two)
        assert {status.state for status in lake.statuses().values()} == {"running"}

    settle()
    one.add_column(column("n", INT32, optional=False, default=7), initial=7)
    one.insert(id=10, z="ten", a="with n", n=1)
    two.update({"id": 1}, id=11)
    two.delete({"id": 2})
    settle()

    one.rename_column("z", "y")
    one.update({"id": 1}, y="under another name")
    two.insert(id=12, z="under the old one", a="a")
    settle()

    two.rename_and_retype("z", column("y", TEXT), "text")
    two.add_column(column("n", INT64))
    two.insert(id=13, y="both now", a="a", n=2**40)
    one.drop_column("a")
    one.insert(id=14, y="without a", n=3)
    settle()

    one.truncate()
    one.insert(id=15, y="behind the truncate", n=4)
    two.drop()
    shop.send()
    run_until_it_goes_well(lake)
    assert_merged(lake, one)
    assert lake.statuses()["orders_2"].state == "gone"

    two.recreate(column("id", INT32, optional=False), column("y", TEXT))
    two.insert(id=17, y="made anew")
    settle()
    before = lake.table(ALL).metadata_location
    lake.run()
    assert lake.table(ALL).metadata_location == before, "nothing is done twice"
    assert {f"{call} {fate}" for call in calls for fate in ("before", "behind")} == set(lost.failed)


def test_a_table_that_does_not_fit_waits_and_holds_up_no_other(
    pipeline: NewPipeline, produce: Produce, capsys: pytest.CaptureFixture[str]
) -> None:
    shop, lake = Shop("merged-misfits", produce), lake_of(pipeline, "merged-misfits")
    prices = ToldTable(shop.prefix, "prices", wal=shop.one.wal, relid=30000)
    prices.tell("create table prices", tag="CREATE TABLE")
    produce(f"{shop.prefix}.message", prices.messages)
    produce(prices.topic, prices.insert(id=1, z="z", a="a"))
    shop.send()
    lake.run()
    bad = SourceTable("orders_bad", [column("id", INT32, optional=False), column("z", INT64)], prefix=shop.prefix)
    keyless = SourceTable("orders_nokey", [column("z", TEXT)], key=(), full_identity=True, prefix=shop.prefix)
    bad.insert(id=1, z=1)
    keyless.insert(z="a")
    for table in (bad, keyless):
        produce(table.topic, table.records)
    shop.one.insert(id=10, z="goes on", a="a")
    shop.send()

    lake.run()

    statuses = lake.statuses()
    assert statuses["orders_bad"].reason == (
        "column 'z' is BIGINT, and STRING in the target: rows of other tables have that one, and neither can become "
        "the other in place"
    )
    assert statuses["orders_nokey"].reason == ("it has no key, and a target of several source tables finds rows by one")
    assert {name: status.state for name, status in statuses.items()} == {
        "orders_1": "running",
        "orders_2": "running",
        "orders_bad": "paused",
        "orders_nokey": "paused",
        "prices": "running",
    }
    assert_merged(lake, *shop.tables)

    before = len(lake.table(ALL).snapshots())
    tables = [status.table for status in statuses.values()]
    config = lake.config.model_copy(update={"maintenance": Maintenance(compact_from_files=2)})
    found = maintain(config, tables, dry_run=False).tables
    assert [(item.target, item.outcome) for item in found] == [
        ("shop.orders", "maintained"),
        ("public.prices", "maintained"),
    ]
    assert len(lake.table(ALL).snapshots()) == before + 1, "the table is maintained once"
    assert_merged(lake, *shop.tables)
    with pytest.raises(RefusedError, match="rows of other tables are in"):
        requests.rollback(config, "shop.public.orders_1", undo=False)
    prices.rename_to("orders_9")
    produce(f"{shop.prefix}.message", prices.messages[1:])
    produce(prices.topic, prices.insert(id=2, z="z", a="a"))
    shop.two.insert(id=11, z="after the maintenance", a="a")
    shop.send()
    (first, second, *_) = commands.plan(lake.config).tables
    assert ([step.statements for step in first.steps], first.offsets, second.offsets) == ([], 0, 1)
    lake.run()
    assert_merged(lake, *shop.tables)

    assert (lake.statuses()["prices"].reason or "").startswith(
        "the source table was renamed to shop.public.orders_9, whose rows go to shop.orders with those of other tables"
    )

    alone = replace(lake, rules="[{table: shop.public.orders_1, target: shop.orders}]", name="alone")
    alone.run()
    assert alone.statuses()["orders_1"].reason == (
        "Cannot sync shop.public.orders_1: several source tables share the target shop.orders"
    )
    assert_merged(lake, *shop.tables)
