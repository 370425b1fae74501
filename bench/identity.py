"""Prints what each kind of evidence finds of the renames that truly happened, and what it gets wrong."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.laws import identity_faults, identity_matrix  # noqa: E402
from tests.laws.identity_matrix import EVIDENCE, SAME_AS, SOURCES, STATED, Cell  # noqa: E402

BAR = 0.99
"""The share of true renames to be found wherever a source tells of them."""
BARRED = ("DDL", "message", "all", STATED)
COLUMNS = ("found", "true renames", "split", "stopped", "wrong", "wrong, reused", "same name", "tables stopped")
WIDTHS = (10, 14, 8, 9, 7, 15, 11, 16)
NAME = 46


def fields(counts: Counter[str]) -> tuple[str, ...]:
    cell = Cell(counts)
    numbers = (
        *(counts["renames"], counts["missed"], counts["paused"], cell.wrong),
        *(counts["wrong beside a reused name"], counts["namesake"], cell.stops),
    )
    return (f"{cell.share * 100:.2f} %", *(f"{number:,}" for number in numbers))


def table(rows: Iterable[tuple[str, Counter[str] | None, str]]) -> str:
    """Lay out rows of a name and what was counted, or of a name and what is to be said instead."""
    lines = [" " * NAME + "".join(title.rjust(width) for title, width in zip(COLUMNS, WIDTHS, strict=True))]
    for name, counts, instead in rows:
        text = f"  {instead}" if counts is None else "".join(
            value.rjust(width) for value, width in zip(fields(counts), WIDTHS, strict=True)
        )  # fmt: skip
        lines.append(name.ljust(NAME) + text)
    return "\n".join(lines)


def matrix_rows(cells: identity_matrix.Matrix) -> Iterable[tuple[str, Counter[str] | None, str]]:
    for source in SOURCES:
        for kind in EVIDENCE:
            same = SAME_AS.get((source, kind))
            counts = cells[source, kind].counts
            yield f"{source}, {kind}", None if same else counts, f"as {same}: there is nothing more" if same else ""


def fault_rows(found: Mapping[str, identity_matrix.Counts]) -> Iterable[tuple[str, Counter[str], str]]:
    for source, counts in found.items():
        evidence = "DDL" if source == "MySQL" else "messages"
        for fault in identity_faults.kinds(source):
            yield f"{source}, {evidence}: {fault}", counts[fault], ""


def judged(cells: identity_matrix.Matrix) -> list[str]:
    """Say what is not as it has to be."""
    own = {place: cell for place, cell in cells.items() if place not in SAME_AS}
    found = [f"{source}, {kind}: {cell.wrong} wrong" for (source, kind), cell in own.items() if cell.wrong]
    return found + [
        f"{source}, {kind}: only {cell.share * 100:.2f} % found"
        for (source, kind), cell in own.items()
        if kind in BARRED and cell.share < BAR
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--histories", type=int, default=10_000, help="of each source")
    parser.add_argument("--seed", type=int, default=0, help="of the first history; the others count on")
    parser.add_argument("--faulty", type=int, help="histories with faulty evidence; by default a tenth")
    parser.add_argument("--reveal", action="store_true", help="let excluded columns come out of hiding")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="everything counted, as JSON on stdout")
    options = parser.parse_args()
    began = time.monotonic()
    cells = identity_matrix.matrix(
        options.histories, options.seed, reveal=options.reveal, processes=options.processes
    )  # fmt: skip
    print(f"whole evidence: {time.monotonic() - began:.0f} s", file=sys.stderr)
    faulty = options.histories // 10 if options.faulty is None else options.faulty
    seeds = range(options.seed, options.seed + faulty)
    spread, counted = identity_matrix.spread, identity_faults.counted
    faults = {source: spread(counted, source, seeds, processes=options.processes) for source in SOURCES if faulty}
    print(f"faulty evidence too: {time.monotonic() - began:.0f} s", file=sys.stderr)
    if options.json:
        whole = {f"{source}, {kind}": dict(cell.counts) for (source, kind), cell in cells.items()}
        bad = {name: dict(counts) for name, counts, _ in fault_rows(faults)}
        print(json.dumps({"seed": options.seed, "whole": whole, "faulty": bad}, indent=1))
    else:
        print(f"{options.histories:,} histories of each source from seed {options.seed}, evidence whole and in time\n")
        print(table(matrix_rows(cells)))
        if faulty:
            print(f"\n{faulty:,} histories of each source, evidence faulty\n")
            print(table(fault_rows(faults)))
    wrong = judged(cells)
    if wrong:
        print("\n" + "\n".join(f"! {text}" for text in wrong), file=sys.stderr)
        raise SystemExit(1)


if __name__ == "__main__":
    main()
