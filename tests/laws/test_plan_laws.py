"""However events are split and interleaved, a table gets the same versions, and in the end the source's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc_sync.core.history.history import History
from cdc_sync.core.history.revision import Version
from cdc_sync.core.migration.migration import AlterTable, Backfill, migration
from cdc_sync.core.model.positions import SourcePosition
from cdc_sync.core.model.progress import Truncated
from cdc_sync.core.planning.column_mappings import Reading, readings
from cdc_sync.core.planning.plan import Refusal
from cdc_sync.core.planning.truncation import Reach, Truncate, in_effect, place
from cdc_sync.core.schema.projection import Constant, Entry, FromColumn, Untold
from cdc_sync.testing import encode
from tests.laws.sources import Life, lives
from tests.plan.model import Event, grown, planned, stretches, topic

law = settings(
    max_examples=80,
    deadline=None,
    derandomize=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
steps = st.lists(st.integers(0, 2**16), max_size=6)
"""How far the producer and the reader get in each step, as one integer."""


@dataclass
class Pipeline:
    """Reads a topic in steps, as `TopicSync` and `TableSync` do; its target is a dictionary."""

    partitions: list[list[Event]]
    order: list[Event]
    history: History | None = None
    refusal: Refusal | None = None
    stamped: Version | None = None
    rows_at: Version | None = None
    rows: dict[Any, dict[int, Any]] = field(default_factory=dict)
    read: list[int] = field(default_factory=list)
    truncated: Truncated | None = None
    again: int = 0
    """How often a TRUNCATE sent the reader back in a partition."""

    def run(self, numbers: list[int]) -> Pipeline:
        produced, self.read = 0, [0] * len(self.partitions)
        for number in [*numbers, None]:
            produced = len(self.order) if number is None else min(len(self.order), produced + number % 7)
            there = Counter(event.kafka.partition for event in self.order[:produced])
            ends = [
                there[place] if number is None else min(there[place], start + (number >> (3 + 3 * place)) % 5)
                for place, start in enumerate(self.read)
            ]
            while self._advance(ends, [there[place] for place in range(len(ends))], self.order[:produced]):
                pass
            if self.refusal is not None:
                break
        return self

    def _advance(self, ends: list[int], there: list[int], produced: list[Event]) -> bool:
        """Read up to the ends or to a TRUNCATE; return whether it was one."""
        starts = list(enumerate(self.read))
        seen = [e for place, start in starts for e in self.partitions[place][start : there[place]]]
        within = [e for place, start in starts for e in self.partitions[place][start : ends[place]]]
        found = stretches(seen, within, self.history)
        plan = planned(self.history, seen, within, produced)
        self.history, self.refusal = grown(self.history, plan), plan.refusal
        if self.history is None:
            self.read = [max(pair) for pair in zip(self.read, ends, strict=True)]
            return False
        self._migrate(self.history.head)
        if self.refusal is not None:
            within = [event for event in within if event.source.position < self.refusal.position]
        truncate = self._first_truncate(within)
        if truncate is not None:
            within = [event for event in within if event.source.position < truncate.position]
        first: dict[str, SourcePosition] = {}
        for event in found:
            first.setdefault(event.known.digest, event.source.position)
        bound = self.truncated.bound if self.truncated else None
        gone = [event for event in within if bound is not None and event.source.position < bound]
        self._write(self.history, [e for e in within if e.source.op != "t" and e not in gone], first)
        if truncate is None:
            self.read = [max(pair) for pair in zip(self.read, ends, strict=True)]
            return False
        self._truncate(truncate, there)
        self.refusal = None  # it stands behind the TRUNCATE, where the next step finds it again
        return True

    def _first_truncate(self, within: list[Event]) -> Truncate | None:
        found = []
        for event in within:
            # Offsets are counted in events here.
            index = self.partitions[event.kafka.partition].index(event)
            truncate = Truncate(position=event.source.position, kafka=replace(event.kafka, offset=index))
            if event.source.op == "t" and not in_effect(truncate, self.truncated):
                found.append(truncate)
        return min(found, key=lambda item: item.position, default=None)

    def _truncate(self, truncate: Truncate, there: list[int]) -> None:
        others = {}
        for partition, end in enumerate(there):
            events = self.partitions[partition][:end]
            behind = [index for index, event in enumerate(events) if event.source.position >= truncate.position]
            if partition != truncate.kafka.partition:
                others[truncate.kafka.topic, partition] = Reach(
                    next_offset=self.read[partition], first_behind=min(behind, default=None), end=end, whole=True
                )
        found = place(truncate, others)
        assert isinstance(found, Truncated)
        before = self.read
        self.read = [found.offsets[truncate.kafka.topic][partition] for partition in range(len(there))]
        self.again += any(now < then for now, then in zip(self.read, before, strict=True))
        self.rows, self.truncated = {}, found

    def _migrate(self, head: Version) -> None:
        for step in migration(self.stamped, self.rows_at, head).steps:
            match step:
                case AlterTable():
                    kept = {column.id for column in head.schema.columns}
                    for row in self.rows.values():
                        for id_ in row.keys() - kept:
                            del row[id_]
                case Backfill(columns=columns):
                    for row in self.rows.values():
                        row.update({column.id: column.initial for column in columns})
        self.stamped = head
        self.rows_at = head if self.rows_at is not None else None

    def _write(self, history: History, events: list[Event], first: dict[str, SourcePosition]) -> None:
        head = history.head
        for event in events:
            schema, fingerprint = event.known.schema, event.known.fingerprint
            assert schema is not None
            assert fingerprint is not None
            reading = _reading(readings(history, schema, fingerprint, first[event.known.digest]), event)
            after = event.payload["after"] or {}
            image = {**(event.payload["before"] or {}), **after}
            row = {entry.id: _value(entry, image) for entry in reading.projection.columns}
            key = tuple(row[id_] for id_ in head.schema.primary_key)
            held = self.rows.pop(key, {}) if event.source.op == "u" else {}
            self.rows.pop(key, None)
            if after:
                untold = {entry.id for entry in reading.projection.columns if isinstance(entry, Untold)}
                self.rows[key] = row | {id_: value for id_, value in held.items() if id_ in untold}
        self.rows_at = head


def _value(entry: Entry, image: Mapping[str, object]) -> object:
    match entry:
        case FromColumn(name=name):
            return image.get(name)
        case Constant(value=value):
            return value
        case Untold():
            return None


def _reading(options: tuple[Reading, ...], event: Event) -> Reading:
    position = event.source.position
    (one,) = (
        option
        for option in options
        if (option.from_position is None or option.from_position <= position)
        and (option.to_position is None or position < option.to_position)
    )
    return one


def outcome(pipeline: Pipeline) -> tuple[tuple[Version, ...], str | None, SourcePosition | None]:
    versions = pipeline.history.versions if pipeline.history else ()
    stop = pipeline.refusal
    return versions, stop.reason if stop else None, stop.position if stop else None


def pipeline(life: Life, partitions: int) -> Pipeline:
    laid = topic(life.records, partitions)
    order = sorted((event for events in laid for event in events), key=lambda event: event.source.lsn or 0)
    return Pipeline(partitions=[[e for e in order if e.kafka.partition == p] for p in range(partitions)], order=order)


def source_rows(life: Life) -> list[dict[str, object]]:
    return [{c.field or "": encode(c, row[c.field or ""]) for c in life.columns} for row in life.rows]


def target_rows(done: Pipeline) -> list[dict[str, object]]:
    assert done.history is not None
    live = done.history.head.schema.live
    return [{column.name: row.get(column.id) for column in live} for row in done.rows.values()]


def by_text(rows: list[dict[str, object]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


def flush(life: Life) -> None:
    """Write once more, so that the last changes of columns show."""
    life.put(2**20 - 1)


@law
@given(lives, steps)
def test_any_split_into_batches_gives_the_same_versions_and_refusal(life: Life, numbers: list[int]) -> None:
    assert outcome(pipeline(life, 1).run(numbers)) == outcome(pipeline(life, 1).run([]))


def test_a_drop_behind_a_snapshot_is_told_alike_whatever_was_read_together() -> None:
    life = Life([1, 594, 0, 6772, 0])
    assert outcome(pipeline(life, 2).run([415])) == outcome(pipeline(life, 2).run([]))


@law
@given(lives, st.integers(2, 3), steps)
def test_any_interleaving_of_partitions_gives_the_same_versions_and_refusal(
    life: Life, partitions: int, numbers: list[int]
) -> None:
    assert outcome(pipeline(life, partitions).run(numbers)) == outcome(pipeline(life, partitions).run([]))


@settings(law, max_examples=200)
@given(lives, st.integers(1, 3), steps)
def test_in_the_end_the_target_holds_the_rows_of_the_source(life: Life, partitions: int, numbers: list[int]) -> None:
    flush(life)
    done = pipeline(life, partitions).run(numbers)
    assert done.history is not None or done.refusal is not None
    guessed = done.history and any(
        item.kind == "unproven" for version in done.history.versions for item in version.evidence
    )
    if done.refusal is None and not guessed:
        assert by_text(target_rows(done)) == by_text(source_rows(life))


def test_the_generated_lives_reach_what_the_laws_are_about() -> None:
    """Unless versions, refusals and proven ends all occur, the laws above say little."""
    found: Counter[str] = Counter()
    for seed in range(120):
        life = Life([(seed * 7919 + place * 104_729) ** 2 % 2**20 for place in range(2 + seed % 20)])
        flush(life)
        done = pipeline(life, 1 + seed % 3).run([(seed + 1) * 7919 * (step + 1) % 2**16 for step in range(8)])
        found["refused" if done.refusal else "ended"] += 1
        found["truncated"] += done.truncated is not None
        found["again"] += done.again
        versions = done.history.versions if done.history else ()
        found["versions"] += len(versions)
        kinds = {item.kind for version in versions for item in version.evidence}
        found.update(kinds)
    assert found["versions"] > 160, found
    kinds = {"refused", "ended", "unproven", "position", "truncated", "needs resync"}
    assert min(found[kind] for kind in kinds) > 5, found
    assert found["again"], found
