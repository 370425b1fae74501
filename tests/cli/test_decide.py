"""`cdc-sync decide`: what the operator says of the change before which a table is paused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cdc_sync.cli.app import main
from cdc_sync.core.migration.routes import Decision, Join
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.core.schema.diff import diff
from cdc_sync.storage.history import HistoryStore
from cdc_sync.storage.state import StateStore
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
    assert stores.requests.decisions(ORDERS) == (
        Decision(table=ORDERS, at="t[0]@7", renames={"note": "b"}, not_same=("c",)),
    )


def test_a_later_word_about_the_same_change_wins(run: Run, stores: StateStore) -> None:
    stores.save(_paused())
    assert run("orders", "--not-same", "c")[0] == 0
    assert run("orders", "--not-same", "d")[0] == 0
    assert [item.not_same for item in stores.requests.decisions(ORDERS)] == [("d",)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rename", "nothere=b"], "is none of its columns"),
        ([], "nothing was said"),
        (["--rename", "id=b", "--not-same", "b"], "is named twice"),
        (["--rename", "id=b", "--drop", "id"], "is named twice"),
        (["--drop", "nothere"], "is none of its columns"),
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


@pytest.fixture
def split(pipeline: Path) -> StateStore:
    """A table that runs, whose column `note` was kept when `remark` came."""
    first = versions()[0]
    remark = replace(first.schema.columns[1], id=5, name="remark", initial=None)
    kept = replace(first.schema.columns[1], retired=True)
    columns = (first.schema.columns[0], remark, kept, first.schema.columns[2])
    schema = replace(first.schema, columns=columns, last_column_id=5)
    second = replace(first, number=2, schema=schema, changes=diff(first.schema, schema))
    for version in (first, second):
        HistoryStore(str(pipeline / "p" / "history")).append(version)
    store = StateStore(str(pipeline / "p"), create=True)
    store.save(TableStatus(table=ORDERS, target="a.b", state="running"))
    return store


def test_columns_of_an_earlier_change_are_joined_while_the_table_runs(run: Run, split: StateStore) -> None:
    code, out = run("orders", "--rename", "note=remark")
    assert code == 0, out
    assert "note and remark are one column, and the job joins them, data and history" in " ".join(out.split())
    join = Join(table=ORDERS, kept=2, joined=5, old="note", new="remark", after=2)
    assert (split.requests.all(Join, ORDERS), split.requests.decisions(ORDERS)) == ((join,), ())
    code, out = run("orders", "--rename", "note=remark", "--json")
    assert json.loads(out)["joins"][0] == {
        "table": str(ORDERS),
        "kept": 2,
        "joined": 5,
        "old": "note",
        "new": "remark",
        "after": 2,
    }
    split.requests.remove(join)
    split.requests.remove(join)
    assert split.requests.all(Join, ORDERS) == ()


def test_a_kept_column_may_go_with_the_next_change(run: Run, split: StateStore) -> None:
    code, out = run("orders", "--drop", "note")
    assert code == 0, out
    assert "note goes, with its data, at the next change of the table's columns" in out
    assert split.requests.decisions(ORDERS) == (Decision(table=ORDERS, at="", renames={}, dropped=("note",), after=2),)


def test_a_column_that_goes_before_the_change_at_which_the_table_stands(run: Run, stores: StateStore) -> None:
    stores.save(_paused())
    assert run("orders", "--drop", "note")[0] == 0
    assert stores.requests.decisions(ORDERS) == (Decision(table=ORDERS, at="t[0]@7", renames={}, dropped=("note",)),)


def test_a_column_that_the_source_has_is_not_dropped_by_word(run: Run, split: StateStore) -> None:
    code, out = run("orders", "--drop", "tags")
    assert code == 5
    assert "'tags' is none of the columns that are kept although the source lost them (note)" in out


def test_what_cannot_be_joined_is_said_at_once(run: Run, split: StateStore) -> None:
    for names, said in (("tags=remark", "the source still has 'tags'"), ("note=id", "did not vanish at the change")):
        code, out = run("orders", "--rename", names)
        assert (code, said in out) == (5, True), out
    assert split.requests.all(Join, ORDERS) == ()


def test_columns_are_not_taken_apart_afterwards(run: Run, split: StateStore) -> None:
    code, out = run("orders", "--not-same", "remark")
    assert code == 5
    assert "cannot be taken apart afterwards" in out
    assert "snapshot the table again into a new target" in out


def test_both_changes_of_a_paused_table_are_decided_at_once(run: Run, split: StateStore) -> None:
    split.save(_paused())
    code, out = run("orders", "--rename", "note=remark", "--rename", "tags=labels")
    assert code == 0, out
    assert [item.renames for item in split.requests.decisions(ORDERS)] == [{"tags": "labels"}]
    assert [(item.old, item.new) for item in split.requests.all(Join, ORDERS)] == [("note", "remark")]


def test_a_rename_without_two_names_is_a_usage_error(run: Run, stores: StateStore) -> None:
    code, out = run("orders", "--rename", "a")
    assert code == 2
    assert "is not OLD=NEW" in out
