"""Events that leave values out: whatever happened, and wherever the batches end, the target has the source's rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc_sync.core.model.offsets import Place
from cdc_sync.core.model.progress import Progress
from cdc_sync.errors import TargetError
from cdc_sync.spark.lineages import Lineages, carry, find_delete, find_lineages
from cdc_sync.spark.unchanged import count_unknown, fold
from cdc_sync.targets.memory.target import MemoryTarget
from cdc_sync.targets.protocol import UNKNOWN_VALUE, Batch, Commit
from tests.targets.conftest import Lake, fresh_name
from tests.targets.source_rows import LARGE, SCHEMA, Event, Source, converted, live

pytestmark = pytest.mark.spark

Offsets = Mapping[int, int]


@dataclass
class Reader:
    """Writes a source's events in batches, as the job does."""

    lake: Lake
    source: Source
    require_rows: bool = True
    at: dict[int, int] = field(default_factory=dict)
    unknown: int = 0
    looked_back: int = 0

    def __post_init__(self) -> None:
        self.lake.create(SCHEMA)
        self.at = dict.fromkeys(range(self.source.partitions), 0)

    def read_to(self, ends: Offsets) -> None:
        """Write everything up to the offsets, but for creates that wait for a delete in another partition."""
        before = None
        while before != self.at and self.at != ends:
            before = dict(self.at)
            self._write(ends)

    def _write(self, ends: Offsets) -> None:
        if ends == self.at:
            return
        events = self._events(self.at, ends)
        if self._apply(fold(events, SCHEMA, LARGE), ends):
            return
        found = find_lineages(events, SCHEMA, LARGE)
        held = self.lake.target.read(self.lake.name, SCHEMA, (1, *LARGE))
        rows = fold(events, SCHEMA, LARGE, carry(events, SCHEMA, LARGE, found, held) if found.steps else None)
        if found.steps and self._apply(rows, ends):
            return
        if not found.unlinked:
            self._apply(rows, ends, require_values=False)
            return
        firsts = _firsts(found)
        self._write({partition: firsts.get(partition, end) for partition, end in ends.items()})
        for partition, offset in firsts.items():
            if self.at[partition] == offset:
                self._write_alone(Place(partition=partition, offset=offset))

    def _write_alone(self, create: Place) -> None:
        """Write a create whose delete is not in its range: perhaps its row is there, or an earlier commit had it."""
        ends = {**self.at, create.partition: create.offset + 1}
        only = self._events(self.at, ends)
        if self._apply(fold(only, SCHEMA, LARGE), ends):
            return
        commits = self._commits()
        everything = self._events(commits[-1][0], ends)
        age, missing = 0, create
        while (delete := find_delete(everything, missing)) is not None:
            # The newest state that still has the row which the delete removed, and all events from there on.
            fitting = [age for age, (at, _) in enumerate(commits) if at[delete.partition] <= delete.offset]
            age = max(age, fitting[0])
            start, commit = commits[age]
            events = self._events(start, ends)
            found = find_lineages(events, SCHEMA, LARGE, self.at)
            if not found.unlinked:
                held = self.lake.target.read(self.lake.name, SCHEMA, (1, *LARGE), commit)
                rows = fold(only, SCHEMA, LARGE, carry(events, SCHEMA, LARGE, found, held, self.at))
                self.looked_back += 1
                if not self._apply(rows, ends):
                    self._apply(rows, ends, require_values=False)
                return
            assert missing != found.unlinked[0]
            missing = found.unlinked[0]

    def _commits(self) -> list[tuple[Offsets, Commit]]:
        """What can be read again, newest first, with the offsets it ends at."""
        found: list[tuple[Offsets, Commit]] = []
        for commit in self.lake.target.commits(self.lake.name, 100):
            progress = commit.progress or Progress(version=1)
            found.append(({partition: progress.next_offset("t", partition) or 0 for partition in self.at}, commit))
        return found

    def _events(self, starts: Offsets, ends: Offsets) -> DataFrame:
        events = [event for log in self.source.logs for event in log if _is_within(event, starts, ends)]
        return converted(self.lake.session, events)

    def _apply(self, rows: DataFrame, ends: Offsets, *, require_values: bool = True) -> bool:
        if not require_values:
            held = self.lake.target.read(self.lake.name, SCHEMA, (1,))
            unknown = count_unknown(rows, SCHEMA, LARGE, held)
            assert unknown > 0
            self.unknown += unknown
        batch = Batch(
            rows=rows,
            schema=SCHEMA,
            progress=Progress(version=1, offsets={"t": dict(ends)}),
            behind=self.lake.held,
            require_rows=self.require_rows,
            unchanged=LARGE,
            require_values=require_values,
        )
        try:
            self.lake.target.write(self.lake.name, batch)
        except TargetError as error:
            if UNKNOWN_VALUE not in str(error):
                raise
            return False
        self.at = dict(ends)
        return True

    def rows(self) -> list[dict[str, object]]:
        found = [
            {name: bytes(value) if isinstance(value, bytearray) else value for name, value in row.items()}
            for row in self.lake.rows()
        ]
        return sorted(found, key=lambda row: str(row["id"]))


def _is_within(event: Event, starts: Offsets, ends: Offsets) -> bool:
    return starts[event.partition] <= event.offset < ends[event.partition]


def _firsts(found: Lineages) -> dict[int, int]:
    return {place.partition: place.offset for place in sorted(found.unlinked, reverse=True)}


def rows_of(source: Source) -> list[dict[str, object]]:
    rows = [{column.name: row[column.id] for column in SCHEMA.columns} for row in source.rows.values()]
    return sorted(rows, key=lambda row: str(row["id"]))


def read_in_batches(reader: Reader, random: Random, batches: int) -> None:
    source = reader.source
    for _ in range(batches):
        reader.read_to({p: random.randint(reader.at[p], max(reader.at[p], end)) for p, end in source.ends.items()})
    reader.read_to(source.ends)
    assert reader.at == source.ends


def life(lake: Lake, seed: int, *, partitions: int, changes: int, batches: int, repeats: bool = False) -> Reader:
    random = Random(seed)
    source = Source(partitions)
    # An update that comes again may come when its row is gone.
    reader = Reader(lake, source, require_rows=not repeats)
    for _ in range(2):
        live(source, random, changes, repeats=repeats)
        read_in_batches(reader, random, batches)
        assert reader.rows() == rows_of(source), f"{seed=}"
    return reader


@pytest.fixture
def memory(session: SparkSession) -> Lake:
    return Lake(target=MemoryTarget(), session=session, name=fresh_name())


@pytest.mark.parametrize(("seed", "partitions"), [(2, 1), (1, 2), (2, 3)])
def test_the_target_has_the_source_s_rows(memory: Lake, seed: int, partitions: int) -> None:
    reader = life(memory, seed, partitions=partitions, changes=40, batches=2)
    assert reader.unknown == 0


def test_events_that_come_twice_change_nothing(memory: Lake) -> None:
    life(memory, 1, partitions=2, changes=40, batches=2, repeats=True)


@pytest.mark.iceberg
def test_iceberg_has_the_source_s_rows(iceberg: MemoryTarget, session: SparkSession) -> None:
    lake = Lake(target=iceberg, session=session, name=fresh_name())
    reader = life(lake, 1, partitions=3, changes=40, batches=2)
    assert reader.unknown == 0
