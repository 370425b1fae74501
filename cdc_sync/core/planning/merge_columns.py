"""A rename that is declared after the fact: which two columns it is about, and the version that joins them.

Without proof, `unproven_rename: add` keeps the column that vanished, retired, and adds the one that appeared. Both come
from one version, which is how they are found again. Deciding only; `joining` finds out what the rows hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cdc_sync.core.history.history import History
from cdc_sync.core.history.joined import joined_columns
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.capabilities import Capabilities, can_change_in_place
from cdc_sync.core.migration.routes import Join
from cdc_sync.core.migration.wording import type_text
from cdc_sync.core.model.codes import Code
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.alignment import DECIDED, Alignment, Evidence
from cdc_sync.core.schema.changes import DropColumn, JoinColumn, RetireColumn, SchemaChange
from cdc_sync.core.schema.derive import derive
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.observed import ObservedColumn, ObservedSchema
from cdc_sync.core.schema.types import NESTED, without_ids
from cdc_sync.errors import SchemaError


def find_join(history: History, old: str, new: str) -> Join | Refused:
    """Find the two columns that the operator means.

    Args:
        history: as recorded.
        old: name of a column that is kept although the source no longer has it, now or when it was live.
        new: name of the live column that appeared at the version that kept the other.
    """
    head = history.head.schema
    newer = head.find(new)
    done = _joined_before(history, old, new)
    if done is not None:
        return Refused(
            code=Code.JOIN,
            reason=f"{old!r} and {new!r} are one column since version {done}",
            remedy="nothing is to be done",
        )
    kept = [
        column for column in head.columns if column.retired and old in (column.name, _live_name(history, column.id))
    ]
    if not kept:
        return Refused(
            code=Code.JOIN,
            reason=_why_not_kept(history, old),
            remedy="name a column that `cdc-sync history` shows as kept",
        )
    if newer is None or newer.retired:
        names = ", ".join(column.name for column in head.live)
        return Refused(
            code=Code.JOIN, reason=f"{new!r} is no column of the source", remedy=f"name one of these: {names}"
        )
    begins = since(history, newer.id)
    if _is_of_another_name(history, begins):
        return _OF_ANOTHER_NAME
    found = [column for column in kept if _is_kept_since(history, column.id, begins)]
    if not found:
        return Refused(
            code=Code.JOIN,
            reason=f"{old!r} did not vanish at the change at which {new!r} came, which is version {begins.number}",
            remedy="look at `cdc-sync history`: a rename can only join what one version kept and added",
        )
    return Join(table=history.table, kept=found[0].id, joined=newer.id, old=old, new=new, after=history.head.number)


def since(history: History, id_: int) -> Version:
    """Return the first version that has a column."""
    return next(version for version in history.versions if any(item.id == id_ for item in version.schema.columns))


_OF_ANOTHER_NAME = Refused(
    code=Code.JOIN,
    reason="the columns were kept when the table had another name, and its events of then are in another topic",
    remedy="leave them as they are, or snapshot the table again into a new target with the rename declared",
)


def _is_of_another_name(history: History, begins: Version) -> bool:
    return history.arrival is not None and begins.number <= history.arrival.number


def _joined_before(history: History, old: str, new: str) -> int | None:
    for joined in joined_columns(history.versions):
        before = history.version(joined.version - 1)
        names = {_live_name(History(table=history.table, versions=history.versions[: before.number]), joined.into)}
        names.add(before.schema.column(joined.into).name)
        if old in names and before.schema.column(joined.id).name == new:
            return joined.version
    return None


def _live_name(history: History, id_: int) -> str | None:
    """Return the name a column had when it was live for the last time."""
    for version in reversed(history.versions):
        for column in version.schema.live:
            if column.id == id_:
                return column.name
    return None


def _why_not_kept(history: History, old: str) -> str:
    held = history.head.schema.find(old)
    if held is not None:
        return f"the source still has {old!r}"
    for version in reversed(history.versions):
        if any(isinstance(change, DropColumn) and change.column.name == old for change in version.changes):
            return f"{old!r} was dropped with its data at version {version.number}"
    names = [column.name for column in history.head.schema.columns if column.retired]
    return f"{old!r} is none of the columns that are kept ({', '.join(names) or 'there are none'})"


def _is_kept_since(history: History, id_: int, begins: Version) -> bool:
    """Whether a version retired a column, and it has stayed retired."""
    if not any(isinstance(change, RetireColumn) and change.id == id_ for change in begins.changes):
        return False
    later = (version.schema for version in history.versions[begins.number - 1 :])
    return all(any(column.id == id_ and column.retired for column in schema.columns) for schema in later)


def join_version(history: History, join: Join, capabilities: Capabilities) -> Version | Refused:
    """Derive the version that joins two columns, right behind the newest one and at the same event.

    The older column lives on with its id and stands for all that the newer one was; whose id is never used again.
    """
    head = history.head
    try:
        kept, joined = head.schema.column(join.kept), head.schema.column(join.joined)
    except SchemaError:
        return Refused(
            code=Code.JOIN,
            reason=f"{join.old!r} and {join.new!r} are not both there any more",
            remedy="look at `cdc-sync history`",
        )
    refused = _refused(head.schema, kept, joined)
    if refused is None and _is_of_another_name(history, since(history, joined.id)):
        refused = _OF_ANOTHER_NAME
    if refused is not None:
        return refused
    after = _joined_schema(head.schema, kept, joined)
    types = kept.type, after.column(kept.id).type
    # What widens inside a column, or gets other members, cannot be filled from the other one in a statement.
    if not can_change_in_place(capabilities, *types) or (isinstance(types[0], NESTED) and types[0] != types[1]):
        return Refused(
            code=Code.JOIN,
            reason=f"only columns of one type can be joined, or a narrower one with a wider one: {join.old!r} is a "
            f"{type_text(types[0])}, {join.new!r} a {type_text(types[1])}",
            remedy="leave them as they are, or snapshot the table again into a new target with the rename declared",
        )
    changes = tuple(_joining(change, kept, joined) for change in diff(head.schema, after))
    begins = since(history, joined.id)
    text = (
        f"renamed to {joined.name!r}: the operator declared it later; both had been kept since version {begins.number} "
        f"and are joined: rows with a value of {joined.name!r} from an event since then have that, all others that of "
        f"{kept.name!r}"
    )
    evidence = (Evidence(subject=_live_name(history, kept.id) or kept.name, kind=DECIDED, text=text),)
    return replace(head, number=head.number + 1, schema=after, changes=changes, evidence=evidence)


def _refused(schema: InternalSchema, kept: Column, joined: Column) -> Refused | None:
    if not kept.retired or joined.retired:
        name = joined.name if joined.retired else kept.name
        return Refused(
            code=Code.JOIN,
            reason=f"column {name!r} is not what it was when this was said",
            remedy="look at `cdc-sync history`",
        )
    if joined.id in schema.primary_key:
        return Refused(
            code=Code.JOIN,
            reason=f"column {joined.name!r} is part of the key, by which rows are found",
            remedy="snapshot the table again into a new target with the rename declared",
        )
    return None


def _joined_schema(schema: InternalSchema, kept: Column, joined: Column) -> InternalSchema:
    """Derive the schema as if the newest event had been seen with the rename known."""
    names = {column.id: column.name for column in schema.columns}
    live = list(schema.live)
    seen = ObservedSchema(
        columns=tuple(
            ObservedColumn(
                name=column.name,
                type=without_ids(column.type),
                optional=column.optional,
                comment=column.comment,
                default=column.default,
            )
            for column in live
        ),
        key=tuple(names[id_] for id_ in schema.primary_key),
    )
    ids = [kept.id if column.id == joined.id else column.id for column in live]
    same = tuple((id_, index) for index, id_ in enumerate(ids))
    alignment = Alignment(same=same, added=(), dropped=(joined.id,), unproven=(), evidence=())
    return derive(schema, seen, alignment, retire=True, initials={})


def _joining(change: SchemaChange, kept: Column, joined: Column) -> SchemaChange:
    if isinstance(change, DropColumn) and change.column.id == joined.id:
        return JoinColumn(column=change.column, after=change.after, into=kept.id, into_name=kept.name)
    return change


def versions_of_joins(history: History, joins: tuple[Join, ...], capabilities: Capabilities) -> Iterator[Version]:
    """Yield the versions that follow the newest one at once, because columns were joined right behind it."""
    for join in sorted(joins, key=lambda join: (join.after, join.kept, join.joined)):
        if join.after != history.head.number:
            continue
        version = join_version(history, join, capabilities)
        if isinstance(version, Version):
            history = history.extended(version)
            yield version
