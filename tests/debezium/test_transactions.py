"""Where ranges end so that no transaction is taken apart, and what events and ENDs say of transactions."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_sync.core.debezium.envelope import read_source
from cdc_sync.core.debezium.transactions import Part, TransactionEnd, end_of, part_of, whole
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.positions import TableId
from cdc_sync.errors import WireError


@dataclass
class Topic:
    """A partition: of each offset the transaction of its event; None for an event by itself, "" where there is none."""

    slots: list[str | None]
    is_complete: bool

    def next_at(self, offset: int) -> Part | None:
        assert 0 <= offset < len(self.slots)
        return next(
            (Part(offset=at, transaction=name) for at, name in enumerate(self.slots) if at >= offset and name != ""),
            None,
        )

    def is_last(self, part: Part) -> bool:
        assert not [name for name in self.slots[part.offset + 1 :] if name != ""]
        return self.is_complete

    def whole(self, start: int, end: int) -> tuple[int, int] | None:
        item = OffsetRange(topic="t", partition=0, start=start, end=end)
        found = whole(item, len(self.slots), self.next_at, self.is_last)
        return None if found is None else (found.start, found.end)

    def is_whole(self, start: int, end: int) -> bool:
        """Whether no transaction has events of the range on both sides of its end, nor may have."""
        before = {name for name in self.slots[start:end] if name}
        behind = {name for name in self.slots[end:] if name}
        rest = [name for name in self.slots[end:] if name != ""]
        last = next((name for name in reversed(self.slots) if name != ""), None)
        return not before & behind and (bool(rest) or self.is_complete or not last or last not in before)


@st.composite
def topics(draw: st.DrawFn) -> Topic:
    slots: list[str | None] = []
    for number in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            slots += [None] * draw(st.integers(0, 3))
        for _ in range(draw(st.integers(1, 6))):
            slots += [f"x{number}", *[""] * draw(st.sampled_from([0, 0, 0, 1, 3]))]
    return Topic([*[""] * draw(st.integers(0, 2)), *slots], draw(st.booleans()))


@given(topic=topics(), data=st.data())
def test_a_range_ends_where_a_transaction_does(topic: Topic, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(topic.slots) - 1))
    end = data.draw(st.integers(start + 1, len(topic.slots)))
    found = topic.whole(start, end)
    if found is None:  # then nothing from there on ends
        assert not any(
            topic.is_whole(start, at) and any(topic.slots[start:at]) for at in range(start + 1, len(topic.slots) + 1)
        )
        return
    assert found[0] == start < found[1] <= len(topic.slots)
    assert topic.is_whole(start, found[1])
    if topic.is_whole(start, end):
        # Only what is no event may be left to the next one.
        assert not any(topic.slots[found[1] : end])
    elif found[1] > end:
        assert len({name for name in topic.slots[start:end] if name != ""}) <= 1


@given(topic=topics(), size=st.integers(1, 8))
def test_step_by_step_all_that_is_complete_is_read(topic: Topic, size: int) -> None:
    start, upto = 0, len(topic.slots)
    while start < upto and (found := topic.whole(start, min(upto, start + size))) is not None:
        start = found[1]
    left = {name for name in topic.slots[start:] if name != ""}
    assert not left if topic.is_complete else len(left) <= 1


def _payload(**said: object) -> dict[str, object]:
    source = {"connector": "postgresql", "db": "shop", "schema": "app", "table": "orders", "snapshot": "false"}
    return {"op": "c", "source": source, **said}


def test_an_event_names_its_transaction() -> None:
    block = {"id": "571:53195832", "total_order": 4, "data_collection_order": 2}
    payload = _payload(transaction=block)
    assert part_of(7, read_source(payload), payload) == Part(offset=7, transaction="571", number=2)


def test_a_gtid_has_no_place_in_the_log() -> None:
    source = {"connector": "mysql", "db": "shop", "table": "orders"}
    payload = {
        "op": "c",
        "source": source,
        "transaction": {"id": "uuid:9", "total_order": 1, "data_collection_order": 1},
    }
    assert part_of(0, read_source(payload), payload).transaction == "uuid:9"


def test_an_event_of_a_snapshot_is_one_by_itself() -> None:
    payload = _payload(op="r", transaction=None)
    assert part_of(0, read_source(payload), payload) == Part(offset=0, transaction=None)


@pytest.mark.parametrize("said", [{}, {"transaction": None}, {"transaction": {"id": 5}}, {"transaction": {"id": "5"}}])
def test_another_event_has_to_name_one(said: dict[str, object]) -> None:
    payload = _payload(**said)
    with pytest.raises(WireError, match="names none"):
        part_of(0, read_source(payload), payload)


def test_an_end_says_how_many_events_there_are() -> None:
    counts = [{"data_collection": "app.orders", "event_count": 2}, {"data_collection": "app.lines", "event_count": 1}]
    end = end_of("postgresql", {"status": "END", "id": "571:53195832", "event_count": 3, "data_collections": counts})
    assert end == TransactionEnd(transaction="571", events={"app.orders": 2, "app.lines": 1})
    assert end.events_of(TableId(database="shop", schema="app", table="orders")) == 2
    assert end.events_of(TableId(database="shop", schema="app", table="others")) == 0


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("shop.orders", TableId(database="shop", schema="", table="orders")),
        ("shop.dbo.orders", TableId(database="shop", schema="dbo", table="orders")),
    ],
)
def test_tables_have_the_names_of_their_connectors(name: str, table: TableId) -> None:
    assert TransactionEnd(transaction="1", events={name: 3}).events_of(table) == 3


@pytest.mark.parametrize("payload", [{"status": "BEGIN", "id": "1"}, {"status": "END"}, {}])
def test_other_records_are_no_ends(payload: dict[str, object]) -> None:
    assert end_of("postgresql", payload) is None
