"""Progress for people on stderr; stdout is for the report."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table
from rich.text import Text


class Show:
    """Lines with the seconds since the start; a spinner where there is a terminal."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def line(self, text: str, *, style: str = "") -> None:
        """Say what just happened."""
        line = Text.assemble((f"{self.seconds:6.1f} s  ", "dim"), (text, style))
        self._console.print(line)

    def detail(self, text: str) -> None:
        """Add to the last line."""
        self._console.print(Text(f"          {text}", style="dim"))

    def parts(self, parts: Iterable[str | Table]) -> None:
        """Show a report that has to be seen although it is not the result."""
        for part in parts:
            self._console.print(Text(part) if isinstance(part, str) else part)

    @contextmanager
    def busy(self, text: str) -> Iterator[None]:
        """Say what is waited for."""
        if self._console.is_terminal:
            with self._console.status(Text(text)):
                yield
        else:
            yield
