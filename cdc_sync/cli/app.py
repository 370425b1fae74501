"""The command line: parses, calls one function of `commands`, has `output` print what it returned."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from cdc_sync.api import commands
from cdc_sync.cli import dead_letters, log, migrate, requests
from cdc_sync.cli import render as output
from cdc_sync.cli.guard import Style, guarded, loaded, style_of, with_config
from cdc_sync.cli.options import AsJson, ConfigPath, Verbose
from cdc_sync.cli.signals import interruptible
from cdc_sync.config import Config, load_config
from cdc_sync.demo import DemoSource
from cdc_sync.runtime.reports import Plan, RunReport

USAGE = 2
"""Exit code for a command line that cannot be understood, the same as for such a configuration."""

app = typer.Typer(
    name="cdc-sync",
    help="Keeps lake tables equal to the operational tables Debezium captures, rows and schema.",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cdc-sync {metadata.version('cdc-sync')}")
        raise typer.Exit


@app.callback()
def _main(
    ctx: typer.Context,
    as_json: AsJson = False,
    verbose: Verbose = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    ctx.obj = Style(as_json=as_json, verbose=verbose)


@app.command()
def validate(
    ctx: typer.Context,
    config: ConfigPath,
    check: Annotated[
        bool, typer.Option("--check", help="Ask Kafka which topics match, and look over the source.")
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Check a configuration and warn of what it may regret."""
    with_config(ctx, config, as_json, verbose, functools.partial(commands.validate, check=check))


