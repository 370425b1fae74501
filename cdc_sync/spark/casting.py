"""Checked casts as Spark expressions: NULL where a value has no place in the new type, and nowhere else.

The rules are those of `schema.casts.Cast`. No expression fails, whatever Spark's ANSI setting is: what could is
guarded. Sessions keep their time zone at UTC (`spark.session`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from typing_extensions import assert_never

from cdc_sync.core.schema.casts import Cast, always_converts, cast_between, needs_cast
from cdc_sync.core.schema.members import named_as
from cdc_sync.core.schema.promote import INTEGER_DIGITS, MAX_PRECISION
from cdc_sync.core.schema.types import (
    NESTED,
    DataType,
    DecimalType,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    StructType,
    TimestampType,
    without_ids,
)
from cdc_sync.spark.conditions import any_of, first_of
from cdc_sync.spark.recognise import is_text
from cdc_sync.spark.types import to_spark

_DATE = (
    r"(?!0000)(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    r"|02-(?:0[1-9]|1\d|2[0-8]))"
    r"|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?"
_ZONE = r"(?:Z|[+-](?:0\d|1[0-4])(?::[0-5]\d)?)?"
_TRUE, _FALSE = ("t", "true", "y", "yes", "on", "1"), ("f", "false", "n", "no", "off", "0")


def converted(value: Column, old: DataType, new: DataType) -> Column:
    """Return a value in another type; NULL if it has no place there.

    Of a struct each member that both types have is converted by itself, as is each element of a list and each key and
    value of a map: where one has no place, it alone is NULL.

    Args:
        value: of type `old`, or of one that it was read as and fits in.
        old: the tracked type it has.
        new: the one it is to have; where no checked cast leads to it, `old` widens to it.
    """
    match old, new:
        case StructType(), StructType():
            return F.when(value.isNotNull(), F.struct(*_members(value, old, new)))
        case ListType(), ListType():
            return F.transform(value, lambda item: converted(item, old.element, new.element))
        case MapType(), MapType():
            if old.key != new.key:
                value = F.transform_keys(value, lambda key, _: converted(key, old.key, new.key))
            return F.transform_values(value, lambda _, item: converted(item, old.value, new.value))
        case _:
            return _converted_leaf(value, old, new)


def _members(value: Column, old: StructType, new: StructType) -> Iterator[Column]:
    """Return the members that the new type has, by id; those that the old one does not have are NULL."""
    known = {field.id: field for field in old.fields}
    for field in new.fields:
        held = known.get(field.id)
        if held is None:
            yield F.lit(None).cast(to_spark(field.type)).alias(field.name)
        else:
            yield converted(value.getField(held.name), held.type, field.type).alias(field.name)


def _converted_leaf(value: Column, old: DataType, new: DataType) -> Column:
    target, cast = to_spark(new), cast_between(old, new)
    if cast is None or not needs_cast(old, new):
        return value.cast(target)
    return _cast(cast, value.cast(to_spark(old)), old, new).cast(target)


def through(value: Column, types: Sequence[DataType]) -> Column:
    """Return a value of the first type in the last one, by way of all between; the value itself if there are none."""
    for place, (old, new) in enumerate(pairwise(types)):
        value = (
            _converted_once(value, old, new) if place and isinstance(old, StructType) else converted(value, old, new)
        )
    return value


def _converted_once(value: Column, old: DataType, new: DataType) -> Column:
    """Return `converted` with the value computed once: each member asks for it, as did each one in the step before."""
    return F.get(F.transform(F.array(value), lambda held: converted(held, old, new)), F.lit(0))


def converted_or_fails(value: Column, old: DataType, new: DataType, name: str) -> Column:
    """Return a value in another type, as `converted`; one that has no place there fails the query, with `name`."""
    lost = F.raise_error(F.lit(f"a value of {name} has no place in its new type"))
    return F.when(has_no_place(value, old, new), lost.cast(to_spark(new))).otherwise(converted(value, old, new))


def has_no_place(value: Column, old: DataType, new: DataType) -> Column:
    """Return whether a value, or one inside it, is lost by `converted`; never NULL.

    A member that the new type does not have is not lost, and no widening loses anything.
    """
    match old, new:
        case StructType(), StructType():
            after = {field.id: field.type for field in new.fields}
            return any_of(
                [
                    F.lit(False),
                    *(
                        has_no_place(value.getField(field.name), field.type, after[field.id])
                        for field in old.fields
                        if field.id in after and not always_converts(field.type, after[field.id])
                    ),
                ]
            )
        case ListType(), ListType():
            return _exists(value, lambda item: has_no_place(item, old.element, new.element))
        case MapType(), MapType():
            # Every key has a place: else there is no cast between the two.
            return _exists(F.map_values(value), lambda item: has_no_place(item, old.value, new.value))
        case _:
            return value.isNotNull() & converted(value, old, new).isNull()


def is_lost(value: Column, types: Sequence[DataType]) -> Column:
    """Return whether a value, or one inside it, is lost by `through`; never NULL."""
    if not isinstance(types[0], NESTED):
        return value.isNotNull() & through(value, types).isNull()
    return any_of(
        [F.lit(False), *(has_no_place(through(value, types[: place + 1]), *step) for place, step in _steps(types))]
    )


def _steps(types: Sequence[DataType]) -> Iterator[tuple[int, tuple[DataType, DataType]]]:
    """Return the steps that may lose something, each with its place."""
    return ((place, step) for place, step in enumerate(pairwise(types)) if not always_converts(*step))


def _exists(items: Column, condition: Callable[[Column], Column]) -> Column:
    return F.coalesce(F.exists(items, condition), F.lit(False))


def read_as(value: Column, shown: DataType, known: DataType) -> Column:
    """Return a value as an event shows it in the tracked type that it stands for, members found by their names.

    Args:
        shown: of the value; its ids do not count.
        known: what `promote.reads_as` says it can be read as.
    """
    if without_ids(shown) == without_ids(known) or not isinstance(known, NESTED):
        return value
    return converted(value, named_as(shown, known), known)


def _cast(cast: Cast, value: Column, old: DataType, new: DataType) -> Column:
    target = to_spark(new)
    match cast:
        case Cast.BOOLEAN_TO_INTEGER | Cast.BOOLEAN_TO_TEXT | Cast.INTEGER_TO_TEXT | Cast.INTEGER_TO_FLOAT:
            return value.cast(target)
        case Cast.DECIMAL_TO_FLOAT | Cast.DATE_TO_TIMESTAMP | Cast.DATE_TO_TEXT | Cast.TIMESTAMP_TO_DATE:
            return value.cast(target)
        case Cast.TIMESTAMP_TO_TIMESTAMP | Cast.TEXT_TO_BINARY:
            return value.cast(target)
        case Cast.INTEGER_TO_BOOLEAN:
            return value != 0
        case Cast.TEXT_TO_BOOLEAN:
            word = F.lower(_trimmed(value))
            return F.when(word.isin(*_TRUE), F.lit(True)).when(word.isin(*_FALSE), F.lit(False))
        case Cast.INTEGER_TO_INTEGER | Cast.DECIMAL_TO_INTEGER | Cast.FLOAT_TO_INTEGER:
            return _to_integer(value, old, new)
        case Cast.INTEGER_TO_DECIMAL | Cast.DECIMAL_TO_DECIMAL | Cast.FLOAT_TO_DECIMAL:
            return _to_decimal(value, old, new)
        case Cast.FLOAT_TO_FLOAT:
            return _narrowed(value)
        case Cast.FLOAT_TO_TEXT:
            return _float_text(value)
        case Cast.DECIMAL_TO_TEXT:
            assert isinstance(old, DecimalType)
            return F.call_function("format_number", value, F.lit("0" + ("." + "0" * old.scale if old.scale else "")))
        case Cast.TEXT_TO_INTEGER:
            return _text_to_integer(_trimmed(value), new)
        case Cast.TEXT_TO_FLOAT:
            return _text_to_float(_trimmed(value), new)
        case Cast.TEXT_TO_DECIMAL:
            return _text_to_decimal(_trimmed(value), new)
        case Cast.BINARY_TO_TEXT:
            return F.when(is_text(value), value.cast("string"))
        case Cast.TEXT_TO_DATE:
            return _matching(_trimmed(value), _DATE).cast(target)
        case Cast.TIMESTAMP_TO_TEXT:
            assert isinstance(old, TimestampType)
            return F.concat(value.cast("string"), F.lit("+00")) if old.zoned else value.cast("string")
        case Cast.TEXT_TO_TIMESTAMP:
            return _text_to_timestamp(_trimmed(value), new)
        case _:
            assert_never(cast)


def _trimmed(value: Column) -> Column:
    return F.trim(value)


def _matching(value: Column, pattern: str) -> Column:
    """Return the value where all of it matches, NULL elsewhere."""
    return F.when(value.rlike(f"^(?:{pattern})$") & ~value.contains("\n"), value)


def _to_integer(value: Column, old: DataType, new: DataType) -> Column:
    assert isinstance(new, IntegerType)
    limit, target = 1 << new.bits - 1, to_spark(new)
    match old:
        case FloatType():
            inside = (value >= float(-limit)) & (value < float(limit)) & (value % 1 == 0)
        case DecimalType() if old.precision - old.scale < INTEGER_DIGITS[new.bits]:
            inside = _is_whole(value, old)
        case DecimalType():
            inside = value.between(_number(-limit), _number(limit - 1)) & _is_whole(value, old)
        case IntegerType() if old.bits > new.bits:
            inside = value.between(-limit, limit - 1)
        case _:
            return value.cast(target)
    return F.when(inside, value.cast(target))


def _is_whole(value: Column, type_: DecimalType) -> Column:
    """Return whether a decimal has no digits behind its point; the remainder of one is slow to compute."""
    return value % 1 == 0 if type_.scale else F.lit(True)


def _text_to_integer(text: Column, new: DataType) -> Column:
    """Read digits: so many as always fit 64 bits at once, the few more that may fit through a decimal."""
    assert isinstance(new, IntegerType)
    sure = INTEGER_DIGITS[64] - 1
    short = _to_integer(_matching(text, rf"[+-]?0*\d{{1,{sure}}}").cast("long"), IntegerType(bits=64), new)
    if new.bits < 64:
        return short
    digits = _matching(text, rf"[+-]?0*[1-9]\d{{{sure}}}").cast(T.DecimalType(MAX_PRECISION, 0))
    return F.coalesce(short, _to_integer(digits, DecimalType(precision=MAX_PRECISION, scale=0), new))


def _to_decimal(value: Column, old: DataType, new: DataType) -> Column:
    assert isinstance(new, DecimalType)
    target, whole = to_spark(new), new.precision - new.scale
    match old:
        case IntegerType():
            return F.when((value < _number(10**whole)) & (value > _number(-(10**whole))), value.cast(target))
        case DecimalType() if old.precision - old.scale < whole:
            return value.cast(target)
        case DecimalType():
            # Rounding may carry: the bound is the least number that needs one digit more. Of the value's own type, for
            # Spark gives up digits to compare two decimals of different scales.
            bound = f"{'9' * whole or '0'}.{'9' * new.scale}5" if old.scale > new.scale else str(10**whole)
            return F.when(F.abs(value) < F.lit(bound).cast(to_spark(old)), value.cast(target))
        case _:
            double = _double(value)
            wider = T.DecimalType(min(MAX_PRECISION, new.precision + 1), new.scale)
            inside = (double < float(10**whole)) & (double > -float(10**whole))
            return _within(F.when(inside, double.cast(wider)), new)


def _double(value: Column) -> Column:
    """Return the double of a float's shortest digits, which is not the double that is the same number."""
    return value.cast("string").cast("double")


