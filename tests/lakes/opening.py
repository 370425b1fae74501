"""Which reader reads which format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cdc_sync.config import Target
from tests.lakes.delta import DeltaLake
from tests.lakes.hudi import HudiLake
from tests.lakes.iceberg import IcebergLake
from tests.lakes.parquet import ParquetLake
from tests.lakes.table import Lake

_LAKES: Mapping[str, Callable[[Target], Lake]] = {
    "iceberg": IcebergLake,
    "delta": DeltaLake,
    "hudi": HudiLake,
    "parquet": ParquetLake,
}
FORMATS = tuple(_LAKES)


def open_lake(target: Target) -> Lake:
    """Return a reader of the tables that a configuration writes."""
    return _LAKES[target.format](target)
