"""Which topic Debezium gives a table's events.

Source: Debezium documentation, "Topic names" of each connector: `<topic.prefix>.<schema>.<table>`, with the database
before it (SQL Server) or in place of the schema (MySQL, MariaDB); `topic.prefix` may hold points too. Characters that a
Kafka topic may not have become `_` (`AbstractTopicNamingStrategy.sanitizedTopicName`).
"""

from __future__ import annotations

import re

from cdc_sync.core.model.positions import TableId


def is_topic_of(topic: str, table: TableId) -> bool:
    """Whether Debezium, without a transform that routes, would send a table's events to a topic."""
    names = f"{table.schema or table.database}.{table.table}"
    return topic.endswith("." + re.sub(r"[^A-Za-z0-9._-]", "_", names))
