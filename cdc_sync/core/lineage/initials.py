"""What rows from before a column read in it, as the source itself tells it: what counts is how the column was added.

Events show a default as it is when the connector reads it, which may be another one than that of the ADD COLUMN, and
only if it is a constant of a type the connector can read. Postgres' catalogue keeps the value itself
(`pg_attribute.attmissingval`, from Postgres 11 on): of `now()` the moment at which the column was added, of an array
the array. Elsewhere the statement says the default. Source: Postgres, documentation of `pg_attribute`, ALTER TABLE;
MySQL Reference Manual and MariaDB Knowledge Base, "ALTER TABLE".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from cdc_sync.core.debezium.literals import canonical
from cdc_sync.core.debezium.wire import (
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
from cdc_sync.core.lineage.column_log import ColumnLog, LoggedColumn, Structure
from cdc_sync.core.lineage.message_query import stated_in
from cdc_sync.core.lineage.messages import TEXT_LIMIT
from cdc_sync.core.lineage.retyping import told_retyping
from cdc_sync.core.lineage.sent_types import is_sent
from cdc_sync.core.lineage.stated import Stated, literal_value
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.core.schema.initial import InitialValue, Known, Unknown
from cdc_sync.core.schema.observed import ObservedColumn
from cdc_sync.core.schema.retyping import By
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    BinaryType,
    DataType,
    DecimalType,
    Default,
    FloatType,
    IntegerType,
    StringType,
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
        None where the source tells nothing, and there is only what the event shows.
    """
    for log in logs:
        course = _course(log, table, position, column.name)
        if course is None:
            continue
        value = _of_message(log, course, column) if log.kind == "message" else _of_statement(course, column)
        if value is not None:
            return value
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Course:
    """A column from the first structure that has it to the one that an event was written under.

    Attributes:
        before: the structure before the first, None if the log begins with that.
        first, last: the structures.
        added, shown: the column in them.
    """

    before: Structure | None
    first: Structure
    last: Structure
    added: LoggedColumn
    shown: LoggedColumn

    @property
    def was_added(self) -> bool:
        """Whether the table is known without the column."""
        return self.before is not None and bool(self.before.columns) and not self.first.reading

    @property
    def kept_rows(self) -> bool:
        """Whether nothing wrote the rows anew, so that they have no value in the column but what was kept beside."""
        return self.before is not None and self.before.file == self.first.file and self.first.file is not None


def _course(log: ColumnLog, table: TableId, position: SourcePosition, name: str) -> _Course | None:
    last = log.at(table, position)
    if last is not None and last.token(name) is None:
        log = log.with_avro_names()
        last = log.at(table, position)
    token = last.token(name) if last is not None else None
    if last is None or token is None:
        return None
    structures = log.of(table)
    place, added = next(
        (place, column)
        for place, structure in enumerate(structures)
        for column in structure.columns
        if column.token == token
    )
    shown = next(column for column in last.columns if column.token == token)
    before = structures[place - 1] if place else None
    return _Course(before=before, first=structures[place], last=last, added=added, shown=shown)


def _of_statement(course: _Course, column: ObservedColumn) -> InitialValue | None:
    """Read the ADD COLUMN of a source that sends its statements, with what the connector said of the column then."""
    added, shown = course.added, course.shown
    if added.added is None:
        return None
    if (added.type, added.optional) != (shown.type, shown.optional):
        return Unknown(reason="it was changed again before an event showed it")
    unchanged = added.shown_default is not None and added.shown_default == shown.shown_default
    return _stated(added.added, column, added.type, unchanged=unchanged)


def _stated(stated: Stated, column: ObservedColumn, source_type: str, *, unchanged: bool) -> InitialValue:
    """Return what a statement gives; `unchanged` if the column has the same default in the event."""
    if stated.kind == "null":
        return Known(value=None)
    if stated.kind == "other":
        return Unknown(reason=f"it was added as `{_short(stated.text or '')}`, which does not say it")
    value = literal_value(stated, column.type, source_type)
    if value is not None:
        return Known(value=value)
    is_number = isinstance(column.type, IntegerType | DecimalType | FloatType)  # connectors round them otherwise
    # With the statement a literal, what is suspect in another type than text is no function after all.
    is_read = not column.suspect_default or not isinstance(column.type, StringType | BinaryType)
    if unchanged and is_read and not is_number and column.default is not None:
        return Known(value=column.default)
    return Unknown(reason="it was added with a default of a form that is not read")


def _of_message(log: ColumnLog, course: _Course, column: ObservedColumn) -> InitialValue | None:
    """Read what Postgres' catalogue says of the column behind the command that added it, and that command."""
    added, shown = course.added, course.shown
    if added.missing is not None:
        return _missing(added, shown, column)
    table, text = course.first.table, course.first.statement
    stated = stated_in(text, table.schema, table.table, added.name) if len(text) < TEXT_LIMIT else None
    if added.type != shown.type:
        retyping = told_retyping([log], course.last.table, course.first.position, course.last.position, shown.name)
        if retyping is None or retyping.by is not By.RULE:
            return Unknown(reason="it got another type before an event showed it")
    if course.was_added and added.default is False and course.kept_rows:
        return Known(value=None)
    has_own = added.default is not False and not is_sent(added.type)  # a domain may have a default of its own
    if course.was_added and stated is not None and not (stated.kind == "null" and has_own):
        if stated.kind == "literal" and added.type != shown.type:
            return Unknown(reason="it got another type before an event showed it")
        return _stated(stated, column, added.type, unchanged=False)
    if added.default and column.default is None and not column.suspect_default:
        return Unknown(reason="it was added with a default that no event shows")
    return None


def _missing(added: LoggedColumn, shown: LoggedColumn, column: ObservedColumn) -> InitialValue:
    assert added.missing is not None
    if added.type == shown.type:
        value = _canonical(column.type, added.type, added.missing)
        if value is not None:
            return Known(value=value)
        if not column.suspect_default and _is_same(added.missing, column.default):
            return Known(value=column.default)
    text = _short(added.missing)
    return Unknown(reason=f"the source's catalogue has {text} for them, which no target's column can be filled with")


def _is_same(missing: str, default: Default) -> bool:
    """Whether a default that an event shows is the value of the catalogue, in the connector's words."""
    if not isinstance(default, str):
        return False
    try:
        value = json.loads(missing)
        return bool(value == default) if isinstance(value, str) else bool(value == json.loads(default))
    except (ValueError, RecursionError):
        return False


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


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
