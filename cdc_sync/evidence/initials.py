"""What rows from before a column read in it, as Postgres' own catalogue tells it.

Events show a default only if it is a constant of a type the connector can read, and as it is at the time of the event.
The catalogue keeps the value itself (`pg_attribute.attmissingval`, from Postgres 11 on): of `now()` the moment at which
the column was added, of an array the array. Source: Postgres, documentation of `pg_attribute`, ALTER TABLE.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from types import MappingProxyType

from cdc_sync.debezium.literals import canonical
from cdc_sync.debezium.wire import (
    WireBoolean,
    WireDateText,
    WireDecimal,
    WireFloat,
    WireInstant,
    WireInteger,
    WireText,
    WireTimestampText,
    WireType,
)
from cdc_sync.events import SourcePosition, TableId
from cdc_sync.evidence.column_log import ColumnLog, LoggedColumn
from cdc_sync.schema.initial import InitialValue, Known, Unknown
from cdc_sync.schema.internal import Default
from cdc_sync.schema.observed import ObservedColumn
from cdc_sync.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
    FloatType,
    IntegerType,
)

_PLAIN: Mapping[DataType, WireType] = MappingProxyType(
    {BOOLEAN: WireBoolean(), DATE: WireDateText(), TIMESTAMP: WireTimestampText(), TIMESTAMP_TZ: WireInstant()}
)
_SHOWN = 40
"""Characters of a value that a reason shows."""


def told_initial(
    logs: Iterable[ColumnLog], table: TableId, position: SourcePosition, column: ObservedColumn
) -> InitialValue | None:
    """Return what the source tells of a new column's value in rows that were there before it.

    Args:
        logs: what the source says of its columns.
        table: the column's.
        position: of the first event that shows the column.
        column: as that event shows it.

    Returns:
        None where the source tells nothing, and what the event shows has to do.
    """
    for log in logs:
        found = _first_and_last(log, table, position, column.name)
        if found is not None and (value := _initial(*found, column)) is not None:
            return value
    return None


def _first_and_last(
    log: ColumnLog, table: TableId, position: SourcePosition, name: str
) -> tuple[LoggedColumn, LoggedColumn] | None:
    """Return the column as it was added, and as it is for rows at the position."""
    structure = log.at(table, position)
    last = next((item for item in structure.columns if item.name == name), None) if structure is not None else None
    if last is None:
        return None
    same = (item for structure in log.of(table) for item in structure.columns if item.token == last.token)
    return next(same), last


def _initial(first: LoggedColumn, last: LoggedColumn, column: ObservedColumn) -> InitialValue | None:
    if first.missing is None:
        if first.default and column.default is None and not column.suspect_default:
            return Unknown(reason="it was added with a default that no event shows")
        return None
    value = _canonical(column.type, first.type, first.missing) if first.type == last.type else None
    if value is not None:
        return Known(value=value)
    if first == last and column.default is not None and not column.suspect_default:
        return None
    shown = first.missing if len(first.missing) <= _SHOWN else first.missing[: _SHOWN - 1] + "…"
    return Unknown(reason=f"the source's catalogue has {shown} for them, which no target's column can be filled with")


def _canonical(type_: DataType, source_type: str, text: str) -> Default:
    """Return Postgres' JSON of a value in canonical form; None where a target holds another form of it."""
    try:
        value = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None
    if type_ == BINARY:
        return _hexadecimal(value) if source_type == "bytea" else None
    wire = _wire(type_, source_type)
    # A text would be taken for the base64 of a decimal, and "Infinity" is some.
    if wire is None or (isinstance(type_, DecimalType) and isinstance(value, str)):
        return None
    return canonical(wire, value)


def _wire(type_: DataType, source_type: str) -> WireType | None:
    """Return what is on the wire in the form that JSON of Postgres has."""
    match type_:
        case IntegerType(bits=bits):
            return WireInteger(bits=bits)
        case FloatType(bits=bits):
            return WireFloat(bits=bits)
        case DecimalType(precision=precision, scale=scale):
            return WireDecimal(precision=precision, scale=scale)
    if type_ == STRING:
        # JSON of other types may be laid out otherwise than as text.
        plain = source_type in ("text", "uuid") or source_type.startswith("character varying")
        return WireText() if plain else None
    return _PLAIN.get(type_)


def _hexadecimal(value: object) -> str | None:
    if not isinstance(value, str) or not value.startswith("\\x"):
        return None
    try:
        return bytes.fromhex(value[2:]).hex()
    except ValueError:
        return None
