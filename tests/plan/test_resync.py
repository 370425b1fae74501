"""Marks come from what was recorded, and go when the rows were read again, all removed, or the column is gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.migration.operator_requests import Unconverted
from cdc_sync.core.model.positions import SourcePosition
from cdc_sync.core.model.progress import Progress, Truncated
from cdc_sync.core.planning.resync import Mark, Resync, marks
from cdc_sync.testing import INT32, TEXT, column
from tests.plan.model import ROUTE
from tests.plan.tables import Table

ENDS = {"t": {0: 10, 1: 5}}
BEFORE, THERE = Progress(version=2, offsets={"t": {0: 10, 1: 4}}), Progress(version=2, offsets={"t": {0: 10, 1: 6}})


def _marked() -> Table:
    """Return a table with a column whose default may be a function."""
    t = Table()
    t.add_column(column("n", INT32, optional=False, default=0), initial=3)
    return t.row(n=4)


def _resync(table: Table, **values: object) -> Resync:
    settings = {"signal": "s", "version": 2, "columns": (4,), "ends": ENDS} | values
    return Resync(table=table.id, **settings)  # type: ignore[arg-type]


def test_a_mark_names_the_column_the_version_and_the_reason() -> None:
    (mark,) = marks(_marked().history(), (), (), None)
    assert (mark.column, mark.id, mark.version) == ("n", 4, 2)
    assert mark.reason.startswith("existing rows read NULL; what they hold is not known: ")


def test_it_follows_its_column_and_goes_with_it() -> None:
    t = _marked()
    route = replace(ROUTE, renames={"n": "m"}, drops=frozenset({"m"}))
    t.rename_column("n", "m")
    t.row(m=5)
    (mark,) = marks(t.history(route), (), (), None)
    assert (mark.column, mark.version) == ("m", 2)
    t.drop_column("m")
    assert marks(t.row().history(route), (), (), None) == ()


def test_values_without_a_place_mark_their_column() -> None:
    t = Table()
    t.alter_column("z", lambda _: column("z", INT32), convert=lambda _: None)
    lost = Unconverted(version=2, counts={"z": 2, "no such column": 1}, values=())
    values, rule = marks(t.row().history(), [lost], (), None)
    assert values == Mark(column="z", id=3, version=2, reason="2 values had no place in its new type and read NULL")
    assert rule.reason.startswith("existing values were converted by rule, STRING to INT; ")


@pytest.mark.parametrize(
    ("resync", "progress", "stands"),
    [
        ({}, THERE, False),
        ({}, BEFORE, True),
        ({}, None, True),
        ({"ends": {}}, THERE, True),
        ({"version": 1}, THERE, True),
        ({"columns": (1, 2)}, THERE, True),
        ({"columns": (2, 4)}, THERE, False),
    ],
)
def test_it_goes_when_all_rows_that_were_read_again_are_in_the_table(
    resync: dict[str, object], progress: Progress | None, stands: bool
) -> None:
    t = _marked()
    assert bool(marks(t.history(), (), [_resync(t, **resync)], progress)) is stands


def test_a_later_change_marks_the_column_anew() -> None:
    t = _marked()
    t.alter_column("n", lambda _: column("n", TEXT), convert=str)
    lost = Unconverted(version=3, counts={"n": 1}, values=())
    found = marks(t.row(n="4").history(), [lost], [_resync(t)], THERE)
    assert {mark.version for mark in found} == {3}
    assert found[0].reason == "1 value had no place in its new type and read NULL"


def test_rows_that_were_all_removed_need_nothing() -> None:
    history = _marked().history()
    first = history.head.position

    def stands(position: SourcePosition) -> bool:
        emptied = Truncated(position=position, offsets={})
        return bool(marks(history, (), (), replace(THERE, truncated=emptied)))

    assert stands(history.versions[0].position)
    assert not stands(replace(first, parts=tuple(part + 1 for part in first.parts)))


def test_a_retired_column_is_not_read_again() -> None:
    t = Table()
    lost = Unconverted(version=1, counts={"z": 1}, values=())
    assert len(marks(t.history(), [lost], (), None)) == 1
    t.rename_column("z", "y")
    history = t.row().history()
    assert history.head.schema.column(3).retired
    assert [mark.column for mark in marks(history, [lost], (), None)] == ["y"]
