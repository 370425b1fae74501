"""Which engines read which tables right: what `target.readers` is checked by, and docs/readers.md is printed from.

`bench/readers` measures it: each engine reads each kind of table after a history of thirty-two steps, and every value
is compared with the source's. What is not here was not measured, and is not vouched for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdc_sync.core.migration.capabilities import SchemaEvolution

REGIMES = ("iceberg", "delta", "hudi", "hudi partitioned", "hudi merge-on-read", "hudi on read", "parquet")
"""Kinds of table: the formats, and the ways of keeping them that readers must know."""
_TABLE_TYPE = "hoodie.datasource.write.table.type"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an engine makes of a kind of table.

    Attributes:
        why_not: why it must not read it: it fails, or shows something else; empty if it reads it right.
    """

    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine of one version, and what it makes of the kinds of table that it knows.

    Attributes:
        setting: what its user has to set for it to read right.
    """

    name: str
    version: str
    readings: Mapping[str, Reading]
    setting: str = ""


def regime_of(
    form: str,
    table_properties: Mapping[str, str],
    evolution: SchemaEvolution = "on_write",
    *,
    partitioned: bool = False,
) -> str:
    """Return the kind of table that a target's settings make."""
    if form == "hudi" and evolution == "on_read":
        return "hudi on read"  # with logs or without: only Spark reads its columns by their ids
    if has_logs(form, table_properties):
        return "hudi merge-on-read"
    return "hudi partitioned" if form == "hudi" and partitioned else form


def has_logs(form: str, table_properties: Mapping[str, str]) -> bool:
    """Whether tables that a target's settings make have changed rows in logs beside their files."""
    return form == "hudi" and table_properties.get(_TABLE_TYPE, "").upper() == "MERGE_ON_READ"


def why_not(name: str, regime: str) -> str | None:
    """Return why an engine is not to read a kind of table; None if it reads it right."""
    reading = ENGINES[name].readings.get(regime)
    if reading is None:
        return "was not seen to read such tables"
    return reading.why_not or None


def right_for(name: str) -> tuple[str, ...]:
    """Return the kinds of table that an engine reads right."""
    return tuple(regime for regime in REGIMES if why_not(name, regime) is None)


_RIGHT = Reading()
_CUTS = Reading(why_not="cuts moments to milliseconds")
_UNLISTED = Reading(why_not="finds no rows, without an error, for no metastore is told of their partitions")
_UNNAMED = Reading(why_not="fails at tables that name no class of a key generator")
_LOCATED = "read Parquet tables in the folder that the metastore names at the time: each batch makes another one."
_ALL = (
    Engine(
        name="spark",
        version="3.5.7",
        setting="read Hudi tables of `schema_evolution: on_read` with `hoodie.schema.on.read.enable=true`, or columns "
        "are found by their names, and old values come back.",
        readings={
            "iceberg": _RIGHT,
            "delta": _RIGHT,
            "hudi": _RIGHT,
            "hudi partitioned": _RIGHT,
            "parquet": _RIGHT,
            "hudi merge-on-read": _RIGHT,
            "hudi on read": _RIGHT,
        },
    ),
    Engine(
        name="trino",
        version="476",
        setting="tell the metastore of Hudi tables with `HiveSyncTool --support-timestamp`, or moments become numbers.",
        readings={
            "iceberg": _RIGHT,
            "delta": Reading(why_not="cuts moments with zone to milliseconds"),
            "hudi": _RIGHT,
            "hudi partitioned": _UNLISTED,
            "hudi merge-on-read": Reading(why_not="read them wrong in an earlier trial, without an error"),
            "hudi on read": Reading(why_not="finds columns by their names, and old values come back"),
            "parquet": _CUTS,
        },
    ),
    Engine(
        name="presto",
        version="0.287",
        readings={
            "iceberg": Reading(why_not="fails at columns of a timestamp with zone"),
            "delta": Reading(why_not="fails, for it knows no column mapping"),
            "hudi": _CUTS,
            "hudi partitioned": _UNLISTED,
            "hudi merge-on-read": Reading(why_not="fails at lists and maps that are in logs (Can't redefine)"),
            "hudi on read": _CUTS,
            "parquet": _CUTS,
        },
    ),
    Engine(name="pyiceberg", version="0.12.0", readings={"iceberg": _RIGHT}),
    Engine(
        name="duckdb",
        version="1.5.5",
        setting=_LOCATED,
        readings={"iceberg": _RIGHT, "delta": _RIGHT, "parquet": _RIGHT},
    ),
    Engine(name="delta-rs", version="1.6.6", readings={"delta": _RIGHT}),
    Engine(
        name="hudi-rs",
        version="0.5.0",
        readings=dict.fromkeys(
            ("hudi", "hudi partitioned", "hudi merge-on-read", "hudi on read"),
            Reading(why_not="fails at some types (not yet implemented), though not at plain ones"),
        ),
    ),
    Engine(
        name="polars",
        version="2.1.0",
        setting=_LOCATED,
        readings={
            "iceberg": _RIGHT,
            "delta": Reading(why_not="fails, for it knows no column mapping"),
            "parquet": _RIGHT,
        },
    ),
    Engine(
        name="daft",
        version="0.7.26",
        setting=_LOCATED,
        readings={
            "iceberg": Reading(why_not="fails at data files (Failed to decode parquet column)"),
            "delta": Reading(why_not="fails at columns of maps"),
            "hudi": _UNNAMED,
            "hudi partitioned": _UNNAMED,
            "hudi merge-on-read": Reading(why_not="fails, for it knows none that have logs"),
            "hudi on read": _UNNAMED,
            "parquet": _RIGHT,
        },
    ),
    Engine(
        name="clickhouse",
        version="4.4.0",
        readings=dict.fromkeys(
            ("iceberg", "delta", "parquet"), Reading(why_not="shows NULL lists, maps and structs as empty ones")
        ),
    ),
    Engine(name="arrow", version="25.0.1", setting=_LOCATED, readings={"parquet": _RIGHT}),
)
ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in _ALL}
"""By the name that `target.readers` takes."""
