"""Values that the events of a table leave in doubt, whatever its version is, until they are read again.

A doubt is written down before the rows are, so that it is not lost where the job ends between the two; it goes with a
resync that was asked for behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from cdc_sync.errors import HistoryError
from cdc_sync.progress import with_number_keys

Kind: TypeAlias = Literal["unsent", "unread", "made_up"]

TEXTS: Final[Mapping[Kind, str]] = {
    "unsent": "an update shows NULL in it, which may be a large value that did not change: the connector has no "
    "placeholder for its type, so rows keep the value they had (policy.unsent_values)",
    "made_up": "a delete names a key that the connector may have made up in part, and no row has it: the row that it "
    "is about is still there",
    "unread": "arrays in it hold nothing but NULLs, as the connector shows those of several dimensions",
}
"""What `status` says of each kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A column in which values of some rows are in doubt, or rows themselves.

    Attributes:
        id: of the column, 0 where any row may differ.
        version: the newest one when it was met first.
        ends: topic -> partition -> the offset after the last record that may be one that it is about.
    """

    kind: Kind
    id: int
    version: int
    ends: Mapping[str, Mapping[int, int]]

    def is_before(self, offsets: Mapping[str, Mapping[int, int]]) -> bool:
        """Return whether all that it is about was read before some offsets."""
        return all(
            offsets.get(topic, {}).get(partition, 0) >= end
            for topic, partitions in self.ends.items()
            for partition, end in partitions.items()
        )


def doubts_with(before: Iterable[Doubt], found: Iterable[Doubt]) -> tuple[Doubt, ...]:
    """Return what is in doubt behind a write, one for each column and kind."""
    all_ = {(item.kind, item.id): item for item in before}
    for item in found:
        known = all_.get((item.kind, item.id))
        if known is not None:
            topics = {*known.ends, *item.ends}
            ends = {topic: {**known.ends.get(topic, {}), **item.ends.get(topic, {})} for topic in sorted(topics)}
            item = replace(item, version=known.version, ends=ends)
        all_[item.kind, item.id] = item
    return tuple(all_[key] for key in sorted(all_))


def parse_doubts(data: Mapping[str, Any], path: str) -> tuple[Doubt, ...]:
    """Read what `StateStore.save_doubts` wrote.

    Raises:
        HistoryError: if the file is damaged.
    """
    try:
        return tuple(_doubt(item) for item in data["doubts"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HistoryError(f"Cannot read {path}: {error!r}; restore it, or delete it and compare the table") from None


def _doubt(data: Mapping[str, Any]) -> Doubt:
    kind = data["kind"]
    if kind not in get_args(Kind):
        raise ValueError(kind)
    return Doubt(kind=kind, id=data["id"], version=data["version"], ends=with_number_keys(data["ends"]))
