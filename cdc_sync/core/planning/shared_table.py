"""What a change of one source table means for a table that several share. No I/O.

Columns are shared by name: all shares that have a column of one name have it in the same column of the union, and no
two columns of a share stand in the same one. So a share that renames a column others have moves its values to another
column; one that drops it leaves NULL in its own rows; and a column goes when nobody has it any more. No row of another
share is ever touched: a type that cannot be changed to in place is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cdc_sync.core.migration.capabilities import Capabilities, can_change_in_place
from cdc_sync.core.migration.names import NameClash, target_names
from cdc_sync.core.migration.wording import type_text
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.shared_schema import Coming, RowMoves, Share, Union
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.diff import TEMPORARY_PREFIX
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.members import UpdatePartType, member_changes, named_as
from cdc_sync.core.schema.types import DataType, ListType, MapType, StructType, nested_ids

_REMEDY = "fix it at the source and `cdc-sync resume` the table, or give it a target of its own"


def evolved(
    union: Union, table: TableId, version: int, schema: InternalSchema, capabilities: Capabilities
) -> Union | Refused:
    """Return the union in which one source table has the columns of a version, or why it cannot have them.

    A share whose rows have to change too is on its way (`Share.coming`) in the union returned, and `settled` ends that.
    All other shares are the same, and so are the columns that they have, but for a wider type.

    Args:
        union: in which the table's share, if it has one, is not on its way anywhere.
    """
    share = union.find(table)
    taken = next((item for item in union.shares if item.label == str(table) and item != share), None)
    if taken is not None:
        return Refused(
            code=Code.SHARED,
            reason=f"its rows cannot be told from those of another table {taken.label}",
            remedy=_REMEDY,
        )
    if not schema.primary_key:
        return Refused(
            code=Code.SHARED,
            reason="it has no key, and a target of several source tables finds rows by one",
            remedy=_REMEDY,
        )
    if schema.find(union.source.name) is not None:
        return Refused(
            code=Code.SHARED,
            reason=f"its column {union.source.name!r} has the name of the one that says which table a row is of",
            remedy="set merge.source_column, with another target if this one has rows",
        )
    found = _placed(union, share, table, schema, capabilities)
    if isinstance(found, Refused):
        return found
    after = _with_columns(union, table, version, schema, found)
    clash = target_names(after.schema, capabilities.columns)
    return Refused(code=Code.SHARED, reason=clash.reason, remedy=_REMEDY) if isinstance(clash, NameClash) else after


def settled(union: Union, table: TableId) -> Union:
    """Return the union once the rows of a share are where it was on its way to."""
    share = union.find(table)
    return union if share is None else union.with_share(share.arrived).pruned


def without(union: Union, table: TableId) -> Union:
    """Return the union without a table's share, and without the columns that nobody else has."""
    return replace(union, shares=tuple(share for share in union.shares if share.table != table)).pruned


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where a share's columns go.

    Attributes:
        homes: by the share's id of each column, the union's.
        inside: the same of what is inside them.
        columns: the union's columns that are changed or new, by id.
        last: the highest id given out.
    """

    homes: Mapping[int, int]
    inside: Mapping[int, int]
    columns: Mapping[int, Column]
    last: int


def _placed(
    union: Union, share: Share | None, table: TableId, schema: InternalSchema, capabilities: Capabilities
) -> _Places | Refused:
    before = {} if share is None else share.columns
    others = union.held(but=table)
    of_others = {column.name: column for column in union.schema.columns if column.id in others}
    own = {column.id: column for column in union.schema.columns if column.id in before.values()}
    homes: dict[int, int] = {}
    inside: dict[int, int] = {}
    columns: dict[int, Column] = {}
    last = union.schema.last_column_id
    for column in schema.columns:
        theirs, held = of_others.get(column.name), own.get(before.get(column.id, 0))
        if theirs is not None:
            known = set(nested_ids(column.type)) <= before.keys() or before.get(column.id) != theirs.id
            fit = _fitted(column, theirs, capabilities) if known else None
            if fit is None:
                return _not_in_place(column, theirs, "rows of other tables have that one")
            homes[column.id] = theirs.id
            inside |= _ids_inside(column.type, named_as(column.type, theirs.type))
            columns[theirs.id] = replace(theirs, type=fit, comment=theirs.comment or column.comment)
            continue
        alone = held is not None and held.id not in others
        if held is None or not alone:
            last += 1
        home = held.id if held is not None and alone else last
        given = {id_: before[id_] for id_ in nested_ids(column.type) if alone and id_ in before}
        for id_ in nested_ids(column.type):
            if id_ not in given:
                last += 1
                given[id_] = last
        type_ = _with_ids(column.type, given)
        if held is not None and alone:
            wide = _in_one_place(type_, held.type, capabilities)
            if wide is None:
                return _not_in_place(column, held, "rows that are there have that one")
            type_ = wide
        homes[column.id] = home
        inside |= given
        columns[home] = Column(id=home, name=column.name, type=type_, comment=column.comment)
    return _Places(homes=homes, inside=inside, columns=columns, last=last)


def _with_columns(union: Union, table: TableId, version: int, schema: InternalSchema, places: _Places) -> Union:
    share, homes = union.find(table), places.homes
    mapping = {**homes, **places.inside}
    moves = None if share is None else _moves(union, share, schema, homes)
    if share is None:
        new = Share(table=table, begun=version, version=version, columns=mapping, key=schema.primary_key, moved=version)
    elif moves is None:
        new = replace(share, version=version, columns=mapping, key=schema.primary_key)
    else:
        coming = Coming(version=version, columns=mapping, key=schema.primary_key, moves=moves)
        new = replace(share, coming=coming)
    after = union.with_share(new)
    columns = _in_order(after.schema.columns, schema, places, held=after.held() | {union.source.id})
    after = replace(after, schema=replace(union.schema, columns=columns, last_column_id=places.last))
    return after.next


def _moves(union: Union, share: Share, schema: InternalSchema, homes: Mapping[int, int]) -> RowMoves | None:
    """Return what has to change in a share's rows before they are of the new columns, None if nothing has."""
    whole = {column.id for column in union.schema.columns}
    before = {own: id_ for own, id_ in share.columns.items() if id_ in whole}
    others = union.held(but=share.table)
    moved = tuple((before[own], home) for own, home in homes.items() if own in before and before[own] != home)
    kept = {home for own, home in homes.items() if before.get(own) == home}
    filled = {home for _, home in moved}
    emptied = tuple(sorted(id_ for id_ in set(before.values()) & others if id_ not in kept | filled))
    if not moved and not emptied and share.key == schema.primary_key:
        return None
    return RowMoves(moved=moved, emptied=emptied, key=(union.source.id, *(homes[id_] for id_ in schema.primary_key)))


