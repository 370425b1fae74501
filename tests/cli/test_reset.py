"""`cdc-sync reset`: what would become of the target is told, and nothing is asked without a yes."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdc_sync.api import resets
from cdc_sync.api.results import ResetAsked
from cdc_sync.config import Config
from cdc_sync.core.model.positions import TableId
from tests.cli.runner import CommandLine


def _asked(_: Config | None, table: str, *, dry_run: bool) -> ResetAsked:
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


def test_from_a_snapshot_it_tells_how_the_connector_is_asked(
    cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = functools.partial(replace, _asked(None, "orders", dry_run=False), into=None)
    monkeypatch.setattr(resets, "reset_from_snapshot", lambda *_, **said: asked(**_how(said["dry_run"])))

    dry = cdc_sync("reset", config, "orders", "--from-snapshot", "--dry-run").out
    told = cdc_sync("reset", config, "orders", "--from-snapshot", "--yes").out

    assert dry.startswith(
        "shop.inv.orders: when the connector has read all rows again, inv.orders has them and no other"
    )
    assert "Nothing is asked of the job yet." in dry
    assert "  INSERT INTO signals;\n" in told


def _how(dry_run: bool) -> dict[str, Any]:
    return {"dry_run": dry_run, "statement": None if dry_run else "INSERT INTO signals"}
