"""What `decode.py` found, as values and as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from measure import Cost, typical
from steady import Steady
from tasks import TaskCost
from ways import Format

STEADY_BAR_MS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One comparison: medians of the rounds, and medians of each round's ratios.

    Attributes:
        reading, static, ours: what all, the static and our way took; `ours` includes reading, as `static` does.
        faster: events per second, ours over theirs.
        cheaper: processor time of driver and JVM, theirs over ours.
        tasks: seconds of the tasks' processor time for 100,000 events, of reading, the static way and ours.
        cheaper_tasks: the tasks' processor time, theirs over ours.
        beyond_reading: the same without what reading alone takes.
    """

    format: Format
    width: int
    live: int
    bytes_per_event: int
    reading: Cost
    static: Cost
    ours: Cost
    faster: float
    cheaper: float
    tasks: tuple[float, float, float]
    cheaper_tasks: float
    beyond_reading: float

    @property
    def bar(self) -> float:
        """How many times faster ours has to be."""
        if self.format == "avro":
            return 0.9
        return 1.5 if self.live == 1 else 1.3


def figure_of(
    format_: Format, width: int, live: int, bytes_per_event: int, costs: Mapping[str, Sequence[TaskCost]]
) -> Figure:
    """Compare the static way with ours; `costs` are by way, blank, number of live schemas."""
    reading, theirs, mine = (list(costs[f"{name} {live}"]) for name in ("reading", "static", "ours"))

    def ratio(of: Callable[[TaskCost, TaskCost, TaskCost], float]) -> float:
        return median(of(*round_) for round_ in zip(reading, theirs, mine, strict=True))

    return Figure(
        format=format_,
        width=width,
        live=live,
        bytes_per_event=bytes_per_event,
        reading=typical([each.cost for each in reading]),
        static=typical([each.cost for each in theirs]),
        ours=typical([each.cost for each in mine]),
        faster=ratio(lambda _, a, b: b.cost.throughput / a.cost.throughput),
        cheaper=ratio(lambda _, a, b: a.cost.cpu / b.cost.cpu),
        tasks=(_tasks(reading), _tasks(theirs), _tasks(mine)),
        cheaper_tasks=ratio(lambda _, a, b: a.tasks / b.tasks),
        beyond_reading=ratio(lambda r, a, b: (a.tasks - r.tasks) / max(0.001, b.tasks - r.tasks)),
    )


def _tasks(costs: Sequence[TaskCost]) -> float:
    return median(each.tasks_per_100k for each in costs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All figures of a run; `differences` must be empty."""

    figures: tuple[Figure, ...]
    steady: Steady | None
    differences: tuple[str, ...]


_HEAD = (
    *("", "bytes", "read ev/s", "static", "ours", "faster", "bar"),
    *("read CPU-s", "static", "ours", "cheaper", "read task-s", "static", "ours", "cheaper", "beyond read"),
)


def as_text(results: Results) -> str:
    """Return the figures as tables; CPU-s and task-s are for 100,000 events."""
    lines = [_row(_HEAD), *map(line_of, results.figures)] if results.figures else []
    lines += _steady_lines(results.steady) if results.steady else []
    return "\n".join([*lines, *results.differences])


def _steady_lines(found: Steady) -> list[str]:
    total = sum(found.schemas.values())
    mark = " " if total < STEADY_BAR_MS else "!"
    others = {**found.others, "whole batch": found.batch}
    return [
        f"\n{found.tables} tables in a batch, milliseconds of the driver for each table:",
        *(f"  {name:<50}{ms:>8.2f}" for name, ms in found.schemas.items()),
        f"  {'schemas in all':<50}{total:>8.2f} {mark} {STEADY_BAR_MS:g}",
        *(f"  {'beside it: ' + name:<50}{ms:>8.2f}" for name, ms in others.items()),
    ]


def line_of(figure: Figure) -> str:
    """Return a figure as one line."""
    ways = (figure.reading, figure.static, figure.ours)
    mark = " " if figure.faster >= figure.bar else "!"
    cells = [f"{figure.format} {figure.width} x {figure.live}", f"{figure.bytes_per_event}"]
    cells += [*(f"{way.throughput:.0f}" for way in ways), f"{figure.faster:.2f} x", f"{mark} {figure.bar} x"]
    cells += [*(f"{way.cpu_per_100k:.2f}" for way in ways), f"{figure.cheaper:.2f} x"]
    cells += [
        *(f"{way:.2f}" for way in figure.tasks),
        f"{figure.cheaper_tasks:.2f} x",
        f"{figure.beyond_reading:.2f} x",
    ]
    return _row(cells)


_CELL = 12


def _row(cells: Sequence[str]) -> str:
    return f"{cells[0]:<14}" + "".join(f"{cell:>{_CELL}}" for cell in cells[1:])


def as_json(results: Results) -> str:
    """Return the figures as one JSON object."""
    return json.dumps(asdict(results), indent=2)
