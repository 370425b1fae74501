"""Commits of a Hudi table, one behind another: none is made on another state than it was begun on.

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
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc_sync.core.migration.capabilities import HUDI
from cdc_sync.core.migration.names import held_name
from cdc_sync.errors import TargetError, TargetMoved
from cdc_sync.spark.formats import HUDI_CALENDAR
from cdc_sync.targets.common.claims import Claims
from cdc_sync.targets.common.files import Files
from cdc_sync.targets.common.java import java_map
from cdc_sync.targets.hudi.commits import HudiTimeline, Snapshot, partition_fields
from cdc_sync.targets.hudi.internal_schema import LATEST_SCHEMA
from cdc_sync.targets.hudi.schema import HeldColumns
from cdc_sync.targets.hudi.settings import MERGE_ON_READ, ON_READ, SETTINGS, TABLE_TYPE, partition_settings
from cdc_sync.targets.protocol import moved

_FOLDER = ".hoodie/.cdc_sync_turns"


class HudiTurns(HudiTimeline):
    """A table and the write client that its commits are made with. One object for each change."""

    def __init__(self, spark: SparkSession, path: str, table_properties: Mapping[str, str]) -> None:
        super().__init__(spark, path)
        self._type = table_properties.get(TABLE_TYPE, "COPY_ON_WRITE")
        merging = MERGE_ON_READ if self._type == "MERGE_ON_READ" else {}
        self._settings = SETTINGS | merging | dict(table_properties)
        self._fields: list[str] | None = None
        self._files = Files(spark, path)
        self._claims = Claims(self._files, f"{path}/{_FOLDER}")
        self._turn = 0
        """The last one that was claimed when the change was begun."""

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
