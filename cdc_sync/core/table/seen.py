"""What was seen of one table, as a value: events that came, what was done about them, and facts that were asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.altered import HeldColumns
from cdc_sync.core.migration.operator_requests import Hold, RegimeAsked, Rollback, SnapshotReset
from cdc_sync.core.migration.routes import Decision, Join
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.offsets import OffsetRange, narrowed
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition
from cdc_sync.core.planning.observation import Refusal, Stretch, Waiting
from cdc_sync.core.table.questions import A, Cuts, Question
from cdc_sync.core.table.transitions import Ask


class Unknown(Exception):
    """A decision needs a fact that was not asked yet."""

    def __init__(self, question: Question[Any]) -> None:
        super().__init__(question)
        self.question = question

    @property
    def asked(self) -> Ask:
        """The transition that finds it out."""
        return Ask(question=self.question)


@dataclass(frozen=True, slots=True)
class Facts:
    """Answers, by question."""

    known: Mapping[Question[Any], Any] = field(default_factory=dict)

    def need(self, question: Question[A]) -> A:
        """Return the answer.

        Raises:
            Unknown: if it is not known yet.
        """
        if question not in self.known:
            raise Unknown(question)
        answer: A = self.known[question]
        return answer

    def knowing(self, question: Question[A], answer: A) -> Facts:
        """Return the facts with one more."""
        return Facts({**self.known, question: answer})

    def without(self, *kinds: type[Question[Any]]) -> Facts:
        """Return the facts without answers that an effect may have made untrue."""
        return Facts({question: answer for question, answer in self.known.items() if not isinstance(question, kinds)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Ranges to be read, and what was found in them.

    Attributes:
        ranges: what of them is not written yet.
        all_ranges: all of them.
        stretches: of the table, in these ranges and perhaps around them.
        to_the_end: no event of the table is left, so that it may be told that it was dropped or renamed.
        replaying: only versions are wanted; no target is touched.
        join: what the operator said of two columns.
        recorded: the versions that the stretches lead to are recorded, and `stop` says what stops the table behind.
        ended: the table's end, which was recorded just now.
        over: what follows is the next run's, which looks anew.
        races: how often another writer recorded a version first.
    """

    ranges: tuple[OffsetRange, ...] = ()
    all_ranges: tuple[OffsetRange, ...] = ()
    stretches: tuple[Stretch, ...] = ()
    to_the_end: bool = False
    replaying: bool = False
    join: Join | None = None
    recorded: bool = False
    stop: Refusal | Waiting | Version | None = None
    ended: Version | None = None
    over: bool = False
    races: int = 0
    facts: Facts = field(default_factory=Facts)

    @staticmethod
    def of(ranges: tuple[OffsetRange, ...], stretches: Iterable[Stretch]) -> Seen:
        """Return ranges as they are seen first."""
        return Seen(ranges=ranges, all_ranges=ranges, stretches=tuple(stretches))

    def before(
        self, ranges: tuple[OffsetRange, ...], position: SourcePosition, kafka: KafkaPosition
    ) -> tuple[OffsetRange, ...]:
        """Cut some of the ranges where a change begins or a TRUNCATE stands, in every partition."""
        place = kafka.topic, kafka.partition
        # Its own place says nothing of other partitions, nor does an evidence topic, which tells of a drop.
        elsewhere = position.parts and any((item.topic, item.partition) != place for item in ranges)
        cuts = self.facts.need(Cuts(position)) if elsewhere else {}
        return narrowed(ranges, ends={**cuts, place: kafka.offset})

    def behind(self, ranges: tuple[OffsetRange, ...]) -> Seen:
        """Return what is left behind ranges that were written."""
        ends = {(item.topic, item.partition): item.end for item in ranges}
        return replace(self, ranges=narrowed(self.ranges, starts=ends))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What is written down of the table and what its target says, as they are now.

    Attributes:
        found: the target, None if there is none.
        hold, skips, rollback, regime, snapshot, decisions, joins: what the operator asked for and said.
        columns: those that the target had when it was left last.
        logs: the configuration says that changed rows lie in logs.
        unread_by: engines among the readers that are not to read such a target if it is partitioned, and what they do.
        now: seconds by a clock that never goes back.
        left_dropped: files that may be left of a target that was dropped are gone.
    """

    history: History | None
    found: TargetState | None
    hold: Hold | None = None
    skips: frozenset[KafkaPosition] = frozenset()
    rollback: Rollback | None = None
    regime: RegimeAsked | None = None
    snapshot: SnapshotReset | None = None
    decisions: tuple[Decision, ...] = ()
    joins: tuple[Join, ...] = ()
    columns: HeldColumns | None = None
    logs: bool = False
    unread_by: tuple[tuple[str, str], ...] = ()
    now: float = 0.0
    left_dropped: bool = False
