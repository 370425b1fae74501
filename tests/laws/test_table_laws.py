"""What holds of every decision about a table, whatever was seen and wherever the process ends."""

from __future__ import annotations

import typing
from collections import Counter
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, get_args

from hypothesis import example, given
from hypothesis import strategies as st

from cdc_sync.core.history.history import History
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.positions import KafkaPosition
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.observation import Refusal, Stretch, TablePlan, Waiting
from cdc_sync.core.planning.stops import Pause, Refused
from cdc_sync.core.planning.truncation import Reach
from cdc_sync.core.table import questions
from cdc_sync.core.table.advance import decide
from cdc_sync.core.table.questions import (
    Cuts,
    Fingerprints,
    HasAllEvents,
    KeyClash,
    PlanOf,
    Question,
    Reaches,
    Rest,
    RestBefore,
    RoomFor,
    TargetNow,
)
from cdc_sync.core.table.seen import Seen
from cdc_sync.core.table.state import Failure, TableState, TargetView, Wait
from cdc_sync.core.table.transitions import Ask, EndTable, Fail, Migrate, Record, Settled, Step, WriteRange
from tests.laws.sources import Life, lives
from tests.laws.test_plan_laws import by_text, flush, law, outcome, steps, target_rows
from tests.laws.world import World, never
from tests.plan.model import ROUTE


def _dies(random: Random) -> bool:
    return random.random() < 0.25


# Only partitions 0 and 1 have something new, and the column that is kept vanishes in partition 2.
@example(Life([1, 67, 137, 171, 0]), 3, [10, 64], 1)
@law
@given(lives, st.integers(1, 3), steps, st.integers(0, 2**32))
def test_a_process_may_end_before_and_behind_every_effect(
    life: Life, partitions: int, numbers: list[int], seed: int
) -> None:
    """Crash: who begins with what is written down comes to the same end."""
    flush(life)
    random = Random(seed)
    lasting, dying = (World.of(life, partitions, dies) for dies in (never, partial(_dies, random)))
    lasting.run(numbers)
    dying.run(numbers)
    assert outcome(dying) == outcome(lasting)
    assert by_text(target_rows(dying)) == by_text(target_rows(lasting))


@law
@given(lives, st.integers(1, 3), steps, st.integers(0, 2**32))
def test_a_write_may_end_before_its_range_does(life: Life, partitions: int, numbers: list[int], seed: int) -> None:
    """What is left of a range comes with the next run."""
    flush(life)
    random = Random(seed)
    whole, parts = World.of(life, partitions), World.of(life, partitions, ends_early=partial(_dies, random))
    whole.run(numbers)
    parts.run(numbers)
    assert outcome(parts) == outcome(whole)
    assert by_text(target_rows(parts)) == by_text(target_rows(whole))


def test_the_processes_that_end_do_so_at_every_effect_that_is_generated() -> None:
    """Unless each effect is met by a death, the law above says little."""
    found: Counter[str] = Counter()
    for seed in range(60):
        life = Life([(seed * 7919 + place * 104_729) ** 2 % 2**20 for place in range(4 + seed % 20)])
        flush(life)
        random = Random(seed)
        done = World.of(life, 1 + seed % 3, partial(_dies, random))
        done.run([(seed + 1) * 7919 * (step + 1) % 2**16 for step in range(8)])
        found.update(done.steps)
        found["deaths"] += done.deaths
    expected = ("deaths", "Record", "Migrate", "WriteRange", "TruncateTarget", "PlanOf", "Cuts", "Reaches")
    assert min(found[name] for name in expected) > 5, found


