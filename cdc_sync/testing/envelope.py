"""Change events of Debezium's Postgres connector, version 3.6, from their parts.

Source of the form: Debezium, `Envelope`, `SchemaFactory`, `PostgresSourceInfoStructMaker`; checked against captures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.model.positions import TableId
from cdc_sync.testing.connect import INT64, TEXT, column, enum, message, struct

VERSION = "3.6.1.Final"

_SNAPSHOT = enum("true", "first", "first_in_data_collection", "last_in_data_collection", "last", "false", "incremental")

SOURCE_SCHEMA = replace(
    struct(
        "io.debezium.connector.postgresql.Source",
        column("version", TEXT, optional=False),
        column("connector", TEXT, optional=False),
        column("name", TEXT, optional=False),
        column("ts_ms", INT64, optional=False),
        column("snapshot", _SNAPSHOT, default="false"),
        column("db", TEXT, optional=False),
        column("sequence", TEXT),
        column("ts_us", INT64),
        column("ts_ns", INT64),
        column("schema", TEXT, optional=False),
        column("table", TEXT, optional=False),
        column("txId", INT64),
        column("lsn", INT64),
        column("xmin", INT64),
        column("origin", TEXT),
        column("origin_lsn", INT64),
    ),
    version=1,
    field="source",
)
TRANSACTION_SCHEMA = replace(
    struct(
        "event.block",
        column("id", TEXT, optional=False),
        column("total_order", INT64, optional=False),
        column("data_collection_order", INT64, optional=False),
    ),
    version=1,
    optional=True,
    field="transaction",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A Kafka record's key, value and headers; a null value is a tombstone."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def envelope_schema(name: str, columns: Sequence[ConnectSchema]) -> ConnectSchema:
    """Return the value schema of a table's change events.

    Args:
        name: prefix, schema and table joined by dots, sanitised as the connector does it.
        columns: made by `testing.column`, in the table's order.
    """
    row = replace(struct(f"{name}.Value", *columns), optional=True)
    envelope = struct(
        f"{name}.Envelope",
        replace(row, field="before"),
        replace(row, field="after"),
        SOURCE_SCHEMA,
        TRANSACTION_SCHEMA,
        column("op", TEXT, optional=False),
        column("ts_ms", INT64),
        column("ts_us", INT64),
        column("ts_ns", INT64),
    )
    return replace(envelope, version=2)


def key_schema(name: str, columns: Sequence[ConnectSchema]) -> ConnectSchema:
    """Return the key schema of a table's change events; `columns` are the key's, in key order."""
    return struct(f"{name}.Key", *columns)


def source_block(
    table: TableId,
    *,
    prefix: str,
    lsn: int | None,
    last_commit: int | None,
    tx_id: int | None,
    ts_us: int,
    snapshot: str | None = "false",
) -> dict[str, object]:
    """Return the payload of `source`.

    Args:
        table: whose row it is.
        prefix: the connector's `topic.prefix`.
        lsn: the event's place in the log; None as in incremental snapshots.
        last_commit: the last commit before the event; None is written as null, as in a snapshot.
        tx_id: the transaction's.
        ts_us: time of the commit, in microseconds.
        snapshot: None is what streaming shows where the converter keeps NULL as NULL.
    """
    commit = "null" if last_commit is None else f'"{last_commit}"'
    place = "null" if lsn is None else f'"{lsn}"'
    return {
        "version": VERSION,
        "connector": "postgresql",
        "name": prefix,
        "ts_ms": ts_us // 1000,
        "snapshot": snapshot,
        "db": table.database,
        "sequence": f"[{commit},{place}]",
        "ts_us": ts_us,
        "ts_ns": ts_us * 1000,
        "schema": table.schema,
        "table": table.table,
        "txId": tx_id,
        "lsn": lsn,
        "xmin": None,
        "origin": None,
        "origin_lsn": None,
    }


def change_payload(
    *,
    before: Mapping[str, object] | None,
    after: Mapping[str, object] | None,
    source: Mapping[str, object],
    op: str,
    ts_ns: int,
    transaction: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return the payload of a change event; rows are in wire form and in the order of the columns."""
    return {
        "before": before,
        "after": after,
        "source": source,
        "transaction": transaction,
        "op": op,
        "ts_ms": ts_ns // 1_000_000,
        "ts_us": ts_ns // 1000,
        "ts_ns": ts_ns,
    }


def heartbeat(prefix: str, ts_ms: int) -> Record:
    """Return a record of the topic `__debezium-heartbeat.<prefix>`."""
    name = "io.debezium.connector.common"
    key = struct(f"{name}.ServerNameKey", column("serverName", TEXT, optional=False))
    value = struct(f"{name}.Heartbeat", column("ts_ms", INT64, optional=False))
    return Record(
        key=message(replace(key, version=1), {"serverName": prefix}),
        value=message(replace(value, version=1), {"ts_ms": ts_ms}),
    )


def transaction_end(id_: str, events: Mapping[str, int]) -> Record:
    """Return what the topic `<prefix>.transaction` holds of a transaction's end.

    Args:
        id_: as the connector writes it.
        events: how many there are of each table, by `schema.table`.
    """
    name = "io.debezium.connector.common.TransactionMetadata"
    count = column("event_count", INT64, optional=False)
    table = struct("event.collection", column("data_collection", TEXT, optional=False), count)
    value = struct(
        f"{name}Value",
        column("status", TEXT, optional=False),
        column("id", TEXT, optional=False),
        column("event_count", INT64),
        ConnectSchema(type="array", optional=True, field="data_collections", items=replace(table, version=1)),
        column("ts_ms", INT64, optional=False),
    )
    counts = [{"data_collection": table, "event_count": count} for table, count in events.items()]
    said = {"status": "END", "id": id_, "event_count": sum(events.values()), "data_collections": counts, "ts_ms": 1}
    key = struct(f"{name}Key", column("id", TEXT, optional=False))
    return Record(
        key=message(replace(key, version=1), {"id": id_}),
        value=message(replace(value, version=1), said),
    )
