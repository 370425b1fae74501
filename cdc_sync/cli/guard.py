"""The one door between a command and the terminal: its result is shown, its failure is one line and an exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import typer

from cdc_sync.cli import log
from cdc_sync.cli import render as output
from cdc_sync.cli.printable import printable
from cdc_sync.cli.signals import INTERRUPTED
from cdc_sync.config import Config, Secret, load_config, redact
from cdc_sync.errors import CdcSyncError, ConfigError, TransientError

Result = TypeVar("Result")
DEAD_JVM = (
    "Cannot go on: the JVM that Spark runs in has ended: it was killed, perhaps by the system for want of memory, or "
    "ran out of its own; what it wrote last stands above. Everything that was committed stands; start the command "
    "again, and if it happens again, with another spark.driver.memory under spark.conf"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How to print; given before the command or after it."""

    as_json: bool
    verbose: bool


def style_of(ctx: typer.Context, as_json: bool, verbose: bool) -> Style:
    """Return how to print, as it is said before the command or after it."""
    before: Style = ctx.obj
    return Style(as_json=as_json or before.as_json, verbose=verbose or before.verbose)


def with_config(
    ctx: typer.Context, path: str, as_json: bool, verbose: bool, command: Callable[[Config], Result]
) -> Result:
    """Load a configuration, do something with it, and show what comes of it."""
    style = style_of(ctx, as_json, verbose)
    config = loaded(style, path)
    return guarded(style, tuple(config.secrets), lambda: command(config))


def loaded(style: Style, path: str) -> Config:
    """Load a configuration; what is wrong with it ends the command."""
    return guarded(style, (), lambda: load_config(path), quiet=True)


def confirmed(
    ctx: typer.Context,
    path: str,
    as_json: bool,
    verbose: bool,
    command: Callable[..., object],
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    """Show what a command would do, ask whether it shall, and do it.

    Args:
        command: of a configuration; with `dry_run` it only tells.
        yes: do not ask.
        dry_run: only show it.
    """
    style = style_of(ctx, as_json, verbose)
    check_askable(style, yes=yes or dry_run)
    config = loaded(style, path)
    secrets = tuple(config.secrets)
    if not (yes or dry_run):
        guarded(style, secrets, lambda: command(config, dry_run=True))
        ask()
    guarded(style, secrets, lambda: command(config, dry_run=dry_run))


def check_askable(style: Style, *, yes: bool) -> None:
    """End the command where it would have to ask, and nobody can be."""
    if not yes and (style.as_json or not sys.stdin.isatty()):
        raise typer.BadParameter("nobody can be asked here: say --yes to do it, or --dry-run to be told")


def ask() -> None:
    """Ask whether to go on; end the command if not."""
    try:
        agreed = typer.confirm("Go on?", err=True)
    except typer.Abort:  # interrupted, or nothing more to read
        agreed = False
    if not agreed:
        output.show_error("Nothing was done", 1, as_json=False, secrets=())
        raise typer.Exit(1)


def guarded(style: Style, secrets: Sequence[Secret], work: Callable[[], Result], *, quiet: bool = False) -> Result:
    """Do the work, print its result and return it; turn a failure into one line and an exit code."""
    log.configure(as_json=style.as_json, verbose=style.verbose, secrets=secrets)
    others: tuple[str, ...] = ()
    try:
        value = work()
    except CdcSyncError as error:
        message, exit_code = str(error), error.exit_code
        others = tuple(map(str, error.others)) if isinstance(error, ConfigError) else ()
        cause: BaseException = error
    except KeyboardInterrupt as error:
        message, exit_code, cause = "Interrupted", INTERRUPTED, error
    except Exception as error:
        # The last door: nothing reaches the user as a bare traceback.
        message = f"Cannot go on: {type(error).__name__}: {error}; --verbose shows where, please report it"
        exit_code, cause = 1, error
        if is_of_a_dead_jvm(error):
            message, exit_code = DEAD_JVM, TransientError.exit_code
    else:
        if not quiet:
            output.show(value, as_json=style.as_json, secrets=secrets)
        return value
    if style.verbose:
        sys.stderr.write(printable(redact("".join(traceback.format_exception(cause)), secrets)))
    output.show_error(message, exit_code, as_json=style.as_json, secrets=secrets, others=others)
    raise typer.Exit(exit_code)


def is_of_a_dead_jvm(error: BaseException) -> bool:
    """Whether Python lost its connection to the JVM; without loading what connects them."""
    seen: BaseException | None = error
    while seen is not None:
        frames = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(seen.__traceback__))
        is_network = isinstance(seen, OSError) or type(seen).__name__ == "Py4JNetworkError"
        if is_network and any(name.startswith("py4j.") for name in frames):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
