"""A verification as lines of text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdc_sync.operations.verify.dialect import SHOWN
from cdc_sync.operations.verify.report import ColumnDifference, Outcome, RowDifference, TableVerified, Verified


def lines(value: Verified) -> Iterator[str]:
    """Yield what a verification found, table by table."""
    if not value.tables:
        yield f"Pipeline {value.pipeline!r} has no table to verify yet."
    for table in value.tables:
        yield from _table(table)


def _table(table: TableVerified) -> Iterator[str]:
    name = f"{table.table} -> {table.target}"
    match table.outcome:
        case Outcome.NOT_COMPARED | Outcome.CHANGELOG:
            yield f"{name}: not compared: {table.problem}"
        case Outcome.EQUAL:
            yield f"{name}: equal: {_rows(table.source_rows)}, {table.seconds:.1f} s"
        case Outcome.DIFFERENT | Outcome.UNSETTLED:
            sides = f"{_rows(table.source_rows)} in the source, {table.target_rows} in the target"
            yield f"{name}: {table.outcome.value}: {sides}, {table.seconds:.1f} s"
            yield f"  {_counts(table)}"
    yield from (f"  {_difference(item)}" for item in table.differences)
    listed = len(table.differences)
    if 0 < listed < _all(table):
        yield f"  and {_all(table) - listed} more; --limit lists more of them"
    if table.ranges_left:
        yield (
            f"  {table.ranges_left} more of {table.ranges} ranges differ and were not narrowed down; they have "
            f"{_rows(table.rows_left)}, see verify.rows_in_memory"
        )
    yield from (f"  column {item.column!r} is not compared: {item.reason}" for item in table.not_compared)
    yield from (f"  note: {note}" for note in table.notes)


def _counts(table: TableVerified) -> str:
    counts = table.counts
    said = (
        (counts.only_in_source, "only in the source"),
        (counts.only_in_target, "only in the target"),
        (counts.different, "different"),
        (counts.unsettled, "unsettled"),
    )
    return ", ".join(f"{number} {what}" for number, what in said if number) or "ranges differ"


def _all(table: TableVerified) -> int:
    counts = table.counts
    return counts.only_in_source + counts.only_in_target + counts.different + counts.unsettled


def _difference(row: RowDifference) -> str:
    unsettled = "" if row.settled else ", unsettled"
    if row.source_rows != row.target_rows and not row.columns:
        return f"{_key(row.key)}: {_copies(row)}{unsettled}"
    if not row.columns:
        return f"{_key(row.key)}: differs{unsettled}"
    return f"{_key(row.key)}: {', '.join(map(_column, row.columns))}{unsettled}"


def _copies(row: RowDifference) -> str:
    if not row.target_rows:
        return "only in the source" if row.source_rows == 1 else f"only in the source, {_times(row.source_rows)}"
    if not row.source_rows:
        return "only in the target" if row.target_rows == 1 else f"only in the target, {_times(row.target_rows)}"
    return f"in the source {_times(row.source_rows)}, in the target {_times(row.target_rows)}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _column(column: ColumnDifference) -> str:
    alike = column.source == column.target
    more = " (they differ further on than is shown, or in a way their text does not show)" if alike else ""
    return f"{column.column} is {_value(column.source)} in the source, {_value(column.target)} in the target{more}"


def _key(key: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in key.items()) or "a row"


def _value(text: str | None) -> str:
    if text is None:
        return "NULL"
    return f"{text!r}{'…' if len(text) >= SHOWN else ''}"


def _rows(number: int | None) -> str:
    return "1 row" if number == 1 else f"{number} rows"
