"""The order of revisions: a graph, whose edges are parents and `depends_on`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import combinations

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.revisions.actions import Adopt, CreateTable
from cdc_sync.core.revisions.branches import disagreement
from cdc_sync.core.revisions.compile import Unfit, compiled
from cdc_sync.core.revisions.revision import Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong with a revision, in words; `id` is the revision's."""

    id: str
    text: str


def in_order(revisions: Sequence[Revision]) -> tuple[Revision, ...]:
    """Return revisions so that each comes behind all that it needs; among others, in the order given.

    Args:
        revisions: of which `problems` finds none; or a part of them.
    """
    known = {revision.id: revision for revision in revisions}
    needed = {item.id: [id_ for id_ in (*item.parents, *item.depends_on) if id_ in known] for item in revisions}
    sorter = TopologicalSorter(needed)
    sorter.prepare()
    places = {revision.id: place for place, revision in enumerate(revisions)}
    found: list[Revision] = []
    ready = list(sorter.get_ready())
    while ready:
        first = min(ready, key=places.__getitem__)
        ready.remove(first)
        found.append(known[first])
        sorter.done(first)
        ready += sorter.get_ready()
    return tuple(found)


def problems(revisions: Sequence[Revision]) -> tuple[Problem, ...]:
    """Return all that is wrong with how revisions stand to each other, none if they can be put in an order."""
    found = (*_doubles(revisions), *_missing(revisions)) or tuple(_cycles(revisions))
    return found or (*_ends(revisions), *_merges(revisions))


def heads(revisions: Iterable[Revision]) -> Mapping[TargetName, tuple[str, ...]]:
    """Return by table the revisions that are nobody's parent."""
    found: dict[TargetName, list[str]] = {}
    every = list(revisions)
    parents = {parent for revision in every for parent in revision.parents}
    for revision in every:
        if revision.id not in parents:
            found.setdefault(revision.table, []).append(revision.id)
    return {table: tuple(ids) for table, ids in found.items()}


def _doubles(revisions: Sequence[Revision]) -> Iterator[Problem]:
    first: dict[str, Revision] = {}
    for revision in revisions:
        other = first.setdefault(revision.id, revision)
        if other is not revision:
            yield Problem(id=revision.id, text=f"its id is that of {other.file} already")


def _missing(revisions: Sequence[Revision]) -> Iterator[Problem]:
    known = {revision.id: revision for revision in revisions}
    for revision in revisions:
        for parent in revision.parents:
            if parent not in known:
                yield Problem(id=revision.id, text=f"its parent {parent!r} is in no file")
            elif known[parent].table != revision.table:
                yield Problem(id=revision.id, text=f"its parent {parent!r} is of {known[parent].table}; say depends_on")
        for other in revision.replaces:
            if other == revision.id:
                yield Problem(id=revision.id, text=f"it replaces {other!r}, which is its own name; give it another one")
            elif other in known:
                yield Problem(id=revision.id, text=f"it replaces {other!r}, whose file is still there; take that away")
        for needed in revision.depends_on:
            if needed not in known:
                yield Problem(id=revision.id, text=f"it depends on {needed!r}, which is in no file")


def _ends(revisions: Sequence[Revision]) -> Iterator[Problem]:
    """A table begins once, with `create_table` or `adopt`, and has one head."""
    for revision in revisions:
        begins = [action for action in revision.actions if isinstance(action, (CreateTable, Adopt))]
        if not revision.parents and not begins:
            yield Problem(id=revision.id, text="it is the first of its table: it has to create_table or adopt it")
        elif revision.replaces and not isinstance(revision.actions[0], CreateTable):
            yield Problem(id=revision.id, text="it replaces others; only a revision that has create_table does")
        elif begins and (revision.parents or len(revision.actions) > 1):
            yield Problem(id=revision.id, text="create_table and adopt stand alone, in the first revision of a table")
    for table, ids in heads(revisions).items():
        if len(ids) > 1:
            text = f"{table} has {len(ids)} heads, {' and '.join(ids)}: write a revision whose parents they are"
            why = _disagreement(ids, revisions)
            yield Problem(id=ids[-1], text=text if why is None else f"{text}; before that, {why}: change one of them")


def _merges(revisions: Sequence[Revision]) -> Iterator[Problem]:
    """Where branches meet, it has to be the same which of them came first."""
    for revision in revisions:
        why = _disagreement(revision.parents, revisions)
        if why is not None:
            yield Problem(id=revision.id, text=f"its parents cannot be joined: {why}; change one of them")


def _disagreement(ids: Sequence[str], revisions: Sequence[Revision]) -> str | None:
    """Say why it matters in which order branches are applied; of a table that was adopted nobody knows the columns."""
    known = {revision.id: revision for revision in revisions}
    for one, other in combinations(ids, 2):
        before, behind = _ancestors(one, known), _ancestors(other, known)
        common = in_order([known[id_] for id_ in known if id_ in before & behind])
        schema = None
        try:
            for revision in common:
                schema = compiled(revision.actions, schema).schema
        except Unfit:
            continue
        if schema is None:
            continue
        branches = ([known[id_] for id_ in known if id_ in ids_] for ids_ in (before - behind, behind - before))
        why = disagreement(schema, *map(in_order, branches))
        if why is not None:
            return why
    return None


def _ancestors(id_: str, known: Mapping[str, Revision]) -> set[str]:
    """Return a revision and all of its table that come before it."""
    found, open_ = set[str](), [id_]
    while open_:
        newest = open_.pop()
        if newest not in found:
            found.add(newest)
            open_ += known[newest].parents
    return found


def _cycles(revisions: Sequence[Revision]) -> Iterator[Problem]:
    try:
        TopologicalSorter({item.id: (*item.parents, *item.depends_on) for item in revisions}).prepare()
    except CycleError as error:
        ring = [str(id_) for id_ in error.args[1]]
        yield Problem(id=ring[0], text=f"it comes before itself: {' <- '.join(ring)}")
