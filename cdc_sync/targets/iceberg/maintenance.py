"""Maintenance of Iceberg tables by Iceberg's own actions.

A compaction's snapshot carries no marker, for a marker means that a batch was committed; the one before still tells.

Beside a running job: a compaction fails if a file that it replaces was changed meanwhile, and a batch fails if a file
whose rows it changes was replaced meanwhile; either is then begun anew. Source: `BaseRewriteFiles` and `BaseRowDelta`,
`validate`, of Iceberg 1.11.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from cdc_sync.core.migration.maintenance import Chores, Holdings, Maintained, Upkeep
from cdc_sync.targets.common.commits import Entry
from cdc_sync.targets.iceberg.commits import lineage
from cdc_sync.targets.iceberg.rewrite import TAG

_FOLDERS = ("data", "metadata")
"""Where files of a table are written; nothing else below its location is looked at."""


def holdings(spark: SparkSession, table: Any, sql_name: str, upkeep: Upkeep) -> Holdings:
    """Return what a table consists of.

    Args:
        sql_name: of the table, whose metadata tables are read.
    """
    current = table.currentSnapshot()
    if current is None:
        return Holdings()
    small = f"content = 0 AND file_size_in_bytes < {upkeep.small}"
    enough = f"small_files >= {upkeep.compact_from_files}"
    (found,) = spark.sql(
        f"""SELECT sum(files) AS files, sum(size) AS size,
        sum(IF({enough}, small_files, 0)) AS small_files, sum(IF({enough}, small_size, 0)) AS small_size,
        sum(change_files) AS change_files, sum(rows) AS rows, sum(deleted_rows) AS deleted_rows FROM (
            SELECT count_if(content = 0) AS files, sum(IF(content = 0, file_size_in_bytes, 0)) AS size,
            count_if({small}) AS small_files, sum(IF({small}, file_size_in_bytes, 0)) AS small_size,
            count_if(content = 1) AS change_files, sum(IF(content = 0, record_count, 0)) AS rows,
            sum(IF(content = 1, record_count, 0)) AS deleted_rows FROM {sql_name}.files GROUP BY {_joined_by(table)})"""
    ).collect()
    figures = {label: int(value or 0) for label, value in found.asDict().items()}
    tag = table.refs().get(TAG)
    kept = tag.snapshotId() if tag is not None else None
    snapshots = {int(it.snapshotId()): int(it.timestampMillis()) for it in table.snapshots()}
    return Holdings(
        files=figures["files"],
        size=figures["size"],
        small_files=figures["small_files"],
        small_size=figures["small_size"],
        change_files=figures["change_files"],
        rows=figures["rows"],
        deleted_rows=figures["deleted_rows"],
        manifests=len(current.allManifests(table.io())),
        commits=tuple(at for id_, at in snapshots.items() if id_ != kept),
        marker_at=_marker_at(table),
    )


def _joined_by(table: Any) -> str:
    """Return what data files that are joined have in common; those of past specs count as of one partition.

    Source: Iceberg 1.11, `BinPackRewriteFilePlanner`, `groupByPartition`.
    """
    if all(spec.isUnpartitioned() for spec in table.specs().values()):
        return "TRUE"  # the table of files has no column of that name
    return f"IF(spec_id = {table.spec().specId()}, partition, NULL)"


def _marker_at(table: Any) -> int | None:
    marked = (item for item in lineage(table) if isinstance(item, Entry) and item.marker is not None)
    newest = next(marked, None)
    return None if newest is None else int(table.snapshot(int(newest.reference)).timestampMillis())


def maintain(spark: SparkSession, table: Any, chores: Chores) -> Maintained:
    """Do the chores, each in commits of its own."""
    jvm: Any = spark._jvm
    actions = jvm.org.apache.iceberg.spark.actions.SparkActions.get(spark._jsparkSession)
    done = Maintained()
    if chores.compact or chores.apply_deletes:
        found = _compact(actions.rewriteDataFiles(table), chores)
        done = replace(
            done,
            files_rewritten=found.rewrittenDataFilesCount(),
            bytes_rewritten=found.rewrittenBytesCount(),
            files_written=found.addedDataFilesCount(),
            change_files=found.removedDeleteFilesCount(),
        )
    if chores.merge_changes or chores.apply_deletes:
        table.refresh()
        action = actions.rewritePositionDeletes(table).option("min-input-files", str(chores.upkeep.compact_from_files))
        done = replace(done, change_files=done.change_files + action.execute().rewrittenDeleteFilesCount())
    if chores.merge_manifests:
        table.refresh()
        merged = actions.rewriteManifests(table).execute().rewrittenManifests()
        done = replace(done, manifests=len(list(merged)))
    if chores.expire_before is not None and chores.expired:
        table.refresh()
        before = len(list(table.snapshots()))
        action = actions.expireSnapshots(table).expireOlderThan(chores.expire_before)
        gone = action.retainLast(chores.upkeep.keep_at_least).execute()
        table.refresh()
        data, deletes = gone.deletedDataFilesCount(), gone.deletedPositionDeleteFilesCount()
        lists = gone.deletedManifestsCount() + gone.deletedManifestListsCount()
        expired = before - len(list(table.snapshots()))
        done = replace(done, expired=expired, files_removed=data + deletes + lists)
    orphans = _remove_orphans(spark, actions, table, chores.orphans_before)
    return replace(done, files_removed=done.files_removed + orphans)


def _remove_orphans(spark: SparkSession, actions: Any, table: Any, before: int) -> int:
    table.refresh()
    by_hadoop = str(table.io().getClass().getSimpleName()) == "HadoopFileIO"
    removed = 0
    for folder in _FOLDERS:
        place = f"{table.location()}/{folder}"
        if by_hadoop and not _is_there(spark, place):
            continue  # a table that never had a row has no folder for them
        # Hadoop, which lists by default, does not know the scheme of every store that Iceberg writes to itself.
        action = actions.deleteOrphanFiles(table).usePrefixListing(not by_hadoop)
        found = action.location(place).olderThan(before).execute().orphanFileLocations()
        removed += len(list(found))
    return removed


def _is_there(spark: SparkSession, place: str) -> bool:
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(place)
    return bool(path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).exists(path))


def _compact(action: Any, chores: Chores) -> Any:
    options = {
        "target-file-size-bytes": str(chores.upkeep.target_file_size),
        "min-file-size-bytes": str(chores.upkeep.small),
        "min-input-files": str(chores.upkeep.compact_from_files),
        "remove-dangling-deletes": "true",
    }
    if chores.apply_deletes:
        options["delete-file-threshold"] = "1"
    for key, value in options.items():
        action = action.option(key, value)
    return action.execute()
