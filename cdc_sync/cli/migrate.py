"""`cdc-sync migrate`: revisions of lake tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, TypeVar

import typer
import yaml

from cdc_sync.api import migrate
from cdc_sync.cli.guard import Style, ask, check_askable, guarded, style_of
from cdc_sync.cli.options import AsJson, Verbose, Yes, duration
from cdc_sync.cli.signals import interruptible
from cdc_sync.config.migrations import load_migrator
from cdc_sync.config.revision_file import revision_schema

app = typer.Typer(name="migrate", help="Lake tables that no pipeline writes: change them by revisions, YAML files.")

Folder = Annotated[
    str, typer.Argument(metavar="MIGRATIONS", help="The folder that holds migrator.yaml.", show_default=False)
]
Table = Annotated[str | None, typer.Argument(metavar="[TABLE]", help="schema.name; all if unset.", show_default=False)]
Result = TypeVar("Result")


def _run(style: Style, folder: str, work: Callable[[], Result]) -> Result:
    secrets = guarded(style, (), lambda: load_migrator(folder).secrets, quiet=True)
    return guarded(style, tuple(secrets), work)


@app.command()
def check(
    ctx: typer.Context,
    folder: Folder,
    sarif: Annotated[bool, typer.Option("--sarif", help="Print what may not be meant as SARIF.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="End with 2 if something may not be meant.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Look all files over, without the lake: names all mistakes, and what is right and may not be meant."""
    style = style_of(ctx, as_json, verbose)
    secrets = guarded(style, (), lambda: load_migrator(folder).secrets, quiet=True)
    found = guarded(style, tuple(secrets), lambda: migrate.check(folder), quiet=sarif)
    if sarif:
        typer.echo(json.dumps(found.sarif, indent=2))
    if strict and found.findings:
        raise typer.Exit(2)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a revision's file, by which editors complete and check it."""
    typer.echo(json.dumps(revision_schema(), indent=2))


@app.command()
def squash(
    ctx: typer.Context,
    folder: Folder,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="schema.name", show_default=False)],
    upto: Annotated[str | None, typer.Option("--upto", metavar="RELEASE", help="The last release to be in it.")] = None,
    verbose: Verbose = False,
) -> None:
    """Print one revision that stands for all of a table: put it in the place of their files.

    New lakes make the table by it; one that has all that it replaces goes on as it is, and one that has only some of
    it is refused.
    """
    style = style_of(ctx, False, verbose)
    found = guarded(style, (), lambda: migrate.squash(folder, table, release=upto), quiet=True)
    typer.echo(yaml.safe_dump(found, sort_keys=False, allow_unicode=True), nl=False)


@app.command()
def plan(
    ctx: typer.Context, folder: Folder, table: Table = None, as_json: AsJson = False, verbose: Verbose = False
) -> None:
    """Show what up would do; changes nothing.

    Ends with 0 if nothing would be done, with 2 if something would, and with 5 if a table cannot go on.
    """
    found = _run(style_of(ctx, as_json, verbose), folder, lambda: migrate.plan(folder, table))
    raise typer.Exit(found.exit_code)


@app.command()
def up(
    ctx: typer.Context,
    folder: Folder,
    table: Table = None,
    no_fill: Annotated[
        bool, typer.Option("--no-fill", help="Change columns only; `backfill` fills the rows later.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Apply the revisions that are pending, each behind those it needs; shows them first, and asks.

    Ends with 0 if all are applied, with 4 if rows are left to be filled or another process applies revisions, and with
    5 if a table cannot go on until somebody has looked at it; what was done before stands.
    """
    style = style_of(ctx, as_json, verbose)
    check_askable(style, yes=yes)
    if not yes:
        planned = _run(style, folder, lambda: migrate.plan(folder, table))
        if not (planned.steps or planned.fills):
            raise typer.Exit(planned.exit_code)
        ask()
    done = _run(
        style, folder, lambda: interruptible(lambda stop: migrate.up(folder, table, fill=not no_fill, stop=stop))
    )
    raise typer.Exit(done.exit_code)


@app.command()
def backfill(
    ctx: typer.Context,
    folder: Folder,
    table: Table = None,
    within: Annotated[
        timedelta | None,
        typer.Option("--for", metavar="DURATION", parser=duration, help="Begin no further unit after 30s, 15m or 2h."),
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Fill the rows that `up --no-fill` left; any number of processes do it together.

    Ends with 0 if all rows are filled, and with 4 if some are left.
    """
    style = style_of(ctx, as_json, verbose)
    seconds = None if within is None else within.total_seconds()
    done = _run(
        style, folder, lambda: interruptible(lambda stop: migrate.backfill(folder, table, seconds=seconds, stop=stop))
    )
    raise typer.Exit(done.exit_code)


@app.command()
def down(
    ctx: typer.Context,
    folder: Folder,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="schema.name", show_default=False)],
    yes: Yes = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Take back the newest revision of a table, where no value is lost by that; shows it first, and asks."""
    style = style_of(ctx, as_json, verbose)
    check_askable(style, yes=yes)
    if not yes:
        _run(style, folder, lambda: migrate.down(folder, table, dry_run=True))
        ask()
    _run(style, folder, lambda: migrate.down(folder, table))


@app.command()
def finish(
    ctx: typer.Context,
    folder: Folder,
    table: Table = None,
    yes: Yes = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Drop the columns that `way: expand` has kept, once rows are filled from them; shows them first, and asks."""
    style = style_of(ctx, as_json, verbose)
    check_askable(style, yes=yes)
    if not yes:
        planned = _run(style, folder, lambda: migrate.finish(folder, table, dry_run=True))
        if not planned.steps:
            return
        ask()
    _run(style, folder, lambda: migrate.finish(folder, table))


@app.command()
def status(ctx: typer.Context, folder: Folder, as_json: AsJson = False, verbose: Verbose = False) -> None:
    """Show which revision every table is at, and what is pending."""
    _run(style_of(ctx, as_json, verbose), folder, lambda: migrate.status(folder))


@app.command()
def history(
    ctx: typer.Context, folder: Folder, table: Table = None, as_json: AsJson = False, verbose: Verbose = False
) -> None:
    """Show what was done to a table, or to all; without the lake."""
    _run(style_of(ctx, as_json, verbose), folder, lambda: migrate.history(folder, table))
