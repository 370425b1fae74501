"""The contract every target keeps, and the table of targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from cdc_sync.config import Target as TargetConfig
from cdc_sync.migrate.capabilities import Capabilities
from cdc_sync.migrate.migration import Migration
from cdc_sync.naming import TargetName
from cdc_sync.progress import Progress
from cdc_sync.schema.internal import InternalSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetState:
    """What a target says about itself.

    Attributes:
        version: the schema version its columns are stamped with; None if it has no stamp.
        progress: the marker of the newest commit that has one; None if none has.
    """

    version: int | None
    progress: Progress | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows to apply, at most one for each key, and the progress that goes into the same commit.

    Attributes:
        rows: columns `deleted`, `created`, and `value_column(id)` for every column of `schema`.
        append: no row is a delete and no key is in the table, so rows may be added without looking.
        require_rows: an update (no create in the batch) of a key the table does not hold fails the write.
    """

    rows: DataFrame
    schema: InternalSchema
    progress: Progress
    append: bool = False
    require_rows: bool = False


MISSING_ROW = "missing_row"
"""What `Target.write` fails with, inside the error's text, when `Batch.require_rows` is not met."""


class Target(Protocol):
    """One table format. Every call may be repeated; every write is atomic for readers."""

    @property
    def capabilities(self) -> Capabilities:
        """What the format can change in place."""
        ...

    def state(self, name: TargetName) -> TargetState | None:
        """Return what the table says about itself now, None if there is no such table."""
        ...

    def migrate(self, name: TargetName, migration: Migration, progress: Progress) -> None:
        """Carry out the steps and stamp the version; `progress` is what the rows contain, unchanged.

        Raises:
            TargetError: if the format refuses a step; nothing of that step is done then.
        """
        ...

    def write(self, name: TargetName, batch: Batch) -> None:
        """Apply a batch and its progress in one commit."""
        ...


def open_target(config: TargetConfig, spark: SparkSession) -> Target:
    """Return the target of the configured format.

    Raises:
        TargetError: if its catalog cannot be reached.
    """
    return _LOADERS[config.format](config, spark)


def _iceberg(config: TargetConfig, spark: SparkSession) -> Target:
    from cdc_sync.targets.iceberg import IcebergTarget

    return IcebergTarget(config=config, spark=spark)


def _memory(config: TargetConfig, spark: SparkSession) -> Target:
    from cdc_sync.targets.memory import MemoryTarget

    return MemoryTarget()


_LOADERS: dict[str, Callable[[TargetConfig, SparkSession], Target]] = {"iceberg": _iceberg, "memory": _memory}
