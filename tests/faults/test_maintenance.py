"""The whole job, which maintains its tables between batches; and the command, which does it while no job runs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from deltalake import DeltaTable

from cdc_sync.cli.app import main
from cdc_sync.runtime import service, stream
from cdc_sync.storage.state import StateStore
from cdc_sync.testing import INT64, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal, files
from tests.faults.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

_SETTINGS = """
job: {trigger_interval: 200ms}
maintenance: {every: 1s, keep_for: 0s, keep_at_least: 1, compact_from_files: 2}
"""
_PATIENCE = 240.0


@pytest.mark.parametrize(
    "format_", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("iceberg", "delta", "hudi")]
)
def test_tables_are_maintained_while_they_change_in_every_way(
    format_: str,
    pipeline: NewPipeline,
    produce: Produce,
    spark: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(stream, "_RETRY_FAILED_SECONDS", 0.5)
    prefix = f"kept-{format_}"
    shop, lake = Shop(prefix, produce), pipeline(prefix, settings=_SETTINGS, format=format_)
    stop = threading.Event()
    shop.open()
    spark()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(service.run, lake.config, once=False, stop=stop)
        try:
            for happens in (shop.trade, shop.grow, shop.alter, lambda: retyped(shop)):
                happens()
                until(lambda: assert_equal(lake, *shop.tables))
                since = time.time()
                until(lambda begun=since: assert_maintained(lake, shop, begun))  # type: ignore[misc]
                assert_equal(lake, *shop.tables)
        finally:
            stop.set()
        report = running.result(timeout=180)
    assert [(status.state, status.warnings) for status in report.tables] == [("running", ())] * 2
    if format_ == "iceberg":
        assert len(lake.table(shop.orders.id).snapshots()) <= 4
    if format_ == "delta":
        path = f"{lake.config.target.catalog.warehouse}/{shop.orders.id.schema}/orders"
        assert len(DeltaTable(path).file_uris()) == 1

    # Nothing of it is maintained but by the command.
    again = replace(lake.named("other"), settings=_SETTINGS.replace("every: 1s, ", ""))
    shop.orders.update({"id": 0}, units=70)
    shop.send()
    again.run()
    shop.orders.insert(id=71, units=1)
    shop.send()
    again.run()
    assert_equal(again, *shop.tables)
    conf = again.folder / "conf.yaml"
    conf.write_text(again.text)

    def command(*options: str) -> tuple[int, Any]:
        spark()
        capsys.readouterr()
        exit_code = main(["maintain", str(conf), "orders", *options, "--json"])
        return exit_code, json.loads(capsys.readouterr().out)

    before = folder_of(again)
    exit_code, said = command("--dry-run")
    assert (exit_code, said["tables"][0]["outcome"]) == ((0, "nothing_due") if format_ == "hudi" else (2, "due"))
    assert folder_of(again) == before, "a dry run changes nothing"
    exit_code, said = command()
    if format_ == "hudi":
        assert (exit_code, said["error"][:30]) == (5, "Cannot maintain by command: a ")
    else:
        assert (exit_code, [table["outcome"] for table in said["tables"]]) == (0, ["maintained"])
        assert said["tables"][0]["done"]["files_rewritten"] > 1
    assert_equal(again, *shop.tables)


def folder_of(lake: Pipeline) -> dict[str, bytes]:
    return files(lake.folder / "warehouse")


def retyped(shop: Shop) -> None:
    shop.orders.drop_column("amount")
    shop.orders.insert(id=70, customer="without an amount", units=1)
    shop.stock.alter_column("left", lambda _: column("left", INT64))
    shop.stock.update({"sku": 0}, left=2**40)
    shop.send()


def assert_maintained(lake: Pipeline, shop: Shop, since: float) -> None:
    store = StateStore(lake.config.pipeline.root)
    assert all((store.maintained(table.id) or 0) > since for table in shop.tables), lake.statuses()


def until(holds: Callable[[], None]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            holds()
            return
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)
