"""Which type changes lose nothing, and the smallest type that two types both widen to.

This is about values, not about table formats: what a format can change in place is `migration.capabilities`.
"""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.schema.types import (
    DataType,
    DecimalType,
    Field,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    StructType,
    without_ids,
)

MAX_PRECISION = 38
INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""Decimal digits that every integer of so many bits fits into."""


def can_promote(old: DataType, new: DataType) -> bool:
    """Tell whether every value of `old` is a value of `new`, unchanged.

    Nested types are compared member by member, in order; members must have the same ids and names. A member may begin
    to accept NULL, never cease to. Comments do not count.

    Law: reflexive and transitive; antisymmetric but for comments.
    """
    match old, new:
        case IntegerType(), IntegerType():
            return old.bits <= new.bits
        case FloatType(), FloatType():
            return old.bits <= new.bits
        case DecimalType(), DecimalType():
            return old.scale <= new.scale and _whole_digits(old) <= _whole_digits(new)
        case IntegerType(), DecimalType():
            return INTEGER_DIGITS[old.bits] <= _whole_digits(new)
        case ListType(), ListType():
            return (
                old.element_id == new.element_id
                and old.element_optional <= new.element_optional
                and can_promote(old.element, new.element)
            )
        case MapType(), MapType():
            return (
                (old.key_id, old.value_id) == (new.key_id, new.value_id)
                and old.value_optional <= new.value_optional
                and can_promote(old.key, new.key)
                and can_promote(old.value, new.value)
            )
        case StructType(), StructType():
            return len(old.fields) == len(new.fields) and all(
                (before.id, before.name) == (after.id, after.name)
                and before.optional <= after.optional
                and can_promote(before.type, after.type)
                for before, after in zip(old.fields, new.fields, strict=True)
            )
        case _:
            return old == new


def reads_as(shown: DataType, known: DataType) -> bool:
    """Tell whether what an event shows can be read as a tracked type: it widens to it, members found by their names.

    Members that only one of the two has are NULL, or left out, as columns are. Ids do not count.
    """
    match shown, known:
        case ListType(), ListType():
            return reads_as(shown.element, known.element)
        case MapType(), MapType():
            return without_ids(shown.key) == without_ids(known.key) and reads_as(shown.value, known.value)
        case StructType(), StructType():
            types = {field.name: field.type for field in shown.fields}
            return all(reads_as(types[field.name], field.type) for field in known.fields if field.name in types)
        case _:
            return can_promote(shown, known)


def common_type(a: DataType, b: DataType) -> DataType | None:
    """Return the smallest type that both widen to without loss, None if there is none.

    Law: commutative, associative and idempotent; both arguments `can_promote` to the result.
    """
    match a, b:
        case IntegerType(), IntegerType():
            return a if a.bits >= b.bits else b
        case FloatType(), FloatType():
            return a if a.bits >= b.bits else b
        case DecimalType(), DecimalType():
            return _decimal(max(_whole_digits(a), _whole_digits(b)), max(a.scale, b.scale))
        case (IntegerType() as integer, DecimalType() as decimal) | (
            DecimalType() as decimal,
            IntegerType() as integer,
        ):
            return _decimal(max(_whole_digits(decimal), INTEGER_DIGITS[integer.bits]), decimal.scale)
        case ListType(), ListType():
            return _common_list(a, b)
        case MapType(), MapType():
            return _common_map(a, b)
        case StructType(), StructType():
            return _common_struct(a, b)
        case _:
            return a if a == b else None


def _whole_digits(type_: DecimalType) -> int:
    return type_.precision - type_.scale


def _decimal(whole_digits: int, scale: int) -> DecimalType | None:
    precision = whole_digits + scale
    return DecimalType(precision=precision, scale=scale) if precision <= MAX_PRECISION else None


def _common_list(a: ListType, b: ListType) -> ListType | None:
    element = common_type(a.element, b.element)
    if element is None or a.element_id != b.element_id:
        return None
    return replace(a, element=element, element_optional=a.element_optional or b.element_optional)


def _common_map(a: MapType, b: MapType) -> MapType | None:
    key, value = common_type(a.key, b.key), common_type(a.value, b.value)
    if key is None or value is None or (a.key_id, a.value_id) != (b.key_id, b.value_id):
        return None
    return replace(a, key=key, value=value, value_optional=a.value_optional or b.value_optional)


def _common_struct(a: StructType, b: StructType) -> StructType | None:
    if len(a.fields) != len(b.fields):
        return None
    fields = tuple(_common_field(x, y) for x, y in zip(a.fields, b.fields, strict=True))
    known = tuple(field for field in fields if field is not None)
    return StructType(fields=known) if len(known) == len(fields) else None


def _common_field(a: Field, b: Field) -> Field | None:
    type_ = common_type(a.type, b.type)
    if type_ is None or (a.id, a.name) != (b.id, b.name):
        return None
    # A comment that both have stays; which of two is better cannot be told, so neither wins.
    comment = a.comment if a.comment == b.comment else None
    return replace(a, type=type_, optional=a.optional or b.optional, comment=comment)
