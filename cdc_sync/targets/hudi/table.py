"""One Hudi table, found by its path, through Hudi's Java write client inside Spark's JVM.

Spark's own writer for Hudi decides about columns, keys and deletes by itself, and by the columns of each batch. The
write client underneath takes records that say where they belong, deletes among them, and a schema: so one commit holds
upserts, hard deletes, columns, stamp and marker. What a crash leaves behind is rolled back by the next commit.

Source: Hudi 1.2.0, `HoodieSparkSqlWriter` and `HoodieCreateRecordUtils`, which prepare the records of Spark's MERGE and
UPDATE in the same way; `SparkRDDWriteClient`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import methodcaller
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from cdc_sync.core.migration.capabilities import SchemaEvolution
from cdc_sync.core.migration.modes import Mode
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.types import STRING
from cdc_sync.errors import TargetError
from cdc_sync.targets.common.folder import delete_folder
from cdc_sync.targets.common.java import java_map
from cdc_sync.targets.hudi.by_id import value_of
from cdc_sync.targets.hudi.internal_schema import (
    LATEST_SCHEMA,
    dated,
    fields_of,
    internal_schema,
    is_dated,
    versions_of,
    with_history,
)
from cdc_sync.targets.hudi.misreading import misreads
from cdc_sync.targets.hudi.partitions import PartitionColumn
from cdc_sync.targets.hudi.properties import Stamp
from cdc_sync.targets.hudi.schema import (
    KEY,
    META,
    NAMESPACE,
    RECORD,
    HeldColumns,
    avro_schema,
    prepared_schema,
    struct_of,
    table_struct,
)
from cdc_sync.targets.hudi.settings import ON_READ, Operation, key_generator
from cdc_sync.targets.hudi.timeline import HudiTimeline, each, has_logs, partition_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How many records a commit adds and takes away."""

    inserted: int
    deleted: int


