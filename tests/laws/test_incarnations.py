"""Failovers, restarts and snapshots in any order: what begins anew is found, what is sent again is not taken for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.core.model.incarnations import begin
from cdc_sync.testing import INT32, TEXT, SourceTable, Wal, column
from tests.plan.model import Event, topic
from tests.plan.surveying import Reader, events_of, moment


@dataclass
class Life:
    """A table's events, and how often its log began anew behind what was sent of it."""

    table: SourceTable
    failovers: int = 0
    names: int = 0
    sent: int = field(default=0)

    def insert(self) -> None:
        self.sent += 1
        self.table.insert(id=self.sent)

    def add(self) -> None:
        self.names += 1
        self.table.add_column(column(f"c{self.names}", TEXT))
        self.insert()

    def drop(self) -> None:
        if len(self.table.columns) > 2:
            self.table.drop_column(self.table.columns[1].field or "")
        self.insert()

    def snapshot(self) -> None:
        """The connector is made anew, and knows of no commit yet."""
        self.table.wal.last_commit = None
        self.table.snapshot()

    def restart(self, back: int) -> None:
        """The connector sends its last events again."""
        self.table.records += self.table.records[-back:]

    def fail_over(self, lower: int) -> None:
        wal = self.table.wal
        self.table.wal = Wal(lsn=wal.lsn - 1_000_000 - lower, later_than=wal)
        self.failovers += 1
        self.insert()


@st.composite
def lives(draw: st.DrawFn) -> Life:
    columns = [column("id", INT32, optional=False), column("a", TEXT)]
    life = Life(SourceTable("t", columns, null_is_default=False))
    life.insert()
    for step in draw(st.lists(st.integers(0, 10**5), min_size=1, max_size=14)):
        match step % 7:
            case 0 | 1:
                life.insert()
            case 2:
                life.add()
            case 3:
                life.drop()
            case 4:
                life.snapshot()
            case 5:
                life.restart(1 + step // 7 % 5)
            case _:
                life.fail_over(step)
    return life


@settings(max_examples=150, deadline=None)
@given(life=lives(), cuts=st.lists(st.integers(0, 60), max_size=5))
def test_any_split_finds_every_failover_and_no_other_and_the_same_versions(life: Life, cuts: list[int]) -> None:
    events = events_of(life.table)
    whole = Reader(events).run().history
    assert whole is not None

    split = Reader(events).run(sorted(min(cut, len(events)) for cut in cuts)).history

    assert split == whole
    assert len(whole.began) == life.failovers
    assert [item.name for item in whole.head.schema.live] == [item.field for item in life.table.columns]


@settings(max_examples=100, deadline=None)
@given(life=lives(), number=st.integers(1, 3))
def test_partitions_find_no_failover_that_is_none(life: Life, number: int) -> None:
    laid: list[list[Event]] = topic(life.table.records, number)
    found = begin({place: [moment(event) for event in events] for place, events in enumerate(laid)})
    assert len(found) <= life.failovers
