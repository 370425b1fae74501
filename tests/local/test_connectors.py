"""What connectors on this machine are told."""

from __future__ import annotations

import pytest

from cdc_sync.local.connectors import mariadb_connector, postgres_connector

POSTGRES = postgres_connector("Shop-1", port=5432, tables=["public.orders", "public.lines"], partitions=3)
MARIADB = mariadb_connector("shop", port=3306, bootstrap_servers="kafka:9092")


@pytest.mark.parametrize("config", [POSTGRES, MARIADB], ids=["postgres", "mariadb"])
def test_a_null_stays_a_null_and_every_event_carries_its_schema(config: dict[str, str]) -> None:
    assert config["value.converter.replace.null.with.default"] == "false"
    assert config["value.converter.schemas.enable"] == "true"


def test_a_slot_is_named_in_postgres_own_letters() -> None:
    assert POSTGRES["slot.name"] == "shop_1"
    assert POSTGRES["table.include.list"] == "public.orders,public.lines"
    assert POSTGRES["topic.creation.default.partitions"] == "3"


def test_mariadb_writes_its_ddl_to_a_topic_and_every_connector_is_a_replica_of_its_own() -> None:
    assert MARIADB["include.schema.changes"] == "true"
    assert "table.include.list" not in MARIADB
    other = mariadb_connector("stock", port=3306, bootstrap_servers="kafka:9092")
    assert other["database.server.id"] != MARIADB["database.server.id"]
    assert other["schema.history.internal.kafka.topic"] != MARIADB["schema.history.internal.kafka.topic"]
