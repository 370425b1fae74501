"""Evidence as it comes when something is wrong with it: late, with gaps, twice, compacted, or saying too little."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import TypeAlias

from cdc_sync.core.lineage.column_log import ColumnLog
from cdc_sync.core.lineage.records import ColumnEntry, LogicalMessage, SchemaChangeRecord
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from tests.laws.identity_course import NAME, Course
from tests.laws.identity_evidence import chosen, is_told_whole, message_log, messages_of
from tests.laws.identity_fold import fold
from tests.laws.identity_matrix import SOURCES, Counts, cut, ddl_log

Record: TypeAlias = SchemaChangeRecord | LogicalMessage
Fault: TypeAlias = Callable[[Sequence[Record], Random], list[Record]]


def gaps(records: Sequence[Record], random: Random) -> list[Record]:
    """Lose some records."""
    return [record for record in records if random.random() > 0.15]


def repeats(records: Sequence[Record], random: Random) -> list[Record]:
    """Send some again, one or several in a row, as a connector does that was killed."""
    sent: list[Record] = []
    for number, record in enumerate(records):
        sent.append(record)
        if random.random() < 0.2:
            sent += records[max(0, number - random.randrange(4)) : number + 1]
    return _laid(sent)


def compacted(records: Sequence[Record], random: Random) -> list[Record]:
    """Keep the last record of each key, and everything behind the place where the last compaction ended."""
    place = random.randrange(len(records) + 1)
    last = {_key(record): number for number, record in enumerate(records[:place])}
    return [*(records[number] for number in sorted(last.values())), *records[place:]]


def _key(record: Record) -> str:
    return record.database or "" if isinstance(record, SchemaChangeRecord) else record.prefix


def no_baseline(records: Sequence[Record], random: Random) -> list[Record]:
    """Lose what was written when the triggers were installed, as where the connector's slot was made later."""
    return [r for r in records if not isinstance(r, LogicalMessage) or b'"kind": "baseline"' not in r.content]


def own_table_only(records: Sequence[Record], random: Random) -> list[Record]:
    """Leave out what is about other tables alone, as `schema.history.internal.store.only.captured.tables.ddl` does."""
    return [r for r in records if not isinstance(r, SchemaChangeRecord) or any(e.table.table == NAME for e in r.tables)]


def wrong_columns(records: Sequence[Record], random: Random) -> list[Record]:
    """Show columns as they were before, in some records, as if Debezium's parser had skipped a clause."""
    shown: list[Record] = []
    before: dict[TableId, tuple[ColumnEntry, ...] | None] = {}
    for record in records:
        if isinstance(record, SchemaChangeRecord):
            stale = [
                replace(entry, columns=before.get(entry.table, entry.columns)) if entry.columns else entry
                for entry in record.tables
            ]
            before.update({entry.table: entry.columns for entry in record.tables})
            record = replace(record, tables=tuple(stale)) if random.random() < 0.1 else record
        shown.append(record)
    return shown


def no_statements(records: Sequence[Record], random: Random) -> list[Record]:
    """Have some records say no statement, or one that nobody understands."""
    texts = ("", "N/A", "ALTER TABLE t SOMETHING NEW a b")
    return [
        replace(record, ddl=random.choice(texts))
        if isinstance(record, SchemaChangeRecord) and random.random() < 0.1 else record
        for record in records
    ]  # fmt: skip


def _laid(records: Iterable[Record]) -> list[Record]:
    return [
        replace(record, kafka=KafkaPosition(topic=record.kafka.topic, partition=0, offset=offset))
        for offset, record in enumerate(records)
    ]


def everything(records: Sequence[Record], random: Random) -> list[Record]:
    return repeats(gaps(records, random), random)


