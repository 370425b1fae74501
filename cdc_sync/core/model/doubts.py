"""Values that the events of a table leave in doubt, whatever its version is, until they are read again.

A doubt is written down before the rows are, so that it is not lost where the job ends between the two; it goes with a
resync that was asked for behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["unsent", "unread", "made_up", "rows", "undone", "replaced", "overflown"]

TEXTS: Final[Mapping[Kind, str]] = {
    "unsent": "an update shows NULL in it, which may be a large value that did not change: the connector has no "
    "placeholder for its type, so rows keep the value they had (policy.unsent_values)",
    "made_up": "a delete names a key that the connector may have made up in part, and no row has it: the row that it "
    "is about is still there",
    "replaced": "somebody dropped the target's column and added another one under its name, in which rows of before "
    "read NULL",
    "overflown": "numbers in it are unsigned at the source, and those above 2^63-1 arrive as negative ones; set "
    "bigint.unsigned.handling.mode=precise in the connector",
    "rows": "a statement took rows away, or brought some, without an event for each",
    "undone": "the connector did not take up a statement as it is meant, and reads later rows into other columns; have "
    "it read the table's structure anew (snapshot.mode: recovery), then snapshot the table",
    "unread": "the connector does not read some of its values: arrays of several dimensions hold only NULLs, and "
    "of the type `name` it reads none behind the snapshot",
}
"""What `status` says of each kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A column in which values of some rows are in doubt, or rows themselves.

    Attributes:
        id: of the column, 0 where any row may differ.
        version: the newest one when it was met first.
        ends: topic -> partition -> the offset after the last record that may be one that it is about.
        at, statement: where in the source's log it was done, and in its words, if a statement left it.
    """

    kind: Kind
    id: int
    version: int
    ends: Mapping[str, Mapping[int, int]]
    at: str = ""
    statement: str = ""

    @property
    def reason(self) -> str:
        """Say it in `status`."""
        return f"{TEXTS[self.kind]}: {self.statement}" if self.statement else TEXTS[self.kind]

    @property
    def key(self) -> tuple[Kind, int, str]:
        """What one doubt is told from another by."""
        return self.kind, self.id, self.at

    def is_before(self, offsets: Mapping[str, Mapping[int, int]]) -> bool:
        """Return whether all that it is about was read before some offsets."""
        return all(
            offsets.get(topic, {}).get(partition, 0) >= end
            for topic, partitions in self.ends.items()
            for partition, end in partitions.items()
        )


def doubts_with(before: Iterable[Doubt], found: Iterable[Doubt]) -> tuple[Doubt, ...]:
    """Return what is in doubt behind a write, one for each kind and column, or statement."""
    all_ = {item.key: item for item in before}
    for item in found:
        known = all_.get(item.key)
        if known is not None:
            topics = {*known.ends, *item.ends}
            ends = {topic: {**known.ends.get(topic, {}), **item.ends.get(topic, {})} for topic in sorted(topics)}
            item = replace(item, version=known.version, ends=ends)
        all_[item.key] = item
    return tuple(all_[key] for key in sorted(all_))
