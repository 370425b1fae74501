"""Tables of one pipeline that are kept in two ways, and one that is rewritten from one to the other on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from cdc_sync.api import commands, requests
from cdc_sync.core.migration.migration import ChangeRegime, Migration
from cdc_sync.core.migration.operator_requests import RegimeAsked
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.errors import TargetError
from cdc_sync.storage.state import StateStore
from cdc_sync.targets.hudi.target import HudiTarget
from cdc_sync.testing import INT32, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal
from tests.faults.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.hudi]

TOLD = "renames: {buyer: customer, customer: client, left: remaining}, drops: [amount]"
ON_READ = "schema_evolution: on_read, readers: [spark]"

_numbers = count(1)


def kept(lake: Pipeline, *on_read: str) -> Pipeline:
    """Keep tables so that their columns are found by ids, and all others so that they are found by name."""
    own = [f"{{pattern: '.*\\.{name}', {TOLD}, {ON_READ}}}" for name in on_read]
    return replace(lake, rules=f"[{', '.join([*own, f'{{pattern: .*, {TOLD}}}'])}]")


def assert_read(lake: Pipeline, table: SourceTable, *, on_read: bool) -> None:
    """Columns found by their names are read by hudi-rs, others by Spark."""
    assert_equal(replace(lake, format="hudi_on_read") if on_read else lake, table)


def commits(lake: Pipeline, table: SourceTable, action: str = "*commit") -> int:
    folder = Path(lake.config.target.catalog.warehouse) / table.id.schema / table.id.table
    return len([*(folder / ".hoodie").glob(f"*.{action}")])


def rewrites(lake: Pipeline, table: SourceTable) -> int:
    """How often all files were replaced."""
    return commits(lake, table, "replacecommit")


@pytest.fixture
def lake(pipeline: NewPipeline) -> Pipeline:
    return pipeline(f"regimes-{next(_numbers)}", format="hudi")


def test_each_table_is_kept_as_its_rule_says(lake: Pipeline, produce: Produce) -> None:
    lake = kept(lake, "orders")
    shop = Shop(lake.prefix, produce)
    shop.open()
    lake.run()
    shop.orders.rename_column("buyer", "customer")
    shop.orders.drop_column("amount")
    shop.orders.update({"id": 0}, customer="renamed")
    shop.stock.rename_column("left", "remaining")
    shop.stock.update({"sku": 1}, remaining=7)
    shop.send()
    lake.run()
    assert (rewrites(lake, shop.orders), rewrites(lake, shop.stock)) == (0, 1)
    assert_read(lake, shop.orders, on_read=True)
    assert_read(lake, shop.stock, on_read=False)
    assert {status.state for status in lake.statuses().values()} == {"running"}


class Killed(Exception):
    """The process ended here."""


def kill(patched: pytest.MonkeyPatch, when: str) -> None:
    """End whoever changes a regime, before it or behind it."""
    migrate = HudiTarget.migrate

    def killed(
        self: HudiTarget,
        name: TargetName,
        migration: Migration,
        progress: Progress,
        said: Mapping[int, DataFrame] | None = None,
    ) -> Any:
        changes = any(isinstance(step, ChangeRegime) for step in migration.steps)
        if changes and when == "before":
            raise TargetError("the process died")
        migrate(self, name, migration, progress, said)
        if changes:
            raise TargetError("the reply was lost")

    patched.setattr(HudiTarget, "migrate", killed)


def status_of(lake: Pipeline) -> TableStatus:
    return lake.statuses()["orders"]


@pytest.mark.parametrize("first", ["on_write", "on_read"])
def test_a_table_is_rewritten_when_it_is_asked_for_and_not_before(
    first: str, lake: Pipeline, produce: Produce, monkeypatch: pytest.MonkeyPatch, spark: Callable[[], None]
) -> None:
    made, wanted = (kept(lake), kept(lake, "orders")) if first == "on_write" else (kept(lake, "orders"), kept(lake))
    other = "on_read" if first == "on_write" else "on_write"
    shop = Shop(lake.prefix, produce)
    shop.open()
    made.run()
    shop.orders.rename_column("buyer", "customer")
    shop.orders.update({"id": 1}, customer="changed")
    shop.trade()
    made.run()
    assert_read(made, shop.orders, on_read=first == "on_read")

    held = commits(made, shop.orders)
    shop.orders.insert(id=60, customer="while it is paused")
    shop.orders.drop_column("amount")
    shop.orders.insert(id=61, customer="without an amount")
    shop.send()
    wanted.run()
    status = status_of(wanted)
    assert status.state == "paused"
    assert status.reason == (
        f"the target is of schema_evolution: {first}, which its readers find columns by, and the configuration asks "
        f"for {other}"
    )
    assert f"`cdc-sync regime CONFIG {shop.orders.id}`" in (status.remedy or "")
    assert commits(wanted, shop.orders) == held
    assert wanted.statuses()["stock"].state == "running"
    made.run()
    assert status_of(made).state == "running"
    assert_read(made, shop.orders, on_read=first == "on_read")

    store = StateStore(wanted.config.pipeline.root)
    requests.regime(wanted.config, "orders", undo=False)
    made.run()
    assert status_of(made).state == "running", "it goes on as it is configured"
    assert any("the configuration says" in text for text in status_of(made).warnings)
    spark()
    (planned,) = (it for it in commands.plan(wanted.config).tables if it.table == shop.orders.id)
    assert [step.kind for step in planned.steps] == ["ChangeRegime"]
    assert not planned.paused

    shop.orders.insert(id=62, customer="on the way")
    shop.send()
    rewritten = rewrites(wanted, shop.orders)
    for when in ("before", "behind"):
        with monkeypatch.context() as patched:
            kill(patched, when)
            wanted.run()
        assert store.requests.get(RegimeAsked, shop.orders.id) is not None
        assert status_of(wanted).state == "failing"
    wanted.run()
    assert (status_of(wanted).state, store.requests.get(RegimeAsked, shop.orders.id)) == ("running", None)
    assert_read(wanted, shop.orders, on_read=other == "on_read")
    assert rewrites(wanted, shop.orders) == rewritten + 1

    shop.orders.add_column(column("amount", INT32))
    shop.orders.insert(id=63, amount=5)
    shop.orders.rename_column("customer", "client")
    shop.orders.update({"id": 0}, amount=1)
    shop.send()
    wanted.run()
    assert_read(wanted, shop.orders, on_read=other == "on_read")
    assert status_of(wanted).state == "running"
    assert (rewrites(wanted, shop.orders) == rewritten + 1) is (other == "on_read"), "metadata by ids, rows by name"


def test_a_job_that_runs_takes_up_what_is_asked(lake: Pipeline, produce: Produce, spark: Callable[[], None]) -> None:
    from cdc_sync.spark.session import build_session
    from tests.corpus.runs import memory_job

    shop = Shop(lake.prefix, produce)
    shop.open()
    kept(lake).run()
    wanted = kept(lake, "orders", "stock")
    with ExitStack() as stack:
        spark()
        job, context = stack.enter_context(memory_job(wanted.config, build_session(wanted.config)))
        job.tables.restore()

        def run() -> dict[str, str]:
            shop.send()
            ends = context.kafka.ends([table.topic for table in shop.tables])
            job.process({(topic, part): end for topic, parts in ends.items() for part, end in parts.items()})
            job.catch_up()
            job.finish()
            return {status.table.table: status.state for status in context.state.tables()}

        assert run() == {"orders": "paused", "stock": "paused"}
        shop.orders.update({"id": 3}, buyer="later")
        requests.regime(wanted.config, "orders", undo=False)
        assert run() == {"orders": "running", "stock": "paused"}
        shop.orders.rename_column("buyer", "customer")
        shop.orders.insert(id=9, customer="new")
        assert run() == {"orders": "running", "stock": "paused"}
        assert rewrites(wanted, shop.orders) == 1
    assert_read(wanted, shop.orders, on_read=True)
