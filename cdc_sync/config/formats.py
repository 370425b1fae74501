"""The table formats there are: those that come with cdc_sync, and those that other packages add.

A package adds one by an entry point of the group `cdc_sync.targets`, whose name is what `target.format` says and which
names a `TargetFormat`::

    [project.entry-points."cdc_sync.targets"]
    lance = "cdc_sync_lance:FORMAT"

Source: https://packaging.python.org/en/latest/specifications/entry-points/.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from cdc_sync.core.migration.capabilities import DELTA, HUDI, HUDI_ON_READ, ICEBERG, MEMORY, PARQUET
from cdc_sync.core.migration.target_format import TargetFormat
from cdc_sync.errors import ConfigError

GROUP = "cdc_sync.targets"
BUILT_IN = {
    kinds[0].format: TargetFormat(opens=f"cdc_sync.targets.{kinds[0].format}:open_target", kinds=kinds)
    for kinds in ((ICEBERG,), (DELTA,), (HUDI, HUDI_ON_READ), (PARQUET,), (MEMORY,))
}
"""Known without entry points: a job that Spark ships as an archive has none."""


@cache
def _added() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in BUILT_IN}


def format_names() -> tuple[str, ...]:
    """Return what `target.format` may say; nothing is imported for it."""
    return (*BUILT_IN, *sorted(_added()))


def format_of(name: str) -> TargetFormat:
    """Return a format by its name, one of `format_names`.

    Raises:
        ConfigError: if another package adds it, and it cannot be imported or is none.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    point = _added()[name]
    try:
        found = point.load()
    except Exception as error:
        raise ConfigError(f"Cannot use target.format {name}: {point.value}: {type(error).__name__}: {error}") from error
    if not isinstance(found, TargetFormat):
        raise ConfigError(f"Cannot use target.format {name}: {point.value} is no TargetFormat")
    return found
