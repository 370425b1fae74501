"""Emptying a target where the source's table was truncated, made anew, or read again as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.positions import KafkaPosition
from cdc_sync.core.model.progress import Truncated
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.core.planning.plan import is_later
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.planning.truncation import PAUSED, Truncate, in_effect, place
from cdc_sync.core.table.migrating import upto
from cdc_sync.core.table.questions import CanReadFrom, IsWhole, Reaches
from cdc_sync.core.table.seen import Seen, Unknown
from cdc_sync.core.table.state import TableState
from cdc_sync.core.table.transitions import Ask, Settled, TruncateTarget


def first_truncate(state: TableState, ranges: Iterable[OffsetRange], stretches: Iterable[Stretch]) -> Truncate | None:
    """Return the first TRUNCATE within ranges that the target has to follow, or to stop at.

    A table that was made anew is one before its first row, wherever that is.
    """
    history = state.history
    if history is None or state.route.append:
        return None
    bounds = {(item.topic, item.partition): item for item in ranges}
    found = list(_made_anew(state, history))
    for stretch in stretches if state.route.policy.truncate != "ignore" else ():
        within = bounds.get((stretch.kafka.topic, stretch.kafka.partition))
        if stretch.truncate and within is not None and within.start <= stretch.kafka.offset < within.end:
            truncate = Truncate(position=stretch.position, kafka=stretch.kafka)
            nothing = history.versions[_begun_at(truncate, history) - 1].ends_target
            if not in_effect(truncate, _truncated(state)) and not nothing:
                found.append(truncate)
    # What a connector repeats goes back in position, never in its partition.
    first: dict[tuple[str, int], Truncate] = {}
    for truncate in sorted(found, key=lambda item: item.kafka):
        first.setdefault((truncate.kafka.topic, truncate.kafka.partition), truncate)
    return min(first.values(), key=lambda item: (item.position, item.kafka), default=None)


def _truncated(state: TableState) -> Truncated | None:
    return state.progress.truncated if state.progress else None


def _made_anew(state: TableState, history: History) -> Iterator[Truncate]:
    """Yield where the source's table became another one, as far as the target did not follow yet."""
    truncated = _truncated(state)
    done = truncated.position if truncated is not None and truncated.made_anew else None
    for version in history.versions[state.first_unseen :]:
        created = version.made_anew
        if created is not None and (done is None or done < created):
            yield Truncate(position=created, kafka=version.kafka, made_anew=True)


def in_effect_at(state: TableState, truncate: Truncate, history: History) -> History:
    """Return the history up to a TRUNCATE; never less than the target has, nor than a table needs."""
    return upto(history, max(_begun_at(truncate, history), min(state.first_unseen, len(history.versions))))


def _begun_at(truncate: Truncate, history: History) -> int:
    """Return the number of the version in effect at a TRUNCATE, 1 if it lies before all."""
    return max(1, sum(is_later(truncate.position, truncate.kafka, version) for version in history.versions))


def emptying(state: TableState, seen: Seen, truncate: Truncate, version: int) -> TruncateTarget | Settled:
    """Empty the target, everything that lies before a TRUNCATE in its own partition being written, or stop there."""
    pauses = state.route.policy.truncate == "pause" and not truncate.made_anew
    found = PAUSED if pauses else place(truncate, seen.facts.need(Reaches(truncate)))
    if isinstance(found, Refused):
        return Settled(state=state.stopped(found.pause(truncate.kafka)))
    return TruncateTarget(truncated=found, version=version, why=truncate.what, at=truncate.kafka)


def late(state: TableState, stretches: Sequence[Stretch]) -> str | None:
    """Say that events were passed over which lie before the last TRUNCATE, but behind it in their partition."""
    truncated = _truncated(state)
    bound = None if truncated is None else truncated.bound
    if truncated is None or bound is None:
        return None
    for stretch in stretches:
        begins = truncated.offsets.get(stretch.kafka.topic, {}).get(stretch.kafka.partition)
        is_late = stretch.position.kind == bound.kind and stretch.position < bound
        if is_late and begins is not None and stretch.kafka.offset >= begins:
            what = "the table was dropped" if truncated.made_anew else "the TRUNCATE"
            return (
                f"events from {stretch.kafka} on are passed over, for the source wrote them before {what} at {bound}; "
                "if the source was restored to an earlier state, snapshot the table into a new target"
            )
    return None


def follow_snapshot(state: TableState, seen: Seen) -> TruncateTarget | Settled | Ask:
    """Let the rows go that were there before the newest snapshot of the whole table, once that is whole.

    It shows all rows that there are, so the target is emptied and read on from its first row: one commit holds both, as
    with a TRUNCATE, and rows that came behind it come again.
    """
    try:
        return _follow_snapshot(state, seen)
    except Unknown as unknown:
        return unknown.asked


def _follow_snapshot(state: TableState, seen: Seen) -> TruncateTarget | Settled:
    version = None if seen.over else unapplied_snapshot(state)
    if version is None or state.progress is None or state.history is None:
        return Settled(state=state)
    at, hints = version.kafka, state.hints
    if len(state.topics) > 1 or not seen.facts.need(CanReadFrom(at)):
        known = replace(state, hints=replace(hints, given_up=version.number))
        return Settled(
            state=known.warned(
                f"the snapshot from {at} on is not applied (policy.second_snapshot): its rows are gone from the topic, "
                "or the table's events come in several partitions. Rows that were deleted before it may be here; "
                "compare with `cdc-sync verify`"
            )
        )
    start, end = (
        max(at.offset, hints.looked_for_end.get(version.number, 0)),
        state.progress.next_offset(at.topic, at.partition) or 0,
    )
    within = OffsetRange(topic=at.topic, partition=at.partition, start=start, end=end)
    if not within.size:
        return Settled(state=state)
    if not seen.facts.need(IsWhole(version.position, within)):
        return Settled(state=replace(state, hints=replace(hints, looked_for_end={version.number: end})))
    truncated = Truncated(position=version.position, offsets={at.topic: {at.partition: at.offset}})
    number = state.history.head.number
    return TruncateTarget(truncated=truncated, version=number, why="a whole snapshot follows", at=at)


def unapplied_snapshot(state: TableState) -> Version | None:
    """Return the version that the newest snapshot of the whole table began, if it is to be applied and was not."""
    history, asked = state.history, state.requests.snapshot
    if history is None or state.route.append or state.stop is not None or state.target.stamped != history.head.number:
        return None
    version = next((item for item in reversed(history.versions) if item.read_again), None)
    if version is None or version.number == state.hints.given_up:
        return None
    if state.route.policy.second_snapshot != "apply" and not (asked is not None and asked.is_about(version.kafka)):
        return None
    truncated = _truncated(state)
    return None if truncated is not None and truncated.position >= version.position else version


def has_come(state: TableState) -> bool:
    """Whether the snapshot that the operator wanted took the place of what the target held before."""
    asked, truncated = state.requests.snapshot, _truncated(state)
    return (
        asked is not None
        and truncated is not None
        and any(
            asked.is_about(KafkaPosition(topic=topic, partition=partition, offset=offset))
            for topic, partitions in truncated.offsets.items()
            for partition, offset in partitions.items()
        )
    )
