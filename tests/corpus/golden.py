"""Golden reports: one line for each table of each capture, and for another format only the lines that differ."""

from __future__ import annotations

import os
from pathlib import Path

from tests.corpus.reader import CAPTURES

REPORT = Path(__file__).parent / "report.golden.txt"
"""How each table ends in Iceberg."""


def golden(path: Path) -> dict[str, str]:
    """Return the golden report of each capture; empty if there is none."""
    parts: dict[str, str] = {}
    for line in path.read_text().splitlines(keepends=True) if path.exists() else ():
        if not line.startswith(" "):
            parts[line.strip()] = ""
        last = list(parts)[-1]
        parts[last] += line
    return parts


def agrees(path: Path, capture: str, text: str) -> None:
    """Compare a report with the golden one, or write it there if that is asked for."""
    if os.environ.get("CDC_SYNC_WRITE_GOLDEN"):
        found = golden(path) | {capture: text}
        path.write_text("".join(found[name] for name in CAPTURES if found.get(name)))
    assert text == golden(path).get(capture, "")


def differing(capture: str, text: str) -> str:
    """Return the report of another format without the lines that are Iceberg's; empty if all are."""
    usual = golden(REPORT)[capture].splitlines()
    lines = [line for line in text.splitlines() if line not in usual]
    return "".join(f"{line}\n" for line in (capture, *lines)) if lines else ""
