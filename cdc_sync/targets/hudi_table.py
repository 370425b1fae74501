"""One Hudi table, found by its path, through Hudi's Java write client inside Spark's JVM.

Spark's own writer for Hudi decides about columns, keys and deletes by itself, and by the columns of each batch. The
write client underneath takes records that say where they belong, deletes among them, and a schema: so one commit holds
upserts, hard deletes, columns, stamp and marker. What a crash leaves behind is rolled back by the next commit.

Source: Hudi 1.2.0, `HoodieSparkSqlWriter` and `HoodieCreateRecordUtils`, which prepare the records of Spark's MERGE and
UPDATE in the same way; `SparkRDDWriteClient`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import methodcaller
from typing import Any, Literal, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from cdc_sync.errors import TargetError
from cdc_sync.migrate.capabilities import HUDI
from cdc_sync.migrate.names import held_name
from cdc_sync.progress import PROPERTY
from cdc_sync.targets.hudi_schema import KEY, NAMESPACE, RECORD, avro_schema, prepared_schema
from cdc_sync.targets.hudi_stamp import STAMP, Stamp, parse_stamp

SETTINGS = {
    # Presto and Trino read no later table version.
    "hoodie.write.table.version": "6",
    "hoodie.write.auto.upgrade": "false",
    # Files are found by listing one folder; the metadata table would cost a second commit each time.
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    # Nothing is looked for by an index: each record says where it lies. The filter would take 400 KB of every file.
    "hoodie.index.type": "SIMPLE",
    "hoodie.parquet.bloom.filter.enabled": "false",
    # A batch has one row for each key, and the newest commit wins.
    "hoodie.combine.before.upsert": "false",
    "hoodie.combine.before.insert": "false",
    "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    "hoodie.datasource.write.recordkey.field": KEY,
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    # The columns of a commit are those it is given: what changed was decided before.
    "hoodie.avro.schema.validate": "false",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    # What can be read again; the timeline keeps more than that, so that nothing readable is archived.
    "hoodie.clean.commits.retained": "50",
    "hoodie.clean.trigger.max.commits": "10",
    "hoodie.keep.min.commits": "70",
    "hoodie.keep.max.commits": "100",
}
TABLE_TYPE = "hoodie.datasource.write.table.type"
"""Hudi's own name of the choice between COPY_ON_WRITE, the default, and MERGE_ON_READ; made when a table is created."""
_MERGE_ON_READ = {
    # Changes are logs beside the files; they are merged into them after so many commits, by the commit that is due.
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "10",
}
Operation = Literal["upsert", "overwrite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A table as it is now.

    Attributes:
        instant: the newest completed commit, whoever made it.
        stamp: what the newest commit of ours says.
        schema: the Avro schema of that one.
    """

    instant: str
    stamp: Stamp
    schema: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How many records a commit adds and takes away."""

    inserted: int
    deleted: int


class HudiTable:
    """One table, which need not be there yet."""

    def __init__(self, spark: SparkSession, path: str, table_properties: Mapping[str, str]) -> None:
        self._spark = spark
        self._jvm = jvm = cast(Any, spark._jvm)
        self._hudi: Any = jvm.org.apache.hudi
        self.path = path
        self._type = table_properties.get(TABLE_TYPE, "COPY_ON_WRITE")
        merging = _MERGE_ON_READ if self._type == "MERGE_ON_READ" else {}
        self._settings = SETTINGS | merging | dict(table_properties)

    def snapshot(self) -> Snapshot | None:
        """Return the newest state, None if there is no table of ours.

        A crash may leave a folder without a first commit: that is no table yet.

        Raises:
            TargetError: if there is a table and nothing says what it holds.
        """
        if not self._exists():
            return None
        meta = self._meta()
        timeline = meta.getActiveTimeline()
        newest = None
        for instant, stamp, schema in self._stamps(timeline):
            newest = newest or instant
            if stamp is not None:
                return Snapshot(instant=newest, stamp=stamp, schema=schema)
        if newest is None:
            return None
        for _, stamp, schema in self._archived(meta):
            if stamp is not None:
                return Snapshot(instant=newest, stamp=stamp, schema=schema)
        raise TargetError(
            f"Cannot tell what {self.path} holds: no commit says so. Another program made the table, or its archived "
            "timeline was deleted; give the table another target, or drop it to have it built anew"
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
        for found, stamp, schema in self._stamps(self._meta().getActiveTimeline()):
            if found <= instant and stamp is not None:
                return Snapshot(instant=instant, stamp=stamp, schema=schema)
        raise TargetError(f"Cannot read {self.path} as of {instant}: the commit is no longer in the timeline")

    def rows(self, instant: str) -> DataFrame:
        """Return all rows as of a commit, with Hudi's own columns."""
        reader = self._spark.read.format("hudi").option("hoodie.metadata.enable", "false")
        return reader.option("as.of.instant", instant).load(self.path)

    def kept_rows(self, instant: str, struct: StructType) -> DataFrame:
        """Return all rows of a state that `keep` keeps; its files are all there, but time travel ends before it.

        The files of one commit have the same columns, of those that the table had until then.
        """
        timeline = self._meta().getActiveTimeline()
        (savepoint,) = (found for found in self._savepoint_instants() if found.requestedTime() == instant)
        partitions = timeline.readSavepointMetadata(savepoint).getPartitionMetadata().values()
        by_commit: dict[str, list[str]] = {}
        for partition in partitions:
            for name in partition.getSavepointDataFile():
                by_commit.setdefault(str(name).rsplit("_", 1)[-1], []).append(f"{self.path}/{name}")
        parts = [self._spark.read.parquet(*sorted(paths)) for paths in by_commit.values()]
        frames = [part.select(KEY, *_columns_of(part, struct)) for part in parts]
        return reduce(DataFrame.union, frames) if frames else self._spark.createDataFrame([], _with_key(struct))

    def size(self) -> int:
        """Return how many bytes the newest files have."""
        return sum(self.base_sizes())

    def create(self, struct: StructType, stamp: Stamp) -> None:
        """Make the table, with a first commit that says what it is; nothing happens if it is there."""
        if self.snapshot() is not None:
            return
        if not self._exists():
            builder = self._hudi.common.table.HoodieTableMetaClient.newTableBuilder()
            builder.setTableType(self._type).setTableName(self._name).setTableVersion(6)
            builder.setRecordKeyFields(KEY).setPopulateMetaFields(True)
            builder.setKeyGeneratorClassProp(SETTINGS["hoodie.datasource.write.keygenerator.class"])
            builder.setRecordMergeMode(self._hudi.common.config.RecordMergeMode.COMMIT_TIME_ORDERING)
            builder.initTable(self._storage_conf(), self.path)
        schema = avro_schema(self._jvm, struct)
        self.commit("upsert", None, schema, lambda _: stamp)

    def commit(
        self, operation: Operation, rows: DataFrame | None, schema: str, stamp: Callable[[Written], Stamp]
    ) -> None:
        """Write rows, columns and stamp at once.

        Args:
            operation: change records one by one, or replace all there are.
            rows: from `hudi_rows.prepared`; None if there are none.
            schema: the Avro schema that the table has afterwards.
            stamp: what the commit says, given what it writes.
        """
        config = self._config(schema)
        context = self._hudi.client.common.HoodieSparkEngineContext(self._java_context())
        client = self._hudi.client.SparkRDDWriteClient(context, config)
        try:
            action = str(self._meta().getCommitActionType()) if operation == "upsert" else "replacecommit"
            instant = client.startCommit(action)
            records = self._records(rows, schema, config, operation, instant)
            if operation == "upsert":
                statuses, replaced = client.upsertPreppedRecords(records, instant), self._jvm.java.util.HashMap()
            else:
                result = client.insertOverwriteTable(records, instant)
                statuses, replaced = result.getWriteStatuses(), result.getPartitionToReplaceFileIds()
            stats, written = self._collect(statuses)
            metadata = self._option(stamp(written).to_metadata())
            nothing = self._hudi.common.util.Option.empty()
            if not client.commitStats(instant, stats, metadata, action, replaced, nothing):
                raise TargetError(f"Cannot write {self.path}: Hudi did not commit {instant}")
        finally:
            client.close()

    @property
    def is_merged_on_read(self) -> bool:
        """Whether changes lie in logs beside the files, as was chosen when the table was made."""
        return str(self._meta().getTableType().name()) == "MERGE_ON_READ"

    def merge_logs(self) -> None:
        """Merge all logs into the files they belong to, in a commit of its own; without logs nothing happens."""

        def compact(client: Any) -> None:
            scheduled = client.scheduleCompaction(self._hudi.common.util.Option.empty())
            if scheduled.isPresent():
                client.compact(scheduled.get(), True)

        if self.is_merged_on_read:
            self._with_client(compact, {"hoodie.compact.inline.max.delta.commits": "1"})

    def clean(self) -> None:
        """Remove files of states that are kept no longer; nothing happens where there are none."""
        self._with_client(methodcaller("clean"), {"hoodie.clean.trigger.max.commits": "1"})

    def logs(self) -> int:
        """Return how many logs there are that are not merged into the files they belong to."""
        return sum(1 for part in self._newest("getLatestFileSlices") for _ in _each(part.getLogFiles().iterator()))

    def base_sizes(self) -> tuple[int, ...]:
        """Return the bytes of each of the newest files."""
        return tuple(int(status.getFileSize()) for status in self._newest("getLatestBaseFiles"))

    def keep(self, instant: str) -> None:
        """Keep what an instant can be read from until `let_go`."""
        if instant not in self._savepoints():
            self._with_client(methodcaller("savepoint", instant, "cdc_sync", "before a rewrite"))

    def let_go(self, *, but: str | None) -> None:
        """Give up what was kept, one instant excepted."""
        for instant in self._savepoints():
            if instant != but:
                self._with_client(methodcaller("deleteSavepoint", instant))

    def keeps(self, instant: str) -> bool:
        """Whether an instant is kept."""
        return instant in self._savepoints()

    def _collect(self, statuses: Any) -> tuple[Any, Written]:
        """Carry the write out. A record that Hudi could not write is told here and nowhere else."""
        stats = self._jvm.java.util.ArrayList()
        inserted = deleted = 0
        for status in statuses.collect():
            if status.getTotalErrorRecords():
                error = status.getGlobalError() or next(iter(status.getErrors().values()), None)
                raise TargetError(f"Cannot write {self.path}: {error}")
            stat = status.getStat()
            inserted, deleted = inserted + stat.getNumInserts(), deleted + stat.getNumDeletes()
            stats.add(stat)
        return stats, Written(inserted=inserted, deleted=deleted)

    def _records(self, rows: DataFrame | None, schema: str, config: Any, operation: Operation, instant: str) -> Any:
        if rows is None:
            return self._java_context().emptyRDD()
        parse = self._hudi.common.schema.HoodieSchema.parse
        kind = "UPSERT_PREPPED" if operation == "upsert" else "INSERT_OVERWRITE_TABLE"
        arguments = getattr(self._hudi, "HoodieCreateRecordUtils$createHoodieRecordRddArgs")(
            rows._jdf,
            config,
            self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(self._java_map(self._settings)),
            RECORD,
            NAMESPACE,
            parse(prepared_schema(schema)),
            parse(schema),
            getattr(self._hudi.common.model.WriteOperationType, kind),
            instant,
            *(True, False, True),
            self._meta().getTableConfig(),
        )
        return self._hudi.HoodieCreateRecordUtils.createHoodieRecordRdd(arguments)

    def _stamps(self, timeline: Any) -> Iterator[tuple[str, Stamp | None, str]]:
        """Return completed commits, newest first, with stamp and schema."""
        commits = timeline.getCommitsTimeline().filterCompletedInstants()
        instants = commits.getReverseOrderedInstants().iterator()
        while instants.hasNext():
            instant = instants.next()
            metadata = commits.readCommitMetadata(instant).getExtraMetadata()
            text = metadata.get(STAMP)
            stamp = None if text is None else parse_stamp(str(text), metadata.get(PROPERTY))
            yield str(instant.requestedTime()), stamp, str(metadata.get("schema"))

    def _archived(self, meta: Any) -> Iterator[tuple[str, Stamp | None, str]]:
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

    def _with_client(self, action: Callable[[Any], object], settings: Mapping[str, str] | None = None) -> None:
        snapshot = self.snapshot()
        assert snapshot is not None
        context = self._hudi.client.common.HoodieSparkEngineContext(self._java_context())
        client = self._hudi.client.SparkRDDWriteClient(context, self._config(snapshot.schema, settings))
        try:
            action(client)
        finally:
            client.close()

    def _newest(self, parts: str) -> Iterator[Any]:
        meta = self._meta()
        completed = meta.getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
        context = self._hudi.client.common.HoodieSparkEngineContext(self._java_context())
        settings = self._hudi.common.config.HoodieMetadataConfig.newBuilder().enable(False).build()
        manager = self._hudi.common.table.view.FileSystemViewManager
        view = manager.createInMemoryFileSystemViewWithTimeline(context, meta, settings, completed)
        try:
            yield from _each(getattr(view, parts)("").iterator())
        finally:
            view.close()

    def _config(self, schema: str, settings: Mapping[str, str] | None = None) -> Any:
        properties = self._java_map(self._settings | dict(settings or {}))
        builder = self._hudi.config.HoodieWriteConfig.newBuilder()
        builder = builder.withEngineType(self._hudi.common.engine.EngineType.SPARK).withPath(self.path)
        return builder.withSchema(schema).forTable(self._name).withProps(properties).build()

    @property
    def _name(self) -> str:
        # Hudi wants one that is not blank, and whoever registers the table in Hive a plain one.
        return held_name(self.path.rsplit("/", 1)[-1], HUDI.columns)

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
        return self._hudi.common.util.Option.of(self._java_map(values))

    def _java_map(self, values: Mapping[str, str]) -> Any:
        java = self._jvm.java.util.HashMap()
        for key, value in values.items():
            java.put(key, value)
        return java


def _each(iterator: Any) -> Iterator[Any]:
    while iterator.hasNext():
        yield iterator.next()


def _columns_of(rows: DataFrame, struct: StructType) -> list[Column]:
    """Return the columns as a table has them now, of a file that may be older."""
    return [
        (rows[field.name] if field.name in rows.columns else F.lit(None)).cast(field.dataType).alias(field.name)
        for field in struct.fields
    ]


def _with_key(struct: StructType) -> StructType:
    return StructType([StructField(KEY, StringType()), *struct.fields])
