"""Damaged records among good ones, through a real Kafka and the real job: no crash, no wrong row, none unaccounted.

CDC_SYNC_FUZZ_JOB=5000 asks for that many damaged records, CDC_SYNC_FUZZ_SEED for other ones.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from cdc_sync.local.kafka import KafkaServer
from cdc_sync.testing import Record
from tests.conftest import Produce
from tests.fuzz.model import COLUMN_TYPES, Entry, decode, rows_after
from tests.fuzz.streams import Stream, stream
from tests.fuzz.twins import Twins
from tests.registry.ccompat import SmallRegistry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.corpus.runs import Ended

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(14400)]

_DAMAGED = int(os.environ.get("CDC_SYNC_FUZZ_JOB", "200"))
_SEED = int(os.environ.get("CDC_SYNC_FUZZ_SEED", "4"))
_LARGE, _SMALL = 60, 10
"""Damaged records in a topic whose table they cannot change, and in one whose table they may stop."""

_CONFIG = """
pipeline: {{name: fuzz, state: '{folder}/state'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: 'fuzz\\..*'}}
registry: {{url: '{registry}', attempts: 1}}
tables: [{{pattern: 'shop\\.fuzz\\.({tables})'}}]
policy: {{unproven_rename: pause, incompatible_types: pause, unknown_values: pause, missing_rows: insert}}
target: {{format: memory}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fuzzed:
    """The topics, and how the run over them ended."""

    streams: tuple[Stream, ...]
    ended: Ended


def _streams() -> Iterator[Stream]:
    large = max(1, _DAMAGED * 3 // 5 // _LARGE)
    small = max(1, (_DAMAGED - large * _LARGE) // _SMALL)
    twins = Twins()
    for number in range(large):
        avro = twins if number % 3 == 2 else None
        yield stream(_spelt(number), _LARGE, seed=_SEED * 1000 + number, keeps_schema=True, twins=avro)
    for number in range(small):
        avro = twins if number % 3 == 2 else None
        yield stream(_spelt(500 + number), _SMALL, seed=_SEED * 1000 + 500 + number, keeps_schema=False, twins=avro)


def _spelt(number: int) -> str:
    """Return a table's name that a flipped bit does not turn into another's."""
    return "t" + "".join(digit * 3 for digit in str(number))


@pytest.fixture(scope="module")
def fuzzed(
    kafka: KafkaServer, produce: Produce, _spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Fuzzed:
    from cdc_sync.config import parse_config
    from cdc_sync.spark.session import build_session
    from tests.corpus.runs import ended_in_memory, ends_of, memory_job, session_of_its_own

    streams = tuple(_streams())
    for item in streams:
        produce(item.topic, [Record(key=entry.key, value=entry.value) for entry in item.entries])
    registry = SmallRegistry({id_: text for item in streams for id_, text in item.texts.items()})
    folder = tmp_path_factory.mktemp("fuzz")
    text = _CONFIG.format(
        folder=folder,
        servers=kafka.bootstrap_servers,
        registry=registry.confluent_url,
        tables="|".join(item.table[2] for item in streams),
    )
    config = parse_config(text)
    with registry, session_of_its_own(_spark), memory_job(config, build_session(config)) as (job, context):
        ends = ends_of(context)
        # In two batches, so that the second meets tables whose schema is known.
        job.process({place: end // 2 for place, end in ends.items()})
        job.process(ends)
        return Fuzzed(streams=streams, ended=ended_in_memory(job, context))


def test_no_table_fails(fuzzed: Fuzzed) -> None:
    failing = {name: status.reason for name, status in fuzzed.ended.statuses.items() if status.state == "failing"}

    assert failing == {}
    assert set(fuzzed.ended.statuses) == {".".join(item.table[1:]) for item in fuzzed.streams}


def test_damage_that_leaves_the_schema_alone_stops_no_table(fuzzed: Fuzzed) -> None:
    stopped = {
        item.topic: fuzzed.ended.statuses[_name(item)].reason
        for item in fuzzed.streams
        if item.keeps_schema and fuzzed.ended.statuses[_name(item)].state != "running"
    }

    assert stopped == {}


def test_a_table_only_stops_before_a_damaged_record(fuzzed: Fuzzed) -> None:
    stopped = {item.topic: _stopped_at(fuzzed.ended, item) for item in fuzzed.streams}

    assert [
        (topic, offset, fuzzed.ended.statuses[_name(item)].reason)
        for item in fuzzed.streams
        if (offset := stopped[topic := item.topic]) is not None and not item.entries[offset].kind
    ] == []


def test_every_row_is_what_the_model_says(fuzzed: Fuzzed) -> None:
    wrong = [text for item in fuzzed.streams for text in _wrong_rows(fuzzed.ended, item)]

    assert wrong == [], f"{len(wrong)} wrong rows\n" + "\n".join(wrong[:20])


def test_every_offset_is_accounted_for(fuzzed: Fuzzed) -> None:
    """Whatever was not set aside is a row's change, a tombstone, or one of the records that are counted."""
    unaccounted = []
    for item in fuzzed.streams:
        aside = _aside(fuzzed.ended, item)
        for offset, entry in _within(fuzzed.ended, item):
            meaning = decode(entry.value, item.table, item.read).meaning
            if meaning == "unreadable" and offset not in aside:
                unaccounted.append(_told(item, offset, entry))

    assert unaccounted == [], f"{len(unaccounted)} records\n" + "\n".join(unaccounted[:20])


def test_records_without_rows_are_counted(fuzzed: Fuzzed) -> None:
    left = [
        (
            decode(entry.value, item.table, item.read).meaning,
            item.topic,
            offset,
            entry.kind,
            (entry.value or b"")[-120:],
        )
        for item in fuzzed.streams
        for offset, entry in enumerate(item.entries)
        if offset not in _aside(fuzzed.ended, item)
    ]
    meanings = Counter(meaning for meaning, *_ in left)
    kinds = dict(fuzzed.ended.other_records)
    # Of a table that nobody wants, looks at ranges are counted and not records.
    unwanted = kinds.pop("change of a table that no rule matches", 0)

    assert sum(kinds.values()) == meanings["no change"], (kinds, [item for item in left if item[0] == "no change"])
    assert bool(unwanted) == bool(meanings["another table's"])


def test_good_records_are_not_set_aside(fuzzed: Fuzzed) -> None:
    assert [
        (item.topic, offset)
        for item in fuzzed.streams
        for offset in _aside(fuzzed.ended, item)
        if not item.entries[offset].kind
    ] == []


def _name(item: Stream) -> str:
    return ".".join(item.table[1:])


def _stopped_at(ended: Ended, item: Stream) -> int | None:
    status = ended.statuses[_name(item)]
    match = re.search(r"@(\d+)$", status.paused_at or "")
    return int(match[1]) if status.state == "paused" and match else None


def _within(ended: Ended, item: Stream) -> list[tuple[int, Entry]]:
    """Return the records that the table came to: all, or those before the one it stopped at."""
    return list(enumerate(item.entries))[: _stopped_at(ended, item)]


def _aside(ended: Ended, item: Stream) -> frozenset[int]:
    return frozenset(offset for topic, offset, _ in ended.aside if topic == item.topic)


def _rows(ended: Ended, item: Stream) -> dict[object, dict[str, object]]:
    """Return the target's rows by key."""
    image = ended.images.get(_name(item))
    return {row[0]: dict(zip(COLUMN_TYPES, row, strict=True)) for row in image.rows} if image else {}


def _wrong_rows(ended: Ended, item: Stream) -> list[str]:
    entries = [entry for _, entry in _within(ended, item)]
    found = _rows(ended, item)
    wanted = rows_after(entries, item.table, item.read, aside=_aside(ended, item), found=found)
    return [
        f"{item.topic}, row {key}: {wanted.get(key)} wanted, {found.get(key)} found; {_about(item, key)}"
        for key in sorted({*wanted, *found}, key=repr)
        if repr(wanted.get(key)) != repr(found.get(key))
    ]


def _about(item: Stream, key: object) -> str:
    """Tell the damaged records that may be meant."""
    marks = f'"id":{key},'.encode()
    return "; ".join(
        _told(item, offset, entry)
        for offset, entry in enumerate(item.entries)
        if entry.kind and (marks in (entry.value or b"") or marks in (entry.original or b""))
    )


def _told(item: Stream, offset: int, entry: Entry) -> str:
    value = entry.value or b""
    return f"{item.topic}@{offset}, {entry.kind}: key {entry.key!r}, {len(value)} bytes ending {value[-900:]!r}"
