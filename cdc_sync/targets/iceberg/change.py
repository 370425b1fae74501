"""One change of an Iceberg table: committed on the state that it was begun on, or not at all.

Iceberg's own commits are brought to whatever state there is by then, and an append is compared with nothing on the
way. So a change here is an open transaction. Spark reads and writes the table as the transaction has it; the end of it
is one call of `TableOperations.commit` with the metadata that the change was begun on, which every catalogue compares
with its own, in one step. A change that comes second leaves files that no metadata names, as one that dies does.

Source: `BaseTransaction` of Iceberg 1.11, whose `commitTransaction` ends in the same call, but applies what was done
once more if it fails; `StagedSparkTable`, which has Spark write to an open transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import PROPERTY, Progress
from cdc_sync.targets.common.commits import progress_of
from cdc_sync.targets.common.java import java_list, java_map
from cdc_sync.targets.iceberg.commits import lineage
from cdc_sync.targets.protocol import check_held, moved


class _Callback:
    """A Python function as `java.util.concurrent.Callable`; keeps the error that Java would wrap."""

    def __init__(self, action: Callable[[], object]) -> None:
        self._action = action
        self.error: Exception | None = None

    def call(self) -> None:
        """Run the function, in the thread that Java calls from."""
        try:
            self._action()
        except Exception as error:
            self.error = error
            raise

    class Java:
        implements = ["java.util.concurrent.Callable"]


class Change:
    """A table as it is while it is being changed.

    Attributes:
        table: Iceberg's; it shows what was done until now.
        transaction: the same, where several updates make one commit.
        progress: what the table held when the change was begun.
    """

    def __init__(self, spark: SparkSession, catalog: str, name: TargetName, table: Any) -> None:
        """Begin a change.

        Args:
            catalog: the Spark catalog that the table is in, for its functions.
            table: Iceberg's.
        """
        self._spark = spark
        self._jvm = cast(Any, spark._jvm)
        self._catalog = catalog
        self._name = name
        self.transaction = table.newTransaction()
        operations = self.transaction.table().operations()
        # What a transaction calls its table cannot be scanned.
        self.table: Any = self._jvm.org.apache.iceberg.BaseTable(operations, table.name())
        self.progress = progress_of(name, lineage(self.table))

    def check(self, behind: Progress | None) -> None:
        """Refuse to change a table that holds other events.

        Raises:
            TargetMoved: if it does.
        """
        check_held(self._name, self.progress, behind)

    def run(self, statement: str, progress: Progress) -> None:
        """Run a statement that changes the table, whose name in it does not matter; the snapshot has the marker."""
        session = self._spark._jsparkSession
        plan = session.sessionState().sqlParser().parsePlan(statement)
        parts = [plan.children().apply(number) for number in range(plan.children().size())]
        relation = self._relation()
        aliased = parts[0].getClass().getSimpleName() == "SubqueryAlias"
        parts[0] = parts[0].withNewChildren(self._seq([relation])) if aliased else relation
        plan = plan.withNewChildren(self._seq(parts))
        with_properties(self._spark, {PROPERTY: progress.to_text()}, lambda: self._execute(plan))

    def append(self, rows: DataFrame, progress: Progress) -> None:
        """Add rows, which have all columns of the table; the snapshot has the marker."""
        self._write("AppendData", rows, _marked(progress))

    def overwrite(self, rows: DataFrame, progress: Progress) -> None:
        """Replace all rows by others, which have all columns of the table."""
        always = self._jvm.org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral()
        self._write("OverwriteByExpression", rows, _marked(progress), always)

    def mark(self, progress: Progress) -> None:
        """Add no file: a snapshot of the same ones, with the marker."""
        self.table.newFastAppend().set(PROPERTY, progress.to_text()).commit()

    def truncate(self, progress: Progress) -> None:
        """Take all files out, delete files too: metadata alone, however many rows there are."""
        everything = self._jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()
        delete = self.table.newDelete().deleteFromRowFilter(everything)
        delete.set(PROPERTY, progress.to_text()).commit()

    def commit(self) -> None:
        """Make everything that was done what the table is, in one step; nothing happens if nothing was.

        Raises:
            TargetMoved: if somebody has changed the table since the change was begun.
            Py4JJavaError: as the catalogue does.
        """
        after = self.transaction.currentMetadata()
        if not after.changes().size():
            return
        try:
            self.transaction.underlyingOps().commit(self.transaction.startMetadata(), after)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "CommitFailedException":
                raise moved(self._name) from error
            raise

    def _write(self, kind: str, rows: DataFrame, options: Mapping[str, str], *more: Any) -> None:
        plan = getattr(self._jvm.org.apache.spark.sql.catalyst.plans.logical, kind)
        given = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(java_map(self._jvm, options))
        self._execute(plan.byName(self._relation(), rows._jdf.queryExecution().analyzed(), *more, given))

    def _relation(self) -> Any:
        """Return the table as Spark's plans have it, though no catalog knows it in this state."""
        jvm = self._jvm
        manager = self._spark._jsparkSession.sessionState().catalogManager()
        plugin, none = jvm.scala.Option.apply(manager.catalog(self._catalog)), jvm.scala.Option.empty()
        found = jvm.org.apache.iceberg.spark.source.SparkTable(self.table, False)
        return jvm.org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation.create(found, plugin, none)

    def _execute(self, plan: Any) -> None:
        mode = self._jvm.org.apache.spark.sql.execution.CommandExecutionMode.ALL()
        self._spark._jsparkSession.sessionState().executePlan(plan, mode).assertCommandExecuted()

    def _seq(self, items: list[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(java_list(self._jvm, items))


def _marked(progress: Progress) -> dict[str, str]:
    return {f"snapshot-property.{PROPERTY}": progress.to_text()}


def with_properties(spark: SparkSession, properties: Mapping[str, str], action: Callable[[], object]) -> None:
    """Run a statement whose commit carries the properties (Spark 3.5 has no session setting for it)."""
    jvm: Any = spark._jvm
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    exception = jvm.java.lang.Class.forName("java.lang.Exception")
    call = _Callback(action)
    try:
        jvm.org.apache.iceberg.spark.CommitMetadata.withCommitProperties(java_map(jvm, properties), call, exception)
    except Py4JJavaError:
        # The callback's own error says more than the Java wrapper around it.
        if call.error is not None:
            raise call.error from None
        raise
