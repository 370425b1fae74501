"""Whether an event's row before the change holds what its row is found by, or values that the connector made up.

Postgres sends of that row what the table's replica identity holds: all columns (FULL), those of the primary key
(DEFAULT) or those of an index (USING INDEX), which are all NOT NULL. In place of any other value Debezium sends NULL
where the column accepts it, else the column's default, else 0, '', false or the epoch (Debezium,
`JdbcValueConverters.convertValue`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.debezium.conversions import logical_type
from cdc_sync.core.debezium.wire import WireColumn, WireStruct, WireVariableDecimal
from cdc_sync.spark.changelog import proving, whole_before
from cdc_sync.spark.conditions import any_or_false
from cdc_sync.spark.converter import Converter
from cdc_sync.spark.decode import decoder
from cdc_sync.spark.group_columns import before_beside_key
from cdc_sync.spark.groups import Group
from cdc_sync.spark.raw import raw_type
from cdc_sync.spark.types import literal

Check: TypeAlias = tuple[tuple[object, ...], Column | None]
"""A condition, None if there is nothing to check, and what tells it from those of other converters."""


def key_is_made_up(group: Group, converter: Converter) -> Check:
    """Return whether a delete's record key may be made up in part: REPLICA IDENTITY USING INDEX need not hold it all.

    Such a `before` still holds the real values of the index, which a default identity never does. A row that is really
    found by 0 or '' looks the same under FULL, unless a value in a column that accepts NULL proves that the image is
    whole.
    """
    schema = converter.schema
    read = before_beside_key(converter)
    key = [column for column in read if column.name in schema.key]
    others = [column for column in read if column.name not in schema.key and _tells(column)]
    if not converter.may_make_up_values or not key or not others:
        return (), None
    whole = whole_before(read, schema.key, lambda column: group.layout.before(column.field))
    made_up = any_or_false([_may_be_made_up(group, column) for column in key])
    condition = (group.layout.op() == "d") & made_up & any_or_false(_real(group, others)) & ~whole
    return (schema.key, _told_by(read)), condition


def may_name_another_row(group: Group, converter: Converter) -> Check:
    """Return whether a delete's record key may be made up where nothing else in the event shows that it is.

    An index may be a part of the key, and a connector that lags reads the key of now. Such a delete is told from one of
    a row that has this key only by whether that row is there.
    """
    schema = converter.schema
    read = before_beside_key(converter)
    key = [column for column in read if column.name in schema.key and not column.optional]
    if not converter.may_make_up_values or not key:
        return (), None
    whole = whole_before(read, schema.key, lambda column: group.layout.before(column.field))
    made_up = any_or_false([_may_be_made_up(group, column) for column in key])
    return (schema.key, _told_by(read)), (group.layout.op() == "d") & made_up & ~whole


def no_image(group: Group, converter: Converter) -> Check:
    """Return whether the row before the change is missing where it alone can say which row is meant.

    Without a key that is every update and delete. Under a declared key it is a delete whose key columns are NULL or
    made up: the replica identity does not hold them.
    """
    op, schema = group.layout.op(), converter.schema
    if not schema.key:
        return (), op.isin("u", "d") & ~F.coalesce(group.layout.has_before(), F.lit(False))
    missing = [group.layout.before(group.field_of(name)).isNull() for name in schema.key if group.has(name)]
    read = [column for column in schema.columns if column.field in group.columns]
    missing += _declared_is_made_up(group, converter, read)
    return (schema.key, schema.record_key, _told_by(read)), (op == "d") & any_or_false(missing)


def _declared_is_made_up(group: Group, converter: Converter, read: Sequence[WireColumn]) -> list[Column]:
    """Return, if there is anything to check, whether a declared key may be made up in `before`.

    It may where a column of it has such a value, and nothing that is real lies outside the two keys: that is what the
    default identity sends. What the operator declared is believed where it is no more than the record key, where there
    is none (then only FULL or an index has events of deletes), and where the image shows more than a default one.
    """
    schema = converter.schema
    both = {*schema.key, *schema.record_key}
    if not converter.may_make_up_values or not schema.record_key or both == set(schema.record_key):
        return []
    key = [column for column in read if column.name in schema.key and not column.optional]
    named = [column for column in read if column.name in both and _tells(column)]
    others = [column for column in read if column.name not in both and _tells(column)]
    shown = [group.layout.before(column.field).isNotNull() for column in proving(read, schema.record_key)]
    made_up = any_or_false([_may_be_made_up(group, column) for column in key])
    return [made_up & any_or_false(_real(group, named)) & ~any_or_false([*_real(group, others), *shown])]


def _told_by(columns: Sequence[WireColumn]) -> tuple[object, ...]:
    return tuple((item.field, item.optional, item.default, item.suspect_default) for item in columns)


def _tells(column: WireColumn) -> bool:
    """Whether what is made up for a column is known, so that any other value of it is real."""
    known = column.default is not None or not (column.suspect_default or isinstance(column.wire, WireStruct))
    return not column.optional and known


def _real(group: Group, columns: Sequence[WireColumn]) -> list[Column]:
    return [~_may_be_made_up(group, column) for column in columns]


def _may_be_made_up(group: Group, column: WireColumn) -> Column:
    """Whether a NOT NULL value is what Debezium sends when it has none: the default, else 0, '', false or the epoch."""
    raw = group.layout.before(column.field)
    kind = raw_type(column.wire, group.wire_format, group.settings)
    if isinstance(kind, T.BinaryType):
        zero = raw.isin(bytearray(), bytearray(1))  # no bytes, or the number 0
    elif isinstance(kind, T.StringType):
        zero = raw.isin("", "00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z")
    elif isinstance(kind, T.BooleanType):
        zero = ~raw
    elif isinstance(kind, (T.ArrayType, T.MapType)):
        zero = F.size(raw) == 0
    elif isinstance(column.wire, WireVariableDecimal):
        zero = _decoded(group, column, raw) == "0"
    elif isinstance(kind, T.StructType):
        zero = raw.isNull()
    else:
        zero = raw == 0
    if column.default is not None:
        default = literal(column.default, logical_type(column.wire))
        zero = zero | _decoded(group, column, raw).eqNullSafe(default)
    return F.coalesce(zero, F.lit(True))


def _decoded(group: Group, column: WireColumn, raw: Column) -> Column:
    decode = decoder(column.wire, group.wire_format, group.settings)
    return raw if decode is None else decode(raw)
