"""One state of a Parquet table, with the folders it lies in."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cdc_sync.targets.parquet.properties import Past, Stamp

_KEPT_COMMITS = 1000
"""So many commits later the state before a rewrite is given up: it is a copy of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A state of a table.

    Attributes:
        folder: the table's own.
        reference: of the state, as in `Past`.
        stamp: what it says.
        follows: the number that a commit on it gets, if it is the present one.
    """

    folder: str
    reference: str
    stamp: Stamp
    follows: int = 0

    @property
    def location(self) -> str:
        """The folder of its data files, if it has no partitions; else that of those which its commit wrote."""
        return f"{self.folder}/{self.data}"

    @property
    def data(self) -> str:
        """The name of that folder."""
        return self.reference.partition("/")[0]

    @property
    def is_partitioned(self) -> bool:
        """Whether its files lie in folders of partitions."""
        return bool(self.stamp.keys)

    @property
    def as_past(self) -> Past:
        """The state as those after it remember it."""
        return Past(reference=self.reference, marker=self.stamp.marker, partitioned=self.is_partitioned)


def following(now: Snapshot) -> Stamp:
    """Return what the next state says unless something changes it."""
    kept = now.stamp.kept
    if kept is not None and now.stamp.number - kept.number >= _KEPT_COMMITS:
        kept = None
    return replace(now.stamp, kept=kept)
