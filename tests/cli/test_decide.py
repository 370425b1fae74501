"""`cdc-sync decide`: what the operator says of the change before which a table is paused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cdc_sync.cli import main
from cdc_sync.history.store import HistoryStore
from cdc_sync.naming import Decision
from cdc_sync.state import StateStore, TableStatus
from tests.history.versions import ORDERS, versions

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    (tmp_path / "p.yaml").write_text(
        f"pipeline: {{name: p, state: {tmp_path}}}\nkafka: {{bootstrap_servers: 'localhost:1', topics: [t]}}\n"
        "tables: [{pattern: '.*'}]\n"
    )
    return tmp_path


@pytest.fixture
def run(pipeline: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run_(*arguments: str) -> tuple[int, str]:
        code = main(["decide", str(pipeline / "p.yaml"), *arguments])
        out, err = capsys.readouterr()
        return code, out + err

    return run_


@pytest.fixture
def stores(pipeline: Path) -> StateStore:
    HistoryStore(str(pipeline / "p" / "history")).append(versions()[0])
    return StateStore(str(pipeline / "p"), create=True)


def _paused(at: str | None = "t[0]@7") -> TableStatus:
    return TableStatus(table=ORDERS, target="a.b", state="paused", reason="why", paused_at=at)


def test_a_decision_is_kept_for_the_record_the_table_stands_before(run: Run, stores: StateStore) -> None:
    stores.save(_paused())
    code, out = run("orders", "--rename", "note=b", "--not-same", "c", "--json")
    assert code == 0, out
    assert json.loads(out)["at"] == "t[0]@7"
    assert stores.decisions(ORDERS) == (Decision(table=ORDERS, at="t[0]@7", renames={"note": "b"}, not_same=("c",)),)


def test_a_later_word_about_the_same_change_wins(run: Run, stores: StateStore) -> None:
    stores.save(_paused())
    assert run("orders", "--not-same", "c")[0] == 0
    assert run("orders", "--not-same", "d")[0] == 0
    assert [item.not_same for item in stores.decisions(ORDERS)] == [("d",)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rename", "nothere=b"], "is none of its columns"),
        ([], "nothing was said"),
        (["--rename", "id=b", "--not-same", "b"], "is named twice"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, stores: StateStore, arguments: list[str], said: str) -> None:
    stores.save(_paused())
    code, out = run("orders", *arguments)
    assert code == 5
    assert said in out


def test_a_table_that_runs_is_refused(run: Run, stores: StateStore) -> None:
    stores.save(TableStatus(table=ORDERS, target="a.b", state="running"))
    code, out = run("orders", "--not-same", "c")
    assert code == 5
    assert "is not paused before a change" in out


def test_a_rename_without_two_names_is_a_usage_error(run: Run, stores: StateStore) -> None:
    code, out = run("orders", "--rename", "a")
    assert code == 2
    assert "is not OLD=NEW" in out
