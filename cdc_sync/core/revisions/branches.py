"""Two branches of a table's revisions: whether it makes a difference which of them a lake gets first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdc_sync.core.migration.wording import type_text
from cdc_sync.core.revisions.compile import Compiled, Unfit, compiled
from cdc_sync.core.revisions.revision import Revision
from cdc_sync.core.schema.changes import UpdateColumnType
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import BOOLEAN


def disagreement(base: InternalSchema, one: Sequence[Revision], other: Sequence[Revision]) -> str | None:
    """Say why lakes that get the revisions of two branches in different orders do not end with the same columns.

    Every step of one branch is compared with every step of the other, for lakes may have got some of each. In which
    order the columns stand does not count.

    Args:
        base: the columns where the branches begin.
        one, other: their revisions, in order.

    Returns:
        None if all end with the same.
    """
    row = [base]
    for second in other:
        made = _made(second, row[-1])
        if isinstance(made, str):
            return None  # it is wrong by itself, which is said elsewhere
        row.append(made.schema)
    for first in one:
        below = [_made(first, row[0])]
        for place, second in enumerate(other):
            left, here = below[-1], row[place]
            if isinstance(left, str):
                return None
            why = _differ(first, second, here, left.schema, row[place + 1])
            if why is not None:
                return why
            below.append(_made(second, left.schema))
        row = [made.schema for made in below if not isinstance(made, str)]
    return None


def _differ(
    first: Revision, second: Revision, here: InternalSchema, behind_first: InternalSchema, behind_second: InternalSchema
) -> str | None:
    """Compare the first and then the second revision with the second and then the first."""
    straight, crossed = _made(second, behind_first), _made(first, behind_second)
    if isinstance(straight, str):
        return f"{second.id} cannot come behind {first.id}: it {straight}"
    if isinstance(crossed, str):
        return f"{first.id} cannot come behind {second.id}: it {crossed}"
    one, two = compiled(first.actions, here), compiled(second.actions, here)
    said = _both_say(one, two, here)
    if said is not None:
        return f"{first.id} and {second.id} both {said}"
    for revision, maker, changer, other in ((first, one, two, second), (second, two, one, first)):
        read = _read_and_changed(maker, changer, here)
        if read is not None:
            return f"{revision.id} fills from {read!r}, whose values {other.id} changes"
    ours, theirs = _told(straight.schema), _told(crossed.schema)
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            return f"column {name!r} depends on which of {first.id} and {second.id} comes first"
    return None


def _both_say(one: Compiled, two: Compiled, here: InternalSchema) -> str | None:
    """Return what both say of the table beside its columns, if not the same."""
    if None not in (one.partitioning, two.partitioning) and one.partitioning != two.partitioning:
        return "say what the table is partitioned by"
    given, other = dict(one.properties), dict(two.properties)
    name = next((name for name in given if name in other and given[name] != other[name]), None)
    if name is not None:
        return f"say what property {name!r} is"
    filled = {id_ for id_, _ in one.computed} & {id_ for id_, _ in two.computed}
    same = next((column.name for column in here.columns if column.id in filled), None)
    return None if same is None else f"fill {same!r}"


def _made(revision: Revision, schema: InternalSchema) -> Compiled | str:
    try:
        return compiled(revision.actions, schema)
    except Unfit as error:
        return str(error)


def _read_and_changed(maker: Compiled, changer: Compiled, here: InternalSchema) -> str | None:
    """Return the name of a column that one revision fills from, and the other casts or fills."""
    read = {id_ for _, value in maker.computed for id_ in value.ids}
    changed = {change.id for change in changer.changes if isinstance(change, UpdateColumnType)}
    changed |= {id_ for id_, _ in changer.computed}
    return next((column.name for column in here.columns if column.id in read & changed), None)


def _told(schema: InternalSchema) -> dict[str, tuple[str, Column]]:
    """Return the columns by name, with all that readers can tell: ids are none of it."""
    return {column.name: (type_text(column.type), replace(column, id=0, type=BOOLEAN)) for column in schema.columns}
