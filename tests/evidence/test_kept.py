"""Which kept readings an event is judged by, whenever it is."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cdc_sync.core.lineage.catalogue import Attribute, CatalogueReading, Moment, Stamp
from cdc_sync.core.lineage.kept import NOTHING_KEPT, Kept, Missed, Span
from cdc_sync.core.lineage.kept_json import entry_from_json, entry_to_json
from cdc_sync.core.model.positions import Commit, SourcePosition, TableId

TABLE = TableId(database="shop", schema="public", table="orders")


def reading(lsn: int, name: str, taken: int = 0) -> CatalogueReading:
    return CatalogueReading(
        table=TABLE,
        begun=lsn,
        ended=lsn + 2,
        taken=taken,
        relid=7,
        server="1/1",
        named=Stamp(xid=3, at=None),
        attributes=(Attribute(number=1, name=name, type="text", stamp=Stamp(xid=5, at=9)), Attribute(number=2)),
    )


def at(lsn: int) -> SourcePosition:
    return SourcePosition(kind="postgresql", parts=(lsn, lsn))


def test_an_event_is_judged_by_the_first_reading_behind_it_and_the_last_before() -> None:
    kept = NOTHING_KEPT.with_reading(reading(100, "a")).with_reading(reading(200, "b")).with_reading(reading(300, "c"))
    assert kept.around(Moment(lsn=50)) == (None, reading(100, "a"))
    assert kept.around(Moment(lsn=150)) == (reading(100, "a"), reading(200, "b"))
    assert kept.around(Moment(lsn=201)) == (reading(100, "a"), reading(300, "c")), "amid a reading is neither"
    assert kept.around(Moment(lsn=301)) is None
    assert not kept.covers(Moment(lsn=301))
    assert (kept.reach, kept.newest_lsn) == (300, 302)


def test_equal_readings_are_one_that_lasts() -> None:
    kept = NOTHING_KEPT.with_reading(reading(100, "a")).with_reading(reading(200, "a", taken=5))
    assert kept.entries == (Span(first=reading(100, "a"), begun=200, ended=202, taken=5),)
    assert kept.around(Moment(lsn=150)) == (reading(100, "a"), reading(100, "a"))
    assert kept.cuts == (at(102),)
    assert kept.is_told_from(at(90), at(150), Moment(lsn=150))
    assert not kept.is_told_from(at(120), at(150), Moment(lsn=150))
    assert not kept.is_told_from(at(90), at(250), Moment(lsn=250))
    assert not kept.is_told_from(at(90), at(150), Moment(lsn=150, snapshot=True))


def test_what_was_missed_stays_missed() -> None:
    kept = NOTHING_KEPT.with_reading(reading(100, "a")).with_missed(200).with_reading(reading(300, "a"))
    assert [type(entry) for entry in kept.entries] == [Span, Missed, Span]
    assert kept.covers(Moment(lsn=150))
    assert kept.around(Moment(lsn=150)) is None
    assert kept.around(Moment(lsn=250)) == (reading(100, "a"), reading(300, "a"))


def test_what_a_snapshot_read_is_of_the_time_at_which_it_was_sent() -> None:
    snapshot = Moment(lsn=150, commit=Commit(at=1000), snapshot=True)
    kept = NOTHING_KEPT.with_reading(reading(100, "a", taken=500)).with_reading(reading(200, "b", taken=900))
    assert kept.around(snapshot) is None
    assert kept.with_reading(reading(300, "c", taken=1000)).around(snapshot) == (None, reading(300, "c", taken=1000))


def test_entries_are_the_same_after_a_round_trip_through_json() -> None:
    kept = NOTHING_KEPT.with_reading(reading(100, "a")).with_reading(reading(200, "a")).with_missed(300)
    texts = [json.dumps(entry_to_json(entry)) for entry in kept.entries]
    assert tuple(entry_from_json(json.loads(text), TABLE) for text in texts) == kept.entries


def test_whether_a_column_is_generated_is_kept_and_older_readings_do_not_tell() -> None:
    (first, *rest) = reading(100, "a").attributes
    told = NOTHING_KEPT.with_reading(
        replace(reading(100, "a"), attributes=(replace(first, generated=True), *rest))
    ).entries[0]
    data = entry_to_json(told)
    assert entry_from_json(data, TABLE) == told
    old = {**data, "attributes": [item[:4] for item in data["attributes"]]}
    assert entry_from_json(old, TABLE) == Span.of(reading(100, "a"))


def test_readings_from_before_the_first_event_follow_those_that_are_kept() -> None:
    early = NOTHING_KEPT.with_reading(reading(200, "a")).with_reading(reading(300, "a")).with_reading(reading(400, "b"))
    kept = NOTHING_KEPT.with_reading(reading(100, "a")).with_missed(150)
    assert NOTHING_KEPT.followed_by(early) == early
    assert kept.followed_by(early).entries == (*kept.entries, *early.entries)
    same = NOTHING_KEPT.with_reading(reading(100, "a")).followed_by(early)
    assert [(entry.first.begun, entry.begun) for entry in same.entries if isinstance(entry, Span)] == [
        (100, 300),
        (400, 400),
    ]
    later = NOTHING_KEPT.with_reading(reading(350, "c"))
    assert [entry.first.begun for entry in later.followed_by(early).entries if isinstance(entry, Span)] == [350, 400]


@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["read a", "read b", "miss"])), max_size=12),
    st.integers(0, 120),
)
def test_later_readings_change_nothing_for_an_event_that_is_settled(steps: list[tuple[int, str]], lsn: int) -> None:
    moment, kept, now = Moment(lsn=lsn), Kept(), 0
    settled: list[object] = []
    for gap, what in steps:
        now += gap
        if what == "miss":
            kept = kept.with_missed(max(now, kept.reach))
        else:
            kept = kept.with_reading(replace(reading(now, what), ended=now + 1))
            now += 1
        if kept.covers(moment):
            settled.append(kept.around(moment))
    assert all(item == settled[0] for item in settled)
