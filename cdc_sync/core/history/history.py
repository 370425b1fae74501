"""All versions of one table: a chain, ordered by source position."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_sync.core.history.version import Version
from cdc_sync.core.model.incarnations import Began
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.core.schema.evolve import apply_all
from cdc_sync.errors import HistoryError, SchemaError


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The versions of a table, at least one, numbered from 1.

    Raises:
        HistoryError: if the chain is broken: a gap, another table, positions out of order, or changes that do not
            lead to the next schema.
    """

    table: TableId
    versions: tuple[Version, ...]

    def __post_init__(self) -> None:
        if not self.versions:
            raise HistoryError(f"Cannot read history of {self.table}: it has no version")
        for number, version in enumerate(self.versions, 1):
            if version.number != number or version.table != self.table:
                raise HistoryError(
                    f"Cannot read history of {self.table}: version {version.number} of {version.table} stands at "
                    f"place {number}"
                )
        for before, after in zip(self.versions, self.versions[1:], strict=False):
            _check_link(before, after)

    def extended(self, version: Version) -> History:
        """Return the history with one version more; only that one is checked.

        Raises:
            HistoryError: if it does not follow the head.
        """
        if version.number != len(self.versions) + 1 or version.table != self.table:
            raise HistoryError(
                f"Cannot extend history of {self.table}: version {version.number} of {version.table} does not follow "
                f"version {len(self.versions)}"
            )
        _check_link(self.head, version)
        longer = object.__new__(History)
        object.__setattr__(longer, "table", self.table)
        object.__setattr__(longer, "versions", (*self.versions, version))
        return longer

    @property
    def head(self) -> Version:
        """The newest version."""
        return self.versions[-1]

    @property
    def shown(self) -> History:
        """The history up to the newest version that an event showed; the end of a table is shown by none."""
        if self.head.dropped is None:
            return self
        shorter = object.__new__(History)
        object.__setattr__(shorter, "table", self.table)
        object.__setattr__(shorter, "versions", self.versions[:-1])
        return shorter

    @property
    def arrival(self) -> Version | None:
        """The newest version at which a table of another name came under this one, None if none ever did."""
        return next((version for version in reversed(self.versions) if version.renamed_from is not None), None)

    @property
    def look(self) -> Version:
        """The first version since which every event that showed one had the schema of the newest; often that itself."""
        first = self.shown.head
        for version in reversed(self.shown.versions):
            if version.fingerprint != first.fingerprint:
                break
            first = version
        return first

    @property
    def began(self) -> Began:
        """When each incarnation of the source's log after the first began, as far as events showed it."""
        return tuple(at for version in self.versions for at in version.began)

    @property
    def record_key(self) -> tuple[str, ...] | None:
        """The newest record key that is recorded, see `Version.record_key`; None if none is."""
        return next((item.record_key for item in reversed(self.versions) if item.record_key is not None), None)

    def version(self, number: int) -> Version:
        """Return one version.

        Raises:
            HistoryError: if it is not recorded.
        """
        if not 1 <= number <= len(self.versions):
            raise HistoryError(
                f"Cannot find version {number} of {self.table}: versions 1 to {len(self.versions)} are recorded"
            )
        return self.versions[number - 1]

    def at(self, position: SourcePosition) -> Version | None:
        """Return the version in effect at a source position, None before the first."""
        return next((version for version in reversed(self.versions) if version.position <= position), None)


def _check_link(before: Version, after: Version) -> None:
    if after.position < before.position:
        raise HistoryError(
            f"Cannot read history of {after.table}: version {after.number} lies before version {before.number}"
        )
    if after.renamed_from is None and not _leads_to(before, after):
        raise HistoryError(
            f"Cannot read history of {after.table}: the changes of version {after.number} do not lead to it"
        )


def _leads_to(before: Version, after: Version) -> bool:
    try:
        return apply_all(before.schema, after.changes) == after.schema
    except SchemaError:
        return False
