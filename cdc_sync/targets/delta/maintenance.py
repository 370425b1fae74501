"""Maintenance of Delta tables: OPTIMIZE, VACUUM, and the marker said once more before the log forgets it.

A compaction's commit carries no marker, for a marker means that a batch was committed. Which states can still be read
is told by the commit that VACUUM leaves in the log, whoever ran it.

Beside a running job: Delta fails whichever of two commits comes second, if both replace a file or one read what the
other replaced; it is then begun anew. Source: `ConflictChecker`, `VacuumCommand` of Delta 3.3.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_sync.core.migration.maintenance import Chores, Holdings, Maintained, Upkeep
from cdc_sync.targets.delta.log import DeltaTable
from cdc_sync.targets.delta.log_commits import readable

_LOG_RETENTION = "delta.logRetentionDuration"
_DEFAULT_RETENTION = timedelta(days=30)
_UNITS = {"day": 1, "week": 7}
_HOUR = 3_600_000
_METRICS = ("metrics.numFilesAdded", "metrics.numFilesRemoved", "metrics.filesRemoved.totalSize")


def holdings(spark: SparkSession, table: DeltaTable, upkeep: Upkeep, *, kept: int | None) -> Holdings:
    """Return what a table consists of.

    Args:
        kept: the version that a rollback leads to.
    """
    snapshot = table.snapshot()
    (found,) = _files(DataFrame(snapshot.allFiles().toDF(), spark), upkeep).collect()
    figures = {label: int(value or 0) for label, value in found.asDict().items()}
    # Each is a file of the log: no more of them are read than decide.
    newest = islice(readable(table.commits(snapshot.version())), upkeep.keep_at_least)
    told = (commit.at for commit in table.commits(snapshot.version()) if commit.marker is not None)
    return Holdings(
        files=figures["files"],
        size=figures["size"],
        small_files=figures["small_files"],
        small_size=figures["small_size"],
        commits=tuple(commit.at for commit in newest),
        marker_at=next(told, None),
        needed_since=None if kept is None else table.made_at(kept),
        marker_lasts=log_retention(table.properties(snapshot)),
    )


def _files(files: DataFrame, upkeep: Upkeep) -> DataFrame:
    """Return the figures of all data files; small ones are only joined with others of their partition."""
    is_small = F.col("size") < upkeep.small
    partitions = files.groupBy(F.array_sort(F.map_entries("partitionValues"))).agg(
        F.count("*").alias("files"),
        F.sum("size").alias("size"),
        F.count_if(is_small).alias("small_files"),
        F.sum(F.when(is_small, F.col("size"))).alias("small_size"),
    )
    are_joined = F.col("small_files") > 1
    return partitions.select(
        F.sum("files").alias("files"),
        F.sum("size").alias("size"),
        F.sum(F.when(are_joined, F.col("small_files"))).alias("small_files"),
        F.sum(F.when(are_joined, F.col("small_size"))).alias("small_size"),
    )


def log_retention(properties: Mapping[str, str]) -> timedelta:
    """Return how long the log keeps what commits say; of what is not understood, the shortest that makes sense."""
    text = properties.get(_LOG_RETENTION)
    if text is None:
        return _DEFAULT_RETENTION
    found = re.fullmatch(r"(?:interval\s+)?(\d+)\s+(day|week)s?", text.strip(), re.IGNORECASE)
    return timedelta(days=int(found[1]) * _UNITS[found[2].lower()]) if found else timedelta(days=1)


def maintain(table: DeltaTable, chores: Chores, on: Any, *, marker: str | None) -> Maintained:
    """Do the chores, each in commits of its own.

    Args:
        on: the table's newest snapshot.
        marker: what the table holds, where it is to be said once more.
    """
    upkeep, done = chores.upkeep, Maintained()
    if chores.carry_marker and marker is not None:
        table.repeat(marker, on)
        done = replace(done, marker_carried=True)
    if chores.compact:
        sizes = {
            "spark.databricks.delta.optimize.minFileSize": str(upkeep.small),
            "spark.databricks.delta.optimize.maxFileSize": str(upkeep.target_file_size),
        }
        (row,) = table.run(f"OPTIMIZE {table.sql_name}", sizes).select(*_METRICS).collect()
        done = replace(done, files_written=row[0], files_rewritten=row[1], bytes_rewritten=row[2] or 0)
    if chores.expire_before is not None:
        removed = _vacuum(table, min(chores.orphans_before, chores.expire_before))
        done = replace(done, files_removed=removed)
    return done


def _vacuum(table: DeltaTable, before: int) -> int:
    """Remove files that are part of no state since a moment; return how many."""
    hours = max(0, math.ceil((time.time_ns() // 1_000_000 - before) / _HOUR + 0.01))
    # Delta asks for a week, in case a write takes that long. Here whoever configures it is asked for a day.
    settings = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.databricks.delta.vacuum.logging.enabled": "true",
        # Spark's 10,000 tasks to list folders are made for tables of that many; these have few.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
    }
    table.run(f"VACUUM {table.sql_name} RETAIN {hours} HOURS", settings)
    return table.vacuumed()
