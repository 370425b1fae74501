"""Commands that ask something of a pipeline's job."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated

import typer

from cdc_sync.api import requests, resets
from cdc_sync.cli.guard import confirmed, with_config
from cdc_sync.cli.options import AsJson, ConfigPath, DryRun, TableName, Verbose, Yes
from cdc_sync.config import Config
from cdc_sync.core.planning.deciding import Words

SomeTables = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TABLE]...", help="database.schema.table, or its end.", show_default=False),
]
All = Annotated[bool, typer.Option("--all", help="All tables of the pipeline.")]


def pause(
    ctx: typer.Context,
    config: ConfigPath,
    table: SomeTables = None,
    every: All = False,
    why: Annotated[str | None, typer.Option("--why", metavar="TEXT", help="What `status` says of it.")] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Leave tables as they are, until they are resumed; the others go on.

    A running job takes it up within seconds, and so does every one that is started later.
    """
    command = functools.partial(requests.pause, tables=_tables(table, every), why=why)
    confirmed(ctx, config, as_json, verbose, command, yes=yes, dry_run=dry_run)


def resume(
    ctx: typer.Context,
    config: ConfigPath,
    table: SomeTables = None,
    every: All = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Let tables go on that were paused, and have those try again that paused by themselves or failed.

    A running job takes it up within seconds. A table whose cause is still there pauses again, and says so.
    """
    command = functools.partial(requests.resume, tables=_tables(table, every))
    confirmed(ctx, config, as_json, verbose, command, yes=yes, dry_run=dry_run)


def skip(
    ctx: typer.Context,
    config: ConfigPath,
    table: TableName,
    at: Annotated[str, typer.Option("--at", metavar="PLACE", help="topic[partition]@offset.", show_default=False)],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="Kept beside its place.", show_default=False)],
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Have a table that paused before a record go on without it; the record becomes a dead letter.

    It must be the one that `status` names, and the table must not be paused for a change of its columns.
    """
    command = functools.partial(requests.skip, table=table, at=at, why=why)
    confirmed(ctx, config, as_json, verbose, command, yes=yes, dry_run=dry_run)


def reset(
    ctx: typer.Context,
    config: ConfigPath,
    table: TableName,
    from_snapshot: Annotated[
        bool, typer.Option("--from-snapshot", help="from a snapshot that the connector is asked for, into the target")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Read a table again from the beginning of its topics, into a new target; the one of now is renamed.

    Its schema history stays. Refused where the topics do not hold their beginning any more: then from a snapshot.
    """
    command = functools.partial(resets.reset_from_snapshot if from_snapshot else resets.reset, table=table)
    confirmed(ctx, config, as_json, verbose, command, yes=yes, dry_run=dry_run)


def forget(
    ctx: typer.Context,
    config: ConfigPath,
    table: TableName,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Delete what is written of a table that left the pipeline, so that `status` does not show it any more.

    Its target, its history and its dead letters stay. Where the configuration follows it again, it goes on from there.
    """
    command = functools.partial(requests.forget, table=table)
    confirmed(ctx, config, as_json, verbose, command, yes=yes, dry_run=dry_run)


def _tables(named: list[str] | None, every: bool) -> tuple[str, ...]:
    """Return the tables that were named, none for all.

    Raises:
        typer.BadParameter: if it is not said which, or both.
    """
    if bool(named) == every:
        raise typer.BadParameter("name tables, or say --all")
    return tuple(named or ())


def decide(
    ctx: typer.Context,
    config: ConfigPath,
    table: TableName,
    rename: Annotated[
        list[str] | None, typer.Option("--rename", metavar="OLD=NEW", help="One column, before and after.")
    ] = None,
    not_same: Annotated[
        list[str] | None, typer.Option("--not-same", metavar="NAME", help="A new column, none of those before.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", metavar="NAME", help="A column that is gone, with its data.")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Say what happened to columns; the job takes it up by itself.

    Where a table is paused before a change, it goes on with what you say of it. Long after a change, --rename OLD=NEW
    joins two columns that were kept apart because nothing proved that they are one: each row then has its newest value,
    under the new name, in the column that has been there all along; and --drop NAME lets a column that was kept go,
    with the next change of the table's columns. Only --not-same cannot be said afterwards.
    """
    renames = {}
    for text in rename or ():
        old, separator, new = text.partition("=")
        if not (old and separator and new):
            raise typer.BadParameter(f"{text!r} is not OLD=NEW", param_hint="--rename")
        renames[old] = new

    def command(loaded: Config) -> object:
        words = Words(renames=renames, not_same=tuple(not_same or ()), dropped=tuple(drop or ()))
        return requests.decide(loaded, table, words)

    with_config(ctx, config, as_json, verbose, command)


def rollback(
    ctx: typer.Context,
    config: ConfigPath,
    table: TableName,
    undo: Annotated[bool, typer.Option("--undo", help="Let the table go on: the rewrite is done again.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Bring back rows and columns of before the last rewrite; the job does it, and the table is paused from then on."""
    with_config(ctx, config, as_json, verbose, functools.partial(requests.rollback, table=table, undo=undo))


def regime(
    ctx: typer.Context,
    config: ConfigPath,
    table: TableName,
    undo: Annotated[bool, typer.Option("--undo", help="Leave it as it is, if it is not done yet.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Have a Hudi table rewritten as schema_evolution asks for now, where it was made otherwise.

    The job does it, in one commit; until you say this, such a table is paused.
    """
    with_config(ctx, config, as_json, verbose, functools.partial(requests.regime, table=table, undo=undo))


def resync(
    ctx: typer.Context,
    config: ConfigPath,
    table: TableName,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="NAME", help="Whose mark is to go; those of all columns if unset."),
    ] = None,
    done: Annotated[
        bool, typer.Option("--done", help="Say that the values are right, or have been read again.")
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Have the connector read a table's rows again, where no event tells what they hold.

    It takes an incremental snapshot while everything goes on; `status` names the columns until its rows have arrived.
    """
    command = functools.partial(requests.resync, table=table, columns=tuple(column or ()), done=done)
    with_config(ctx, config, as_json, verbose, command)


COMMANDS: tuple[Callable[..., None], ...] = (pause, resume, skip, reset, forget, decide, rollback, regime, resync)
"""In the order of the list of commands."""