def _within(value: Column, new: DecimalType) -> Column:
    """Narrow a decimal that has one digit more at most."""
    if new.precision == MAX_PRECISION:
        return value
    bound = F.lit(str(10 ** (new.precision - new.scale))).cast(T.DecimalType(new.precision + 1, new.scale))
    return F.when((value < bound) & (value > -bound), value.cast(to_spark(new)))


def _text_to_decimal(text: Column, new: DataType) -> Column:
    assert isinstance(new, DecimalType)
    whole = new.precision - new.scale
    digits = rf"0*\d{{0,{whole}}}" if whole else "0*"
    if new.precision < MAX_PRECISION:
        number = _matching(text, rf"[+-]?(?=\.?\d){digits}(?:\.\d*)?")
        return _within(number.cast(T.DecimalType(new.precision + 1, new.scale)), new)
    # There is no room for a carry beyond 38 digits, so nothing may be rounded into one.
    number = _matching(text, rf"[+-]?(?=\.?\d){digits}(?:\.(?!9{{{new.scale}}}[5-9])\d*)?")
    return number.cast(to_spark(new))


def _narrowed(value: Column) -> Column:
    narrow = value.cast("float")
    infinite = float("inf")
    return F.when((F.abs(narrow) != F.lit(infinite).cast("float")) | (F.abs(value) == F.lit(infinite)), narrow)


