"""Readings of the catalogue: it tells the columns of *now*, with numbers that survive a rename.

Postgres gives attribute numbers upwards and never twice, shows columns in their order, and remembers in `relnatts` how
many it ever gave. Each attribute's own row has a *stamp*: the transaction that wrote it last, and when that committed.
An attribute is certain at an event if its row was as it is now already then: because an earlier reading shows the same
stamp, or because the stamp's commit lies before the event's. `laying` says what follows for the names of an event.

SQL Server has numbers (`column_id`, `max_column_id_used`) but no stamps: only the order between two readings tells.
For readings without stamps it is taken that a table which has one number (`relid`) in two of them had it in between.

Why this is sound: docs/decisions/0012-readings-of-the-catalogue.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cdc_sync.core.lineage.column_log import Token
from cdc_sync.core.lineage.commands import NOTHING
from cdc_sync.core.model.positions import Commit, TableId

CLOCK_MARGIN = 1_000
"""Microseconds by which a commit has to lie before an event that does not tell its transaction's number."""
CLOCK_STEP = 60_000_000
"""What no clock is put back by while it runs."""
WIDE_MARGIN = 600_000_000
"""What has to lie before an event of a snapshot, whose time is of the connector's clock, and behind what changes
without a lock."""
_XIDS = 2**32


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Who wrote a row of the catalogue last.

    Attributes:
        xid: the transaction's number modulo 2^32 (`xmin`); different for different versions of one row.
        at: when it was committed, in microseconds since the epoch; None if the server does not know.
        command: the number of the command in its transaction (`cmin`), None if that is not known; not compared, for
            the transaction's number tells which version of the row it is.
    """

    xid: int
    at: int | None = None
    command: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A column that is there, or was; `name` and `type` are empty if it was dropped.

    Attributes:
        generated: its values are computed, so that events may lack it; None if that is not told, or it was dropped.
    """

    number: int
    name: str = ""
    type: str = ""
    stamp: Stamp | None = None
    generated: bool | None = None

    @property
    def dropped(self) -> bool:
        """Whether the column is there no more."""
        return not self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueReading:
    """A table as its source's catalogue showed it.

    Attributes:
        begun: what the source's log had reached before the reading: every row up to there has columns that the reading
            shows, or that something it shows came after.
        ended: what it had reached behind it: no row behind has columns older than the reading.
        taken: the server's clock, in microseconds since the epoch.
        server: which server, and which of its timelines; LSNs of different ones cannot be compared.
        relid: the table's own number.
        named: who gave it its name; None if that is not told.
        schema_named: who gave its schema its name, or wrote that row of the catalogue for another reason.
        attributes: in the order of their numbers, all that were ever there.
    """

    table: TableId
    begun: int
    ended: int
    relid: int
    attributes: tuple[Attribute, ...]
    taken: int = 0
    server: str = ""
    named: Stamp | None = None
    schema_named: Stamp | None = None

    @property
    def highest(self) -> int:
        """The highest number ever given."""
        return max((attribute.number for attribute in self.attributes), default=0)

    def attribute(self, number: int) -> Attribute | None:
        """Return the attribute of a number."""
        found = self.attributes[number - 1] if 0 < number <= len(self.attributes) else None
        assert found is None or found.number == number
        return found

    def token(self, number: int) -> Token:
        """Return the identity of the column of this number."""
        return Token(era=("pg", self.table.database), number=(self.relid, number))

    def shows_as(self, other: CatalogueReading) -> bool:
        """Whether another reading shows the same, at another time."""
        return _timeless(self) == _timeless(other)


def _timeless(reading: CatalogueReading) -> CatalogueReading:
    return replace(reading, begun=0, ended=0, taken=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When an event's row was written.

    Attributes:
        lsn: the event's own place in the log.
        commit: of its transaction, None if it is not told.
        snapshot: a snapshot read the row.
    """

    lsn: int
    commit: Commit | None = None
    snapshot: bool = False

    def is_behind(self, stamp: Stamp | None, *, margin: int = 0, command: int = NOTHING) -> bool:
        """Whether what this stamp is on was so already when the row was written.

        The clock decides; if not much time lies between, the transactions' numbers, whose order alone proves nothing,
        have to agree, so that a clock that was put back does no harm. Events that tell no number need a margin instead.

        Args:
            stamp: of something that only changes under a lock that waits for all writers of the table.
            margin: microseconds that have to lie between; a wide one for what changes without such a lock.
            command: the last one of its own transaction that the row was written behind.
        """
        own = self.own_command(stamp)
        if own is not None:
            return own <= command
        if stamp is None or stamp.at is None or self.commit is None:
            return False
        since = self.commit.at - stamp.at
        if self.snapshot:
            return since > WIDE_MARGIN
        if self.commit.xid is None:
            return since > max(margin, CLOCK_MARGIN)
        agrees = 0 < (self.commit.xid - stamp.xid) % _XIDS < _XIDS // 2
        return since > margin and (agrees or since > CLOCK_STEP)

    def own_command(self, stamp: Stamp | None) -> int | None:
        """Return which command of the transaction that wrote the row wrote what this stamp is on.

        Numbers come back after 2^32 transactions, so the times have to be the same, too; savepoints have numbers of
        their own.

        Returns:
            None if another transaction did, or it is not told.
        """
        if stamp is None or stamp.at is None or self.commit is None or self.snapshot:
            return None
        is_own = self.commit.xid == stamp.xid and 0 <= stamp.at - self.commit.at < _ROUNDED
        return stamp.command if is_own else None


_ROUNDED = 1_000
"""An event's time may have been rounded down by less."""
