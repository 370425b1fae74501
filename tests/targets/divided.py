"""A lake whose table is partitioned, of whichever format."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from cdc_sync.core.migration.migration import migration
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.testing.targets import version
from tests.targets.conftest import Lake


class DividedLake(Lake):
    """Makes its table partitioned, and says what is known of it."""

    def create_by(self, schema: InternalSchema, text: str, *, mode: Any = "upsert") -> None:
        able, by = self.target.capabilities, Partitioning.parse([text])
        self.migrate(migration(None, None, version(1, schema), capabilities=able, mode=mode, partitioning=by))

    @property
    def state(self) -> TargetState:
        found = self.target.state(self.name)
        assert found is not None
        return found


def rows_of(*rows: tuple[int, str | None, datetime | None]) -> list[dict[str, Any]]:
    """Return rows of an id, a region and a moment."""
    return [dict(zip(("id", "region", "at"), row, strict=True)) for row in rows]