@app.command()
def run(
    ctx: typer.Context,
    config: ConfigPath,
    once: Annotated[bool, typer.Option("--once", help="Stop when everything there is now was read.")] = False,
    standby: Annotated[
        bool, typer.Option("--standby", help="Where another job of the pipeline runs, take its place when it ends.")
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Keep the target tables equal to their sources until stopped.

    What changes in CONFIG is taken up while it runs, within seconds, or at once on SIGHUP; what cannot be is refused,
    and the job goes on as before.

    One job writes a pipeline's tables: while another one runs this ends with 4, or waits for its end with --standby.

    With --once, ends with 0 if every table got to the end, with 4 if one failed or waits for evidence and may get there
    when it is run again, and with 5 if one is paused.
    """
    style = style_of(ctx, as_json, verbose)
    first = loaded(style, config)
    secrets = list(first.secrets)
    now = threading.Event()

    def load() -> Config:
        again = load_config(config)
        secrets.extend(item for item in again.secrets if item not in secrets)
        return again

    def work(stop: threading.Event) -> RunReport:
        return commands.run(first, once=once, standby=standby, stop=stop, reload_from=config, reload_now=now, load=load)

    within = first.job.stop_within.total_seconds()
    found = guarded(style, secrets, lambda: interruptible(work, hangup=now, within=within))
    if once:
        raise typer.Exit(found.exit_code)


@app.command()
def plan(ctx: typer.Context, config: ConfigPath, as_json: AsJson = False, verbose: Verbose = False) -> None:
    """Show what run would change, and what would pause it; changes nothing.

    Ends with 0 if nothing would change, with 2 if something would, and with 5 if a table would pause.
    """

    def command(loaded: Config) -> Plan:
        # It is the run's own code that speaks, of things that do not happen.
        log.configure(as_json=as_json, verbose=verbose, secrets=tuple(loaded.secrets), only_errors=True)
        return commands.plan(loaded)

    found = with_config(ctx, config, as_json, verbose, command)
    raise typer.Exit(found.exit_code)


@app.command()
def status(ctx: typer.Context, config: ConfigPath, as_json: AsJson = False, verbose: Verbose = False) -> None:
    """Show how every table stands, and what was not applied."""
    with_config(ctx, config, as_json, verbose, commands.status)


@app.command()
def history(
    ctx: typer.Context,
    config: ConfigPath,
    table: Annotated[str | None, typer.Argument(help="database.schema.table, or its end.", show_default=False)] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show the schema versions of one table, or of all, with the evidence for each change."""
    with_config(ctx, config, as_json, verbose, functools.partial(commands.history, table=table))


for _request in requests.COMMANDS:
    app.command()(_request)
app.add_typer(dead_letters.app)
app.add_typer(migrate.app)


@app.command()
def verify(
    ctx: typer.Context,
    config: ConfigPath,
    table: Annotated[str | None, typer.Argument(help="database.schema.table, or its end.", show_default=False)] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="How many differences to list of each table.")] = 20,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Compare one table, or all, with the source database; only reads, also while the job runs.

    Ends with 0 if all rows are equal, with 2 if some differ, with 5 if a table could not be compared, and with 4 if
    what differs may only be on its way.
    """
    command = functools.partial(commands.verify, table=table, limit=limit)
    raise typer.Exit(with_config(ctx, config, as_json, verbose, command).exit_code)


@app.command()
def maintain(
    ctx: typer.Context,
    config: ConfigPath,
    table: Annotated[
        list[str] | None, typer.Argument(help="database.schema.table, or its end; all if unset.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what is due, and do nothing.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Compact tables, let old states of them go, and remove files that belong to none.

    Ends with 0 if all was done, with 1 if a table failed, and with 4 if one was left alone because a migration of it is
    not complete; with --dry-run, with 2 if something is due.
    """
    command = functools.partial(commands.maintain, tables=tuple(table or ()), dry_run=dry_run)
    raise typer.Exit(with_config(ctx, config, as_json, verbose, command).exit_code)


@app.command()
def diff(
    ctx: typer.Context,
    config: ConfigPath,
    table: Annotated[str, typer.Argument(help="database.schema.table, or its end.", show_default=False)],
    before: Annotated[int, typer.Argument(metavar="V1", min=1, help="A version number.", show_default=False)],
    after: Annotated[int, typer.Argument(metavar="V2", min=1, help="Another one.", show_default=False)],
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show what leads from one version of a table to another."""
    with_config(
        ctx,
        config,
        as_json,
        verbose,
        lambda loaded: commands.diff(loaded, table=table, before=before, after=after),
    )


@app.command()
def replay(
    ctx: typer.Context,
    config: ConfigPath,
    into: Annotated[str, typer.Option("--into", help="A new folder for state and tables.", show_default=False)],
    batch_size: Annotated[int | None, typer.Option("--batch-size", min=1, help="Offsets per batch.")] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Read the topics from their beginning into a folder of its own."""
    with_config(
        ctx,
        config,
        as_json,
        verbose,
        lambda loaded: interruptible(lambda _: commands.replay(loaded, into=into, batch_size=batch_size)),
    )


@app.command()
def install_ddl_capture(
    ctx: typer.Context,
    connector: Annotated[str, typer.Option("--connector", help="Debezium's name of the source.")] = "postgresql",
    dsn: Annotated[
        str | None,
        typer.Option("--dsn", help="Apply it to this database; without, the script is printed. Password: PGPASSWORD."),
    ] = None,
    password_file: Annotated[Path | None, typer.Option("--password-file", help="Holds the password.")] = None,
    revoke_emit: Annotated[
        bool, typer.Option("--revoke-emit", help="Let nobody else write logical messages: nobody can forge one.")
    ] = False,
    uninstall: Annotated[bool, typer.Option("--uninstall", help="Remove it.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Make a Postgres source tell of its DDL in logical messages, which prove what became of each column."""
    style = style_of(ctx, as_json, verbose)
    guarded(
        style,
        (),
        lambda: commands.install_ddl_capture(
            connector, dsn=dsn, uninstall=uninstall, revoke_emit=revoke_emit, password_file=password_file
        ),
    )


@app.command()
def docs(
    ctx: typer.Context,
    page: Annotated[str | None, typer.Argument(help="Its name; lists all if unset.", show_default=False)] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show a page of the documentation, such as reference, which explains every key of a configuration."""
    guarded(style_of(ctx, as_json, verbose), (), lambda: commands.docs(page))


@app.command()
def demo(
    ctx: typer.Context,
    source: Annotated[DemoSource, typer.Option("--source", help="The database to play with.")] = DemoSource.POSTGRES,
    folder: Annotated[str | None, typer.Option("--dir", help="Where to work; a temporary folder if unset.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave everything running until interrupted.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show the whole way from a database to a lake table on this machine."""
    style = style_of(ctx, as_json, verbose)

    def command() -> object:
        return interruptible(lambda stop: commands.demo(source=source, folder=folder, keep=keep, stop=stop))

    guarded(style, (), command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result = typer.main.get_command(app).main(args=given or ["--help"], prog_name="cdc-sync", standalone_mode=False)
    except Exception as error:
        # Typer's usage errors: their class moved between typer's releases, their shape did not.
        if not hasattr(error, "format_message"):
            raise
        message = f"Cannot read the command line: {error.format_message().rstrip('.')}; see cdc-sync --help"
        output.show_error(message, USAGE, as_json="--json" in given)
        return USAGE
    if not given:
        return USAGE
    return result if isinstance(result, int) else 0
