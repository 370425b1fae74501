"""The timeline of one Hudi table: what its commits say, and how one is made behind another.

None is made on another state than it was begun on.

Hudi compares a commit with nothing, unless it is given a lock, and then only with commits that changed the same files;
and whoever begins a commit takes back what others have begun. Here a commit claims its turn right before it is complete
(`claims`), in the call that Hudi makes then, and what others have begun is taken back only once nobody can complete it:
whoever wants to do so claims a turn for nothing first. A claim holds what the commit says, so one that was claimed and
not completed is completed by whoever finds it.

Source: Hudi 1.2.0, `BaseHoodieWriteClient.commitStats`, `CleanerUtils.rollbackFailedWrites`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc_sync.core.migration.capabilities import HUDI
from cdc_sync.core.migration.names import held_name
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.progress import PROPERTY
from cdc_sync.errors import TargetError, TargetMoved, UnfitTarget
from cdc_sync.spark.formats import HUDI_CALENDAR
from cdc_sync.targets.common.claims import Claims
from cdc_sync.targets.common.files import Files
from cdc_sync.targets.common.java import java_map
from cdc_sync.targets.hudi.internal_schema import LATEST_SCHEMA
from cdc_sync.targets.hudi.properties import STAMP, Stamp, parse_stamp
from cdc_sync.targets.hudi.schema import HeldColumns
from cdc_sync.targets.hudi.settings import MERGE_ON_READ, ON_READ, SETTINGS, TABLE_TYPE, partition_settings
from cdc_sync.targets.protocol import moved

_FOLDER = ".hoodie/.cdc_sync_turns"


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
    """The commits of a table, which need not be there yet, and the write client that new ones are made with.

    One object for each change.
    """

    def __init__(self, spark: SparkSession, path: str, table_properties: Mapping[str, str]) -> None:
        self._spark = spark
        self._jvm = jvm = cast(Any, spark._jvm)
        self._hudi: Any = jvm.org.apache.hudi
        self.path = path
        self._type = table_properties.get(TABLE_TYPE, "COPY_ON_WRITE")
        merging = MERGE_ON_READ if self._type == "MERGE_ON_READ" else {}
        self._settings = SETTINGS | merging | dict(table_properties)
        self._fields: list[str] | None = None
        self._files = Files(spark, path)
        self._claims = Claims(self._files, f"{path}/{_FOLDER}")
        self._turn = 0
        """The last one that was claimed when the change was begun."""

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
            Code.UNREADABLE,
            f"Cannot tell what {self.path} holds: no commit says so. Another program made the table, or its archived "
            "timeline was deleted",
            "drop it to have it built anew and `cdc-sync resume` the table, or give the table another target",
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

    def begin(self) -> Snapshot | None:
        """Begin a change: return the newest state, None if there is no table yet, once nothing unfinished is left.

        Rows that a change is made of have been looked for before Hudi would take back what is unfinished, and Hudi's
        reader asks once more for what it saw of an unfinished replacement, which is gone. Source: `TimelineUtils.
        validateTimestampAsOf`.

        Raises:
            TargetMoved: if another change is made just now.
        """
        self.settle()
        if not self._exists():
            return None
        begun = self._unfinished()
        if begun:
            self._claim({})
            now = self.snapshot()
            columns = HeldColumns(avro="", internal=None) if now is None else now.columns
            with self._client(self._config(columns)) as client:
                for instant in begun:
                    client.rollback(str(instant.requestedTime()))
        return self.snapshot()

    def settle(self) -> None:
        """Complete the commit whose turn it is, if whoever claimed it has not."""
        last = self._claims.last()
        if last is None:
            return
        self._turn = last[0]
        said = json.loads(last[1])
        instant = said.get("instant")
        if instant is None or not self._is_unfinished(instant):
            return
        models = self._hudi.common.model
        replaces = said["action"] == "replacecommit"
        blank = models.HoodieReplaceCommitMetadata() if replaces else models.HoodieCommitMetadata()
        metadata = blank.fromJsonString(said["metadata"], blank.getClass())
        extra = metadata.getExtraMetadata()
        columns = HeldColumns(avro=str(extra.get("schema")), internal=extra.get(LATEST_SCHEMA))
        replaced = metadata.getPartitionToReplaceFileIds() if replaces else self._jvm.java.util.HashMap()
        given, nothing = self._hudi.common.util.Option.of(extra), self._hudi.common.util.Option.empty()
        try:
            with self._client(self._config(columns)) as client:
                client.setOperationType(metadata.getOperationType())
                client.commitStats(instant, metadata.getWriteStats(), given, said["action"], replaced, nothing)
        except (Py4JJavaError, PySparkException):
            if self._is_unfinished(instant):  # else whoever claimed it was faster
                raise

    def _complete(
        self, client: Any, instant: str, stats: Any, said: Mapping[str, str], action: str, replaced: Any
    ) -> None:
        """Complete a commit, if it is its turn.

        Args:
            client: that it was begun with.
            instant: which it is.
            stats: of the files that it wrote.
            said: what it says beside Hudi's own.
            action: Hudi's word for its kind.
            replaced: the files that are no part of the table any more, by partition.

        Raises:
            TargetMoved: if another one had this turn.
        """

        def claim(metadata: Any) -> None:
            self._claim({"instant": instant, "action": action, "metadata": str(metadata.toJsonString())})

        hook = _BeforeCompletion(claim)
        metadata, called = self._option(said), self._hudi.common.util.Option.of(hook)
        try:
            if not client.commitStats(instant, stats, metadata, action, replaced, called):
                raise TargetError(f"Cannot write {self.path}: Hudi did not commit {instant}")
        except (Py4JJavaError, PySparkException):
            if hook.error is None:
                raise
            raise hook.error from None

    @contextmanager
    def _in_turn(self, client: Any, instant: str) -> Iterator[None]:
        """Say of whatever went wrong in a commit that it was another one's turn, where it was, and clean up.

        Raises:
            TargetMoved: if it was.
        """
        try:
            yield
        except (Py4JJavaError, PySparkException, TargetMoved) as error:
            last = self._claims.last()
            if last is None or last[0] == self._turn:
                raise
            self._undo(client, instant)
            raise moved(self.path) from error

    def _claim(self, said: Mapping[str, str]) -> None:
        text = json.dumps({"id": uuid.uuid4().hex, **said})
        if not self._claims.take(self._turn + 1, text):
            raise moved(self.path)
        self._turn += 1

    def _undo(self, client: Any, instant: str) -> None:
        """Delete what a commit wrote whose turn it was not; another one may have taken it back before it had ended.

        Once Hudi archives the commits of that time, it takes a file of then for one of theirs.
        """
        with suppress(Py4JJavaError, PySparkException):
            if self._is_unfinished(instant):
                client.rollback(instant)
        for file in self._files.named(self.path, f"_{instant}.parquet"):
            self._files.delete(file)

    def _unfinished(self) -> list[Any]:
        timeline = self._meta().getActiveTimeline().getCommitsTimeline()
        return list(timeline.filterInflightsAndRequested().getInstants())

    def _is_unfinished(self, instant: str) -> bool:
        return any(str(found.requestedTime()) == instant for found in self._unfinished())

    def _with_client(self, action: Callable[[Any], object], settings: Mapping[str, str] | None = None) -> None:
        snapshot = self.snapshot()
        assert snapshot is not None
        with self._client(self._config(snapshot.columns, settings)) as client:
            action(client)

    @contextmanager
    def _client(self, config: Any) -> Iterator[Any]:
        """Open a write client whose tasks know the calendar: outside of queries Spark tells tasks no settings.

        Source: Spark 3.5, `SQLConf.get`, which reads them from the local properties of a task.
        """
        told = self._java_context()
        before = {key: told.getLocalProperty(key) for key in HUDI_CALENDAR}
        for key, value in HUDI_CALENDAR.items():
            told.setLocalProperty(key, value)
        client = None
        try:
            context = self._hudi.client.common.HoodieSparkEngineContext(told)
            client = self._hudi.client.SparkRDDWriteClient(context, config)
            yield client
        finally:
            for key, value in before.items():
                told.setLocalProperty(key, value)
            if client is not None:
                client.close()

    def _config(self, columns: HeldColumns, settings: Mapping[str, str] | None = None) -> Any:
        regime = {} if columns.internal is None else ON_READ
        properties = java_map(self._jvm, {**self._told, **regime, **(settings or {})})
        builder = self._hudi.config.HoodieWriteConfig.newBuilder()
        builder = builder.withEngineType(self._hudi.common.engine.EngineType.SPARK).withPath(self.path)
        config = builder.withSchema(columns.avro).forTable(self._name).withProps(properties).build()
        if columns.internal is not None:
            config.setInternalSchemaString(columns.internal)
        return config

    @property
    def _told(self) -> Mapping[str, str]:
        """What the write client is told in every commit."""
        return {**self._settings, **partition_settings(self._partition_fields())}

    def _partition_fields(self) -> Sequence[str]:
        """Return the columns that the table was made to be divided by."""
        if self._fields is None:
            self._fields = partition_fields(self._meta())
        return self._fields

    @property
    def _name(self) -> str:
        # Hudi wants one that is not blank, and whoever registers the table in Hive a plain one.
        return held_name(self.path.rsplit("/", 1)[-1], HUDI.columns)

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


class _BeforeCompletion:
    """A Python function as Hudi's `java.util.function.BiConsumer`; keeps the error that Java would wrap."""

    def __init__(self, claim: Callable[[Any], None]) -> None:
        self._claim = claim
        self.error: Exception | None = None

    def accept(self, _: Any, metadata: Any) -> None:
        """Run the function, in the thread that Java calls from."""
        try:
            self._claim(metadata)
        except Exception as error:
            self.error = error
            raise

    class Java:
        implements = ["java.util.function.BiConsumer"]


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
