"""What may be wrong with a record, as one expression: the first thing found, NULL if there is nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from cdc_sync.core.debezium.conversions import logical_type
from cdc_sync.core.debezium.forms import Prefix
from cdc_sync.core.debezium.wire import WireDateText, WireFloat, WireInstant, WireText, WireTimestampText, WireType
from cdc_sync.core.planning.problems import (
    AMBIGUOUS_NULL,
    HALF_OF_A_PAIR,
    KEY_IS_FALLBACK,
    KEY_MAY_BE_MADE_UP,
    LOST,
    MALFORMED,
    NO_IMAGE,
    NO_KEY,
    PLACEHOLDER_FOUND,
    TRUNCATE,
    UNKNOWN_OPERATION,
    UNKNOWN_SCHEMA,
)
from cdc_sync.spark.casting import is_lost
from cdc_sync.spark.changelog import whole_before
from cdc_sync.spark.conditions import any_or_false, first_of
from cdc_sync.spark.converter import Converter
from cdc_sync.spark.decode import becomes_null, does_not_convert
from cdc_sync.spark.fitting import Casts
from cdc_sync.spark.group_columns import FORM, READING
from cdc_sync.spark.groups import Group
from cdc_sync.spark.images import Check, key_is_made_up, may_name_another_row, no_image
from cdc_sync.spark.kept import kept
from cdc_sync.spark.payloads import is_quoted, lost_quotes
from cdc_sync.spark.recognise import holds_half_of_a_pair, is_text
from cdc_sync.spark.types import literal

_IN_QUOTES = (WireFloat, WireText, WireInstant, WireDateText, WireTimestampText)
_INFINITE = (float("inf"), float("-inf"), float("nan"))


def problem_of(group: Group, lost: Mapping[int, str], casts: Casts, untold: Sequence[int] = ()) -> Column:
    """Return the first thing wrong with a record of the group.

    Args:
        group: of whose forms the record is.
        lost: by converter, the column whose values have no place in the head, see `fitting`.
        casts: the checked casts between versions.
        untold: converters whose updates leave a column as it is that they do not show.
    """
    layout, decoding = group.layout, group.decoding
    op = layout.op()
    checks: list[tuple[Column, str]] = [
        (layout.malformed(), MALFORMED),
        *([(holds_half_of_a_pair(group.payload), HALF_OF_A_PAIR)] if group.wire_format == "json" else []),
        (~layout.is_of_table(group.members[0][1].table), UNKNOWN_SCHEMA),
        *((F.col(READING) == index, LOST + name) for index, name in lost.items()),
    ]
    if decoding.changelog:
        checks.append((~op.isin("c", "u", "d", "r", "t"), UNKNOWN_OPERATION))
    else:
        checks.append((op == "t", TRUNCATE))
        checks.append((~op.isin("c", "u", "d", "r"), UNKNOWN_OPERATION))
        if decoding.images:
            checks += _of_members(group, no_image, NO_IMAGE)
        checks += _of_members(group, _key_is_null, NO_KEY)
        if not decoding.images:
            checks += _of_members(group, key_is_made_up, KEY_IS_FALLBACK)
        if decoding.tell_made_up is False:
            checks += _of_members(group, may_name_another_row, KEY_MAY_BE_MADE_UP)
    if not decoding.keep_unchanged:
        left_out = [group.placeholder(column.name) for column in group.columns.values()]
        found = [condition for condition in left_out if condition is not None]
        if found:
            may_leave_out = op.isin("u", "c") if layout.tells_operation else op != "d"
            checks.append((may_leave_out & any_or_false(found), PLACEHOLDER_FOUND))
        in_doubt = [of(column.name) for column in group.columns.values() for of in of_doubts(group)]
        doubts = [condition for condition in in_doubt if condition is not None]
        if doubts:
            checks.append((any_or_false(doubts), PLACEHOLDER_FOUND))
        if untold:
            checks.append((F.col(READING).isin(*untold) & group.is_update(), PLACEHOLDER_FOUND))
    if decoding.refuse_ambiguous_null:
        checks += _of_members(group, _ambiguous_null, AMBIGUOUS_NULL)
    checks += _lost(group)
    checks += _uncast(group, casts)
    checks += [(condition, LOST + name) for name, condition in not_as_declared(group)]
    return first_of((condition, F.lit(text)) for condition, text in checks)


def of_doubts(group: Group) -> tuple[Callable[[str], Column | None], ...]:
    """Return what tells of a column, by its name, whether its value is in doubt; in the order of `unchanged.DOUBTS`."""
    return group.unsent, group.is_unread, group.is_overflown


def _of_members(group: Group, of: Callable[[Group, Converter], Check], problem: str) -> list[tuple[Column, str]]:
    """Return a check for each different condition, guarded by the forms it is for where those are not all."""
    conditions: dict[tuple[object, ...], list[int]] = {}
    made: dict[tuple[object, ...], Column] = {}
    for form, converter in group.members:
        key, condition = of(group, converter)
        if condition is None:
            continue
        conditions.setdefault(key, []).append(form)
        made[key] = condition
    return [
        (made[key] if set(forms) == set(group.forms) else F.col(FORM).isin(*forms) & made[key], problem)
        for key, forms in conditions.items()
    ]


def whole_before_of(group: Group) -> Column:
    """Return whether an event is known to hold the whole row before the change."""
    found = _of_members(group, _whole_before, "")
    return any_or_false(condition for condition, _ in found)


def may_name_another_row_of(group: Group) -> Column:
    """Return whether an event is a delete of whose key the connector may have made up a part."""
    return any_or_false(condition for condition, _ in _of_members(group, may_name_another_row, ""))


def becomes_null_of(group: Group) -> Column:
    """Return whether a value of the row becomes NULL for being out of range; of deletes nothing is written."""
    found = (
        becomes_null(column.wire, group.raw(field), group.converted(column.name), group.wire_format, group.settings)
        for field, column in group.columns.items()
    )
    return (group.layout.op() != "d") & any_or_false(condition for condition in found if condition is not None)


def _whole_before(group: Group, converter: Converter) -> Check:
    columns = [column for column in converter.schema.columns if column.field in group.columns]
    key = tuple((column.field, column.optional, column.default is None) for column in columns)
    return key, whole_before(columns, converter.schema.key, lambda column: group.layout.before(column.field))


def _key_is_null(group: Group, converter: Converter) -> Check:
    key = converter.schema.key
    if not key:
        return (), None
    missing = [F.lit(True)] if not all(group.has(name) for name in key) else []
    return key, any_or_false([*missing, *(group.raw(group.field_of(name)).isNull() for name in key if group.has(name))])


def _ambiguous_null(group: Group, converter: Converter) -> Check:
    """Find values equal to the default of a nullable column where the converter replaces NULL by the default.

    That it does shows in `source.snapshot`: unset in streaming, so its default "false" appears only then.
    """
    read = {column.name for column in group.columns.values()}
    columns = [
        column
        for column in converter.schema.columns
        if column.optional and column.default is not None and column.name in read
    ]
    if not columns:
        return (), None
    equal = [
        group.converted(column.name).eqNullSafe(literal(column.default, logical_type(column.wire)))
        for column in columns
    ]
    key = tuple((column.name, column.default) for column in columns)
    return key, (group.layout.source("snapshot") == "false") & any_or_false(equal)


def _lost(group: Group) -> list[tuple[Column, str]]:
    found = []
    for before in group.sides:
        for field, column in group.columns.items():
            raw, converted = group.raw(field, before=before), group.converted(column.name, before=before)
            lost = does_not_convert(column.wire, raw, converted, group.wire_format, group.settings)
            if group.may_be_no_text(field):
                lost = ~group.are_text & ~F.coalesce(is_text(raw.cast("binary")), F.lit(True))
            if lost is None:
                continue
            left_out = None if before else group.left_out(column.name)
            found.append((lost if left_out is None else lost & ~left_out, LOST + column.name))
    return found


def _uncast(group: Group, casts: Casts) -> list[tuple[Column, str]]:
    """Return the checks of values that an older version's column has and the head's has no place for."""
    found = []
    members = {id(converter) for _, converter in group.members}
    for before in group.sides:
        for entry, converters in casts.items():
            mine = [index for index, converter in converters if id(converter) in members]
            if not mine:
                continue
            lost = F.col(READING).isin(*mine) & is_lost(group.known(entry, before=before), entry.casts)
            left_out = None if before else group.left_out(entry.name)
            found.append((lost if left_out is None else lost & ~left_out, LOST + entry.name))
    return found


def not_as_declared(group: Group) -> list[tuple[str, Column]]:
    """Return by column the condition under which its value was no text in JSON although it can only be one.

    Looks only at columns of the row itself, not into arrays, structs and maps. Quotes count wherever the event has a
    member of the column's name: the row before the change may lend them to the one after it.
    """
    if group.wire_format != "json":
        return []
    found = []
    for field, column in group.columns.items():
        member = json.dumps(field, ensure_ascii=False)
        # Converters differ in how they escape what has to be escaped in a name.
        if isinstance(column.wire, _IN_QUOTES) and "\\" not in member:
            found += [
                (column.name, _kept_is_bare(group, field, column.wire, member, before=before))
                for before in _sides(group, field)
            ]
    return found


def _sides(group: Group, field: str) -> tuple[bool, ...]:
    if group.layout.needs_key:
        return (False,)  # what was before is in the record's key, which is elsewhere
    return (False, True) if group.decoding.images or field in group.key_fields else (False,)


def _kept_is_bare(group: Group, field: str, wire: WireType, member: str, *, before: bool) -> Column:
    key = ("is bare", group.place(field, before=before), type(wire), member)
    return kept(key, lambda: _is_bare(group, wire, member, group.side(field, before=before)))


def _is_bare(group: Group, wire: WireType, member: str, value: Column) -> Column:
    compact = isinstance(group.members[0][1].value_form, Prefix)
    if isinstance(wire, (WireInstant, WireTimestampText)):
        # What has a colon and was no text is an object or an array, which are no time either.
        plain = F.coalesce(~F.contains(value, F.lit(":")), F.lit(False))
        return plain & lost_quotes(group.payload, member, value, compact=compact)
    if not isinstance(wire, WireFloat):
        return lost_quotes(group.payload, member, value, compact=compact)
    suspect = F.coalesce(value.isin(*_INFINITE), F.lit(False))
    return suspect & ~is_quoted(group.payload, member, F.lit(""), compact=compact)
