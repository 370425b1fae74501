"""Why a version is what it is, besides which column is which: what was kept, considered, left out and filled in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from typing_extensions import assert_never

from cdc_sync.core.history.history import History
from cdc_sync.core.lineage.column_log import ColumnLog
from cdc_sync.core.lineage.initials import told_initial
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.model.codes import Code
from cdc_sync.core.planning.change_policy import Wanted
from cdc_sync.core.planning.observation import Observation
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.align import align
from cdc_sync.core.schema.alignment import IGNORED, KEPT, NEEDS_RESYNC, UNPROVEN, UNSHOWN, Alignment, Evidence, Facts
from cdc_sync.core.schema.changes import ReviveColumn, SchemaChange, UpdateColumnType
from cdc_sync.core.schema.initial import MISSING, Assumed, InitialValue, Known, Missing, Unknown, initial_value
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.members import AddMember, member_changes, path_text
from cdc_sync.core.schema.observed import ObservedColumn, ObservedSchema
from cdc_sync.core.schema.types import Default
from cdc_sync.core.schema.values import canonical_value
from cdc_sync.errors import SchemaError


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
            kind=UNPROVEN,
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


def late_columns(seen: ObservedSchema, alignment: Alignment, facts: Facts) -> dict[str, str]:
    """Return the new columns that the source had before an event showed them, by name, each with how that is known.

    Their types were not sent before, or the connector's settings left them out.
    """
    kept = [index for _, index in alignment.same]
    last = max(kept, default=-1) if facts.append_only else -1
    new = (*alignment.added, *(index for case in alignment.unproven for index in case.appeared))
    found = {seen.columns[index].name: "it stands before older ones" for index in new if index < last}
    for proof in facts.proofs:
        told = {seen.columns[index].name: "the source tells it" for index in proof.late}
        found |= {name: text for name, text in told.items() if name not in found}
    return found


def unshown_columns(facts: Facts) -> tuple[Evidence, ...]:
    """Say which new columns events do not show, so that it is known of one that they show later."""
    told = {name: why for proof in facts.proofs for name, why in proof.unshown.items()}
    text = "the source has it since {}, and events do not show it"
    return tuple(Evidence(subject=name, kind=UNSHOWN, text=text.format(why)) for name, why in sorted(told.items()))


def initial_values(
    seen: ObservedSchema,
    alignment: Alignment,
    observation: Observation,
    route: Route,
    logs: Sequence[ColumnLog],
    left_out: frozenset[str],
    late: Mapping[str, str],
) -> tuple[dict[str, Default], tuple[Evidence, ...]] | Refused:
    """Find what existing rows read in each new column.

    Nobody knows that of one whose values were left out before, or that was there before events showed it.
    """
    values: dict[str, Default] = {}
    evidence: list[Evidence] = []
    appeared = {*alignment.added, *(index for case in alignment.unproven for index in case.appeared)}
    for index in sorted(appeared):
        column = seen.columns[index]
        declared = route.initials.get(column.name, MISSING)
        wrong = _why_no_value(declared, column)
        if wrong is not None:
            return Refused(
                code=Code.INITIAL,
                reason=f"what initial_values says of the new column {column.name!r} {wrong}",
                remedy=f"correct initial_values: {{{column.name}: <value>}} for the table (null for NULL)",
            )
        if declared is MISSING and column.name in observation.betrays_default:
            column = replace(column, suspect_default=True)
        told = told_initial(logs, observation.table, observation.position, column) if declared is MISSING else None
        holds_default = column.name in observation.holds_default
        found = told or initial_value(column, declared=declared, first_row_holds_default=holds_default)
        if column.name in left_out:
            found = Unknown(reason="its values were left out for a time, by policy.add_column")
        elif column.name in late and declared is MISSING:
            found = Unknown(reason=f"it was there before events showed it, for {late[column.name]}")
        if not isinstance(found, Known) and route.policy.unknown_values == "pause":
            reason = found.reason if isinstance(found, Unknown) else _UNPROVEN
            return Refused(
                code=Code.INITIAL,
                reason=f"what existing rows hold in the new column {column.name!r} is not known: {reason}",
                remedy=f"set initial_values: {{{column.name}: <value>}} for the table (null for NULL)",
            )
        values[column.name] = None if isinstance(found, Unknown) else found.value
        said = _said(found, declared, is_trusted=route.policy.unknown_values == "trust")
        if said is not None and not (route.append and said[0] == NEEDS_RESYNC):  # its rows are what the events said
            evidence.append(Evidence(subject=column.name, kind=said[0], text=said[1]))
    return values, tuple(evidence)


def _why_no_value(declared: Default | Missing, column: ObservedColumn) -> str | None:
    """Say why a declared value cannot stand in the column: a cast would make NULL of it."""
    try:
        if declared is not MISSING:
            canonical_value(declared, column.type)
    except SchemaError as error:
        return str(error)
    return None


_SHOWN = "the default that the first event shows"
_UNPROVEN = "nothing tells what it was added with (`evidence`)"


def _said(found: InitialValue, declared: Default | Missing, *, is_trusted: bool) -> tuple[str, str] | None:
    """Return what the history says of a new column in existing rows, its kind first; None if they read NULL."""
    match found:
        case Unknown(reason=reason):
            return NEEDS_RESYNC, f"existing rows read NULL; what they hold is not known: {reason}"
        case Assumed(value=value) if not is_trusted:
            shown = "NULL, for the first event shows no default" if value is None else f"{value!r}, {_SHOWN}"
            return NEEDS_RESYNC, f"existing rows read {shown}; {_UNPROVEN}"
        case Known(value=value) | Assumed(value=value) if value is None:
            return None
        case Known(value=value):
            source = "with which it was added" if declared is MISSING else "declared"
        case Assumed(value=value):
            source = _SHOWN
        case _:
            assert_never(found)
    return "default", f"existing rows read {value!r}, {source}"


INTERRUPTED = Evidence(
    subject="all columns",
    kind="name",
    text="the same as before by their names; what the source tells of its columns is no proof across this event",
)

RENEWED = Evidence(
    subject="all columns",
    kind="name",
    text="the same as before by their names; the source's catalogue tells which ones they are from this event on",
)
