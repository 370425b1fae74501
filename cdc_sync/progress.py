"""Progress: what a target's own commit says it contains. Nothing else decides where a table goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from cdc_sync.errors import TargetError

PROPERTY = "cdc_sync.progress"
"""The snapshot property (or its equal in another format) that holds `Progress` as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The marker of one commit.

    Attributes:
        version: the schema version the rows are complete for.
        offsets: topic -> partition -> the next offset to read; everything below is in the table.
        topic_ids: topic -> the broker's id of it, which changes when a topic is deleted and made again.
        high_water: no event in the table has a higher source LSN; None if that is not known.
    """

    version: int
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    high_water: int | None = None

    def next_offset(self, topic: str, partition: int) -> int | None:
        """Return the first offset the table does not hold, None if it holds nothing of the partition."""
        return self.offsets.get(topic, {}).get(partition)

    def to_text(self) -> str:
        """Return the marker as one line of JSON, the same for equal markers."""
        return json.dumps(
            {
                "format": 1,
                "version": self.version,
                "offsets": {
                    topic: {str(partition): offset for partition, offset in sorted(partitions.items())}
                    for topic, partitions in sorted(self.offsets.items())
                },
                "topic_ids": dict(sorted(self.topic_ids.items())),
                "high_water": self.high_water,
            },
            separators=(",", ":"),
        )


def parse_progress(text: str) -> Progress:
    """Read what `Progress.to_text` wrote.

    Raises:
        TargetError: if the text is damaged or of a later format.
    """
    try:
        data = json.loads(text)
        if data["format"] != 1:
            raise TargetError(f"Cannot read progress marker: format {data['format']} is later than this program")
        return Progress(
            version=data["version"],
            offsets={
                topic: {int(partition): offset for partition, offset in partitions.items()}
                for topic, partitions in data["offsets"].items()
            },
            topic_ids=data["topic_ids"],
            high_water=data["high_water"],
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TargetError(f"Cannot read progress marker {text!r}: {error}") from error
