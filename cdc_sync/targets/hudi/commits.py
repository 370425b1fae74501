"""The timeline of one Hudi table: what its commits say, and which of them can be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql import SparkSession

from cdc_sync.core.model.progress import PROPERTY
from cdc_sync.errors import TargetError, UnfitTarget
from cdc_sync.targets.common.java import java_map
from cdc_sync.targets.hudi.internal_schema import LATEST_SCHEMA
from cdc_sync.targets.hudi.properties import STAMP, Stamp, parse_stamp
from cdc_sync.targets.hudi.schema import HeldColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A table as it is now.

    Attributes:
        instant: the newest completed commit, whoever made it.
        stamp: what the newest commit of ours says.
        columns: what it says of the columns.
        logs: changed rows lie in logs beside the files, as was chosen when the table was made.
    """

    instant: str
    stamp: Stamp
    columns: HeldColumns
    logs: bool


class HudiTimeline:
    """The commits of a table, which need not be there yet."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._jvm = jvm = cast(Any, spark._jvm)
        self._hudi: Any = jvm.org.apache.hudi
        self.path = path

    def snapshot(self) -> Snapshot | None:
        """Return the newest state, None if there is no table of ours.

        A crash may leave a folder without a first commit: that is no table yet.

        Raises:
            UnfitTarget: if there is a table and nothing says what it holds.
        """
        if not self._exists():
            return None
        meta = self._meta()
        timeline = meta.getActiveTimeline()
        logs, newest = has_logs(meta), None
        for instant, stamp, columns in self._stamps(timeline):
            newest = newest or instant
            if stamp is not None:
                return Snapshot(instant=newest, stamp=stamp, columns=columns, logs=logs)
        if newest is None:
            return None
        for _, stamp, columns in self._archived(meta):
            if stamp is not None:
                return Snapshot(instant=newest, stamp=stamp, columns=columns, logs=logs)
        raise UnfitTarget(
            f"Cannot tell what {self.path} holds: no commit says so. Another program made the table, or its archived "
            "timeline was deleted",
            "give the table another target, or drop it to have it built anew, and start the job again",
        )

    def stamps(self) -> Iterator[tuple[str, Stamp | None]]:
        """Return the instants that can be read, newest first, with what they say; None for other people's commits."""
        meta = self._meta()
        oldest = self._oldest_readable(meta)
        skipped_to: str | None = None
        for instant, stamp, _ in self._stamps(meta.getActiveTimeline()):
            if oldest is not None and instant < oldest:
                return
            if skipped_to is not None and instant > skipped_to:
                continue
            skipped_to = stamp.goes_back_to if stamp is not None else None
            yield instant, stamp

    def snapshot_at(self, instant: str) -> Snapshot:
        """Return the state as of a commit."""
        meta = self._meta()
        for found, stamp, columns in self._stamps(meta.getActiveTimeline()):
            if found <= instant and stamp is not None:
                logs = has_logs(meta)
                return Snapshot(instant=instant, stamp=stamp, columns=columns, logs=logs)
        raise TargetError(f"Cannot read {self.path} as of {instant}: the commit is no longer in the timeline")

    def keeps(self, instant: str) -> bool:
        """Whether an instant is kept."""
        return instant in self._savepoints()

    def _stamps(self, timeline: Any) -> Iterator[tuple[str, Stamp | None, HeldColumns]]:
        """Return completed commits, newest first, with stamp and columns."""
        commits = timeline.getCommitsTimeline().filterCompletedInstants()
        instants = commits.getReverseOrderedInstants().iterator()
        while instants.hasNext():
            instant = instants.next()
            metadata = commits.readCommitMetadata(instant).getExtraMetadata()
            text = metadata.get(STAMP)
            stamp = None if text is None else parse_stamp(str(text), metadata.get(PROPERTY))
            internal = metadata.get(LATEST_SCHEMA)
            columns = HeldColumns(
                avro=str(metadata.get("schema")), internal=None if internal is None else str(internal)
            )
            yield str(instant.requestedTime()), stamp, columns

    def _archived(self, meta: Any) -> Iterator[tuple[str, Stamp | None, HeldColumns]]:
        timeline = meta.getArchivedTimeline()
        timeline.loadCompletedInstantDetailsInMemory()
        return self._stamps(timeline)

    def _oldest_readable(self, meta: Any) -> str | None:
        """Return the first instant whose files are all there, None if nothing was cleaned yet."""
        cleans = meta.getActiveTimeline().getCleanerTimeline().filterCompletedInstants()
        newest = cleans.lastInstant()
        if not newest.isPresent():
            return None
        return str(cleans.readCleanMetadata(newest.get()).getEarliestCommitToRetain()) or None

    def _savepoints(self) -> list[str]:
        return [str(instant.requestedTime()) for instant in self._savepoint_instants()]

    def _savepoint_instants(self) -> list[Any]:
        return list(self._meta().getActiveTimeline().getSavePointTimeline().filterCompletedInstants().getInstants())

    def _exists(self) -> bool:
        path = self._jvm.org.apache.hadoop.fs.Path(f"{self.path}/.hoodie/hoodie.properties")
        return bool(path.getFileSystem(self._hadoop_conf()).exists(path))

    def _meta(self) -> Any:
        builder = self._hudi.common.table.HoodieTableMetaClient.builder()
        return builder.setConf(self._storage_conf()).setBasePath(self.path).build()

    def _storage_conf(self) -> Any:
        return self._hudi.hadoop.fs.HadoopFSUtils.getStorageConf(self._hadoop_conf())

    def _hadoop_conf(self) -> Any:
        return self._spark._jsparkSession.sessionState().newHadoopConf()

    def _java_context(self) -> Any:
        return self._jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
            self._spark._jsparkSession.sparkContext()
        )

    def _option(self, values: Mapping[str, str]) -> Any:
        return self._hudi.common.util.Option.of(java_map(self._jvm, values))


def has_logs(meta: Any) -> bool:
    """Whether changed rows of a table lie in logs beside the files, as was chosen when it was made."""
    return str(meta.getTableType().name()) == "MERGE_ON_READ"


def partition_fields(meta: Any) -> list[str]:
    """Return the columns that a table was made to be divided by, in order."""
    fields = meta.getTableConfig().getPartitionFields()
    return list(map(str, fields.get())) if fields.isPresent() else []


def each(iterator: Any) -> Iterator[Any]:
    """Return what one of Java's iterators has."""
    while iterator.hasNext():
        yield iterator.next()
