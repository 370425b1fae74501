"""`cdc-sync plan`: how it looks, and what it ends with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cdc_sync.api import commands
from cdc_sync.core.migration.wording import Phrase
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.dead_letters import DeadLetterCount
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.planning.explain import ExplainedStep
from cdc_sync.core.schema.alignment import Evidence
from cdc_sync.runtime.reports import Plan, PlannedTable, VersionLine
from tests.cli.runner import CommandLine

VERSION = VersionLine(
    number=2,
    position=SourcePosition(kind="postgresql", parts=(7, 8)),
    kafka=KafkaPosition(topic="shop.inv.orders", partition=0, offset=5),
    snapshot=False,
    fingerprint="f",
    changes=(Phrase(kind="RenameColumn", column=2, text="rename column qty to quantity"),),
    evidence=(Evidence(subject="quantity", kind="position", text="stands where qty stood"),),
)
SAME = PlannedTable(
    table=TableId(database="shop", schema="inv", table="same"),
    target="inv.same",
    offsets=1,
    versions=(),
    steps=(),
    problem=None,
    paused=False,
    remedy=None,
    at=None,
    warnings=(),
)
CHANGED = replace(
    SAME,
    table=TableId(database="shop", schema="inv", table="orders"),
    target="inv.orders",
    offsets=12,
    versions=(VERSION,),
    steps=(
        ExplainedStep(
            kind="AlterTable", cost="metadata", statements=("ALTER TABLE inv.orders RENAME COLUMN qty TO quantity",)
        ),
        ExplainedStep(kind="Backfill", cost="rewrite", statements=("UPDATE inv.orders SET a = 7 WHERE a IS NULL",)),
        ExplainedStep(kind="AlterTable", cost="metadata", statements=()),
    ),
)
PAUSED = replace(SAME, problem="the key changed", paused=True, remedy="restore it", at="t[0]@3", warnings=("beware",))
LETTERS = DeadLetterCount(topic="shop.inv.orders", code=Code.RECORD_FOREIGN, reason="not JSON", records=1)


def _planned(monkeypatch: pytest.MonkeyPatch, *tables: PlannedTable, letters: tuple[DeadLetterCount, ...] = ()) -> None:
    found = Plan(pipeline="inventory", tables=tables, dead_letters=letters)
    monkeypatch.setattr(commands, "plan", lambda _: found)


def test_it_prints_versions_steps_and_what_would_pause(
    cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _planned(monkeypatch, CHANGED, PAUSED, SAME, letters=(LETTERS,))
    ran = cdc_sync("plan", config)
    assert ran.out == (
        "shop.inv.orders -> inv.orders: 12 offsets to read\n"
        "  version 2  postgresql:7/8  shop.inv.orders[0]@5\n"
        "    rename column qty to quantity\n"
        "      because of quantity: stands where qty stood (position)\n"
        "  metadata  ALTER TABLE inv.orders RENAME COLUMN qty TO quantity\n"
        "  rewrite   UPDATE inv.orders SET a = 7 WHERE a IS NULL\n"
        "  metadata  stamp the version\n"
        "shop.inv.same -> inv.same: 1 offset to read\n"
        "  would pause at t[0]@3: the key changed; restore it\n"
        "  warning: beware\n"
        "shop.inv.same -> inv.same: 1 offset to read, no change\n"
        "dead letters: 1 of shop.inv.orders (record-not-a-change): not JSON\n"
    )


@pytest.mark.parametrize(
    ("tables", "code"),
    [((), 0), ((SAME,), 0), ((SAME, CHANGED), 2), ((CHANGED, PAUSED), 5), ((replace(SAME, problem="waits"),), 2)],
)
def test_the_exit_code_says_whether_anything_would_change(
    tables: tuple[PlannedTable, ...],
    code: int,
    cdc_sync: CommandLine,
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _planned(monkeypatch, *tables)
    assert cdc_sync("plan", config).exit_code == code


def test_for_machines(cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _planned(monkeypatch, CHANGED)
    ran = cdc_sync("plan", config, "--json")
    (table,) = ran.json["tables"]
    assert ran.exit_code == 2
    assert (table["table"], table["offsets"], table["versions"][0]["number"]) == ("shop.inv.orders", 12, 2)
    assert table["steps"][1] == {
        "kind": "Backfill",
        "cost": "rewrite",
        "statements": ["UPDATE inv.orders SET a = 7 WHERE a IS NULL"],
    }