def _float_text(value: Column) -> Column:
    text, size = value.cast("string"), F.abs(_double(value))
    plain = F.call_function("format_number", text.cast(T.DecimalType(MAX_PRECISION, 22)), F.lit("0." + "#" * 22))
    exponent = F.substring_index(text, "E", -1).cast("int")
    digits = F.abs(exponent).cast("string")
    written = F.concat(
        F.regexp_replace(F.substring_index(text, "E", 1), r"\.0$", ""),
        F.when(exponent < 0, F.lit("e-")).otherwise(F.lit("e+")),
        F.when(F.length(digits) < 2, F.lpad(digits, 2, "0")).otherwise(digits),
    )
    return first_of(
        (
            (F.isnan(value) | (size == float("inf")), text),
            (size == 0, F.when(text.startswith("-"), F.lit("-0")).otherwise(F.lit("0"))),
            ((size >= 1e-4) & (size < 1e15), plain),
        )
    ).otherwise(written)


def _text_to_float(text: Column, new: DataType) -> Column:
    number = _matching(text, r"[+-]?(?=\.?\d)\d*(?:\.\d*)?(?:[eE][+-]?\d+)?|NaN|[+-]?Infinity")
    found = number.cast(to_spark(new))
    infinite = F.abs(found) == F.lit(float("inf")).cast(to_spark(new))
    vanished = (found == 0) & F.substring_index(F.lower(text), "e", 1).rlike("[1-9]")
    return F.when(~(infinite & ~text.contains("Infinity")) & ~vanished, found)


def _text_to_timestamp(text: Column, new: DataType) -> Column:
    assert isinstance(new, TimestampType)
    if not new.zoned:
        return _matching(text, f"{_DATE}(?:[ T]{_TIME})?").cast(to_spark(new))
    moment = _matching(text, f"{_DATE}(?:[ T]{_TIME}{_ZONE})?").cast(to_spark(new))
    # An offset may lead beyond the years that can be shown.
    first, last = (
        F.lit(f"{edge}Z").cast("timestamp") for edge in ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")
    )
    return F.when(moment.between(first, last), moment)


def _number(value: int) -> Column:
    return F.lit(str(value)).cast(T.DecimalType(len(str(abs(value))), 0))
