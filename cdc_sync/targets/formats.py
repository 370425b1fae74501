"""The formats there are, and how the configured one is opened; each is imported where it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from cdc_sync.config import Target as TargetConfig
from cdc_sync.targets.protocol import Target


def makes_catalog(config: TargetConfig) -> bool:
    """Whether opening the target would make a catalog: an embedded one, in the warehouse, that is not there yet."""
    catalog = config.catalog
    if catalog.uri is not None:
        return False
    if config.metastore:
        return not (Path(catalog.warehouse) / "metastore_db").exists()
    embedded = config.format == "iceberg" and catalog.type == "jdbc"
    return embedded and not (Path(catalog.warehouse) / "catalog.db").exists()


def open_target(config: TargetConfig, spark: SparkSession) -> Target:
    """Return the target of the configured format.

    Raises:
        TargetError: if its catalog cannot be reached.
    """
    return _LOADERS[config.format](config, spark)


def _iceberg(config: TargetConfig, spark: SparkSession) -> Target:
    from cdc_sync.targets.iceberg.target import IcebergTarget

    return IcebergTarget(config=config, spark=spark)


def _delta(config: TargetConfig, spark: SparkSession) -> Target:
    from cdc_sync.targets.delta.target import DeltaTarget
    from cdc_sync.targets.hive.registered import registered

    return registered(DeltaTarget(config=config, spark=spark), config, spark)


def _hudi(config: TargetConfig, spark: SparkSession) -> Target:
    from cdc_sync.targets.hive.registered import registered
    from cdc_sync.targets.hudi.target import HudiTarget

    return registered(HudiTarget(config=config, spark=spark), config, spark)


def _parquet(config: TargetConfig, spark: SparkSession) -> Target:
    from cdc_sync.targets.parquet.target import ParquetTarget

    return ParquetTarget(config=config, spark=spark)


def _memory(config: TargetConfig, spark: SparkSession) -> Target:
    from cdc_sync.targets.memory.target import MemoryTarget

    return MemoryTarget()


_LOADERS: dict[str, Callable[[TargetConfig, SparkSession], Target]] = {
    "iceberg": _iceberg,
    "delta": _delta,
    "hudi": _hudi,
    "parquet": _parquet,
    "memory": _memory,
}
