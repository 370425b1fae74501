"""What a table's own properties say of it, where the format has them: set in the commit that changes columns."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_sync.core.migration.migration import Migration

VERSION_PROPERTY = "cdc_sync.schema-version"
ROWS_PROPERTY = "cdc_sync.rows-version"
FILL_PROPERTY = "cdc_sync.filled-for"
"""Of a commit in which rows were filled: the entry that they are complete for."""
MODE_PROPERTY = "cdc_sync.mode"
UNION_PROPERTY = "cdc_sync.union"
PARTITION_PROPERTY = "cdc_sync.partition-by"
"""The configured text that the partitions were brought to, less what a column took with it that is gone."""


def stamps(migration: Migration) -> dict[str, str]:
    """Return the version that a migration leads to, and what else it says of the table."""
    union = {} if migration.union is None else {UNION_PROPERTY: migration.union}
    rows = {} if migration.rows is None else {ROWS_PROPERTY: str(migration.rows)}
    return {VERSION_PROPERTY: str(migration.version), **union, **rows}


def rows_version(properties: Mapping[str, str]) -> int | None:
    """Return the version that the rows of a table are complete for, None where a marker says it."""
    said = properties.get(ROWS_PROPERTY)
    return None if said is None else int(said)


def is_stamped(properties: Mapping[str, str], migration: Migration) -> bool:
    """Whether a table is where a migration leads to; Java's maps will do."""
    named = (VERSION_PROPERTY,) if migration.rows is None else (VERSION_PROPERTY, ROWS_PROPERTY)
    wanted = stamps(migration)
    return all(properties.get(name) == wanted[name] for name in named)
