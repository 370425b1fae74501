"""Whose events a topic holds, by its name."""

from __future__ import annotations

import pytest

from cdc_sync.core.debezium.topics import is_topic_of
from cdc_sync.core.model.positions import TableId


@pytest.mark.parametrize(
    ("topic", "table", "fits"),
    [
        ("shop.inv.orders", ("shop", "inv", "orders"), True),
        ("eu.prod.inv.orders", ("shop", "inv", "orders"), True),
        ("shop.testDB.dbo.orders", ("testDB", "dbo", "orders"), True),
        ("shop.inv.orders", ("inv", "", "orders"), True),  # MySQL
        ("shop.inv.or_der_", ("shop", "inv", "or der\u00e9"), True),
        ("shop.inv.a.b", ("shop", "inv", "a.b"), True),
        ("shop.inv.orders", ("shop", "inv", "payments"), False),
        ("shop.inv.orders", ("shop", "hr", "orders"), False),
        ("shop.xinv.orders", ("shop", "inv", "orders"), False),
        ("inv.orders", ("shop", "inv", "orders"), False),  # no prefix
        ("shop.inv.orders_2", ("shop", "inv", "orders"), False),
    ],
)
def test_a_topic_is_named_after_its_table(topic: str, table: tuple[str, str, str], fits: bool) -> None:
    database, schema, name = table
    assert is_topic_of(topic, TableId(database=database, schema=schema, table=name)) is fits
