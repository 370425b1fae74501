"""Golden reports: one line for each table of each capture, and for another format only the lines that differ."""

from __future__ import annotations

import os
from collections.abc import Mapping
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
        path.write_text("".join(found[name] for name in CAPTURES if name in found))
    assert text == golden(path)[capture]


def ends_as(format_: str, capture: str, verdicts: Mapping[str, str]) -> None:
    """Compare how tables end in another format with how they end in Iceberg, but for lines that are the format's own.

    Args:
        verdicts: what the report says of each table that was run.
    """
    path = REPORT.with_name(f"report.{format_}.golden.txt")
    usual, own = _verdicts(REPORT)[capture], _verdicts(path)
    if os.environ.get("CDC_SYNC_WRITE_GOLDEN"):
        others = {table: told for table, told in own.get(capture, {}).items() if table not in verdicts}
        own[capture] = others | {table: told for table, told in verdicts.items() if told != usual[table]}
        path.write_text("".join(_text(name, own[name]) for name in CAPTURES if own.get(name)))
    wanted = usual | own.get(capture, {})
    assert verdicts == {table: wanted[table] for table in verdicts}


def _verdicts(path: Path) -> dict[str, dict[str, str]]:
    found = {}
    for capture, text in golden(path).items():
        lines = (line.strip().partition("  ") for line in text.splitlines()[1:])
        found[capture] = {table: told.strip() for table, _, told in lines}
    return found


def _text(capture: str, verdicts: Mapping[str, str]) -> str:
    return f"{capture}\n" + "".join(f"  {table}  {told}\n" for table, told in sorted(verdicts.items()))
