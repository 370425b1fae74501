"""`cdc-sync dead-letters`: records that were not applied."""

from __future__ import annotations

import functools
from typing import Annotated

import typer

from cdc_sync.api import dead_letters
from cdc_sync.cli.guard import confirmed, with_config
from cdc_sync.cli.options import AsJson, ConfigPath, DryRun, Verbose, Yes

app = typer.Typer(name="dead-letters", help="Records that were not applied: list, show, apply after all, let go.")

Topic = Annotated[str | None, typer.Option("--topic", help="Only those of a topic.")]
Table = Annotated[str | None, typer.Option("--table", help="Only those of a table: its dotted name, or its end.")]
Code = Annotated[str | None, typer.Option("--code", help="Only those with a code, such as record-malformed.")]
Places = Annotated[
    list[str] | None, typer.Argument(metavar="[PLACE]...", help="topic[partition]@offset.", show_default=False)
]


@app.command("list")
def list_(
    ctx: typer.Context,
    config: ConfigPath,
    topic: Topic = None,
    table: Table = None,
    code: Code = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="How many to list.")] = 20,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Count records that were not applied by topic and cause, and list the first of them."""
    command = functools.partial(dead_letters.list_dead_letters, topic=topic, table=table, code=code, limit=limit)
    with_config(ctx, config, as_json, verbose, command)


@app.command()
def show(
    ctx: typer.Context,
    config: ConfigPath,
    place: Annotated[str, typer.Argument(metavar="PLACE", help="topic[partition]@offset.", show_default=False)],
    reveal: Annotated[bool, typer.Option("--reveal", help="With its values, not a word in place of each.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show one record that was not applied, and why."""
    command = functools.partial(dead_letters.show_dead_letter, place=place, reveal=reveal)
    with_config(ctx, config, as_json, verbose, command)


@app.command()
def redrive(
    ctx: typer.Context,
    config: ConfigPath,
    place: Places = None,
    topic: Topic = None,
    table: Table = None,
    code: Code = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Have the job apply records after all, once what was wrong is mended; newer events of their rows win.

    All are tried if nothing says which. `list` says why others could not be applied, and shows them as before.
    """
    command = functools.partial(
        dead_letters.redrive_dead_letters, places=tuple(place or ()), topic=topic, table=table, code=code
    )
    confirmed(ctx, config, as_json, verbose, command, yes=yes, dry_run=dry_run)


@app.command()
def discard(
    ctx: typer.Context,
    config: ConfigPath,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="Kept beside their places.", show_default=False)],
    place: Places = None,
    topic: Topic = None,
    table: Table = None,
    code: Code = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Let records go that are of no use: what is kept of them is deleted, that they were there is not."""
    command = functools.partial(
        dead_letters.discard_dead_letters, places=tuple(place or ()), topic=topic, table=table, code=code, why=why
    )
    confirmed(ctx, config, as_json, verbose, command, yes=yes, dry_run=dry_run)
