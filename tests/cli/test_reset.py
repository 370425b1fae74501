"""`cdc-sync reset`: what would become of the target is told, and nothing is asked without a yes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_sync.api import resets
from cdc_sync.api.results import ResetAsked
from cdc_sync.config import Config
from cdc_sync.core.model.positions import TableId
from tests.cli.runner import CommandLine


def _asked(_: Config, table: str, *, dry_run: bool) -> ResetAsked:
    return ResetAsked(
        table=TableId(database="shop", schema="inv", table=table),
        target="inv.orders",
        into="inv.orders__reset_20261128_123000",
        is_running=True,
        dry_run=dry_run,
    )


def test_it_tells_what_the_target_becomes(cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resets, "reset", _asked)
    told = (
        "shop.inv.orders: inv.orders becomes inv.orders__reset_20261128_123000, and its topics are read again from "
        "their start\n"
    )

    assert cdc_sync("reset", config, "orders", "--dry-run").out == f"{told}Nothing is asked of the job yet.\n"
    assert cdc_sync("reset", config, "orders", "--yes").out == (
        f"{told}The job takes it up within seconds; `cdc-sync status` shows it.\n"
    )
    assert cdc_sync("reset", config, "orders").exit_code == 2, "nobody can be asked"