def _in_order(
    before: tuple[Column, ...], schema: InternalSchema, places: _Places, *, held: frozenset[int]
) -> tuple[Column, ...]:
    """Return the union's columns: those there are where they are, new ones behind their left neighbour.

    A column that values have yet to be moved out of gives its name to the one that wants it.
    """
    wanted = {column.name for column in places.columns.values()}
    found = []
    for column in before:
        changed = places.columns.get(column.id)
        if changed is None and column.id in held and column.name in wanted:
            changed = replace(column, name=f"{TEMPORARY_PREFIX}{column.id}")
        if column.id in held:
            found.append(changed or column)
    left = 0
    for column in schema.columns:
        home = places.homes[column.id]
        place = next((index for index, item in enumerate(found) if item.id == home), None)
        if place is None:
            place = left + 1
            found.insert(place, places.columns[home])
        left = place
    return tuple(found)


def _fitted(column: Column, theirs: Column, capabilities: Capabilities) -> DataType | None:
    """Return the type that a column of the union has when one more share has it, None if there is none for both."""
    shown = named_as(column.type, theirs.type)
    return _in_one_place(shown, theirs.type, capabilities) if _same_members(shown, theirs.type) else None


def _in_one_place(wanted: DataType, held: DataType, capabilities: Capabilities) -> DataType | None:
    """Return the wider of two types, if the narrower one can be changed to it in place; None if neither can.

    Rows are cast to it as they are written, which takes the same members in the same order.
    """
    if _same_members(wanted, held) and can_change_in_place(capabilities, wanted, held):
        return held
    return wanted if can_change_in_place(capabilities, held, wanted) else None


def _same_members(one: DataType, other: DataType) -> bool:
    return all(isinstance(change, UpdatePartType) for change in member_changes(one, other))


def _not_in_place(wanted: Column, held: Column, why: str) -> Refused:
    types = f"{type_text(wanted.type)}, and {type_text(held.type)} in the target"
    return Refused(
        code=Code.SHARED,
        reason=f"column {wanted.name!r} is {types}: {why}, and neither can become the other in place",
        remedy=_REMEDY,
    )


def _ids_inside(own: DataType, union: DataType) -> dict[int, int]:
    return dict(zip(nested_ids(own), nested_ids(union), strict=True))


def _with_ids(type_: DataType, ids: Mapping[int, int]) -> DataType:
    """Return a type whose parts have the union's ids."""
    match type_:
        case ListType():
            return replace(type_, element_id=ids[type_.element_id], element=_with_ids(type_.element, ids))
        case MapType():
            return replace(
                type_,
                key_id=ids[type_.key_id],
                key=_with_ids(type_.key, ids),
                value_id=ids[type_.value_id],
                value=_with_ids(type_.value, ids),
            )
        case StructType(fields=fields):
            inside = (replace(item, id=ids[item.id], type=_with_ids(item.type, ids)) for item in fields)
            return StructType(fields=tuple(inside))
        case _:
            return type_
