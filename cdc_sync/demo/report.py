"""What a demo run found, as values and as text. Imports no client of anything, because the command line loads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from cdc_sync.demo.compare import TableImage, shown

_ROWS_SHOWN = 16
_ABSENT = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTiming:
    """How long the lake took to show an ALTER.

    Attributes:
        seconds: from before the first row statement after it to a reader seeing the new columns and that row.
    """

    title: str
    table: str
    ddl: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionLine:
    """One recorded schema version of a table, in words."""

    table: str
    number: int
    changes: tuple[str, ...]
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableComparison:
    """A table in both places; `differences` is empty when they are equal.

    Attributes:
        key: names of the primary key's columns.
    """

    source: TableImage
    lake: TableImage | None
    key: tuple[str, ...]
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoReport:
    """A finished run.

    Attributes:
        seconds: from the start until everything was in the lake.
        job_exit_code: what the job ended with after SIGTERM.
        folder: where the files are; None if they are removed.
    """

    equal: bool
    tables: tuple[TableComparison, ...]
    alters: tuple[AlterTiming, ...]
    history: tuple[VersionLine, ...]
    seconds: float
    job_exit_code: int | None
    folder: str | None


def parts(report: DemoReport) -> Iterator[str | Table]:
    """Lay a report out for people."""
    for comparison in report.tables:
        yield ""
        yield f"{comparison.source.name}: {_verdict(comparison)}"
        yield _columns(comparison)
        yield _rows(comparison)
        yield from (f"  {difference}" for difference in comparison.differences)
    yield ""
    yield from _history(report.history)
    yield ""
    yield _timings(report.alters)
    yield ""
    rows = sum(len(comparison.source.rows) for comparison in report.tables)
    outcome = "equal" if report.equal else "NOT equal"
    yield (
        f"Source and lake are {outcome}: {len(report.tables)} tables, {rows} rows, "
        f"{len(report.alters)} schema changes, {report.seconds:.0f} s in all; "
        f"the job ended with exit code {report.job_exit_code}."
    )
    if report.folder is not None:
        yield f"Files are in {report.folder}"


def _verdict(comparison: TableComparison) -> str:
    if not comparison.differences:
        return f"equal ({len(comparison.source.columns)} columns, {len(comparison.source.rows)} rows)"
    count = len(comparison.differences)
    return f"{count} difference{'s' if count != 1 else ''}"


def _grid(*headers: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    for header in headers:
        table.add_column(header, overflow="fold")
    return table


def _columns(comparison: TableComparison) -> Table:
    """Both lists of columns, place by place."""
    table = _grid("  #", "source column", "type", "lake column", "type")
    theirs = comparison.lake.columns if comparison.lake else ()
    ours = comparison.source.columns
    for place in range(max(len(ours), len(theirs))):
        left = (ours[place].name, ours[place].type) if place < len(ours) else (_ABSENT, _ABSENT)
        right = (theirs[place].name, theirs[place].type) if place < len(theirs) else (_ABSENT, _ABSENT)
        table.add_row(*(Text(cell) for cell in (f"{place + 1:3}", *left, *right)))
    return table


def _rows(comparison: TableComparison) -> Table:
    """Both rows of each key, the key's order being the source's."""
    table = _grid("  ", "source row", "lake row")
    ours = _by_key(comparison.source, comparison.key)
    theirs = _by_key(comparison.lake, comparison.key) if comparison.lake else {}
    keys = [*ours, *(key for key in theirs if key not in ours)]
    for key in keys[:_ROWS_SHOWN]:
        table.add_row("", Text(ours.get(key, _ABSENT)), Text(theirs.get(key, _ABSENT)))
    if (rest := len(keys) - _ROWS_SHOWN) > 0:
        table.add_row("", Text(f"and {rest} more"), "")
    return table


def _by_key(image: TableImage, key: tuple[str, ...]) -> dict[tuple[object, ...], str]:
    return {
        tuple(record.get(name) for name in key): "  ".join(map(shown, record.values())) for record in image.records()
    }


def _history(versions: tuple[VersionLine, ...]) -> Iterator[str]:
    yield "Schema history, as the job recorded it:"
    for version in versions:
        yield f"  {version.table} version {version.number}"
        yield from (f"      {change}" for change in version.changes)
        yield from (f"        because of {evidence}" for evidence in version.evidence)


def _timings(alters: tuple[AlterTiming, ...]) -> Table:
    table = _grid("Schema change", "table", "seconds from its first row to visible in the lake")
    for alter in alters:
        table.add_row(Text(alter.title), Text(alter.table), Text(f"{alter.seconds:.2f}"))
    return table
