"""Names of the columns that data frames inside the job have.

Names of source columns never appear there: a crafted name meets SQL only where a target quotes it.
"""

from __future__ import annotations

KEY, VALUE, TOPIC, PARTITION, OFFSET, HEADERS = "key", "value", "topic", "partition", "offset", "headers"
"""What Spark's Kafka source calls a record's parts."""

OP, LSN, PROBLEM = "op", "lsn", "problem"
"""Of a converted event: operation, source LSN, and what is wrong with it, NULL if nothing is."""

SNAPSHOT_EDGE = "snapshot_edge"
"""Of a converted event, where asked for: it is the first or last row that a snapshot of the whole table read."""

OUT_OF_RANGE = "out_of_range"
"""Of a converted event, where asked for: a value of it becomes NULL for being out of range."""

MADE_UP = "made_up"
"""Of a converted event, where asked for: it is a delete, and the connector may have made up a part of its key."""

DELETED, CREATED = "deleted", "created"
"""Of a batch's row: the key's last event is a delete; its first event is no update, so no row has to be there."""


POSITION, HAS_BEFORE = "position", "has_before"
"""Of a converted event, where asked for: the source position; whether the event holds the row before the change."""


def value_column(id_: int) -> str:
    """Return the column that holds the value of the tracked column with this id."""
    return f"c{id_}"


def before_column(id_: int) -> str:
    """Return the column that holds the value before the change of the tracked column with this id."""
    return f"b{id_}"


def unchanged_column(id_: int) -> str:
    """Return the column that says whether the event leaves the tracked column with this id as it is."""
    return f"u{id_}"


def doubt_column(id_: int) -> str:
    """Return the column that says why the value of the tracked column with this id is in doubt, NULL if it is not."""
    return f"q{id_}"
