"""The changes that lead from one schema to another, in the one order that always works.

Drop first, because a dropped name may be used again; then rename, type, nullability, default, comment, retire and
revive; then add, then move, then the key. Only if a key column is dropped is the key reduced before, so that every
schema on the way is whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cdc_sync.core.schema.changes import (
    AddColumn,
    ChangePrimaryKey,
    DropColumn,
    MoveColumn,
    RenameColumn,
    RetireColumn,
    ReviveColumn,
    SchemaChange,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
)
from cdc_sync.core.schema.evolve import apply, left_neighbour
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.order import longest_run
from cdc_sync.core.schema.types import Default
from cdc_sync.errors import SchemaError

TEMPORARY_PREFIX = "__cdc_sync_tmp_"
"""Begins the name a column has in the middle of a cycle of renames."""


def diff(before: InternalSchema, after: InternalSchema) -> tuple[SchemaChange, ...]:
    """Return the changes that lead from `before` to `after`.

    Law: `apply_all(before, diff(before, after)) == after` for consecutive versions; if columns were added and dropped
    again between the two, `last_column_id` may stay lower, for nothing tells of them. `diff(a, a)` is empty.

    Raises:
        SchemaError: if the two are not versions of one table: a column's initial value differs.
    """
    walk = _Walk(before, after)
    for step in (_reduce_key, _drop, _rename, _update, _retire_or_revive, _add, _move, _change_key):
        step(walk)
    return tuple(walk.changes)


class _Walk:
    """The way so far; each change is applied as soon as it is found, so that the next one starts from its result."""

    def __init__(self, before: InternalSchema, after: InternalSchema) -> None:
        self.now = before
        self.after = after
        self.changes: list[SchemaChange] = []
        self.target = {column.id: column for column in after.columns}
        for column in before.columns:
            same = self.target.get(column.id)
            if same is not None and not _same(column.initial, same.initial):
                raise SchemaError(
                    f"Cannot compare schemas: the initial value of column {column.id} is {column.initial!r} in one and "
                    f"{same.initial!r} in the other, so they are not versions of one table"
                )

    def take(self, change: SchemaChange) -> None:
        self.changes.append(change)
        self.now = apply(self.now, change)

    def common(self) -> Iterator[tuple[Column, Column]]:
        """Pairs of a column as it is now and as it shall be; call after the drops."""
        return ((column, self.target[column.id]) for column in self.now.columns if column.id in self.target)


def _same(a: Default, b: Default) -> bool:
    """Compare values as written: False, 0 and 0.0 differ."""
    return type(a) is type(b) and a == b


def _reduce_key(walk: _Walk) -> None:
    key = walk.now.primary_key
    if set(key) <= walk.target.keys():
        return
    known = {column.id for column in walk.now.columns}
    wanted = walk.after.primary_key
    kept = wanted if set(wanted) <= known else tuple(id_ for id_ in key if id_ in walk.target)
    walk.take(ChangePrimaryKey(old=key, new=kept))


def _drop(walk: _Walk) -> None:
    for column in walk.now.columns:
        if column.id not in walk.target:
            walk.take(DropColumn(column=column, after=left_neighbour(walk.now, column.id)))


def _rename(walk: _Walk) -> None:
    pending = [column.id for column in walk.now.columns if column.name != walk.target[column.id].name]
    taken = {column.name for column in walk.now.columns}
    reserved = {column.name for column in walk.after.columns}
    while pending:
        free = next((id_ for id_ in pending if walk.target[id_].name not in taken), None)
        id_ = pending[0] if free is None else free
        name = walk.target[id_].name
        if free is None:
            # Every wanted name is held by a column that waits itself: a cycle, opened with a name nobody wants.
            name = f"{TEMPORARY_PREFIX}{id_}"
            while name in taken | reserved:
                name += "_"
        else:
            pending.remove(id_)
        old = walk.now.column(id_).name
        walk.take(RenameColumn(id=id_, old=old, new=name))
        taken = (taken - {old}) | {name}


def _update(walk: _Walk) -> None:
    kinds: tuple[Callable[[Column, Column], SchemaChange | None], ...] = (
        _type_change,
        _nullability_change,
        _default_change,
        _comment_change,
    )
    for kind in kinds:
        for column, wanted in tuple(walk.common()):
            change = kind(column, wanted)
            if change is not None:
                walk.take(change)


def _type_change(column: Column, wanted: Column) -> SchemaChange | None:
    if column.type == wanted.type:
        return None
    return UpdateColumnType(id=column.id, old=column.type, new=wanted.type)


def _nullability_change(column: Column, wanted: Column) -> SchemaChange | None:
    if column.optional == wanted.optional:
        return None
    return UpdateColumnNullability(id=column.id, old=column.optional, new=wanted.optional)


def _default_change(column: Column, wanted: Column) -> SchemaChange | None:
    if _same(column.default, wanted.default):
        return None
    return UpdateColumnDefault(id=column.id, old=column.default, new=wanted.default)


def _comment_change(column: Column, wanted: Column) -> SchemaChange | None:
    if column.comment == wanted.comment:
        return None
    return UpdateColumnComment(id=column.id, old=column.comment, new=wanted.comment)


def _retire_or_revive(walk: _Walk) -> None:
    for column, wanted in tuple(walk.common()):
        if column.retired != wanted.retired:
            kind = RetireColumn if wanted.retired else ReviveColumn
            walk.take(kind(id=column.id, name=column.name))


def _add(walk: _Walk) -> None:
    known = {column.id for column in walk.now.columns}
    after: int | None = None
    for column in walk.after.columns:
        if column.id not in known:
            walk.take(AddColumn(column=column, after=after))
        after = column.id


def _move(walk: _Walk) -> None:
    ids = [column.id for column in walk.now.columns]
    staying = longest_run(ids, [column.id for column in walk.after.columns])
    after: int | None = None
    for column in walk.after.columns:
        if column.id not in staying:
            left = left_neighbour(walk.now, column.id)
            walk.take(MoveColumn(id=column.id, old_after=left, new_after=after))
        after = column.id


def _change_key(walk: _Walk) -> None:
    if walk.now.primary_key != walk.after.primary_key:
        walk.take(ChangePrimaryKey(old=walk.now.primary_key, new=walk.after.primary_key))
