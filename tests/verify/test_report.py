"""How a verification looks, and what it ends with."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from cdc_sync.api import commands
from cdc_sync.core.model.positions import TableId
from cdc_sync.operations.verify.columns import NotCompared
from cdc_sync.operations.verify.compare import Row
from cdc_sync.operations.verify.differences import count
from cdc_sync.operations.verify.report import (
    ColumnDifference,
    Counts,
    Outcome,
    RowDifference,
    TableVerified,
    Verified,
)
from tests.cli.runner import CommandLine

EQUAL = TableVerified(
    table=TableId(database="shop", schema="inv", table="same"),
    target="inv.same",
    outcome=Outcome.EQUAL,
    source_rows=1,
    target_rows=1,
    ranges=1,
    seconds=1.26,
)
ROW = RowDifference(key={"id": "7"}, source_rows=1, target_rows=0, columns=(), settled=True)
DIFFERENT = replace(
    EQUAL,
    outcome=Outcome.DIFFERENT,
    source_rows=1000,
    target_rows=999,
    ranges=256,
    ranges_differing=5,
    ranges_left=2,
    rows_left=30,
    counts=Counts(only_in_source=1, different=2, unsettled=1),
    differences=(
        ROW,
        replace(ROW, key={"a": "x" * 100, "b": None}, target_rows=1, columns=(
            ColumnDifference(column="v", source=None, target=""),
            ColumnDifference(column="w", source="y" * 100, target="y" * 100),
        )),
        replace(ROW, target_rows=2, settled=False),
    ),
    not_compared=(NotCompared(column="r", reason="no reason"),),
    notes=("beware",),
)  # fmt: skip
ABSENT = replace(EQUAL, outcome=Outcome.NOT_COMPARED, problem="the source has no such table now")
UNSETTLED = replace(EQUAL, outcome=Outcome.UNSETTLED, counts=Counts(unsettled=3))
CHANGELOG = replace(EQUAL, outcome=Outcome.CHANGELOG, problem="it is one")


def _verified(monkeypatch: pytest.MonkeyPatch, *tables: TableVerified) -> None:
    found = Verified(pipeline="inventory", tables=tables)
    monkeypatch.setattr(commands, "verify", lambda *_, **__: found)


def test_it_prints_what_differs_and_what_was_left_out(
    cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _verified(monkeypatch, EQUAL, DIFFERENT, ABSENT, UNSETTLED)
    assert cdc_sync("verify", config).out == (
        "shop.inv.same -> inv.same: equal: 1 row, 1.3 s\n"
        "shop.inv.same -> inv.same: different: 1000 rows in the source, 999 in the target, 1.3 s\n"
        "  1 only in the source, 2 different, 1 unsettled\n"
        "  id='7': only in the source\n"
        f"  a='{'x' * 100}'…, b=NULL: v is NULL in the source, '' in the target, w is '{'y' * 100}'… in the source, "
        f"'{'y' * 100}'… in the target (they differ further on than is shown, or in a way their text does not show)\n"
        "  id='7': in the source once, in the target 2 times, unsettled\n"
        "  and 1 more; --limit lists more of them\n"
        "  2 more of 256 ranges differ and were not narrowed down; they have 30 rows, see verify.rows_in_memory\n"
        "  column 'r' is not compared: no reason\n"
        "  note: beware\n"
        "shop.inv.same -> inv.same: not compared: the source has no such table now\n"
        "shop.inv.same -> inv.same: unsettled: 1 row in the source, 1 in the target, 1.3 s\n"
        "  3 unsettled\n"
    )


@pytest.mark.parametrize(
    ("tables", "code"),
    [
        ((), 0),
        ((EQUAL, CHANGELOG), 0),
        ((EQUAL, UNSETTLED), 4),
        ((ABSENT, UNSETTLED), 5),
        ((EQUAL, DIFFERENT, ABSENT, UNSETTLED), 2),
    ],
)
def test_the_exit_code_tells(
    tables: tuple[TableVerified, ...],
    code: int,
    cdc_sync: CommandLine,
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _verified(monkeypatch, *tables)
    assert cdc_sync("verify", config).exit_code == code


def test_for_machines(cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _verified(monkeypatch, DIFFERENT)
    ran = cdc_sync("verify", config, "--json")
    (table,) = ran.json["tables"]
    assert (ran.exit_code, table["outcome"], table["counts"]["different"]) == (2, "different", 2)
    assert table["differences"][1]["columns"][0] == {"column": "v", "source": None, "target": ""}


def test_rows_without_a_key_are_counted_by_their_copies() -> None:
    rows = {
        "a": Row(Counter({"a": 3}), Counter({"a": 1})),
        "b": Row(Counter(), Counter({"b": 2})),
        "c": Row(Counter({"c": 1}), Counter()),
    }
    assert count(rows, {"c"}, keyed=False) == Counts(only_in_source=2, only_in_target=2, unsettled=1)
    assert count(rows, (), keyed=True) == Counts(only_in_source=1, only_in_target=2, different=1)
