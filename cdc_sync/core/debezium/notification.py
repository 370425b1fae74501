"""Notifications: what a connector tells of its snapshots, and how it is asked for one.

Source: Debezium, `io.debezium.pipeline.notification.Notification`, `IncrementalSnapshotNotificationService`,
`KafkaSignalChannel`, `ExecuteSnapshot`; documentation, "Sending signals" and "Receiving notifications".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cdc_sync.core.model.positions import TableId
from cdc_sync.errors import WireError

_INCREMENTAL = "Incremental Snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotNotification:
    """One step of an incremental snapshot.

    Attributes:
        signal: the id of the signal that the connector took up last; an earlier one is not named any more.
        type: `STARTED`, `IN_PROGRESS`, `TABLE_SCAN_COMPLETED`, `COMPLETED`, `STOPPED`, `PAUSED` or `RESUMED`.
        status: how a table's scan ended: `SUCCEEDED`, `EMPTY`, `NO_PRIMARY_KEY`, `SKIPPED`, `SQL_EXCEPTION`,
            `UNKNOWN_SCHEMA`; None in other notifications.
        collection: the table that was scanned, as the connector names it; None in other notifications.
        connector: its `topic.prefix`.
    """

    signal: str
    type: str
    status: str | None = None
    collection: str | None = None
    connector: str | None = None


def snapshot_notification(payload: Mapping[str, object]) -> SnapshotNotification | None:
    """Return what a decoded notification says of an incremental snapshot, None if it is about something else.

    Args:
        payload: `id`, `aggregate_type`, `type`, `additional_data`.

    Raises:
        WireError: if it is no notification.
    """
    id_, about, type_ = payload.get("id"), payload.get("aggregate_type"), payload.get("type")
    if not isinstance(id_, str) or not isinstance(type_, str):
        raise WireError("Cannot read notification: it has no id or no type")
    if about != _INCREMENTAL:
        return None
    data = payload.get("additional_data")
    texts = {name: value for name, value in data.items() if isinstance(value, str)} if isinstance(data, Mapping) else {}
    return SnapshotNotification(
        signal=id_,
        type=type_,
        status=texts.get("status"),
        collection=texts.get("scanned_collection"),
        connector=texts.get("connector_name"),
    )


def collection(table: TableId, kind: str) -> str:
    """Return a table's name as its connector writes it; see `signal_data`."""
    return ".".join(_parts(table, kind))


def _parts(table: TableId, kind: str) -> tuple[str, ...]:
    # Postgres' connector leaves out the database, MySQL's has no schema.
    whole = (table.database, table.schema, table.table)
    return whole[1:] if kind == "postgresql" else tuple(part for part in whole if part)


def signal_data(table: TableId, kind: str, how: Literal["incremental", "blocking"] = "incremental") -> str:
    """Return the `data` of a signal that asks for a snapshot of one table.

    Args:
        how: beside the stream, or while it waits, so that rows come whole and in one piece.
        table: the source table.
        kind: of its source positions, which tells how the connector names tables.
    """
    # Names are regular expressions there.
    name = "[.]".join(re.escape(part).replace(r"\.", "[.]") for part in _parts(table, kind))
    return json.dumps({"data-collections": [name], "type": how})


def kafka_signal(signal: str, data: str) -> bytes:
    """Return a signal as the value of a Kafka record; its key is the connector's `topic.prefix`."""
    return json.dumps({"id": signal, "type": "execute-snapshot", "data": json.loads(data)}).encode()


def sql_signal(signal: str, data: str, kind: str, signal_table: str | None) -> str:
    """Return a signal as the statement that writes it to the source's signalling table, if possible by its name."""
    literal = data.replace("'", "''")
    if kind == "binlog":
        literal = literal.replace("\\", "\\\\")  # MySQL takes it for an escape
    into = signal_table or "<signal.data.collection>"
    return f"INSERT INTO {into} (id, type, data) VALUES ('{signal}', 'execute-snapshot', '{literal}')"
