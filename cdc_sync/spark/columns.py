"""Names of the columns that data frames inside the job have.

Names of source columns never appear there: a crafted name meets SQL only where a target quotes it.
"""

from __future__ import annotations

KEY, VALUE, TOPIC, PARTITION, OFFSET = "key", "value", "topic", "partition", "offset"
"""What Spark's Kafka source calls a record's parts."""

OP, LSN, PROBLEM = "op", "lsn", "problem"
"""Of a converted event: operation, source LSN, and what is wrong with it, NULL if nothing is."""

DELETED, CREATED = "deleted", "created"
"""Of a batch's row: the key's last event is a delete; the key has a create or a snapshot read among its events."""


def value_column(id_: int) -> str:
    """Return the column that holds the value of the tracked column with this id."""
    return f"c{id_}"
