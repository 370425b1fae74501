"""The confusion matrix: what each kind of evidence finds of the renames that truly happened, and what it gets wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from cdc_sync.core.lineage.column_log import ColumnLog, structures_behind
from cdc_sync.core.lineage.ddl_log import DdlLog
from cdc_sync.core.lineage.kept import Kept
from cdc_sync.core.lineage.records import SchemaChangeRecord
from cdc_sync.core.migration.routes import LeftOut
from cdc_sync.core.planning.observation import Observation
from tests.laws.identity_course import Course, Row, observations
from tests.laws.identity_evidence import Reader, is_told_whole, message_log, messages_of
from tests.laws.identity_fold import fold
from tests.laws.identity_model import HIDDEN
from tests.laws.identity_mysql_themes import mysql_course
from tests.laws.identity_postgres_themes import postgres_course

SOURCES: Mapping[str, Callable[..., Course]] = {"Postgres": postgres_course, "MySQL": mysql_course}
STATED = "catalogue, exclusions stated"
EVIDENCE = ("none", "position", "DDL", "catalogue without times", "catalogue", STATED, "message", "all")
SAME_AS = {
    ("Postgres", "DDL"): "position",
    ("MySQL", "position"): "none",
    ("MySQL", "catalogue without times"): "none",
    ("MySQL", "catalogue"): "none",
    ("MySQL", STATED): "none",
    ("MySQL", "message"): "none",
    ("MySQL", "all"): "DDL",
}
"""Cells with nothing of their own: Postgres logs no DDL; MySQL places columns anywhere, its catalogue has no numbers
that outlive a rename, and it has no logical messages."""
EXCLUDED = LeftOut((rf".*\.{HIDDEN}.*",))
"""What the model's connector excludes, as an operator would state it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one kind of evidence did for one kind of source."""

    counts: Counter[str] = field(default_factory=Counter)

    @property
    def wrong(self) -> int:
        """Renames that were none, versions made by late events of an older schema, tables emptied for nothing."""
        return self.counts["wrong"] + self.counts["late"] + self.counts["emptied"]

    @property
    def share(self) -> float:
        """Found renames among all that truly happened."""
        return self.counts["found"] / max(1, self.counts["renames"])

    @property
    def stops(self) -> int:
        return sum(count for name, count in self.counts.items() if name.startswith("stopped"))


Matrix: TypeAlias = Mapping[tuple[str, str], Cell]
Counts: TypeAlias = Mapping[str, Counter[str]]


def ddl_log(records: Iterable[SchemaChangeRecord]) -> ColumnLog:
    gathered = DdlLog()
    for record in records:
        gathered.add(record)
    return gathered.log()


def planned(course: Course, evidence: str) -> Counter[str]:
    """Plan a course with one kind of evidence, whole and in time."""
    if evidence == "none":
        rows = [(row, replace(item, append_only=False)) for row, item in observations(course, [])]
        return fold(course, rows, lambda _: ())
    logs: list[ColumnLog] = []
    if evidence in ("DDL", "all") and course.changes:
        logs.append(ddl_log(course.changes))
    if evidence in ("message", "all") and course.told:
        logs.append(message_log(messages_of(course, plain=is_told_whole(course) and course.pick % 2 == 0)))
    if course.states and evidence in ("catalogue", STATED, "catalogue without times", "all"):
        seen, kept = read_along(course, logs, Reader(course, times=evidence != "catalogue without times"))
        left_out = EXCLUDED if evidence == STATED else None
        return fold(course, seen, lambda _: logs, kept=lambda number: kept[number], left_out=left_out)
    return fold(course, cut(course, logs), lambda _: logs)


def cut(course: Course, logs: Sequence[ColumnLog]) -> list[tuple[Row, Observation]]:
    return list(observations(course, structures_behind(logs, course.table, None)))


def read_along(
    course: Course, logs: Sequence[ColumnLog], reader: Reader
) -> tuple[list[tuple[Row, Observation]], list[Kept]]:
    """Return what is planned, and what readings are kept then; the first row behind each new one is planned too."""
    told = list(structures_behind(logs, course.table, None))
    seen, kept = [], []
    for row, item in observations(course, told):
        seen.append((row, item))
        kept.append(reader.plan(row))
        told += (position for position in kept[-1].cuts if position not in told)
    return seen, kept


def counted(source: str, seeds: Iterable[int], *, reveal: bool = False) -> Counts:
    """Plan the courses of these seeds with every kind of evidence that the source has."""
    kinds = [kind for kind in EVIDENCE if (source, kind) not in SAME_AS]
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    for seed in seeds:
        course = SOURCES[source](seed, reveal=reveal)
        for kind in kinds:
            counts[kind].update(planned(course, kind))
    return counts


def spread(work: Callable[[str, Sequence[int]], Counts], source: str, seeds: range, *, processes: int) -> Counts:
    """Have several processes work on a part of the seeds each, and add up what they count."""
    if processes == 1:
        return work(source, seeds)
    with ProcessPoolExecutor(processes) as pool:
        tasks = [pool.submit(work, source, seeds[start::processes]) for start in range(processes)]
        parts = [task.result() for task in tasks]
    return {name: sum((part[name] for part in parts), Counter()) for name in parts[0]}


def matrix(histories: int, seed: int = 0, *, reveal: bool = False, processes: int = 1) -> Matrix:
    """Plan so many histories of each source with each kind of evidence."""
    cells: dict[tuple[str, str], Cell] = {}
    for source in SOURCES:
        seeds = range(seed, seed + histories)
        found = spread(partial(counted, reveal=reveal), source, seeds, processes=processes)
        cells.update({(source, kind): Cell(found[SAME_AS.get((source, kind), kind)]) for kind in EVIDENCE})
    return cells
