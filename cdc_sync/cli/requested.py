"""What was asked of a pipeline's job, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from typing_extensions import assert_never

from cdc_sync.api.results import RequestedOfTables, ResetAsked, Rewritten, RolledBack
from cdc_sync.core.planning.deciding import Decided
from cdc_sync.core.planning.resync import ResyncAsked

Requested: TypeAlias = Decided | RolledBack | Rewritten | ResyncAsked | RequestedOfTables | ResetAsked


def lines(value: Requested) -> Iterator[str]:
    """Say what was asked, and where to see what comes of it."""
    match value:
        case Decided():
            yield from _decided(value)
        case RolledBack():
            yield from _rolled_back(value)
        case Rewritten():
            yield from _rewritten(value)
        case ResyncAsked():
            yield from _resync(value)
        case RequestedOfTables():
            yield from _requested(value)
        case ResetAsked():
            yield from _reset(value)
        case _:
            assert_never(value)


def _decided(value: Decided) -> Iterator[str]:
    if value.at is not None:
        said = [f"{old} is {new} now" for old, new in value.renames.items()]
        said += [f"{name} is none of the columns before" for name in value.not_same]
        said += [f"{name} is gone" for name in value.dropped]
        yield f"{value.table}, before the change at {value.at}: {', '.join(said)}. The job goes on with it."
    for name in value.late_drops:
        yield f"{value.table}: {name} goes, with its data, at the next change of the table's columns."
    for join in value.joins:
        yield f"{value.table}: {join.old} and {join.new} are one column, and the job joins them, data and history."
        yield "`cdc-sync history` shows the version that does it; `cdc-sync status` says so if it cannot be done."


def _rolled_back(value: RolledBack) -> Iterator[str]:
    if value.undo and not value.is_back:
        yield f"{value.table}: the job had not brought back what was before version {value.version}; it leaves it so."
        yield "Where the job had just begun with it, it carries the version out again; `cdc-sync status` shows it."
        return
    if value.undo:
        yield f"{value.table}: the job carries version {value.version} out again."
        return
    if value.is_back:
        yield f"{value.table}: rows and columns are those of before version {value.version} already, and stay so."
        return
    yield f"{value.table}: the job brings back rows and columns of before version {value.version}, and holds it there."
    yield "`cdc-sync status` shows when it is done; `cdc-sync rollback --undo` lets the table go on."


def _requested(value: RequestedOfTables) -> Iterator[str]:
    for item in value.tables:
        yield f"{item.table}: {item.text}"
    if not value.tables:
        yield "The pipeline has seen no table yet."
    if not any(item.is_new for item in value.tables):
        return
    yield _who(value)


def _reset(value: ResetAsked) -> Iterator[str]:
    if value.into is not None:
        yield f"{value.table}: {value.target} becomes {value.into}, and its topics are read again from their start"
    else:
        yield f"{value.table}: when the connector has read all rows again, {value.target} has them and no other"
    if value.topic is not None:
        yield f"The connector is asked in {value.topic}."
    if value.statement is not None:
        yield "Have it read them, with this in its signalling table:"
        yield f"  {value.statement};"
    yield _who(value)


def _who(value: RequestedOfTables | ResetAsked) -> str:
    if value.dry_run:
        return "Nothing is asked of the job yet."
    if value.is_running:
        return "The job takes it up within seconds; `cdc-sync status` shows it."
    return "No job runs; the next one takes it up when it starts."


def _rewritten(value: Rewritten) -> Iterator[str]:
    if value.undo:
        yield f"{value.table}: {value.target} stays as it is; the job forgets to rewrite it for {value.evolution}."
        return
    yield f"{value.table}: the job rewrites {value.target} for schema_evolution: {value.evolution}, in one commit."
    yield "`cdc-sync status` shows the table running once it is done; one that is kept so already stays as it is."


def _resync(value: ResyncAsked) -> Iterator[str]:
    names = f"marks of {', '.join(value.columns)}" if value.columns else "marks of all columns"
    if value.done:
        yield f"{value.table}: the {names} go when all that is in the topics now is written."
        return
    if value.statement is None:
        yield f"{value.table}: the connector is asked in {value.topic} to read all rows again (signal {value.signal})."
    else:
        yield f"{value.table}: have the connector read all rows again, with this in its signalling table:"
        yield f"  {value.statement};"
    if value.followed:
        yield f"The {names} go when its rows are written; `cdc-sync status` shows it."
    else:
        yield f"When it has read them, `cdc-sync resync --done` lets the {names} go."
