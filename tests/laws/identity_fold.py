"""One course planned observation by observation, and every decision compared with what really happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from cdc_sync.core.history.history import History
from cdc_sync.core.lineage.audit import Joined, audit
from cdc_sync.core.lineage.column_log import ColumnLog
from cdc_sync.core.lineage.kept import NOTHING_KEPT, Kept
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.routes import LeftOut, Route, TargetName
from cdc_sync.core.planning.observation import Observation, TablePlan
from cdc_sync.core.planning.plan import in_time, plan_table
from cdc_sync.core.schema.policy import Policy
from tests.laws.identity_course import POSTGRES, Course, Row, observation

Logs = Callable[[int], Sequence[ColumnLog]]
"""Number of an observation -> what is known when it is planned."""
Readings = Callable[[int], Kept]
"""The same for readings of the catalogue."""


def no_readings(_: int) -> Kept:
    return NOTHING_KEPT


ROUTE = Route(
    table=POSTGRES,
    target=TargetName(namespace="public", name="t"),
    renames={},
    drops=frozenset(),
    initials={},
    policy=Policy(),
)


def fold(
    course: Course,
    seen: Sequence[tuple[Row, Observation]],
    logs: Logs,
    *,
    kept: Readings = no_readings,
    left_out: LeftOut | None = None,
    after_waiting: Logs | None = None,
    afterwards: Sequence[ColumnLog] = (),
) -> Counter[str]:
    """Plan a course and count.

    Args:
        course: what the source went through.
        seen: the rows that are planned.
        logs: what is known then.
        kept: readings that are kept then.
        left_out: what the operator states of columns that events do not show.
        after_waiting: be patient, and when waiting ends, this is known.
        afterwards: what is known at last; what it says of decisions made without it is counted.

    Returns:
        renames: columns whose name in one observation is not the one in the next.
        found, missed, paused: what became of each of these: kept its id; got another one, so that its history is
            split; the table was stopped there. It is then taken up anew, as a table seen for the first time.
        wrong: an id that passed from one column to another of another name, although all names that were
            trusted stood for the same columns as before.
        wrong beside a reused name: the same, where a name that did not change stands for another column now.
        namesake: an id that passed to another column of the same name.
        split: a column that kept its name and got another id.
        mended: a column that got back the id it had before its history was split.
        …, told afterwards: how many of these the evidence told of once it was all there.
        late: late events of an older schema that made a version.
        made anew, emptied: versions that take the table for another one, and how many of these are wrong.
        stopped …: why the table was stopped.
    """
    counts: Counter[str] = Counter(histories=1)
    route = replace(ROUTE, left_out=left_out)
    history: History | None = None
    truth: dict[str, int] = {}
    bound: dict[int, int] = {}
    joined: list[tuple[str, str]] = []
    for number, (row, item) in enumerate(seen):
        before, truth = truth, {column.name: column.identity for column in row.columns}
        renamed = _renamed(before, truth)
        counts["renames"] += len(renamed)
        patient = after_waiting is not None
        plan = plan_table(history, [item], route, ICEBERG, logs=logs(number), kept=kept(number), patient=patient)
        if plan.waiting is not None and after_waiting is not None:
            counts["waited"] += 1
            plan = plan_table(history, [item], route, ICEBERG, logs=after_waiting(number))
        plan = in_time(plan, max((it.position for it in course.rows if it.position < row.position), default=None))
        stop = _stop(plan)
        if stop:
            counts[stop] += 1
            counts["paused"] += len(renamed)
            counts += _told(history, joined, afterwards, seen[number - 1][0])
            history, renamed = None, set()
            bound.clear()
            joined.clear()
            plan = plan_table(None, [item], route, ICEBERG, kept=kept(number))
        former = history
        for version in plan.versions:
            # Rows go with the old table; a column that lives on had some.
            if version.made_anew is not None:
                counts["emptied"] += not set(before.values()).isdisjoint(truth.values())
                counts["made anew"] += 1
            first = History(table=version.table, versions=(version,)) if history is None else None
            history = first if history is None else history.extended(version)
        if history is not None:
            counts += _judged(former, history, bound, truth, renamed, joined)
        counts["late"] += _late(course, seen, number, history, logs, kept, route)
    return counts + _told(history, joined, afterwards, seen[-1][0])


def _told(
    history: History | None, joined: Iterable[tuple[str, str]], afterwards: Sequence[ColumnLog], last: Row
) -> Counter[str]:
    """Count the wrong joins that evidence which came late tells of."""
    if history is None:
        return Counter()
    found = (item for log in afterwards for item in audit(history, log, last.position) if isinstance(item, Joined))
    names = {item.name for item in found}
    return Counter(f"{what}, told afterwards" for what, name in joined if name in names)


def _renamed(before: Mapping[str, int], after: Mapping[str, int]) -> set[int]:
    names = {identity: name for name, identity in before.items()}
    return {identity for name, identity in after.items() if names.get(identity, name) != name}


def _stop(plan: TablePlan) -> str:
    if plan.waiting is not None:
        return "stopped to wait"
    if plan.refusal is None:
        return ""
    reason = plan.refusal.why.reason
    for words, called in _STOPS.items():
        if words in reason:
            return f"stopped by {called}"
    return "stopped by something else"


_STOPS = {
    "contradicts itself": "a contradiction",
    "dropped and created again": "a table made anew",
    "cannot be proven": "an unproven change",
    "cannot do in place": "a type change",
    "the key changed": "a change of the key",
    "key column": "a change of the key",
    "it accepts no NULL and has no default": "a change of the key",
    "has the name of a column that is kept": "a name that came back",
}


def _judged(
    former: History | None,
    history: History,
    bound: dict[int, int],
    truth: Mapping[str, int],
    renamed: Iterable[int],
    wrong: list[tuple[str, str]],
) -> Counter[str]:
    """Compare one step with the truth, and bind ids to columns anew where they were wrong."""
    counts: Counter[str] = Counter(versions=1 if former is None else history.head.number - former.head.number)
    schema = history.head.schema
    assert [column.name for column in schema.live] == list(truth)
    names = {column.id: column.name for column in former.head.schema.columns} if former else {}
    live = {column.id for column in former.head.schema.live} if former else set()
    holders = {bound[id_]: id_ for id_ in live}
    joined = {column.id: truth[column.name] for column in schema.live if column.id in names}
    reused = any(names[id_] == schema.column(id_).name and bound[id_] != now for id_, now in joined.items())
    for id_, identity in joined.items():
        name = schema.column(id_).name
        if bound[id_] != identity:
            other = "wrong beside a reused name" if reused else "wrong"
            wrong.append(("namesake" if names[id_] == name else other, name))
            counts[wrong[-1][0]] += 1
    ids = {truth[column.name]: column.id for column in schema.live}
    for identity, id_ in ids.items():
        kept = holders.get(identity) == id_
        if identity in renamed:
            counts["found" if kept else "missed"] += 1
        elif identity in holders and not kept:
            counts["mended" if bound.get(id_) == identity else "split"] += 1
        bound[id_] = identity
    return counts


def _late(
    course: Course,
    seen: Sequence[tuple[Row, Observation]],
    number: int,
    history: History | None,
    logs: Logs,
    kept: Readings,
    route: Route,
) -> int:
    """Let a row of an older schema come late, in another partition, and count the versions it makes."""
    if course.partitions == 1 or history is None or (course.pick + number) % 3:
        return 0
    row = course.rows[(course.pick >> 4) % len(course.rows)]
    if row.position >= history.head.position:
        return 0
    item = observation(course, row)
    return len(plan_table(history, [item], route, ICEBERG, logs=logs(number), kept=kept(number)).versions)