class _Draw:
    """Anything that could be known of a table, from the histories that lives lead to."""

    def __init__(self, random: Random, life: Life) -> None:
        self.random = random
        self.world = World.of(life, 1 + random.randrange(3)).run([])
        recorded = self.world.recorded
        self.versions = () if recorded is None else recorded.versions
        self.table = ROUTE.table

    def flag(self, chance: float = 0.5) -> bool:
        return self.random.random() < chance

    def history(self) -> History | None:
        upto = self.random.randint(0, len(self.versions))
        return History(table=self.versions[0].table, versions=self.versions[:upto]) if upto else None

    def kafka(self) -> KafkaPosition:
        return KafkaPosition(topic="t", partition=self.random.randrange(3), offset=self.random.randrange(40))

    def state(self) -> TableState:
        history = self.history()
        known = 0 if history is None else len(history.versions)
        stamped = None if not known or self.flag(0.3) else self.random.randint(1, known + self.flag(0.1))
        progress = None
        if stamped is not None and self.flag(0.8):
            # Rows are complete for a version that the target had, or for one before.
            offsets = {place: self.random.randrange(30) for place in range(self.random.randint(1, 3))}
            complete = self.random.randint(max(1, stamped - 1), stamped)
            progress = Progress(version=min(complete, max(known, 1)), offsets={"t": offsets})
        policy = replace(ROUTE.policy, truncate=self.random.choice(["apply", "ignore", "pause"]))
        return TableState(
            route=replace(ROUTE, policy=policy, append=self.flag(0.2)),
            stop=Pause(code=Code.UNPROVEN, reason="r", remedy="m") if self.flag(0.1) else None,
            failure=Failure(text="f") if self.flag(0.2) else None,
            wait=Wait(text="w") if self.flag(0.2) else None,
            is_read=True,
            is_detached=self.flag(0.05),
            history=history,
            progress=progress,
            target=TargetView(stamped=stamped, rows=None if self.flag() else 7),
        )

    def seen(self) -> Seen:
        ranges = tuple(
            OffsetRange(topic="t", partition=place, start=start, end=start + self.random.randint(1, 9))
            for place in range(self.random.randint(0, 3))
            for start in [self.random.randrange(30)]
        )
        events = [event for event in self.world.order if self.flag(0.2)]
        found = [
            Stretch(
                table=event.source.table,
                position=event.source.position,
                kafka=event.kafka,
                digest=event.known.digest,
                truncate=event.source.op == "t" or self.flag(0.1),
            )
            for event in events
        ]
        seen = Seen.of(ranges, found)
        return replace(seen, to_the_end=self.flag(0.2), replaying=self.flag(0.1), over=self.flag(0.05))

    def answer(self, state: TableState, question: Question[Any]) -> object:
        match question:
            case PlanOf():
                return self.plan(state)
            case RoomFor(versions=wanted):
                granted = wanted if self.flag(0.8) else self.random.randrange(wanted)
                return granted, None if granted == wanted else Refused(code=Code.UNPROVEN, reason="many", remedy="m")
            case TargetNow():
                return None
            case HasAllEvents():
                return self.flag()
            case KeyClash():
                return "two rows" if self.flag(0.2) else None
            case Cuts():
                return {("t", place): self.random.randrange(40) for place in range(3) if self.flag()}
            case Reaches():
                whole, behind = self.flag(0.8), self.random.choice([None, 3, 20])
                return (
                    {("t", 9): Reach(next_offset=10, first_behind=behind, end=30, whole=whole)} if self.flag() else {}
                )
            case Fingerprints(digests=digests):
                return dict.fromkeys(digests, "f")
            case RestBefore():
                return Rest(stop=Pause(code=Code.UNPROVEN, reason="gone", remedy="m")) if self.flag(0.3) else Rest()
            case _:
                raise AssertionError(question)

    def plan(self, state: TableState) -> TablePlan:
        known = 0 if state.history is None else len(state.history.versions)
        following = self.versions[known : known + self.random.randint(0, 3)]
        last = (following or self.versions or (None,))[-1]
        if last is None or self.flag():
            return TablePlan(versions=following)
        at, kafka = last.position, self.kafka()
        if self.flag():
            return TablePlan(versions=following, waiting=Waiting(reason="w", position=at, kafka=kafka))
        return TablePlan(
            versions=following,
            refusal=Refusal(why=Refused(code=Code.UNPROVEN, reason="r", remedy="m"), position=at, kafka=kafka),
        )


@law
@given(lives, st.integers(0, 2**32))
def test_every_state_and_everything_seen_has_one_transition(life: Life, seed: int) -> None:
    """Total: nothing that may be known of a table makes the decision fail, and asking comes to an end."""
    draw = _Draw(Random(seed), life)
    state, seen = draw.state(), draw.seen()
    for _ in range(50):
        step = decide(state, seen)
        if not isinstance(step, Ask):
            break
        assert step.question not in seen.facts.known, "a question that is answered is not asked again"
        seen = replace(seen, facts=seen.facts.knowing(step.question, draw.answer(state, step.question)))
    assert isinstance(step, get_args(Step)), step
    assert not isinstance(step, Ask)
    assert str(step) == str(decide(state, seen)), "the same is decided of the same"
    _check(state, seen, step)


def _check(state: TableState, seen: Seen, step: object) -> None:
    """What must never be decided."""
    if state.stop is not None or state.is_detached or seen.over:
        assert step == Settled(state=state), "a table that is stopped stays as it is"
    match step:
        case Record() | Settled() | Fail():
            pass
        case Migrate(history=history, steps=steps):
            assert not seen.replaying
            assert seen.recorded, "a version is recorded before the target has its columns"
            assert steps.version == history.head.number
            assert state.target.stamped is None or history.head.number >= state.target.stamped
        case WriteRange(history=history, ranges=ranges):
            assert seen.recorded
            assert state.target.stamped == history.head.number, "rows are written to the columns of their version"
            assert ranges
        case EndTable(end=end):
            assert end.ends_target


def test_every_kind_of_question_is_one_that_is_answered() -> None:
    """A new question breaks this until `runtime.observer` knows it."""
    from pathlib import Path

    source = (Path(__file__).parents[2] / "cdc_sync" / "runtime" / "observer.py").read_text()
    asked = [
        name
        for name, kind in vars(questions).items()
        if isinstance(kind, type) and issubclass(kind, Question) and kind is not Question
    ]
    assert len(asked) > 10
    assert [name for name in asked if f"case {name}(" not in source] == []
    assert typing.get_type_hints(Seen)
