"""A broker, a history and a target in plain Python, and a job on them whose every decision is the real one.

What `runtime.observer` and `runtime.executor` do is said again and simply here: the target is a dictionary of rows, one
commit is one assignment. The job may die before or behind every effect; then it knows nothing but what is written down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from typing_extensions import assert_never

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.migration import AlterTable, Backfill, CreateTable, RewriteTable
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.positions import SourcePosition
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.column_mappings import Reading, readings
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.core.planning.truncation import Reach, Truncate, progress_behind
from cdc_sync.core.schema.projection import Constant, Entry, FromColumn, Untold
from cdc_sync.core.table import fold
from cdc_sync.core.table.advance import decide
from cdc_sync.core.table.loading import take_up
from cdc_sync.core.table.questions import (
    Cuts,
    Fingerprints,
    HasAllEvents,
    KeyClash,
    PlanOf,
    Question,
    Reaches,
    RoomFor,
    TargetNow,
)
from cdc_sync.core.table.seen import Loaded, Seen
from cdc_sync.core.table.state import TableState
from cdc_sync.core.table.transitions import (
    Ask,
    Become,
    Effect,
    Fail,
    Migrate,
    Record,
    Settled,
    TruncateTarget,
    WriteRange,
)
from tests.laws.sources import Life
from tests.plan.model import BOOK, ROUTE, Event, observations, stretches, topic

Rows = dict[Any, dict[int, Any]]


def never() -> bool:
    """The process lasts."""
    return False


class Died(Exception):
    """The process ended."""


@dataclass
class Target:
    """What one commit leaves: rows, columns, marker, all at once."""

    stamped: int
    progress: Progress | None = None
    rows: Rows = field(default_factory=dict)

    @property
    def state(self) -> TargetState:
        return TargetState(version=self.stamped, progress=self.progress, rows=len(self.rows))


@dataclass
class World:
    """A topic that is read in steps, and what comes of it."""

    partitions: list[list[Event]]
    order: list[Event]
    """All events as the producer wrote them."""
    dies: Callable[[], bool] = never
    ends_early: Callable[[], bool] = never
    """Whether a write ends before its range does, as where another partition has to be read first."""
    route: Route = ROUTE
    there: int = 0
    """How many of them were produced."""
    recorded: History | None = None
    target: Target | None = None
    again: int = 0
    """How often a TRUNCATE sent the reader back in a partition."""
    steps: Counter[str] = field(default_factory=Counter)
    deaths: int = 0

    @staticmethod
    def of(
        life: Life, partitions: int, dies: Callable[[], bool] = never, ends_early: Callable[[], bool] = never
    ) -> World:
        laid = topic(life.records, partitions)
        order = sorted((event for events in laid for event in events), key=lambda event: event.source.lsn or 0)
        return World(partitions=laid, order=order, dies=dies, ends_early=ends_early)

    def __post_init__(self) -> None:
        self.state = TableState(route=self.route)

    def run(self, numbers: list[int]) -> World:
        """Read everything, a producer and a reader taking steps as the numbers say."""
        read = [0] * len(self.partitions)
        for number in [*numbers, None]:
            self.there = len(self.order) if number is None else min(len(self.order), self.there + (number % 7))
            produced = [self._produced(place) for place in range(len(self.partitions))]
            for place, events in enumerate(produced):
                upto = (
                    len(events) if number is None else min(len(events), read[place] + (number >> (3 + 3 * place)) % 5)
                )
                read[place] = max(read[place], upto)
            ends = {place: produced[place][at - 1].kafka.offset + 1 if at else 0 for place, at in enumerate(read)}
            self._batch(ends)
            if self.state.stop is not None:
                break
        return self

    def _produced(self, partition: int) -> list[Event]:
        there = {id(event) for event in self.order[: self.there]}
        return [event for event in self.partitions[partition] if id(event) in there]

    def _batch(self, ends: Mapping[int, int]) -> None:
        """Bring the table to the ends, as `TopicSync` does; who died begins with what is written down."""
        for _ in range(500):
            try:
                if not self.state.is_read:
                    self._load()
                if self.state.stop is not None or not self._advance(ends):
                    return
            except Died:
                self.deaths += 1
                self.state = TableState(route=self.route)
        raise AssertionError("a batch does not come to an end")

    def _advance(self, ends: Mapping[int, int]) -> bool:
        ranges = tuple(
            OffsetRange(topic="t", partition=place, start=start, end=end)
            for place, end in sorted(ends.items())
            if (start := self.state.next_offset("t", place) or 0) < end
        )
        if not ranges:
            return False
        starts = {item.partition: item.start for item in ranges}
        # On several partitions the job looks ahead, to the present end of each.
        ahead = [
            event
            for place in range(len(self.partitions))
            for event in self._produced(place)
            if event.kafka.offset >= starts.get(place, ends[place])
        ]
        found = stretches(ahead, list(self._within(ranges)), self.state.history)
        seen = tuple(
            Stretch(
                table=event.source.table,
                position=event.source.position,
                kafka=event.kafka,
                digest=event.known.digest,
                truncate=event.source.op == "t",
            )
            for event in found
        )
        self._decide(Seen.of(ranges, seen))
        return True

    def _within(self, ranges: tuple[OffsetRange, ...]) -> Iterator[Event]:
        for item in ranges:
            for event in self.partitions[item.partition]:
                if item.start <= event.kafka.offset < item.end:
                    yield event

    def _load(self) -> None:
        found = None if self.target is None else self.target.state
        match take_up(self.state, Loaded(history=self.recorded, found=found)):
            case Settled(state=state):
                self.state = state
            case step:
                raise AssertionError(step)

    def _decide(self, seen: Seen) -> None:
        while True:
            match decide(self.state, seen):
                case Settled(state=state):
                    self.state = state
                    return
                case Become(state=state):
                    self.state = state
                case Fail(error=error):
                    raise error
                case Ask(question=question):
                    self.steps[type(question).__name__] += 1
                    seen = replace(seen, facts=seen.facts.knowing(question, self._answer(seen, question)))
                case step:
                    if self.dies():
                        raise Died
                    before = self._measure()
                    state, seen = self._carry_out(seen, step)
                    self.steps[type(step).__name__] += 1
                    assert self._measure() != before or not _changes(step), f"no progress: {step}"
                    self.state = state

    def _measure(self) -> object:
        """What is written down: each effect makes it another."""
        versions = 0 if self.recorded is None else len(self.recorded.versions)
        return versions, None if self.target is None else (self.target.stamped, self.target.progress)

    def _answer(self, seen: Seen, question: Question[Any]) -> object:
        match question:
            case PlanOf():
                mine = {stretch.kafka for stretch in seen.stretches}
                found = [event for event in self.order if event.kafka in mine]
                sighted = observations(self.state.history, found, self.order[: self.there])
                return plan_table(self.state.history, sighted, self.route, self.route.capabilities)
            case RoomFor(versions=wanted):
                return wanted, None
            case TargetNow():
                return None if self.target is None else self.target.state
            case HasAllEvents():
                return True
            case KeyClash():
                return None
            case Cuts(position=position):
                return self._behind(position, self._within(seen.ranges))
            case Reaches(truncate=truncate):
                return self._reaches(truncate)
            case Fingerprints(digests=digests):
                known = {digest: BOOK.get(digest) for digest in digests}
                return {digest: item.fingerprint for digest, item in known.items() if item is not None}
            case _:
                raise AssertionError(question)

    def _behind(self, position: SourcePosition, events: Iterator[Event]) -> dict[tuple[str, int], int]:
        cuts: dict[tuple[str, int], int] = {}
        for event in events:
            if event.source.position >= position:
                place = "t", event.kafka.partition
                cuts[place] = min(event.kafka.offset, cuts.get(place, event.kafka.offset))
        return cuts

    def _reaches(self, truncate: Truncate) -> dict[tuple[str, int], Reach]:
        found = {}
        for place in range(len(self.partitions)):
            if place == truncate.kafka.partition:
                continue
            events = self._produced(place)
            behind = self._behind(truncate.position, iter(events))
            end = events[-1].kafka.offset + 1 if events else 0
            known = self.state.progress.next_offset("t", place) if self.state.progress else None
            found["t", place] = Reach(next_offset=known, first_behind=behind.get(("t", place)), end=end, whole=True)
        return found

    def _carry_out(self, seen: Seen, step: Effect) -> tuple[TableState, Seen]:
        match step:
            case Record(versions=versions):
                for version in versions:
                    self._record(version)
                return self._alive(fold.recorded(self.state, step)), replace(seen, recorded=True, stop=step.stop)
            case Migrate():
                self._migrate(step)
                return self._alive(fold.migrated(self.state, step, None)), fold.changed(seen)
            case WriteRange(ranges=ranges, history=history):
                fewer = ranges
                if self.ends_early():
                    fewer = tuple(replace(item, end=item.end - (item.size > 1 or len(ranges) > 1)) for item in ranges)
                progress = self._write(seen, fewer, history)
                if progress is None:
                    return self._alive(self.state), seen.behind(ranges)
                state = self._alive(fold.written(self.state, fewer, progress))
                return state, fold.behind_write(state, seen, ranges)
            case TruncateTarget(truncated=truncated, version=version):
                target = self._held()
                before = self.state.progress
                progress = progress_behind(before, truncated, version, {})
                offsets = {} if before is None else before.offsets
                self.again += any(
                    at < offsets.get(name, {}).get(number, 0)
                    for name, found in truncated.offsets.items()
                    for number, at in found.items()
                )
                self.target = Target(stamped=target.stamped, progress=progress)
                return self._alive(fold.emptied(self.state, progress)), replace(seen, over=True)
            case _:
                raise AssertionError(step)

    def _alive(self, state: TableState) -> TableState:
        """Return the state, unless the process ends here: the effect is done, and nobody knows."""
        if self.dies():
            raise Died
        return state

    def _record(self, version: Version) -> None:
        if self.dies():
            raise Died
        if self.recorded is None:
            self.recorded = History(table=version.table, versions=(version,))
        else:
            self.recorded = self.recorded.extended(version)

    def _held(self) -> Target:
        """Return the target, which is as the job knows it: nobody else writes."""
        assert self.target is not None
        assert (self.target.stamped, self.target.progress) == (self.state.target.stamped, self.state.progress)
        return self.target

    def _migrate(self, step: Migrate) -> None:
        target, head = self.target, step.history.head
        rows = {} if target is None else {key: dict(row) for key, row in target.rows.items()}
        for item in step.steps.steps:
            match item:
                case AlterTable() | RewriteTable():
                    kept = {column.id for column in head.schema.columns}
                    rows = {key: {id_: row[id_] for id_ in row.keys() & kept} for key, row in rows.items()}
                case Backfill(columns=columns):
                    for row in rows.values():
                        row.update({column.id: column.initial for column in columns})
                case CreateTable():
                    assert target is None
                case _:
                    raise AssertionError(item)
        held = None if target is None or target.progress is None else step.progress
        self.target = Target(stamped=head.number, progress=held, rows=rows)

    def _write(self, seen: Seen, ranges: tuple[OffsetRange, ...], history: History) -> Progress | None:
        target, head = self._held(), history.head
        assert target.stamped == head.number, "rows are written to the columns of their version"
        first: dict[str, SourcePosition] = {}
        for stretch in seen.stretches:
            first.setdefault(stretch.digest, stretch.position)
        truncated = self.state.progress.truncated if self.state.progress else None
        bound = truncated.bound if truncated else None
        if not seen.stretches:
            return None
        rows = dict(target.rows)
        for event in sorted(self._within(ranges), key=lambda event: (event.source.position, event.kafka)):
            if event.source.op != "t" and not (bound is not None and event.source.position < bound):
                _apply(rows, history, event, first)
        offsets = dict(self.state.progress.offsets.get("t", {})) if self.state.progress else {}
        for item in ranges:
            assert offsets.get(item.partition, 0) <= item.start, "written twice"
            offsets[item.partition] = item.end
        for (_, place), at in self.state.cursor.passed.items():
            offsets[place] = max(at, offsets.get(place, 0))
        progress = Progress(version=head.number, offsets={"t": offsets}, truncated=truncated)
        self.target = Target(stamped=head.number, progress=progress, rows=rows)
        return progress


def _changes(step: Effect) -> bool:
    """Whether a step is not carried out in vain: there may be no version to record, and no row of the table."""
    match step:
        case Record(versions=versions):
            return bool(versions)
        case WriteRange():
            return False
        case _:
            return True


def _apply(rows: Rows, history: History, event: Event, first: Mapping[str, SourcePosition]) -> None:
    schema, fingerprint, head = event.known.schema, event.known.fingerprint, history.head
    assert schema is not None
    assert fingerprint is not None
    since = first.get(event.known.digest, head.position)
    reading = _reading(readings(history, schema, fingerprint, since), event)
    after = event.payload["after"] or {}
    image = {**(event.payload["before"] or {}), **after}
    row = {entry.id: _value(entry, image) for entry in reading.projection.columns}
    key = tuple(row[id_] for id_ in head.schema.primary_key)
    held = rows.pop(key, {}) if event.source.op == "u" else {}
    rows.pop(key, None)
    if after:
        untold = {entry.id for entry in reading.projection.columns if isinstance(entry, Untold)}
        rows[key] = row | {id_: value for id_, value in held.items() if id_ in untold}


def _value(entry: Entry, image: Mapping[str, object]) -> object:
    match entry:
        case FromColumn(name=name):
            return image.get(name)
        case Constant(value=value):
            return value
        case Untold():
            return None
        case _:
            assert_never(entry)


def _reading(options: tuple[Reading, ...], event: Event) -> Reading:
    position = event.source.position
    (one,) = (
        option
        for option in options
        if (option.from_position is None or option.from_position <= position)
        and (option.to_position is None or position < option.to_position)
    )
    return one
