"""Rows of an Iceberg table that are filled file by file: a unit of files is written anew, and takes their place.

Which files are left is told by the table alone. The commit that adds columns names the snapshot before it; a file is
left unless it was added since, by a commit that fills rows or by one that only appends, or has no NULL in the columns.
What others have updated meanwhile may hold rows of before, and is left, too: rows get values only where they read NULL.
The commit of a unit deletes the files that it was made from, so a unit that is done twice fails.

Source: Iceberg 1.12, `RewriteDataFilesSparkAction` and `SparkBinPackFileRewriteRunner`, which have Spark read staged
tasks and write files without a commit in the same way; `OverwriteFiles` for what a commit validates.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import JavaMember
from py4j.protocol import STATIC_PREFIX, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_sync.core.migration.migration import Migration
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.revisions.fills import DataFile, Fill
from cdc_sync.errors import TargetMoved
from cdc_sync.spark.expressions import filled_rows, strict_casts
from cdc_sync.targets.common.java import failure, java_list
from cdc_sync.targets.common.properties import FILL_PROPERTY, VERSION_PROPERTY
from cdc_sync.targets.iceberg.commits import field_ids

_BEFORE_FILL, _NONE = "cdc_sync.before-fill", "none"
"""Table property: the snapshot before the columns that are filled."""
_TABLES = "org.apache.iceberg.spark.SparkTableCache"
_SMALLEST_SPLIT = 16 << 20
_LARGEST_SPLIT = 512 << 20


def begin_fill(table: Any, migration: Migration) -> dict[str, str]:
    """Return what a commit of columns says beside the stamp, of which the rows are not complete behind it."""
    if migration.rows in (None, migration.version):
        return {}
    snapshot = table.currentSnapshot()
    return {_BEFORE_FILL: _NONE if snapshot is None else str(snapshot.snapshotId())}


class IcebergFilling:
    """One snapshot of a table whose rows are being filled.

    Attributes:
        files: in which there may be rows that are not filled yet, by their paths.
    """

    def __init__(self, spark: SparkSession, table: Any, name: TargetName, fill: Fill) -> None:
        """Look which files are left.

        Args:
            table: Iceberg's, as it is now.
            fill: in the target's names.

        Raises:
            TargetMoved: if the columns are of another entry by now.
        """
        if table.properties().get(VERSION_PROPERTY) != str(fill.number):
            raise TargetMoved(f"Cannot fill {name}: another revision was applied to it meanwhile")
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._table = table
        self._name = name
        self._fill = fill
        self._snapshot = table.currentSnapshot()
        self._tasks: dict[str, Any] | None = None
        self.files = {} if self._snapshot is None else self._left()

    def _left(self) -> dict[str, DataFile]:
        done = self._added_since()
        ids = field_ids(self._jvm, self._table.schema())
        names = [self._fill.schema.column(id_).name for id_, _ in self._fill.values]
        nulls = " + ".join(f"coalesce(data_file.null_value_counts[{ids[name]}], 1)" for name in names)
        entries = self._entries().where("status < 2 AND data_file.content = 0")
        entries = entries.where(f"{nulls} > 0")
        if done:
            entries = entries.where(~F.col("snapshot_id").isin(list(done)))
        file = entries.select("data_file.*")
        partition = F.to_json("partition") if "partition" in file.columns else F.lit("")
        group = F.concat_ws(" ", "spec_id", partition)
        found = file.select("file_path", "file_size_in_bytes", group).collect()
        return {path: DataFile(path=path, size=size, group=group) for path, size, group in found}

    def _added_since(self) -> list[int]:
        """Return the commits since the columns were added whose rows are as they are to be.

        Where the snapshot before them is not among those that the present one comes from (it is expired, or the table
        was set back), nobody knows what an append is older than.
        """
        before = self._table.properties().get(_BEFORE_FILL)
        snapshot, filled, appended = self._snapshot, list[int](), list[int]()
        while snapshot is not None and str(snapshot.snapshotId()) != before:
            if snapshot.summary().get(FILL_PROPERTY) == str(self._fill.number):
                filled.append(snapshot.snapshotId())
            elif snapshot.operation() == "append":
                appended.append(snapshot.snapshotId())
            parent = snapshot.parentId()
            snapshot = None if parent is None else self._table.snapshot(parent)
        met = snapshot is not None or (before == _NONE and parent is None)
        return filled + appended if met else filled

    def _entries(self) -> DataFrame:
        """Return the metadata table of this very snapshot's files."""
        core = self._jvm.org.apache.iceberg
        types = core.MetadataTableType
        table = core.MetadataTableUtils.createMetadataTableInstance(self._table, types.ENTRIES)
        with _known(self._spark, table) as label:
            return self._spark.read.format("iceberg").load(label)

    def run(self, paths: Sequence[str]) -> None:
        """Write the files anew, and put what was written in their place."""
        try:
            tasks = [self._task(path) for path in paths]
            self._replace(tasks, self._written(tasks))
        except (Py4JJavaError, PySparkException) as error:
            if _is_conflict(error):
                raise TargetMoved(f"Cannot fill rows of {self._name}: others have changed them meanwhile") from error
            raise failure(f"fill {self._name}", error) from error

    def _task(self, path: str) -> Any:
        if self._tasks is None:
            lists = self._jvm.org.apache.iceberg.relocated.com.google.common.collect.Lists
            scan = self._table.newScan().useSnapshot(self._snapshot.snapshotId())
            self._tasks = {task.file().location(): task for task in lists.newArrayList(scan.planFiles())}
        return self._tasks[path]

    def _written(self, tasks: Sequence[Any]) -> Sequence[Any]:
        """Write the rows of the tasks, filled, to new files; return those, of which the table knows nothing yet."""
        size = sum(task.file().fileSizeInBytes() for task in tasks)
        split = min(max(size // self._spark.sparkContext.defaultParallelism + 1, _SMALLEST_SPLIT), _LARGEST_SPLIT)
        spark = self._jvm.org.apache.iceberg.spark
        staged, rewritten = spark.ScanTaskSetManager.get(), spark.FileRewriteCoordinator.get()
        with _known(self._spark, self._table) as label, strict_casts(self._spark):
            reading = {"scan-task-set-id": label, "split-size": str(split)}
            writing = {
                "rewritten-file-scan-task-set-id": label,
                "output-spec-id": str(tasks[0].file().specId()),
                "use-table-distribution-and-ordering": "false",
                "fanout-enabled": "true",
            }
            staged.stageTasks(self._table, label, java_list(self._jvm, tasks))
            try:
                rows = filled_rows(self._spark.read.format("iceberg").options(**reading).load(label), self._fill)
                rows.write.format("iceberg").options(**writing).mode("append").save(label)
                return list(rewritten.fetchNewFiles(self._table, label))
            finally:
                staged.removeTasks(self._table, label)
                rewritten.clearRewrite(self._table, label)

    def _replace(self, tasks: Sequence[Any], written: Sequence[Any]) -> None:
        change = self._table.newOverwrite().validateFromSnapshot(self._snapshot.snapshotId())
        change = change.validateNoConflictingDeletes().set(FILL_PROPERTY, str(self._fill.number))
        for task in tasks:
            change.deleteFile(task.file())
        for file in written:
            change.addFile(file)
        try:
            change.commit()
        except Py4JJavaError as error:
            if _is_conflict(error):  # else it may be in effect
                for file in written:
                    self._table.io().deleteFile(file.location())
            raise


@contextmanager
def _known(spark: SparkSession, table: Any) -> Iterator[str]:
    """Have Spark find a table by a label, as it is, whatever the catalogue says by now."""
    label = uuid.uuid4().hex
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    # Asked for it by name, py4j finds the class's other `get`, which is of an object.
    tables = JavaMember("get", None, f"{STATIC_PREFIX}{_TABLES}", gateway._gateway_client)()
    tables.add(label, table)
    try:
        yield label
    finally:
        tables.remove(label)


def _is_conflict(error: Exception) -> bool:
    if not isinstance(error, Py4JJavaError):
        return False
    return error.java_exception.getClass().getSimpleName() in ("CommitFailedException", "ValidationException")
