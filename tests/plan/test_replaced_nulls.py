"""A NULL that arrives as the column's default: warned of while it does, and marked once it does no more."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cdc_sync.core.debezium.wire import EventSchema
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.replaced_nulls import ONGOING, PERHAPS, noted, shown_defaults
from cdc_sync.core.planning.resync import Resync, marks
from cdc_sync.core.schema.projection import Projection, project
from cdc_sync.testing import INT32, column
from tests.plan.model import observation
from tests.plan.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    schema: EventSchema
    projection: Projection


def dropped_default() -> Table:
    """A table whose column `a`, id 2, has a default in version 2, and none any more in version 3."""
    t = Table()
    t.alter_column("a", lambda found: replace(found, default=5))
    t.row()
    t.alter_column("a", lambda found: replace(found, default=None))
    return t.row()


def test_what_events_show_of_defaults_is_told_by_column() -> None:
    t = Table()
    t.add_column(column("zero", INT32, default=0))
    t.add_column(column("full", INT32, optional=False, default=7))
    event = t.row(full=1).events()[-1]
    head = t.history().head.schema
    shown = shown_defaults([Reads(schema=observation(event).schema, projection=project(head, head))])
    assert shown == {1: False, 2: False, 3: False, 4: True, 5: False}, "0 may be a function's, and replaces NULL too"


def test_one_ends_where_events_show_no_default_or_null_itself() -> None:
    begun = noted({}, {1: False, 2: True}, replaces=True, version=2)
    assert begun == {2: ONGOING}
    assert noted(begun, {2: True}, replaces=None, version=3) == begun
    assert noted(begun, {3: False}, replaces=True, version=3) == begun, "no event of this write shows the column"
    assert noted(begun, {2: False}, replaces=True, version=3) == {2: 3}
    assert noted(begun, {2: True}, replaces=False, version=2) == {2: 2}
    assert noted({2: 3}, {2: True}, replaces=True, version=4) == begun
    assert noted({2: 3}, {2: False}, replaces=True, version=5) == {2: 3}


def test_what_a_snapshot_may_have_replaced_is_known_once_an_event_tells() -> None:
    read = noted({}, {1: False, 2: True}, replaces=None, version=1)
    assert read == {2: PERHAPS}
    assert noted(read, {2: False}, replaces=None, version=2) == read
    assert noted(read, {2: False}, replaces=True, version=2) == {2: 2}, "the default was dropped before the first event"
    assert noted(read, {1: False}, replaces=True, version=2) == {2: ONGOING}
    assert noted(read, {2: True}, replaces=False, version=2) == {}


def test_its_column_is_marked_until_its_rows_are_read_again() -> None:
    history = dropped_default().history()
    (mark,) = marks(history, (), (), None, {2: 3, 9: 3})
    assert (mark.column, mark.version) == ("a", 3)
    assert mark.reason == "a NULL in it arrived as its default until this version, and reads so"
    assert marks(history, (), (), None, {2: ONGOING}) == marks(history, (), (), None, {2: PERHAPS}) == ()
    read = Resync(table=history.table, signal="s", version=3, columns=(2,), ends={"t": {0: 2}})
    assert marks(history, (), [read], Progress(version=3, offsets={"t": {0: 2}}), {2: 3}) == ()
