"""`cdc-sync regime`: the operator's word that a Hudi table is to be rewritten as it is configured."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cdc_sync.cli.app import main
from cdc_sync.core.migration.operator_requests import RegimeAsked
from cdc_sync.storage.history import HistoryStore
from cdc_sync.storage.state import StateStore
from tests.history.versions import ORDERS, versions

Run = Callable[..., tuple[int, str]]
RULE = "{pattern: '.*', schema_evolution: on_read, readers: [spark]}"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    HistoryStore(str(tmp_path / "p" / "history")).append(versions()[0])

    def run_(*arguments: str, rule: str = RULE, form: str = "hudi") -> tuple[int, str]:
        (tmp_path / "p.yaml").write_text(
            f"pipeline: {{name: p, state: {tmp_path}}}\nkafka: {{bootstrap_servers: 'localhost:1', topics: [t]}}\n"
            f"tables: [{rule}]\ntarget: {{format: {form}}}\n"
        )
        code = main(["regime", str(tmp_path / "p.yaml"), "orders", *arguments])
        out, err = capsys.readouterr()
        return code, out + err

    return run_


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    return StateStore(str(tmp_path / "p"), create=True)


def test_what_is_configured_is_asked_for(run: Run, store: StateStore) -> None:
    code, out = run()
    assert code == 0
    assert f"{ORDERS}: the job rewrites public.orders for schema_evolution: on_read, in one commit." in out
    assert store.requests.get(RegimeAsked, ORDERS) == RegimeAsked(table=ORDERS, evolution="on_read")
    code, out = run("--json", rule="{pattern: '.*'}")
    assert (code, json.loads(out)["evolution"]) == (0, "on_write")
    assert store.requests.get(RegimeAsked, ORDERS) == RegimeAsked(table=ORDERS, evolution="on_write")


def test_what_was_asked_for_is_taken_back(run: Run, store: StateStore) -> None:
    code, out = run("--undo")
    assert code == 5
    assert "nothing is to be done to it" in out
    run()
    code, out = run("--undo", rule="{pattern: '.*'}")
    assert (code, store.requests.get(RegimeAsked, ORDERS)) == (0, None)
    assert "public.orders stays as it is; the job forgets to rewrite it for on_read" in out


@pytest.mark.parametrize(
    ("rule", "form", "code", "why"),
    [
        (RULE.replace("spark", "trino"), "hudi", 2, "names trino, which is not to read hudi on read tables"),
        (RULE.replace("[spark]", "[]"), "hudi", 2, "most engines would read old columns under new names"),
        ("{pattern: '.*'}", "delta", 5, "of target.format delta there is one kind of table"),
        ("{table: d.s.other}", "hudi", 5, "no rule of the configuration matches it"),
    ],
)
def test_what_cannot_be_is_refused(run: Run, store: StateStore, rule: str, form: str, code: int, why: str) -> None:
    found, out = run(rule=rule, form=form)
    assert found == code
    assert why in out
    assert store.requests.get(RegimeAsked, ORDERS) is None
