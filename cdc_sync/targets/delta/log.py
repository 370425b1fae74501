"""One Delta table through its transaction log: what its commits say, and commits of our own that change columns.

A commit of ours carries its marker as the commit's user metadata, and may hold columns, properties and rows at once.

Delta brings a commit to whatever version there is by then, unless the two are in each other's way, which appends are
not. So commits of ours are numbered, by what Delta has for streams: an application's transaction. One that finds its
number taken when it begins does nothing, and one whose number is taken while it works fails.

Source: Delta Transaction Log Protocol, "Actions"; `OptimisticTransaction` of Delta 3.3.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice, tee
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.errors import TargetError
from cdc_sync.spark.session import activate
from cdc_sync.targets.common.commits import Beginning, Entry, Lineage
from cdc_sync.targets.common.java import java_list
from cdc_sync.targets.delta.failures import NumberTaken
from cdc_sync.targets.delta.fields import Field, features_for
from cdc_sync.targets.delta.layout import Layout
from cdc_sync.targets.delta.log_commits import LogCommit, log_commit, readable

_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
APPLICATION = "cdc_sync"
"""Whose transactions are numbered; those of all pipelines together."""


def forget(spark: SparkSession, path: str) -> None:
    """Let Delta look anew at a path where there was a table; it keeps what it read of a log for an hour."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(spark._jsparkSession, jvm.org.apache.hadoop.fs.Path(path))


