"""`cdc-sync plan` tells what `cdc-sync run` then does, and touches nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cdc_sync.api import commands
from cdc_sync.core.migration.migration import Migration
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.explain import EmptyTable, ExplainedStep, explain
from cdc_sync.runtime.reports import Plan, PlannedTable, VersionLine
from cdc_sync.targets.iceberg.target import IcebergTarget
from cdc_sync.testing import INT32, INT64, TEXT, SourceTable, Wal, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal, files

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[ExplainedStep]]:
    """What the Iceberg target is made to do, by table, in the words of `plan`."""
    found: dict[str, list[ExplainedStep]] = {}
    migrate, truncate = IcebergTarget.migrate, IcebergTarget.truncate

    def told_migrate(
        target: IcebergTarget, name: TargetName, migration: Migration, progress: Progress, said: object = None
    ) -> None:
        found.setdefault(str(name), []).extend(explain(step, name) for step in migration.steps)
        migrate(target, name, migration, progress, said)  # type: ignore[arg-type]

    def told_truncate(target: IcebergTarget, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        found.setdefault(str(name), []).append(explain(EmptyTable(), name))
        truncate(target, name, progress, behind)

    monkeypatch.setattr(IcebergTarget, "migrate", told_migrate)
    monkeypatch.setattr(IcebergTarget, "truncate", told_truncate)
    return found


@pytest.fixture
def plan(spark: Callable[[], None]) -> Callable[[Pipeline], Plan]:
    def run(lake: Pipeline) -> Plan:
        spark()
        return commands.plan(lake.config)

    return run


def by_table(found: Plan) -> dict[str, PlannedTable]:
    return {table.table.table: table for table in found.tables}


def recorded(lake: Pipeline) -> dict[str, tuple[VersionLine, ...]]:
    return {history.table.table: history.versions for history in commands.history(lake.config)}


class Shop:
    def __init__(self, prefix: str, produce: Produce) -> None:
        wal = Wal()
        columns = [column("id", INT32, optional=False), column("a", TEXT), column("n", INT32)]
        self.tables = {
            name: SourceTable(name, columns, prefix=prefix, wal=wal, null_is_default=False)
            for name in ("grown", "emptied", "split", "same", "keyed", "strict")
        }
        self._produce = produce
        self._sent = dict.fromkeys(self.tables, 0)

    def send(self) -> None:
        for name, table in self.tables.items():
            self._produce(table.topic, table.records[self._sent[name] :])
            self._sent[name] = len(table.records)

    def open(self) -> None:
        for table in self.tables.values():
            table.insert(id=1, a="x", n=1)
        self.send()

    def change(self) -> None:
        grown, emptied, split, same, keyed, strict = self.tables.values()
        grown.add_column(column("late", INT32, optional=False, default=7), initial=7)
        grown.insert(id=2, late=1)
        grown.rename_column("a", "b")
        grown.alter_column("n", lambda _: column("n", INT64))
        grown.insert(id=3, n=2**40)
        emptied.truncate()
        emptied.insert(id=2)
        emptied.add_column(column("late", TEXT))
        emptied.insert(id=3, late="y")
        split.insert(id=2, n=2)
        split.rename_column("n", "m")  # the last one: nothing proves it, so the old one is kept
        split.insert(id=3, m=3)
        same.insert(id=2)
        keyed.key = ("n",)
        keyed.insert(id=2, n=2)
        keyed.update({"n": 1}, a="found")
        strict.insert(id=2)
        strict.alter_column("n", lambda _: column("n", TEXT), convert=lambda value: value and str(value))
        strict.insert(id=3, n="3")
        self.send()


def test_what_is_planned_is_what_is_run(
    pipeline: NewPipeline,
    produce: Produce,
    plan: Callable[[Pipeline], Plan],
    done: dict[str, list[ExplainedStep]],
) -> None:
    rules = "[{pattern: '.*strict', policy: {incompatible_types: pause}}, {pattern: '.*'}]"
    lake, shop = pipeline("planned", rules=rules), Shop("planned", produce)
    shop.open()
    nothing_yet = plan(lake)
    assert not any(Path(lake.folder).iterdir()), "no state, no warehouse"
    lake.run()
    first = recorded(lake)
    assert {name: table.versions for name, table in by_table(nothing_yet).items()} == first
    assert {table.target: list(table.steps) for table in nothing_yet.tables} == done
    assert {table.offsets for table in nothing_yet.tables} == {1}
    done.clear()

    assert (nothing_new := plan(lake)).exit_code == 0
    assert {table.offsets for table in nothing_new.tables} == {0}
    shop.change()
    before, commits = files(lake.folder), lake.commits(*shop.tables.values())
    planned = plan(lake)
    assert (files(lake.folder), lake.commits(*shop.tables.values())) == (before, commits), "nothing is touched"
    assert done == {}
    lake.run()

    tables, after = by_table(planned), recorded(lake)
    assert {name: (*first[name], *table.versions) for name, table in tables.items()} == after
    assert {table.target: list(table.steps) for table in planned.tables if table.steps} == done
    assert [len(tables[name].versions) for name in shop.tables] == [2, 1, 1, 0, 1, 0]
    paused = lake.statuses()["strict"]
    assert (tables["strict"].problem, tables["strict"].remedy) == (paused.reason, paused.remedy)
    assert (tables["strict"].at, tables["strict"].paused) == (paused.paused_at, True)
    assert planned.exit_code == 5
    assert_equal(lake, *(shop.tables[name] for name in ("grown", "emptied", "same", "keyed")))


def test_it_says_what_would_be_done_and_what_it_costs(
    pipeline: NewPipeline, produce: Produce, plan: Callable[[Pipeline], Plan]
) -> None:
    lake, shop = pipeline("planned-text"), Shop("planned-text", produce)
    shop.open()
    lake.run()
    shop.change()

    tables = by_table(plan(lake))

    assert [(step.cost, *step.statements) for step in tables["grown"].steps] == [
        (
            "metadata",
            "ALTER TABLE public.grown RENAME COLUMN a TO b",
            "ALTER TABLE public.grown ALTER COLUMN n TYPE BIGINT",
            "ALTER TABLE public.grown ADD COLUMN late INT AFTER n",
        ),
        ("rewrite", "UPDATE public.grown SET late = 7 WHERE late IS NULL"),
    ]
    assert [(step.kind, *step.statements) for step in tables["emptied"].steps] == [
        ("EmptyTable", "DELETE FROM public.emptied"),
        ("AlterTable", "ALTER TABLE public.emptied ADD COLUMN late STRING AFTER n"),
    ]
