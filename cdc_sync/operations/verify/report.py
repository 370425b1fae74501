"""What `verify` returns, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from cdc_sync.core.model.positions import TableId
from cdc_sync.operations.verify.columns import NotCompared


class Outcome(str, Enum):
    """How a table ended."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNSETTLED = "unsettled"
    """Rows differ that may only be on their way."""
    NOT_COMPARED = "not compared"
    """It could not be; `TableVerified.problem` says why."""
    CHANGELOG = "changelog"
    """It is not to be compared: its target holds events, not the source's rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDifference:
    """One column that differs in a row; the beginning of each value as its system writes it, None for NULL."""

    column: str
    source: str | None
    target: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDifference:
    """One row that differs.

    Attributes:
        key: what its key holds, by column; the whole row where there is no key.
        source_rows, target_rows: how many there are of it; 1 and 1 where only columns differ.
        columns: those that differ; none where a side does not have the row.
        settled: it has differed all the while that was waited for, and the source's row stayed as it is.
    """

    key: Mapping[str, str | None]
    source_rows: int
    target_rows: int
    columns: tuple[ColumnDifference, ...]
    settled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many rows differ, and how; what may only be on its way is in `unsettled` alone."""

    only_in_source: int = 0
    only_in_target: int = 0
    different: int = 0
    unsettled: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVerified:
    """How one table compares.

    Attributes:
        source_rows, target_rows: when the comparison began; None if it did not.
        ranges, ranges_differing: how many ranges were compared at first, and how many of them differed.
        ranges_left: how many ranges differ and were not narrowed down to rows, because as many rows as are held differ
            already; `rows_left` is how many rows they have.
        differences: the first ones, listed.
        not_compared: columns that were left out, and why.
        problem: why the table could not be compared.
        notes: what else is to be known when this is read.
    """

    table: TableId
    target: str
    outcome: Outcome
    source_rows: int | None = None
    target_rows: int | None = None
    ranges: int = 0
    ranges_differing: int = 0
    ranges_left: int = 0
    rows_left: int = 0
    counts: Counts = Counts()
    differences: tuple[RowDifference, ...] = ()
    not_compared: tuple[NotCompared, ...] = ()
    problem: str | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """How the tables of a pipeline compare."""

    pipeline: str
    tables: tuple[TableVerified, ...]

    @property
    def exit_code(self) -> int:
        """2 if rows differ, else 5 if a table could not be compared, else 4 if rows have not settled, else 0."""
        outcomes = {table.outcome for table in self.tables}
        order = ((Outcome.DIFFERENT, 2), (Outcome.NOT_COMPARED, 5), (Outcome.UNSETTLED, 4))
        return next((code for outcome, code in order if outcome in outcomes), 0)
