"""Why a version is what it is, besides which column is which: what was kept, considered, left out and filled in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from cdc_sync.changepolicy import KEPT, Wanted
from cdc_sync.evidence.column_log import ColumnLog
from cdc_sync.evidence.initials import told_initial
from cdc_sync.history.history import History
from cdc_sync.naming import Route
from cdc_sync.refused import Refused
from cdc_sync.schema.align import align
from cdc_sync.schema.alignment import IGNORED, NEEDS_RESYNC, Alignment, Evidence, Facts
from cdc_sync.schema.changes import ReviveColumn, SchemaChange, UpdateColumnType
from cdc_sync.schema.initial import MISSING, Known, Unknown, initial_value
from cdc_sync.schema.internal import Default, InternalSchema
from cdc_sync.schema.members import AddMember, member_changes, path_text
from cdc_sync.schema.observed import ObservedSchema
from cdc_sync.sighting import Sighting


def left_out(history: History) -> frozenset[str]:
    """Return the names of columns, and the paths of members, whose values were left out at any time."""
    said = (item for version in history.versions for item in version.evidence)
    return frozenset(item.subject for item in said if item.kind == IGNORED)


def untold(choice: Wanted, history: History) -> tuple[Evidence, ...]:
    """Return why columns and members are kept or left out, without members that the history says are kept."""
    told = {item.subject for version in history.versions for item in version.evidence if item.kind == KEPT}
    return tuple(item for item in choice.evidence if item.subject not in choice.kept or item.subject not in told)


def wanted_again(
    changes: Iterable[SchemaChange], before: InternalSchema, left_out: frozenset[str]
) -> Iterator[Evidence]:
    """Mark columns with a new member whose values were left out before: nobody knows what existing rows hold in it."""
    for change in changes:
        if not isinstance(change, UpdateColumnType):
            continue
        column = before.column(change.id).name
        for part in member_changes(change.old, change.new):
            path = path_text(column, (*part.parent, part.field.name)) if isinstance(part, AddMember) else ""
            if path in left_out:
                text = f"existing rows read NULL in {path}: its values were left out for a time, by policy.add_column"
                yield Evidence(subject=column, kind=NEEDS_RESYNC, text=text)


def back_again(changes: Iterable[SchemaChange]) -> Iterator[Evidence]:
    """Mark columns that events show again: what rows that were written meanwhile hold in them, no event tells."""
    for change in changes:
        if isinstance(change, ReviveColumn):
            text = "events show it again; rows written meanwhile read what they had before, or NULL"
            yield Evidence(subject=change.name, kind=NEEDS_RESYNC, text=text)


def kept_evidence(before: InternalSchema, alignment: Alignment) -> tuple[Evidence, ...]:
    """Say in the history which columns were kept because nothing proved what became of them."""
    return tuple(
        Evidence(
            subject=before.column(id_).name,
            kind="unproven",
            text=f"kept with its data, gone at the source: {case.reason}",
        )
        for case in alignment.unproven
        for id_ in case.vanished
    )


def considered(before: InternalSchema, seen: ObservedSchema, facts: Facts, alignment: Alignment) -> Iterator[Evidence]:
    """Say in the history what names and places alone would have left open, or taken for something else."""
    if not facts.proofs:
        return
    alone = align(before, seen, replace(facts, proofs=()))
    for case in alone.unproven:
        names = [before.column(id_).name for id_ in case.vanished] or [seen.columns[i].name for i in case.appeared]
        yield Evidence(
            subject=", ".join(names),
            kind="considered",
            text="; or ".join(case.explanations) or case.reason,
        )
    proven = dict(alignment.same)
    for id_, index in alone.same:
        if proven.get(id_) != index:
            name, new = before.column(id_).name, seen.columns[index].name
            text = "the same column, by its name" if name == new else f"renamed to {new!r}, by its place"
            yield Evidence(subject=name, kind="considered", text=text)


def initial_values(
    seen: ObservedSchema,
    alignment: Alignment,
    sighting: Sighting,
    route: Route,
    logs: Sequence[ColumnLog],
    left_out: frozenset[str],
) -> tuple[dict[str, Default], tuple[Evidence, ...]] | Refused:
    """Find what existing rows read in each new column; nobody knows that of one whose values were left out before."""
    values: dict[str, Default] = {}
    evidence: list[Evidence] = []
    appeared = {*alignment.added, *(index for case in alignment.unproven for index in case.appeared)}
    for index in sorted(appeared):
        column = seen.columns[index]
        declared = route.initials.get(column.name, MISSING)
        if declared is MISSING and column.name in sighting.betrays_default:
            column = replace(column, suspect_default=True)
        told = told_initial(logs, sighting.table, sighting.position, column) if declared is MISSING else None
        holds_default = column.name in sighting.holds_default
        found = told or initial_value(column, declared=declared, first_row_holds_default=holds_default)
        if column.name in left_out:
            found = Unknown(reason="its values were left out for a time, by policy.add_column")
        match found:
            case Unknown(reason=reason) if route.policy.unknown_values == "pause":
                return Refused(
                    reason=f"what existing rows hold in the new column {column.name!r} is not known: {reason}",
                    remedy=f"set initial_values: {{{column.name}: <value>}} for the table (null for NULL)",
                )
            case Unknown(reason=reason):
                values[column.name] = None
                if not route.append:  # a changelog's rows are what the events said
                    text = f"existing rows read NULL; what they hold is not known: {reason}"
                    evidence.append(Evidence(subject=column.name, kind=NEEDS_RESYNC, text=text))
            case Known(value=value):
                values[column.name] = value
                if value is not None:
                    source = "the column's default" if told is None else "as the source's catalogue has it"
                    text = f"existing rows read {value!r}, {source if declared is MISSING else 'declared'}"
                    evidence.append(Evidence(subject=column.name, kind="default", text=text))
    return values, tuple(evidence)
