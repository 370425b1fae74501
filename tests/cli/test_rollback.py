"""`cdc-sync rollback`: the operator's word that a rewrite is to be undone, and that it may be done again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cdc_sync.cli.app import main
from cdc_sync.core.migration.operator_requests import Rollback
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.core.planning.stops import rolled_back
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.types import INT64
from cdc_sync.storage.history import HistoryStore
from cdc_sync.storage.state import StateStore
from tests.history.versions import ORDERS, at, versions

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "p.yaml").write_text(
        f"pipeline: {{name: p, state: {tmp_path}}}\nkafka: {{bootstrap_servers: 'localhost:1', topics: [t]}}\n"
        "tables: [{pattern: '.*'}]\n"
    )
    return tmp_path


@pytest.fixture
def run(root: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run_(*arguments: str) -> tuple[int, str]:
        code = main(["rollback", str(root / "p.yaml"), "orders", *arguments])
        out, err = capsys.readouterr()
        return code, out + err

    return run_


@pytest.fixture
def store(root: Path) -> StateStore:
    """A table whose second version changed a text to a number."""
    first = versions()[0]
    columns = tuple(replace(it, type=INT64) if it.name == "note" else it for it in first.schema.columns)
    after = replace(first.schema, columns=columns)
    history = HistoryStore(str(root / "p" / "history"))
    history.append(first)
    history.append(replace(first, number=2, schema=after, changes=diff(first.schema, after), position=at(20)))
    return StateStore(str(root / "p"), create=True)


def test_it_is_asked_for_and_taken_back(run: Run, store: StateStore) -> None:
    code, out = run("--json")
    assert (code, json.loads(out)["version"]) == (0, 2)
    assert store.requests.get(Rollback, ORDERS) == Rollback(table=ORDERS, version=2)
    code, out = run()
    assert "brings back rows and columns of before version 2, and holds it there" in out
    _back(store)
    code, out = run()
    assert "are those of before version 2 already, and stay so" in out
    code, out = run("--undo")
    assert (code, store.requests.get(Rollback, ORDERS)) == (0, None)
    assert "the job carries version 2 out again" in out


def test_taken_back_before_the_job_did_it_nothing_happens_and_that_is_said(run: Run, store: StateStore) -> None:
    run()
    code, out = run("--undo")
    assert (code, store.requests.get(Rollback, ORDERS)) == (0, None)
    assert "the job had not brought back what was before version 2; it leaves it so" in out


def test_asked_for_again_before_the_job_undid_it_nothing_happens_and_that_is_said(run: Run, store: StateStore) -> None:
    run()
    _back(store)
    run("--undo")
    code, out = run()
    assert (code, store.requests.get(Rollback, ORDERS)) == (0, Rollback(table=ORDERS, version=2))
    assert "are those of before version 2 already, and stay so" in out


def _back(store: StateStore) -> None:
    """Say what the job says once it has done it."""
    pause = rolled_back(ORDERS, 2)
    store.save(TableStatus(table=ORDERS, target="a.b", state="paused", reason=pause.reason, remedy=pause.remedy))


def test_what_was_not_asked_for_cannot_be_taken_back(run: Run, store: StateStore) -> None:
    code, out = run("--undo")
    assert code == 5
    assert "no rollback of it was asked for" in out


def test_a_table_whose_rows_were_never_rewritten_is_refused(run: Run, root: Path) -> None:
    HistoryStore(str(root / "p" / "history")).append(versions()[0])
    code, out = run()
    assert code == 5
    assert "no version of it rewrote the rows" in out
