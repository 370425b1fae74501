"""How the configured format is opened; its package is imported only then."""

from __future__ import annotations

import pkgutil
from pathlib import Path

from pyspark.sql import SparkSession

from cdc_sync.config.formats import format_of
from cdc_sync.config.target import Target as TargetConfig
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
    target: Target = pkgutil.resolve_name(format_of(config.format).opens)(config, spark)
    return target
