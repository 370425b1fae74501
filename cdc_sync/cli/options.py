"""Arguments and options that several commands have."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from cdc_sync.config.fields import parse_duration

ConfigPath = Annotated[str, typer.Argument(metavar="CONFIG", help="The pipeline's YAML file.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout; log JSON lines on stderr.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Log more; show where an error came from.")]
TableName = Annotated[str, typer.Argument(help="database.schema.table, or its end.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Tell what would be done, and do nothing.")]


def duration(text: str) -> timedelta:
    """Read an option's value."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"it {error}") from None
