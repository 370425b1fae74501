"""The table of findings, for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from bench.readers.reading import Finding
from bench.readers.regimes import Regime, regime
from cdc_sync.core.migration.readers import why_not


def verdict(found: Finding) -> str:
    """Say in a few words what came of a reading.

    What is refused beforehand is asked all the same: it tells when a later version of an engine may be let in.
    """
    refused = _is_refused(found)
    match found.equal:
        case True:
            return "equal, though refused" if refused else "equal"
        case False:
            return "refused by us" if refused else "DIFFERS"
        case None:
            return "refused by us" if refused else "fails"


def wrong(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return what must not be: an engine that does not show what the source holds, and is not refused beforehand."""
    return tuple(found for found in findings if not found.equal and not _is_refused(found))


def _is_refused(found: Finding) -> bool:
    return why_not(found.engine, regime(found.regime).kind) is not None


def show(findings: Sequence[Finding], kinds: Sequence[Regime], *, as_json: bool) -> None:
    """Print engines by regimes, and below why."""
    if as_json:
        print(json.dumps([{**asdict(found), "verdict": verdict(found)} for found in findings], ensure_ascii=False))
        return
    table = Table("engine", *(kind.name for kind in kinds))
    for engine in dict.fromkeys(found.engine for found in findings):
        own = {found.regime: found for found in findings if found.engine == engine}
        version = next((found.version for found in own.values() if found.version), "")
        cells = (verdict(own[kind.name]) if kind.name in own else "" for kind in kinds)
        table.add_row(f"{engine} {version}", *cells)
    console = Console(width=140)
    console.print(table)
    for found in findings:
        if found.text:
            console.print(f"{found.engine}, {found.regime}: {found.text[:600]}", markup=False, highlight=False)
