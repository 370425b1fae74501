"""Records that were set aside: ``quarantine/<topic>/<partition>/<offset>.jsonl``, named after the first of a batch."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from cdc_sync.errors import HistoryError
from cdc_sync.storage.documents import Documents, as_value, json_object


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedRecord:
    """A record that was not applied, kept whole so that it can be applied later.

    Attributes:
        timestamp: the record's own, in milliseconds since the epoch.
        reason: a short, stable text: `status` counts by it.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    reason: str
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class QuarantineCount:
    """How many records of a topic are set aside for one reason."""

    topic: str
    reason: str
    records: int


class Quarantine:
    """Records of one pipeline that were set aside. Thread-safe for different partitions."""

    def __init__(self, files: Documents) -> None:
        self._files = files

    def add(self, records: Iterable[QuarantinedRecord]) -> None:
        """Set records aside; doing it again changes nothing.

        Records whose first offset already names a file are added to that file: a repeated batch may be shorter than
        the one that wrote it.
        """
        groups: dict[tuple[str, int], list[QuarantinedRecord]] = {}
        for record in records:
            groups.setdefault((record.topic, record.partition), []).append(record)
        for (topic, partition), group in groups.items():
            path = f"quarantine/{topic}/{partition}/{min(record.offset for record in group)}.jsonl"
            lines = {_line(record) for record in group} | set(_lines(self._files.text(path)))
            ordered = sorted(lines, key=lambda line: (json.loads(line)["offset"], line))
            self._files.write(path, "".join(f"{line}\n" for line in ordered))

    def records(self) -> Iterator[QuarantinedRecord]:
        """Return every record that was set aside; twice, if two batches wrote it."""
        for path in self._files.paths("quarantine"):
            for number, line in enumerate(_lines(self._files.text(path)), 1):
                yield _record(line, f"{path}:{number}")

    def counts(self) -> tuple[QuarantineCount, ...]:
        """Count distinct records by topic and reason."""
        places: dict[tuple[str, str], set[tuple[int, int]]] = {}
        for record in self.records():
            places.setdefault((record.topic, record.reason), set()).add((record.partition, record.offset))
        counts = (
            QuarantineCount(topic=topic, reason=reason, records=len(offsets))
            for (topic, reason), offsets in places.items()
        )
        return tuple(sorted(counts))


def _lines(text: str | None) -> list[str]:
    # Not splitlines: a text inside the JSON may hold one of the other characters that it takes for a line's end.
    return [line for line in (text or "").split("\n") if line]


def _line(record: QuarantinedRecord) -> str:
    encoded = {
        name: None if (held := getattr(record, name)) is None else base64.b64encode(held).decode() for name in _BYTES
    }
    return json.dumps({**asdict(record), **encoded}, sort_keys=True, ensure_ascii=False)


_BYTES = ("key", "value")


def _record(line: str, place: str) -> QuarantinedRecord:
    data = json_object(line, place)
    try:
        decoded = {name: None if data[name] is None else base64.b64decode(data[name]) for name in _BYTES}
    except (KeyError, TypeError, ValueError) as error:
        raise HistoryError(f"Cannot read quarantined record {place}: {error}") from None
    return as_value({**data, **decoded}, QuarantinedRecord, place, "delete the line")