class DeltaTable:
    """The table at a path, whether it is there or not. What it says is what the log says at that moment."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self.path = path
        # A path may hold what Hadoop takes for an escape or a pattern, so it never goes through a URI.
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._log: Any = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)

    @property
    def sql_name(self) -> str:
        """What statements call it."""
        return f"delta.{quoted(self.path)}"

    def snapshot(self) -> Any:
        """Return Delta's snapshot of the newest version, None if there is no table."""
        none = self._jvm.scala.Option.empty()
        found = self._log.update(False, none, none)
        return found if found.version() >= 0 else None

    def properties(self, snapshot: Any) -> dict[str, str]:
        """Return the table's own properties."""
        configuration: dict[str, str] = _metadata(snapshot)["configuration"]
        return configuration

    def identity(self, snapshot: Any) -> str:
        """Return what tells the table from another one that is made at its path."""
        return str(_metadata(snapshot)["id"])

    def fields(self, snapshot: Any) -> list[Field]:
        """Return the columns as `schema` knows them."""
        found: list[Field] = json.loads(_metadata(snapshot)["schemaString"])["fields"]
        return found

    def at(self, version: int) -> Any:
        """Return the snapshot of an earlier version."""
        none = self._jvm.scala.Option.empty()
        return self._log.getSnapshotAt(version, none, none)

    def rows(self, version: int) -> DataFrame:
        """Return the rows of a version, columns under the names they had."""
        return self._spark.read.format("delta").option("versionAsOf", version).load(self.path)

    def lineage(self, version: int) -> Lineage:
        """Follow the commits back from a version, as far as the log is kept; what was rolled back is left out.

        The first commit only makes the table.
        """
        return self._entries(self.commits(version))

    def readable_lineage(self, version: int) -> Lineage:
        """Follow them back as far as their files are there, and on to the commit that says what the last one holds."""
        back, again = tee(self.commits(version))
        there, last = 0, None
        for last in readable(back):
            there += 1
            yield from self._entries([last])
        if last is not None and last.marker is None:
            behind = islice(again, there, None)
            yield from self._entries(islice((it for it in behind if it.marker is not None), 1))

    def _entries(self, commits: Iterable[LogCommit]) -> Lineage:
        for commit in commits:
            yield Entry(reference=str(commit.version), marker=commit.marker) if commit.version else Beginning()

    def commits(self, version: int) -> Iterator[LogCommit]:
        """Follow the commits back from a version to the one that made the table, as far as the log is kept."""
        while version > 0:
            info = self._commit_info(version)
            if info is None:
                return
            yield log_commit(version, info)
            if info.get("operation") == "RESTORE":
                restored = info["operationParameters"]["version"]
                if restored is None:
                    return  # to a moment; which version that was is not said
                version = int(restored)
            else:
                version -= 1
        info = self._commit_info(0)
        if info is not None:
            yield log_commit(0, info)

    def made_at(self, version: int) -> int | None:
        """Return when a version was made, in milliseconds since the epoch; None if the log does not tell any more."""
        info = self._commit_info(version)
        return None if info is None else log_commit(version, info).at

    def _commit_info(self, version: int) -> dict[str, Any] | None:
        """Return what a commit says about itself, None if it is not kept any more."""
        actions = self._actions(version)
        if actions is None:
            return None
        with closing(actions):
            return next((action["commitInfo"] for action in actions if "commitInfo" in action), {})

    def all_actions(self, version: int) -> Iterator[list[dict[str, Any]]]:
        """Follow the commits back from a version, as far as the log is kept; yield what each did."""
        while version >= 0:
            actions = self._actions(version)
            if actions is None:
                return
            yield list(actions)
            version -= 1

    def _actions(self, version: int) -> Generator[dict[str, Any]] | None:
        file = self._jvm.org.apache.spark.sql.delta.util.FileNames.unsafeDeltaFile(self._log.logPath(), version)
        hadoop = self._log.newDeltaHadoopConf()
        if not file.getFileSystem(hadoop).exists(file):
            return None
        return self._read(self._log.store().readAsIterator(file, hadoop))

    def _read(self, lines: Any) -> Generator[dict[str, Any]]:
        try:
            while lines.hasNext():
                yield json.loads(lines.next())
        finally:
            lines.close()

    def layout(self, snapshot: Any) -> Layout:
        """Return what the table's metadata says of columns and partitions."""
        return _layout(_metadata(snapshot))

    def create(self, layout: Layout) -> None:
        """Make the table; nothing happens if it is there."""
        if self.snapshot() is not None:
            return
        metadata = {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "createdTime": _now(),
        }
        with self._transaction(None) as transaction:
            self._set_metadata(transaction, metadata | _as_metadata(layout))
            self._commit(transaction, [])

    def append(self, rows: DataFrame, marker: str, on: Any) -> None:
        """Add rows; `on` as for `execute`."""
        writer = rows.write.format("delta").mode("append").option("userMetadata", marker)
        writer.option("txnAppId", APPLICATION).option("txnVersion", _number(on) + 1).save(self.path)
        self._check_done(marker, on)

    def change(
        self,
        marker: str | None,
        on: Any,
        change: Callable[[Layout], Layout],
        rows: Callable[[int, Layout], DataFrame] | None = None,
    ) -> None:
        """Change columns, partitions and properties in one commit.

        Args:
            marker: what the rows contain.
            on: as for `execute`.
            change: what the metadata says before to what it says after.
            rows: all that the table has afterwards, made from the version before and for what the metadata says after;
                None if no row changes.
        """
        with self._transaction(marker) as transaction:
            numbered = self._numbered(transaction, on)
            metadata = json.loads(transaction.metadata().json())["metaData"]
            layout = change(_layout(metadata))
            layout = layout.stamped(features_for(layout.fields))
            self._set_metadata(transaction, metadata | _as_metadata(layout))
            actions = [numbered]
            if rows is not None:
                # Asking for all files makes whatever another writer commits meanwhile fail this.
                actions += [file.remove() for file in _all(transaction.filterFiles())]
                actions += _all(transaction.writeFiles(rows(transaction.readVersion(), layout)._jdf))
            self._commit(transaction, actions)

    def replace(
        self, files: Sequence[Any], on: Any, application: str, change: Callable[[DataFrame], DataFrame]
    ) -> None:
        """Write files of a snapshot anew, in one commit that fails if somebody has changed or removed one since.

        Args:
            on: the snapshot.
            application: what the commit says it is of.
            change: the rows of the files to what is written.
        """
        with self._session(None):
            options = self._jvm.scala.Option
            transaction = self._log.startTransaction(options.empty(), options.apply(on))
            found = self._log.createDataFrame(on, self._seq(files), False, options.empty())
            actions = [self._action({"txn": {"appId": application, "version": on.version(), "lastUpdated": _now()}})]
            actions += [file.remove() for file in files]
            actions += _all(transaction.writeFiles(change(DataFrame(found, self._spark))._jdf))
            self._commit(transaction, actions)

    def execute(self, statement: str, marker: str, on: Any) -> None:
        """Change rows by a statement, whose commit carries the marker.

        Args:
            on: the snapshot that the change is made for.

        Raises:
            NumberTaken: if another commit of ours was behind it when the change began; nothing is done then.
            Py4JJavaError: as Delta does, if one came until it ended, or one of somebody else is in its way.
        """
        numbered = {
            "spark.databricks.delta.write.txnAppId": APPLICATION,
            "spark.databricks.delta.write.txnVersion": str(_number(on) + 1),
        }
        with self._session(marker, numbered) as session:
            session.sql(statement)
        self._check_done(marker, on)

    def run(self, statement: str, settings: Mapping[str, str], marker: str | None = None) -> DataFrame:
        """Run a statement that changes no row, and return what it says; its commit carries the marker, if given."""
        with self._session(marker, settings) as session:
            return DataFrame(session.sql(statement), self._spark)

    def repeat(self, marker: str, on: Any) -> None:
        """Commit nothing but the marker; `on` as for `execute`."""
        with self._transaction(marker) as transaction:
            self._commit(transaction, [self._numbered(transaction, on)])

    def vacuumed(self) -> int:
        """Return how many files were removed by the VACUUM that ended with the newest version."""
        info = self._commit_info(self.snapshot().version()) or {}
        return int(info.get("operationMetrics", {}).get("numDeletedFiles", 0))

    @contextmanager
    def _session(self, marker: str | None, settings: Mapping[str, str] | None = None) -> Iterator[Any]:
        """Have a session of its own whose commits carry a marker: settings are shared by all threads of a session."""
        session = self._spark._jsparkSession.cloneSession()
        for key, value in (settings or {}).items():
            session.conf().set(key, value)
        if marker is not None:
            session.conf().set(_USER_METADATA, marker)
        self._jvm.org.apache.spark.sql.SparkSession.setActiveSession(session)
        try:
            yield session
        finally:
            activate(self._spark)

    @contextmanager
    def _transaction(self, marker: str | None) -> Iterator[Any]:
        with self._session(marker):
            self.snapshot()
            yield self._log.startTransaction()

    def _check_done(self, marker: str, on: Any) -> None:
        """Look for the commit of what was to be done: a number that is taken lets Delta pass over it in silence."""
        newer = range(self.snapshot().version(), on.version(), -1)
        if not any((self._commit_info(version) or {}).get("userMetadata") == marker for version in newer):
            raise NumberTaken

    def _numbered(self, transaction: Any, on: Any) -> Any:
        """Return the action by which a commit takes the next number, and have the commit fail if another one does.

        Raises:
            NumberTaken: if it is taken already.
        """
        number = _number(on) + 1
        if transaction.txnVersion(APPLICATION) >= number:
            raise NumberTaken
        return self._action({"txn": {"appId": APPLICATION, "version": number, "lastUpdated": _now()}})

    def _action(self, action: Mapping[str, Any]) -> Any:
        return self._jvm.org.apache.spark.sql.delta.actions.Action.fromJson(json.dumps(action))

    def _set_metadata(self, transaction: Any, metadata: dict[str, Any]) -> None:
        transaction.updateMetadata(self._action({"metaData": metadata}), False)

    def _seq(self, items: Sequence[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(java_list(self._jvm, items))

    def _commit(self, transaction: Any, actions: list[Any]) -> None:
        operation = getattr(self._jvm.org.apache.spark.sql.delta, "DeltaOperations$ManualUpdate$")
        transaction.commit(self._seq(actions), getattr(operation, "MODULE$"))


def there(table: DeltaTable) -> Any:
    """Return the newest snapshot of a table that has to be there.

    Raises:
        TargetError: if it is not.
    """
    found = table.snapshot()
    if found is None:
        raise TargetError(f"Cannot find a Delta table at {table.path}; was its folder moved away?")
    return found


def _number(snapshot: Any) -> int:
    """Return the number of the newest commit of ours; -1 if there is none, or only such as had no number yet."""
    found = snapshot.transactions().get(APPLICATION)
    return int(found.get()) if found.isDefined() else -1


def _now() -> int:
    return int(time.time() * 1000)


def _metadata(snapshot: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(snapshot.metadata().json())["metaData"]
    return found


def _layout(metadata: Mapping[str, Any]) -> Layout:
    return Layout(
        fields=json.loads(metadata["schemaString"])["fields"],
        divided_by=tuple(metadata["partitionColumns"]),
        properties=metadata["configuration"],
    )


def _as_metadata(layout: Layout) -> dict[str, Any]:
    return {
        "schemaString": json.dumps({"type": "struct", "fields": layout.fields}),
        "partitionColumns": list(layout.divided_by),
        "configuration": dict(layout.properties),
    }


def _all(scala: Any) -> list[Any]:
    iterator, found = scala.iterator(), []
    while iterator.hasNext():
        found.append(iterator.next())
    return found
