"""Iceberg tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cdc_sync.config.target import Target as TargetConfig
    from cdc_sync.targets.protocol import Target


def open_target(config: TargetConfig, spark: SparkSession) -> Target:
    """Return the target."""
    from cdc_sync.targets.iceberg.target import IcebergTarget

    return IcebergTarget(config=config, spark=spark)
