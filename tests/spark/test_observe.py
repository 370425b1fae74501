"""What a survey finds: stretches in source order over partitions, everything else, and digests as the driver's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdc_sync.core.debezium.envelope import split
from cdc_sync.core.debezium.schema_book import digest_of
from cdc_sync.core.model.incarnations import Began, begin, extended, reach
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.spark.eventreader import EventReader
from cdc_sync.spark.observe import (
    Survey,
    first_offsets_from,
    inspect,
    offsets_with_digests,
    seen_in_stream,
    survey,
)
from cdc_sync.testing import INT32, TEXT, Record, SourceTable, Wal, column, heartbeat, json_text
from tests.plan import model, surveying
from tests.spark.records import Place, frame, one

pytestmark = pytest.mark.spark
ALL = {("t", partition): 10**6 for partition in range(3)}


def table(name: str = "t", wal: Wal | None = None, **options: object) -> SourceTable:
    columns = [column("id", INT32, optional=False), column("a", TEXT)]
    return SourceTable(name, columns, wal=wal, **options)  # type: ignore[arg-type]


def places(stretches: Sequence[Stretch]) -> list[tuple[int, int]]:
    ordered = sorted(stretches, key=lambda item: (item.position, item.kafka))
    return [(item.kafka.partition, item.kafka.offset) for item in ordered]


def surveyed(
    session: SparkSession,
    records: Sequence[Place],
    ends: Mapping[tuple[str, int], int] = ALL,
    heads: Mapping[TableId, SourcePosition] | None = None,
) -> Survey:
    cuts = {table_: (position,) for table_, position in (heads or {}).items()}
    return survey(frame(session, records), EventReader(), ends, cuts)


def four_schemas() -> list[Place]:
    """A column comes, goes, comes: in source order 0a 1a 0b 1b 2a 0c, over three partitions."""
    t = table()
    (first,) = t.insert(id=1)
    (second,) = t.insert(id=2)
    t.add_column(column("n", INT32))
    (third,) = t.insert(id=3)
    (fourth,) = t.insert(id=4)
    t.drop_column("n")
    (fifth,) = t.insert(id=5)
    t.add_column(column("n", INT32))
    (sixth,) = t.insert(id=6)
    return [(0, first), (0, third), (0, sixth), (1, second), (1, fourth), (2, fifth)]


def test_stretches_are_in_source_order_over_partitions(session: SparkSession) -> None:
    found = surveyed(session, four_schemas())
    assert places(found.stretches) == [(0, 0), (0, 1), (2, 0), (0, 2)]
    assert {item.table for item in found.stretches} == {table().id}
    assert found.others == ()


def test_a_stretch_behind_the_range_is_left_out_but_one_before_it_is_found(session: SparkSession) -> None:
    found = surveyed(session, four_schemas(), {("t", 0): 0, ("t", 1): 2, ("t", 2): 0})
    assert places(found.stretches) == [(0, 0), (0, 1)]
    assert surveyed(session, four_schemas(), {("t", 0): 0}).stretches == ()


def test_the_first_event_behind_the_head_begins_a_stretch_whatever_its_schema(session: SparkSession) -> None:
    (position,) = [item.position for item in surveyed(session, four_schemas()).stretches if item.kafka.offset == 1]
    # The head was seen in partition 0, which is read already.
    early, late = four_schemas()[3][1], four_schemas()[5][1]
    without = surveyed(session, [(1, early), (2, late)])
    with_head = surveyed(session, [(1, early), (2, late)], heads={table().id: position})
    assert places(without.stretches) == [(1, 0)]
    assert places(with_head.stretches) == [(1, 0), (2, 0)]
    other = surveyed(session, [(1, early), (2, late)], heads={table("u").id: position})
    assert places(other.stretches) == [(1, 0)]


def test_it_agrees_with_the_model(session: SparkSession) -> None:
    t = table()
    for number in range(12):
        t.insert(id=number)
        if number % 3 == 2:
            t.add_column(column(f"c{number}", TEXT))
        t.delete({"id": number})
    laid = model.topic(t.records, 3)
    events = [event for events in laid for event in events]
    by_payload = {split(record.value).payload: record for record in t.records if record.value}
    records = [(event.kafka.partition, by_payload[json_text(event.payload).encode()]) for event in events]
    found = surveyed(session, records)
    wanted = [(event.source.position, event.known.digest) for event in model.stretches(events, events, None)]
    assert [(item.position, item.digest) for item in sorted(found.stretches, key=lambda s: s.position)] == wanted


def test_a_log_that_begins_anew_is_found_as_the_rule_says(session: SparkSession) -> None:
    t, other = table(), table("u")
    t.insert(id=1)
    t.update({"id": 1}, a="x")
    t.records += t.records[-2:]  # sent again
    other.wal = t.wal
    other.insert(id=1)
    t.wal = Wal(lsn=5_000_000, later_than=t.wal)
    t.insert(id=2)
    t.add_column(column("n", INT32))
    t.insert(id=3)
    t.wal = Wal(lsn=1_000_000, later_than=t.wal)
    t.insert(id=4)
    laid = [*t.records, *other.records]
    moments = [surveying.moment(event) for event in surveying.events_of(t)]
    began = begin({0: moments})
    assert len(began) == 2

    found: Began = ()
    while falls := survey(frame(session, one(laid)), reader({t.id: found}), ALL).falls:
        assert falls.keys() == {t.id}
        found = extended(found, falls.values())
    assert found == began

    stretches = survey(frame(session, one(laid)), reader({t.id: found}), ALL).stretches
    mine = sorted((item for item in stretches if item.table == t.id), key=lambda item: item.position)
    assert [(item.position.incarnation, item.kafka.offset) for item in mine] == [(0, 0), (1, 4), (1, 5), (2, 6)]
    # Cut before the fall, the records before it tell.
    reached = reach(moments[:4], ())
    assert reached is not None
    before = {t.id: {("t", 0): reached}}
    rest = [(0, record) for record in laid[4:]]
    assert survey(frame(session, rest), reader({}), ALL, None, before).falls.keys() == {t.id}
    assert survey(frame(session, rest[:1]), reader({}), ALL).falls == {}


def reader(began: Mapping[TableId, Began]) -> EventReader:
    return EventReader.of((), headers=False, began={table: times for table, times in began.items() if times})


def test_tables_of_one_topic_have_stretches_of_their_own(session: SparkSession) -> None:
    wal = Wal()
    t, u = table(wal=wal), table("u", wal=wal)
    records = [*t.insert(id=1), *u.insert(id=1), *t.insert(id=2), *u.insert(id=2)]
    found = surveyed(session, one(records))
    assert sorted((item.table.table, item.kafka.offset) for item in found.stretches) == [("t", 0), ("u", 1)]


def test_what_is_no_change_of_a_table_is_counted_and_tombstones_are_not(session: SparkSession) -> None:
    t = table()
    t.insert(id=1)
    t.delete({"id": 1})
    plain = Record(key=None, value=b"plain")
    others = [plain, heartbeat("shop", 1), heartbeat("shop", 2), plain]
    found = surveyed(session, one([*t.records, *others]))
    assert places(found.stretches) == [(0, 0)]
    counted = {item.digest: (item.first.offset, item.count) for item in found.others}
    beat = heartbeat("shop", 1)
    assert beat.value is not None
    assert counted == {"": (3, 2), digest_of(beat.key, beat.value): (4, 2)}


def crafted() -> list[Record]:
    found: list[Record] = []
    for name in (',"payload":', 'a","payload":{"x', "é\u2028😀", 'q"\\', "`a`.b", "}"):
        t = SourceTable(name, [column("id", INT32, optional=False), column(f"c{name}", TEXT, default=name)])
        found += t.insert({"id": 1, f"c{name}": '{"schema":1,"payload":2}'})
    keyless = table(key=())
    (record,) = keyless.insert(id=1)
    return [*found, record, replace(record, key=b"7"), replace(record, key=b'{"id":7}'), *table().insert(id=1)]


def test_digests_are_those_of_the_driver(session: SparkSession) -> None:
    records = crafted()
    wanted = []
    for record in records:
        assert record.value is not None
        wanted.append(digest_of(record.key, record.value))
    found = offsets_with_digests(frame(session, one(records)), EventReader(), sorted(set(wanted)))
    assert [(digest, is_event) for _, digest, is_event in found] == [(digest, True) for digest in wanted]
    assert [place.offset for place, _, _ in found] == list(range(len(records)))
    assert surveyed(session, one(records)).others == ()


def test_a_truncate_is_a_stretch_and_an_unknown_operation_is_not(session: SparkSession) -> None:
    t = table()
    t.insert(id=1)
    t.truncate()
    (strange,) = t.insert(id=2)
    assert strange.value is not None
    strange = replace(strange, value=strange.value.replace(b'"op":"c"', b'"op":"m"'))
    found = surveyed(session, one([*t.records[:2], strange]))
    assert places(found.stretches) == [(0, 0), (0, 1)]
    assert [item.first.offset for item in found.others] == [2]


def test_each_truncate_is_a_stretch_of_its_own_whatever_its_schema(session: SparkSession) -> None:
    heap = table(key=())
    heap.insert(id=1)
    heap.insert(id=2)
    heap.truncate()
    heap.truncate()
    heap.insert(id=3)
    heap.insert(id=4)
    found = sorted(surveyed(session, one(heap.records)).stretches, key=lambda item: item.kafka)
    assert len({item.digest for item in found}) == 1
    assert [(item.kafka.offset, item.truncate) for item in found] == [(0, False), (2, True), (3, True), (4, False)]


def test_where_a_position_is_reached_in_each_partition(session: SparkSession) -> None:
    records = four_schemas()
    stretches = sorted(surveyed(session, records).stretches, key=lambda item: item.position)
    found = first_offsets_from(frame(session, records), EventReader(), table().id, stretches[1].position)
    assert found == {("t", 0): 1, ("t", 1): 1, ("t", 2): 0}
    assert first_offsets_from(frame(session, records), EventReader(), table("u").id, stretches[1].position) == {}


def test_whether_a_table_was_seen_in_the_stream(session: SparkSession) -> None:
    t = table()
    t.insert(id=1)
    snapshot = t.snapshot()
    (streamed,), (next_one,) = t.insert(id=2), t.insert(id=3)
    at, behind = (surveyed(session, one([record])).stretches[0].position for record in (streamed, next_one))
    assert not seen_in_stream(frame(session, one(snapshot)), EventReader(), t.id, behind)
    assert seen_in_stream(frame(session, one([*snapshot, streamed])), EventReader(), t.id, behind)
    assert not seen_in_stream(frame(session, one([*snapshot, streamed])), EventReader(), t.id, at)
    assert not seen_in_stream(frame(session, one(t.records)), EventReader(), table("u").id, behind)


def test_troubles_are_counted_by_partition(session: SparkSession) -> None:
    rows = [(0, 5, None, 10), (0, 6, "x", 30), (0, 7, "x", 20), (1, 2, "y", None)]
    converted = session.createDataFrame(rows, "partition int, offset bigint, problem string, lsn bigint")
    found = inspect(converted)
    assert sorted((t.partition, t.problem, t.offsets) for t in found.troubles) == [(0, "x", (6, 7)), (1, "y", (2,))]
    assert found.highest_lsn == 30
    assert inspect(converted.where(F.lit(False))).highest_lsn is None
