"""Progress: what a target's own commit says it contains. Nothing else decides where a table goes on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from cdc_sync.core.model.offsets import OffsetRange, Runs, offsets_in, runs_of
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition
from cdc_sync.errors import TargetError

T = TypeVar("T")

Lsns = Mapping[int, int]
"""Partition -> source LSN; a partition that is missing is one for which it is not known."""

PROPERTY = "cdc_sync.progress"
"""The snapshot property (or its equal in another format) that holds `Progress` as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """The TRUNCATE behind which the rows of a table begin.

    Attributes:
        position: its place in the source's log.
        offsets: topic -> partition -> the first offset behind it, for every partition the table's events come in.
        made_anew: it was no TRUNCATE: another table has the name from there on, and events of the old one have none of
            its columns.
    """

    position: SourcePosition
    offsets: Mapping[str, Mapping[int, int]]
    made_anew: bool = False

    @property
    def bound(self) -> SourcePosition | None:
        """The position before which events belong to rows that are gone, in whatever order they are read.

        None where one partition holds everything: its offsets alone are the order then.
        """
        return self.position if self.made_anew or sum(map(len, self.offsets.values())) > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The marker of one commit.

    Attributes:
        version: the schema version the rows are complete for.
        offsets: topic -> partition -> the next offset to read; everything below is in the table.
        topic_ids: topic -> the broker's id of it, which changes when a topic is deleted and made again.
        high_water: topic -> partition -> no event in the table that came from there has a higher source LSN. A
            partition that is in `offsets` and not here is one for which that is not known.
        whole: the topics of which `offsets` names every partition there was when the table began; one that is not named
            is newer. Markers of earlier versions do not say it.
        truncated: the last TRUNCATE that was carried out, None if none was.
        redriven: topic -> partition -> dead letters that a redrive applied, and that may not be known for settled yet;
            only where doing it again would do it twice.
        shares: where several source tables share the target, how far each has read, by its name; the marker itself says
            nothing of events then, and its version is the union's.
    """

    version: int
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    high_water: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    truncated: Truncated | None = None
    redriven: Mapping[str, Mapping[int, Runs]] = field(default_factory=dict)
    shares: Mapping[str, Progress] = field(default_factory=dict)

    def next_offset(self, topic: str, partition: int) -> int | None:
        """Return the first offset the table does not hold, None if nothing is known of the partition.

        One that the topic was given since the table began is to be read from its first record on.
        """
        return self.offsets.get(topic, {}).get(partition, 0 if topic in self.whole else None)

    def has(self, place: KafkaPosition) -> bool:
        """Return whether the table holds what came of a record, or passed it."""
        return place.offset < (self.next_offset(place.topic, place.partition) or 0)

    def with_redriven(self, places: Iterable[KafkaPosition]) -> Progress:
        """Return the marker of a table to which dead letters were applied too."""
        offsets = {
            topic: {partition: offsets_in(runs) for partition, runs in partitions.items()}
            for topic, partitions in self.redriven.items()
        }
        for place in places:
            offsets.setdefault(place.topic, {}).setdefault(place.partition, set()).add(place.offset)
        redriven = {topic: {item: runs_of(found) for item, found in mine.items()} for topic, mine in offsets.items()}
        return replace(self, redriven=redriven)

    def has_redriven(self, place: KafkaPosition) -> bool:
        """Return whether a dead letter was applied, by a redrive that may not have been written down."""
        runs = self.redriven.get(place.topic, {}).get(place.partition, ())
        return any(start <= place.offset < end for start, end in runs)

    def looked_through(self, places: Mapping[tuple[str, int], int]) -> Progress:
        """Return the marker of a table that has also read up to some places, without finding anything of its own.

        Args:
            places: topic and partition -> the next offset to read.
        """
        offsets = {topic: dict(partitions) for topic, partitions in self.offsets.items()}
        high_water = {topic: dict(partitions) for topic, partitions in self.high_water.items()}
        for (topic, partition), offset in places.items():
            known, highest = offsets.setdefault(topic, {}), self.highest_lsn(topic, partition)
            if partition not in known and highest is not None:
                high_water.setdefault(topic, {})[partition] = highest
            known[partition] = max(offset, known.get(partition, 0))
        return replace(self, offsets=offsets, high_water=high_water)

    def highest_lsn(self, topic: str, partition: int) -> int | None:
        """Return an LSN that no event in the table exceeds whose key may come in this partition, None if unknown.

        A key stays in its partition. Only a partition that is new to the table may hold keys that were elsewhere,
        because the topic has been given more partitions.
        """
        if partition in self.offsets.get(topic, {}):
            return self.high_water.get(topic, {}).get(partition)
        everywhere = [self.high_water.get(name, {}).get(item) for name in self.offsets for item in self.offsets[name]]
        known = [lsn for lsn in everywhere if lsn is not None]
        return max(known, default=0) if len(known) == len(everywhere) else None

    def to_text(self) -> str:
        """Return the marker as one line of JSON, the same for equal markers."""
        return json.dumps(self._to_json(), separators=(",", ":"))

    def _to_json(self) -> dict[str, object]:
        data: dict[str, object] = {
            # A program that knows nothing of TRUNCATE must not go on behind one, nor one that takes all for its own.
            "format": 3 if self.shares else 1 if self.truncated is None else 2,
            "version": self.version,
            "offsets": _with_text_keys(self.offsets),
            "topic_ids": dict(sorted(self.topic_ids.items())),
            "high_water": _with_text_keys(self.high_water),
        }
        if self.whole:
            data["whole"] = sorted(self.whole)
        if self.truncated is not None:
            offsets = _with_text_keys(self.truncated.offsets)
            data["truncated"] = {
                "position": str(self.truncated.position),
                "offsets": offsets,
                **({"made_anew": True} if self.truncated.made_anew else {}),
            }
        if self.redriven:
            data["redriven"] = _with_text_keys(self.redriven)
        if self.shares:
            data["shares"] = {name: share._to_json() for name, share in sorted(self.shares.items())}
        return data


def parse_progress(text: str) -> Progress:
    """Read what `Progress.to_text` wrote.

    Raises:
        TargetError: if the text is damaged or of a later format.
    """
    try:
        return _from_json(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TargetError(f"Cannot read progress marker {text!r}: {error}") from error


def _from_json(data: Mapping[str, Any]) -> Progress:
    if data["format"] not in (1, 2, 3):
        raise TargetError(f"Cannot read progress marker: format {data['format']} is later than this program")
    return Progress(
        version=data["version"],
        offsets=with_number_keys(data["offsets"]),
        topic_ids=data["topic_ids"],
        high_water=with_number_keys(data["high_water"]),
        whole=frozenset(data.get("whole", ())),
        truncated=_read_truncated(data["truncated"]) if data["format"] == 2 else None,
        redriven={
            topic: {int(partition): tuple((start, end) for start, end in runs) for partition, runs in found.items()}
            for topic, found in data.get("redriven", {}).items()
        },
        shares={name: _from_json(share) for name, share in data["shares"].items()} if data["format"] == 3 else {},
    )


def _read_truncated(data: Mapping[str, Any]) -> Truncated:
    return Truncated(
        position=SourcePosition.parse(data["position"]),
        offsets=with_number_keys(data["offsets"]),
        made_anew=data.get("made_anew", False),
    )


def _with_text_keys(places: Mapping[str, Mapping[int, T]]) -> dict[str, dict[str, T]]:
    return {
        topic: {str(partition): number for partition, number in sorted(partitions.items())}
        for topic, partitions in sorted(places.items())
    }


def with_number_keys(places: Mapping[str, Mapping[str, int]]) -> dict[str, dict[int, int]]:
    """Return offsets by topic and partition as JSON holds them, whose keys are texts."""
    return {
        topic: {int(partition): number for partition, number in partitions.items()}
        for topic, partitions in places.items()
    }


def seen_before(progress: Progress | None, ranges: Sequence[OffsetRange]) -> Lsns | None:
    """Return the LSN up to which events of each range may be in the table already, None if one is not known."""
    found = {item.partition: progress.highest_lsn(item.topic, item.partition) if progress else 0 for item in ranges}
    known = {partition: lsn for partition, lsn in found.items() if lsn is not None}
    return known if len(known) == len(found) else None