BASELINE_LOST = "baseline lost"
RETENTION = "retention passed"
FAULTS: Mapping[str, Fault] = {
    "gaps": gaps,
    "repeated": repeats,
    "compacted": compacted,
    "gaps and repeats": everything,
    BASELINE_LOST: no_baseline,
    "other tables left out": own_table_only,
    "columns wrong in the record": wrong_columns,
    "statements not understood": no_statements,
}
LATE = ("late", "so late that waiting ends", "late, with gaps and repeats")
WITHOUT_BASELINE = "trigger without a baseline"
FOR_MYSQL = ("other tables left out", "columns wrong in the record", "statements not understood")


def kinds(source: str) -> tuple[str, ...]:
    """Return the faults that the evidence of a source may have."""
    if source == "MySQL":
        return (*(name for name in FAULTS if name != BASELINE_LOST), *LATE)
    return (*(name for name in FAULTS if name not in FOR_MYSQL), *LATE, WITHOUT_BASELINE, RETENTION)


def counted(source: str, seeds: Iterable[int]) -> Counts:
    """Plan courses with each fault in turn."""
    counts = {fault: Counter[str]() for fault in kinds(source)}
    for seed in seeds:
        course = SOURCES[source](seed)
        for fault in counts:
            counts[fault].update(planned(course, fault))
    return counts


def planned(course: Course, fault: str) -> Counter[str]:
    random = chosen(course, sum(fault.encode()))
    records: list[Record] = [*course.changes]
    build: Callable[[Sequence[Record]], ColumnLog] = ddl_log  # type: ignore[assignment]
    if not course.changes:
        plain = fault == WITHOUT_BASELINE or (is_told_whole(course) and course.pick % 2 == 0)
        records, build = [*messages_of(course, plain=plain)], message_log  # type: ignore[assignment]
    if fault in LATE:
        return _late(course, fault, records, build, random)
    if fault == RETENTION:
        return _forgotten(course, records, build, random)
    if fault in FAULTS:
        records = FAULTS[fault](records, random)
    log = build(records)
    return fold(course, cut(course, [log]), lambda _: (log,))


def _forgotten(
    course: Course, records: Sequence[Record], build: Callable[[Sequence[Record]], ColumnLog], random: Random
) -> Counter[str]:
    """Start again behind some row when the topic has lost what came before it."""
    seen = cut(course, [build(records)])
    place = random.randrange(1, len(seen)) if len(seen) > 1 else 1
    whole, last = build(records), seen[place - 1][0].position
    rest = build([record for record in records if record.position > last])
    return fold(course, seen, lambda number: (whole if number < place else rest,))


def _late(
    course: Course,
    fault: str,
    records: Sequence[Record],
    build: Callable[[Sequence[Record]], ColumnLog],
    random: Random,
) -> Counter[str]:
    """Let rows come up to three records earlier than what explains them; what is waited for arrives, or does not."""
    if fault == LATE[2]:
        records = everything(records, random)
    seen = cut(course, [build(records)])
    places = _reached([record.position for record in records])
    known: list[int] = []
    for row, _ in seen:
        here = bisect_right(places, row.position)
        known.append(max(known[-1] if known else 0, here - random.choice((0, 0, 1, 2, 3))))
    built: dict[int, ColumnLog] = {}

    def upto(count: int) -> tuple[ColumnLog, ...]:
        if count not in built:
            built[count] = build(records[:count])
        return (built[count],)

    def arrived(number: int) -> tuple[ColumnLog, ...]:
        return upto(bisect_right(places, seen[number][0].position))

    late = partial(_of, known, upto)
    return fold(
        course, seen, late, after_waiting=late if fault == LATE[1] else arrived, afterwards=arrived(len(seen) - 1)
    )  # fmt: skip


def _of(known: Sequence[int], upto: Callable[[int], tuple[ColumnLog, ...]], number: int) -> tuple[ColumnLog, ...]:
    return upto(known[number])


def _reached(positions: Sequence[SourcePosition]) -> list[SourcePosition]:
    """Return the highest position so far for each record of a topic that may go back."""
    highest: list[SourcePosition] = []
    for position in positions:
        highest.append(max(position, highest[-1]) if highest else position)
    return highest