class HudiTable(HudiTimeline):
    """One table, which need not be there yet."""

    def columns_of(
        self, schema: InternalSchema, mode: Mode, evolution: SchemaEvolution, partitions: Sequence[PartitionColumn]
    ) -> HeldColumns:
        """Return columns as a commit of the table carries them.

        Args:
            schema: has the names it holds.
            partitions: what it is divided by; nothing where columns are found by ids.
        """
        behind = [(column.name, STRING) for column in partitions]
        avro = avro_schema(self._jvm, table_struct(schema, mode, behind))
        internal = internal_schema(schema, mode) if evolution == "on_read" else None
        return HeldColumns(avro=avro, internal=internal)

    def struct(self, columns: HeldColumns) -> StructType:
        """Return columns as Spark has them, Hudi's own left out."""
        return struct_of(self._jvm, columns.avro)

    def rows(self, instant: str, columns: HeldColumns) -> DataFrame:
        """Return all rows as of a commit and the columns it has, with Hudi's own columns."""
        regime = {} if columns.internal is None else ON_READ
        reader = self._spark.read.format("hudi").options(**regime).option("hoodie.metadata.enable", "false")
        return reader.option("as.of.instant", instant).load(self.path)

    def kept_rows(self, instant: str, columns: HeldColumns) -> DataFrame:
        """Return all rows of a state that `keep` keeps; its files are all there, but time travel ends before it.

        The files of one commit have the same columns, of those that the table had until then.

        Args:
            columns: of that state.
        """
        struct = self.struct(columns)
        timeline = self._meta().getActiveTimeline()
        (savepoint,) = (found for found in self._savepoint_instants() if found.requestedTime() == instant)
        partitions = timeline.readSavepointMetadata(savepoint).getPartitionMetadata()
        by_commit: dict[str, list[str]] = {}
        for folder, partition in dict(partitions).items():
            place = f"{self.path}/{folder}" if folder else self.path
            for name in partition.getSavepointDataFile():
                by_commit.setdefault(str(name).rsplit("_", 1)[-1], []).append(f"{place}/{name}")
        frames = []
        for name, paths in by_commit.items():
            part = self._spark.read.parquet(*sorted(paths))
            if columns.internal is None:
                values = _columns_of(part, struct)
            else:
                held = self._fields_at(name.partition(".")[0])
                wanted = [field for field in fields_of(columns.internal) if field["name"] not in META]
                pairs = zip(wanted, struct.fields, strict=True)
                values = [value_of(field, held, it.dataType).cast(it.dataType).alias(it.name) for field, it in pairs]
            frames.append(part.select(KEY, *values))
        return reduce(DataFrame.union, frames) if frames else self._spark.createDataFrame([], _with_key(struct))

    def size(self) -> int:
        """Return how many bytes the newest files have."""
        return sum(self.base_sizes())

    def _fields_at(self, instant: str) -> Sequence[Mapping[str, Any]]:
        """Return the fields that files of a commit have, in the regime schema-on-read."""
        found = self._hudi.common.util.InternalSchemaCache.getInternalSchemaByVersionId(int(instant), self._meta())
        return fields_of(str(self._serde.toJson(found)))

    def would_misread(self, columns: HeldColumns) -> bool:
        """Tell whether readers would take columns of some old file for others, if the table had these."""
        if columns.internal is None:
            return False
        serde, merger = self._serde, self._hudi.internal.schema.action.InternalSchemaMerger
        oldest = min((int(part.getBaseInstantTime()) for part in self._newest("getLatestFileSlices")), default=None)
        if oldest is None:
            return False
        wanted = serde.fromJson(columns.internal).get()
        for held in versions_of(self._history(), oldest):
            asked = merger(serde.fromJson(held).get(), wanted, True, True).mergeSchema()
            if misreads(str(serde.toJson(asked)), held, columns.internal):
                return True
        return False

    def create(self, columns: HeldColumns, stamp: Stamp) -> None:
        """Make the table, with a first commit that says what it is; nothing happens if it is there.

        What was begun without a first commit, to be divided in another way, is no table and is made anew.
        """
        if self.begin() is not None:
            return
        fields = [column.name for column in stamp.partitions]
        if self._exists() and self._partition_fields() != fields:
            delete_folder(self._spark, self.path)
        self._fields = None
        if not self._exists():
            builder = self._hudi.common.table.HoodieTableMetaClient.newTableBuilder()
            builder.setTableType(self._type).setTableName(self._name).setTableVersion(6)
            builder.setRecordKeyFields(KEY).setPopulateMetaFields(True)
            builder.setKeyGeneratorClassProp(key_generator(fields))
            if fields:
                builder.setPartitionFields(",".join(fields))
                builder.setHiveStylePartitioningEnable(True).setUrlEncodePartitioning(True)
            builder.setRecordMergeMode(self._hudi.common.config.RecordMergeMode.COMMIT_TIME_ORDERING)
            builder.initTable(self._storage_conf(), self.path)
        self.commit("upsert", None, columns, lambda _: stamp)

    def commit(
        self, operation: Operation, rows: DataFrame | None, columns: HeldColumns, stamp: Callable[[Written], Stamp]
    ) -> None:
        """Write rows, columns and stamp at once, if no other commit was made since `begin`.

        Args:
            operation: change records one by one, or replace all there are.
            rows: from `rows.prepared`; None if there are none.
            columns: that the table has afterwards.
            stamp: what the commit says, given what it writes.

        Raises:
            TargetMoved: if another one was made.
        """
        config = self._config(columns)
        with self._client(config) as client:
            action = str(self._meta().getCommitActionType()) if operation == "upsert" else "replacecommit"
            instant = client.startCommit(action)
            with self._in_turn(client, str(instant)):
                internal = columns.internal
                if internal is not None and not is_dated(internal):
                    internal = dated(internal, str(instant))
                    config.setInternalSchemaString(internal)
                records = self._records(rows, columns.avro, config, operation, instant)
                if operation == "upsert":
                    statuses, replaced = client.upsertPreppedRecords(records, instant), self._jvm.java.util.HashMap()
                else:
                    result = client.insertOverwriteTable(records, instant)
                    statuses, replaced = result.getWriteStatuses(), result.getPartitionToReplaceFileIds()
                stats, written = self._collect(statuses)
                said = stamp(written).to_metadata()
                if internal is not None:
                    self._remember(internal, str(instant))
                    said |= {LATEST_SCHEMA: internal}
                self._complete(client, str(instant), stats, said, action, replaced)

    def _remember(self, internal: str, instant: str) -> None:
        """Keep the columns of all commits where readers look for those of old files.

        Each commit keeps all of it, as Hudi's own do, for what an archived commit kept counts no longer; and before it
        is complete: until then nobody reads it, and the next one removes it. Source:
        `FileBasedInternalSchemaStorageManager`.
        """
        history = self._history()
        if not history or json.loads(internal)["version_id"] == int(instant):
            history = with_history(internal, history)
        self._histories().persistHistorySchemaStr(instant, history)

    def _history(self) -> str:
        return str(self._histories().getHistorySchemaStr())

    def _histories(self) -> Any:
        return self._hudi.internal.schema.io.FileBasedInternalSchemaStorageManager(self._meta())

    @property
    def _serde(self) -> Any:
        return self._hudi.internal.schema.utils.SerDeHelper

    @property
    def is_merged_on_read(self) -> bool:
        """Whether changed rows lie in logs beside the files."""
        return has_logs(self._meta())

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
        return sum(1 for part in self._newest("getLatestFileSlices") for _ in each(part.getLogFiles().iterator()))

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
            self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(java_map(self._jvm, self._told)),
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

    def _newest(self, parts: str) -> Iterator[Any]:
        meta = self._meta()
        completed = meta.getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
        context = self._hudi.client.common.HoodieSparkEngineContext(self._java_context())
        settings = self._hudi.common.config.HoodieMetadataConfig.newBuilder().enable(False).build()
        folders = [""]
        if partition_fields(meta):
            folders = list(self._hudi.common.fs.FSUtils.getAllPartitionPaths(context, meta, settings))
        manager = self._hudi.common.table.view.FileSystemViewManager
        view = manager.createInMemoryFileSystemViewWithTimeline(context, meta, settings, completed)
        try:
            for folder in folders:
                yield from each(getattr(view, parts)(folder).iterator())
        finally:
            view.close()


def _columns_of(rows: DataFrame, struct: StructType) -> list[Column]:
    """Return the columns as a table has them now, of a file that may be older."""
    return [
        (rows[field.name] if field.name in rows.columns else F.lit(None)).cast(field.dataType).alias(field.name)
        for field in struct.fields
    ]


def _with_key(struct: StructType) -> StructType:
    return StructType([StructField(KEY, StringType()), *struct.fields])
