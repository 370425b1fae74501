"""How tests see one run of the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import typer.main

from cdc_sync.cli.app import app


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command line ended."""

    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


CommandLine = Callable[..., Ran]
"""Takes the arguments, runs them, returns how that ended."""


def options_of(words: Sequence[str]) -> set[str] | None:
    """Return the options of the command that a command line begins with, None if there is no such command."""
    command: Any = typer.main.get_command(app)
    left = list(words)
    while hasattr(command, "commands"):
        if not left or left[0] not in command.commands:
            return None
        command = command.commands[left.pop(0)]
    return {option for parameter in command.params for option in parameter.opts}
