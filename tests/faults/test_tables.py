"""A table that cannot go on says why and keeps its place; the others go on, and so does it once the cause is gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.api import commands
from cdc_sync.testing import INT32, TEXT, SourceTable, Wal, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_CRAFTED = (
    "back`tick",
    'quo"te',
    "it's",
    "; drop table lake.shop.orders; --",
    "🚀 rocket",
    "\u202eright to left",
    "new\nline",
    "a.b",
    "per%cent ${x} {y}",
    "ID",
)


def test_tables_that_cannot_go_on_leave_the_others_alone_and_catch_up(pipeline: NewPipeline, produce: Produce) -> None:
    wal = Wal()

    def table(name: str, key: tuple[str, ...] = ("id",)) -> SourceTable:
        columns = [column("id", INT32, optional=False), column("a", TEXT), column("b", INT32)]
        return SourceTable(name, columns, key=key, prefix="stops", wal=wal, null_is_default=False)

    good, keyless, retyped, unproven = table("good"), table("keyless", ()), table("retyped"), table("unproven")
    tables = (good, keyless, retyped, unproven)
    for each in tables:
        each.insert(id=1, a="before", b=1)
    retyped.alter_column("b", lambda old: column("b", TEXT), convert=str)
    unproven.rename_column("b", "c")
    for each in tables:
        each.insert(id=2, a="after")
        produce(each.topic, each.records)
    lake = pipeline("stops", settings="policy: {unproven_rename: pause, incompatible_types: pause}")

    lake.run()

    assert_equal(lake, good)
    found = {line.table.table: line for line in commands.status(lake.config).tables}
    assert {name: line.state for name, line in found.items()} == {
        "good": "running",
        "keyless": "running",
        "retyped": "paused",
        "unproven": "paused",
    }
    for each in (retyped, unproven):
        line = found[each.id.table]
        assert line.paused_at == f"{each.topic}[0]@1"
        assert line.offsets == {each.topic: {0: 1}}, "what stands before the change is in the table"
        assert line.version == 1
        assert line.reason
        assert line.remedy
    for each in (good, unproven):
        written = len(each.records)
        each.update({"id": 1}, a="later")
        produce(each.topic, each.records[written:])

    replace(lake, rules="[{table: shop.public.unproven, renames: {b: c}}, {pattern: '.*'}]").run()

    assert_equal(lake, good, unproven)
    states = {name: status.state for name, status in lake.statuses().items()}
    assert states == {"good": "running", "keyless": "running", "retyped": "paused", "unproven": "running"}


def test_crafted_names_are_names_and_nothing_else(pipeline: NewPipeline, produce: Produce) -> None:
    tables = [
        SourceTable(
            name,
            [column("id", INT32, optional=False), *(column(other, TEXT) for other in _CRAFTED)],
            key=("id",),
            schema='sch"ema`; --',
            prefix="crafted",
            null_is_default=False,
        )
        for name in ("Or`d'er\"s 🚀; drop table x", "Or`d'er\"s 🚀; drop table y")
    ]
    lake = pipeline("crafted")
    for table in tables:
        table.insert({"id": 1, **{name: name for name in _CRAFTED}})
        table.insert({"id": 2})
        table.add_column(column("added `\"'; --", TEXT, default="it's \\ `\""), initial="it's \\ `\"")
        table.update({"id": 1}, {"ID": "upper", "it's": None})
        table.rename_column("back`tick", "`")
        table.update({"id": 2}, {"`": "renamed"})
        table.delete({"id": 1})
        produce(table.topic, table.records)
        table.records.clear()

    lake.run()

    assert_equal(lake, *tables)


def test_topics_whose_names_only_contain_the_pattern_are_another_pipelines(
    pipeline: NewPipeline, produce: Produce
) -> None:
    columns = [column("id", INT32, optional=False), column("a", TEXT)]
    own, other = (SourceTable("t", columns, prefix=prefix) for prefix in ("inner", "not-inner"))
    for table in (own, other):
        table.insert(id=1, a="row")
        produce(table.topic, table.records)
    lake = pipeline("inner")

    lake.run()
    own.insert(id=2, a="another run")
    produce(own.topic, own.records[1:])
    lake.run()

    assert_equal(lake, own)
    assert [line.offsets for line in commands.status(lake.config).tables] == [{own.topic: {0: 2}}]
