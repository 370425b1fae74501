"""Notifications and signals, as the connector writes and reads them."""

from __future__ import annotations

import json

import pytest

from cdc_sync.core.debezium.notification import (
    SnapshotNotification,
    kafka_signal,
    signal_data,
    snapshot_notification,
    sql_signal,
)
from cdc_sync.core.model.positions import TableId
from cdc_sync.errors import WireError

ORDERS = TableId(database="shop", schema="public", table="orders.2024")


def _payload(**values: object) -> dict[str, object]:
    return {"id": "s", "aggregate_type": "Incremental Snapshot", "type": "COMPLETED", "additional_data": {}} | values


def test_steps_of_incremental_snapshots_are_read() -> None:
    assert snapshot_notification(_payload()) == SnapshotNotification(signal="s", type="COMPLETED")
    scanned = _payload(type="TABLE_SCAN_COMPLETED", additional_data={"status": "NO_PRIMARY_KEY", "total_rows": "1"})
    assert snapshot_notification(scanned) == SnapshotNotification(
        signal="s", type="TABLE_SCAN_COMPLETED", status="NO_PRIMARY_KEY"
    )
    scanned = _payload(additional_data={"scanned_collection": "public.orders", "connector_name": "shop", "rows": 1})
    assert snapshot_notification(scanned) == SnapshotNotification(
        signal="s", type="COMPLETED", collection="public.orders", connector="shop"
    )
    assert snapshot_notification(_payload(additional_data=None)) == SnapshotNotification(signal="s", type="COMPLETED")


def test_others_are_passed_over() -> None:
    assert snapshot_notification(_payload(aggregate_type="Initial Snapshot")) is None


@pytest.mark.parametrize("values", [{"id": None}, {"type": 7}])
def test_what_is_no_notification_is_said_to_be_none(values: dict[str, object]) -> None:
    with pytest.raises(WireError, match="no id or no type"):
        snapshot_notification(_payload(**values))


@pytest.mark.parametrize(
    ("table", "kind", "name"),
    [
        (ORDERS, "postgresql", "public[.]orders[.]2024"),
        (TableId(database="shop", schema="", table="orders"), "binlog", "shop[.]orders"),
        (ORDERS, "sqlserver", "shop[.]public[.]orders[.]2024"),
    ],
)
def test_a_table_is_named_as_its_connector_does_and_as_a_regular_expression(
    table: TableId, kind: str, name: str
) -> None:
    assert json.loads(signal_data(table, kind)) == {"data-collections": [name], "type": "incremental"}


def test_a_signal_is_a_record_or_a_statement() -> None:
    data = signal_data(TableId(database="d", schema="it's", table="t"), "postgresql")
    assert json.loads(kafka_signal("s", data)) == {"id": "s", "type": "execute-snapshot", "data": json.loads(data)}
    assert sql_signal("s", data, "postgresql", None).endswith(
        f"VALUES ('s', 'execute-snapshot', '{data.replace(chr(39), chr(39) * 2)}')"
    )
    assert "it''s" in sql_signal("s", data, "postgresql", None)
    assert sql_signal("s", data, "postgresql", "inv.debezium_signal").startswith("INSERT INTO inv.debezium_signal (id,")


def test_mysql_takes_a_backslash_for_an_escape() -> None:
    data = signal_data(TableId(database="d", schema="", table="a b"), "binlog")
    assert json.loads(data)["data-collections"] == ["d[.]a\\ b"]
    assert "d[.]a\\\\\\\\ b" in sql_signal("s", data, "binlog", None)
