"""Where in each partition a TRUNCATE of the source table lies, and what the target's marker says behind it.

One partition: its offsets are the order. Several: only the source's positions tell what was there before the TRUNCATE
and what came after, so an event may have been applied too early, or be read too late. Too early: the partition is read
again from the TRUNCATE's place on, for the commit that empties the target sets its offset back. Too late: events before
the TRUNCATE's position are passed over from there on (`progress.Truncated.bound`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition
from cdc_sync.core.model.progress import Progress, Truncated
from cdc_sync.core.planning.stops import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """One event that empties the table.

    Attributes:
        made_anew: it is the first row of another table that has the name now, and not a TRUNCATE.
    """

    position: SourcePosition
    kafka: KafkaPosition
    made_anew: bool = False

    @property
    def what(self) -> str:
        """What happened to the source table."""
        return "dropped and created again" if self.made_anew else "truncated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What is known of a partition other than the TRUNCATE's own.

    Attributes:
        next_offset: where the table goes on reading; None if it holds nothing of the partition.
        first_behind: the first offset whose event lies at or behind the TRUNCATE's position; None if there is none.
        end: behind the last record there is.
        whole: no event behind the TRUNCATE can lie before `first_behind`, not even one that is gone from the topic.
    """

    next_offset: int | None
    first_behind: int | None
    end: int
    whole: bool


_AGAIN = "snapshot the table again into a new target, or set policy.truncate: ignore"

PAUSED = Refused(
    code=Code.POLICY,
    reason="the source table was truncated, and policy.truncate is pause",
    remedy="set policy.truncate: apply, which empties the target too, or ignore, which keeps its rows",
)


def in_effect(truncate: Truncate, before: Truncated | None) -> bool:
    """Whether a TRUNCATE that the connector sends again needs nothing more.

    In one partition the events around it come again too, so there it is carried out again.
    """
    bound = None if before is None else before.bound
    return bound is not None and truncate.position.kind == bound.kind and truncate.position <= bound


def place(truncate: Truncate, others: Mapping[tuple[str, int], Reach]) -> Truncated | Refused:
    """Find the first offset behind a TRUNCATE in each partition.

    Args:
        truncate: the event; in its own partition, the offset behind it is the one, or its own if it is a row.
        others: all other partitions in which the table's events come, by topic and number.
    """
    at = truncate.kafka
    if others and not truncate.position.parts:
        return Refused(
            code=Code.TRUNCATE,
            reason=f"the source table was {truncate.what}, its events come in several partitions, and they do not tell "
            "their place in the source's log, so it is not known which rows were there before",
            remedy=f"give the topic one partition; {_AGAIN}",
        )
    offsets = {at.topic: {at.partition: at.offset if truncate.made_anew else at.offset + 1}}
    for (topic, partition), reach in sorted(others.items()):
        first = reach.end if reach.first_behind is None else reach.first_behind
        if reach.next_offset is not None and first < reach.next_offset and not reach.whole:
            return Refused(
                code=Code.TRUNCATE,
                reason=f"the source table was {truncate.what}, and rows of {topic}[{partition}] that came after it "
                f"were written before it was read; events before offset {first} are gone from the topic, so it is "
                "not known whether these rows are all",
                remedy=_AGAIN,
            )
        offsets.setdefault(topic, {})[partition] = first
    return Truncated(position=truncate.position, offsets=offsets, made_anew=truncate.made_anew)


def progress_behind(
    before: Progress | None, truncated: Truncated, version: int, topic_ids: Mapping[str, str]
) -> Progress:
    """Return the marker of the commit that empties the target; offsets may be lower than before.

    Args:
        before: what the target holds now, None if nothing was ever written.
        truncated: from `place`.
        version: the head's number; no row is left that could be incomplete for it.
        topic_ids: of the topics in `truncated`; a known one stays, so that a topic made anew meanwhile is noticed.
    """
    before = before or Progress(version=version)
    offsets = {topic: dict(partitions) for topic, partitions in before.offsets.items()}
    high_water = {topic: dict(partitions) for topic, partitions in before.high_water.items()}
    for topic, partitions in truncated.offsets.items():
        for partition, offset in partitions.items():
            offsets.setdefault(topic, {})[partition] = offset
            seen = before.highest_lsn(topic, partition)
            if seen is not None:
                high_water.setdefault(topic, {})[partition] = seen
    return replace(
        before,
        version=version,
        offsets=offsets,
        high_water=high_water,
        topic_ids={**topic_ids, **before.topic_ids},
        truncated=truncated,
    )
