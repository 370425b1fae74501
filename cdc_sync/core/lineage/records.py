"""What the records of evidence topics say, whatever their format: schema changes and logical messages.

Source: Debezium, `SchemaFactory` and `ConnectTableChangeSerializer` (schema-change records),
`LogicalDecodingMessageMonitor` (logical messages of Postgres).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cdc_sync.core.lineage.column_log import LoggedColumn
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEntry:
    """A column in a schema-change record.

    Attributes:
        type: made of everything the record says of its type.
        optional: it accepts NULL, None if the record does not say.
        default: its default as the connector writes it, None if there is none or it cannot be read.
    """

    name: str
    type: str
    optional: bool | None = None
    default: str | None = None

    def shown_in(self, column: LoggedColumn) -> LoggedColumn:
        """Return a column as the record shows it."""
        return replace(column, name=self.name, type=self.type, optional=self.optional, shown_default=self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """A table that a schema-change record names.

    Attributes:
        action: `CREATE`, `ALTER` or `DROP`, as Debezium's own parser understood the statement.
        columns: all columns after it, in order; None for a DROP.
    """

    action: str
    table: TableId
    columns: tuple[ColumnEntry, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChangeRecord:
    """One record of a schema-change topic.

    Attributes:
        connector: `mysql`, `mariadb`, `oracle`, …, which is also the dialect of the text.
        database, schema: what unqualified names in the statement are in; None if nothing is said.
        ddl: the statement's text, empty if there is none.
        snapshot: a snapshot wrote it, to tell what is there; nothing was done at the source.
    """

    position: SourcePosition
    kafka: KafkaPosition
    connector: str
    database: str | None
    schema: str | None
    ddl: str
    snapshot: bool
    tables: tuple[TableEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalMessage:
    """One logical message of Postgres (op `m`): what `pg_logical_emit_message` was given, and where it stands."""

    position: SourcePosition
    kafka: KafkaPosition
    database: str
    prefix: str
    content: bytes
