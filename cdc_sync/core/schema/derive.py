"""The schema that follows from what an event shows and from which column is which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from typing_extensions import assert_never

from cdc_sync.core.schema.alignment import Alignment
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.observed import ObservedColumn, ObservedSchema
from cdc_sync.core.schema.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    Default,
    Field,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)
from cdc_sync.errors import SchemaError


def derive(
    before: InternalSchema,
    observed: ObservedSchema,
    alignment: Alignment,
    *,
    retire: bool,
    initials: Mapping[str, Default],
) -> InternalSchema:
    """Build the version after `before`.

    Ids live on, nested ones too (members of a struct are matched by name); new ones count on from `last_column_id`
    in source order, a column's own before its members'. Columns stand in source order; retired ones directly behind
    the column they stood behind. A suspect default is not recorded: it is not known.

    Args:
        before: the version in effect.
        observed: what the event shows.
        alignment: what `align` said about the two.
        retire: keep unproven vanished columns as retired. If a live column has the name of one, but for case, the
            retired one is renamed to `<name>__retired_<id>`: the source's name belongs to the source's column.
        initials: what existing rows read in new columns, by name; NULL where nothing is said.

    Raises:
        SchemaError: if something is unproven and `retire` is false, if the alignment is not about these two, or if
            the key names a column the row does not have.
    """
    if alignment.unproven and not retire:
        raise SchemaError(
            "Cannot derive schema: it is not proven what became of "
            + ", ".join(repr(before.column(id_).name) for case in alignment.unproven for id_ in case.vanished)
        )
    same = {index: id_ for id_, index in alignment.same}
    _check(before, observed, alignment, same)
    ids = _Ids(before.last_column_id)
    seen = tuple(
        _kept(before.column(same[index]), column, ids)
        if index in same
        else _added(column, initials.get(column.name), ids)
        for index, column in enumerate(observed.columns)
    )
    columns = _with_retired(before, seen, alignment)
    by_name = {column.name: column.id for column in seen}
    missing = [name for name in observed.key if name not in by_name]
    if missing:
        raise SchemaError(f"Cannot derive schema: the key column {missing[0]!r} is not a column of the row")
    return InternalSchema(
        columns=columns, primary_key=tuple(by_name[name] for name in observed.key), last_column_id=ids.last
    )


def _check(before: InternalSchema, observed: ObservedSchema, alignment: Alignment, same: Mapping[int, int]) -> None:
    """Every observed and every live column is decided exactly once; retired ones may be dropped or back."""
    unproven = alignment.unproven
    indexes = [*same, *alignment.added, *(index for case in unproven for index in case.appeared)]
    ids = [*same.values(), *alignment.dropped, *(id_ for case in unproven for id_ in case.vanished)]
    retired = {column.id for column in before.columns if column.retired} - {*alignment.dropped, *same.values()}
    if sorted(indexes) != list(range(len(observed.columns))) or sorted(ids) != sorted(
        column.id for column in before.columns if column.id not in retired
    ):
        raise SchemaError("Cannot derive schema: the alignment is about other columns")


class _Ids:
    """Hands out ids; `last` is the last one."""

    def __init__(self, last: int) -> None:
        self.last = last

    def next(self) -> int:
        self.last += 1
        return self.last


def _kept(column: Column, seen: ObservedColumn, ids: _Ids) -> Column:
    return replace(
        column,
        name=seen.name,
        type=_identified(seen.type, column.type, ids),
        optional=seen.optional,
        comment=seen.comment,
        default=_known_default(seen),
        retired=False,
        sent=seen.sent,
    )


def _added(seen: ObservedColumn, initial: Default, ids: _Ids) -> Column:
    return Column(
        id=ids.next(),
        name=seen.name,
        type=_identified(seen.type, None, ids),
        optional=seen.optional,
        comment=seen.comment,
        default=_known_default(seen),
        initial=initial,
        sent=seen.sent,
    )


def _known_default(seen: ObservedColumn) -> Default:
    return None if seen.suspect_default else seen.default


def with_ids(type_: DataType, last: int, old: DataType | None = None) -> DataType:
    """Return a type whose members have ids: the old ones where `old` has a member of the name, new ones elsewhere.

    Args:
        last: new ids are higher.
    """
    return _identified(type_, old, _Ids(last))


def _identified(type_: DataType, old: DataType | None, ids: _Ids) -> DataType:
    """Give the members of a type their ids: the old ones where `old` has the member, new ones elsewhere."""
    match type_:
        case StructType(fields=fields):
            return StructType(fields=_identified_fields(fields, old, ids))
        case ListType():
            former = old if isinstance(old, ListType) else None
            return replace(
                type_,
                element_id=former.element_id if former else ids.next(),
                element=_identified(type_.element, former.element if former else None, ids),
            )
        case MapType():
            known = old if isinstance(old, MapType) else None
            key_id = known.key_id if known else ids.next()
            key = _identified(type_.key, known.key if known else None, ids)
            value_id = known.value_id if known else ids.next()
            value = _identified(type_.value, known.value if known else None, ids)
            return replace(type_, key_id=key_id, key=key, value_id=value_id, value=value)
        case (
            BooleanType()
            | IntegerType()
            | FloatType()
            | DecimalType()
            | StringType()
            | BinaryType()
            | DateType()
            | TimestampType()
        ):
            return type_
        case _:
            assert_never(type_)


def _identified_fields(fields: tuple[Field, ...], old: DataType | None, ids: _Ids) -> tuple[Field, ...]:
    known = {field.name: field for field in old.fields} if isinstance(old, StructType) else {}
    identified = []
    for field in fields:
        former = known.get(field.name)
        id_ = former.id if former else ids.next()
        type_ = _identified(field.type, former.type if former else None, ids)
        identified.append(replace(field, id=id_, type=type_))
    return tuple(identified)


def _with_retired(before: InternalSchema, seen: tuple[Column, ...], alignment: Alignment) -> tuple[Column, ...]:
    vanished = {id_ for case in alignment.unproven for id_ in case.vanished}
    back = {id_ for id_, _ in alignment.same}
    columns = list(seen)
    names = {column.name.casefold() for column in seen}  # engines do not tell names apart by case
    for place, column in enumerate(before.columns):
        if column.id in (*alignment.dropped, *back) or not (column.retired or column.id in vanished):
            continue
        name = column.name
        while name.casefold() in names:
            name = f"{name}__retired_{column.id}"
        names.add(name.casefold())
        ids = [other.id for other in columns]
        left = next((other.id for other in reversed(before.columns[:place]) if other.id in ids), None)
        columns.insert(ids.index(left) + 1 if left is not None else 0, replace(column, name=name, retired=True))
    return tuple(columns)
