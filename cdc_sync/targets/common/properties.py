"""What a table's own properties say of it, where the format has them: set in the commit that changes columns."""

from __future__ import annotations

from cdc_sync.core.migration.migration import Migration

VERSION_PROPERTY = "cdc_sync.schema-version"
MODE_PROPERTY = "cdc_sync.mode"
UNION_PROPERTY = "cdc_sync.union"
PARTITION_PROPERTY = "cdc_sync.partition-by"
"""The configured text that the partitions were brought to, less what a column took with it that is gone."""


def stamps(migration: Migration) -> dict[str, str]:
    """Return the version that a migration leads to, and whose the columns are where source tables share them."""
    union = {} if migration.union is None else {UNION_PROPERTY: migration.union}
    return {VERSION_PROPERTY: str(migration.version), **union}
