"""Hive's metastore, through the client that PySpark ships; without a server, embedded in a database in a folder.

The client is not made for several threads, and an embedded metastore keeps state by thread, so each use has a client of
its own: a TCP connection, or 40 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from cdc_sync.config.target import Catalog
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.errors import TargetError
from cdc_sync.targets.common.java import first_line, java_list, java_map
from cdc_sync.targets.hive.columns import HiveColumn

EMBEDDED = "metastore_db"
"""The folder of the embedded metastore's database, inside the warehouse."""
_TYPES = "hive.metastore.disallow.incompatible.col.type.changes"
_PARQUET = "org.apache.hadoop.hive.ql.io.parquet"
_PATH = "path"
_OF_EVERY_TABLE = ("serialization.format", _PATH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How readers are told to read a table's files: names of Java classes, and what the last of them is told.

    Attributes:
        serde: between bytes and rows.
        options: of the serde, but for those that every table has.
    """

    input: str
    output: str
    serde: str
    options: Mapping[str, str] = field(default_factory=dict)


PARQUET_FILES = Form(
    input=f"{_PARQUET}.MapredParquetInputFormat",
    output=f"{_PARQUET}.MapredParquetOutputFormat",
    serde=f"{_PARQUET}.serde.ParquetHiveSerDe",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the metastore says of a table, all of which is replaced at once.

    Attributes:
        location: the folder of its data files.
        columns: in order.
        parameters: the table's.
        keys: what it is partitioned by; no two of these and the columns have the same name.
    """

    location: str
    columns: tuple[HiveColumn, ...]
    parameters: Mapping[str, str]
    form: Form = PARQUET_FILES
    keys: tuple[HiveColumn, ...] = ()


class Metastore:
    """Entries of tables. Thread-safe."""

    def __init__(self, *, catalog: Catalog, warehouse: str, spark: SparkSession) -> None:
        """Connect once, which makes an embedded metastore.

        Args:
            catalog: where it is, and settings of Hive's client.
            warehouse: where databases lie; a path that file systems of the JVM take.
            spark: whose Hadoop settings the client takes over.

        Raises:
            TargetError: if it cannot be reached.
        """
        self._jvm: Any = spark._jvm
        self._catalog = catalog
        self._warehouse = warehouse
        self._conf = self._configured(spark)
        with self.client() as client:
            client.getAllDatabases()

    def entry(self, name: TargetName) -> Entry | None:
        """Return what there is under a name; None if there is nothing."""
        with self.client() as client:
            table = _found(client, name)
        if table is None:
            return None
        place = table.getSd()
        return Entry(
            location=str(place.getLocation()),
            columns=_columns_of(place.getCols()),
            parameters=dict(table.getParameters()),
            form=_form_of(place),
            keys=_columns_of(table.getPartitionKeys()),
        )

    def create(self, name: TargetName, entry: Entry) -> bool:
        """Make an entry, and the database it is in; return whether it was made, False if there is one."""
        with self.client() as client:
            self._make_database(client, name.namespace)
            try:
                client.createTable(self._table(name, entry))
            except Py4JJavaError as error:
                if not is_problem(error, "AlreadyExistsException"):
                    raise
                return False
        return True

    def replace(self, name: TargetName, entry: Entry, *, into: TargetName | None = None) -> None:
        """Put another entry in the place of one, under another name if one is given, in one call.

        Args:
            name: under which the entry is.
            entry: what there is afterwards.
            into: the name that it has then.

        All partitions get the columns in the same call; their keys cannot become others.

        Raises:
            TargetError: if the metastore does not let columns become others.
        """
        with self.client() as client:
            self._allow_types(client)
            try:
                table = self._table(into or name, entry)
                if entry.keys:
                    client.alter_table_with_environmentContext(name.namespace, name.name, table, self.asking("CASCADE"))
                else:
                    client.alter_table(name.namespace, name.name, table)
            except Py4JJavaError as error:
                if "types incompatible" in first_line(error):
                    raise TargetError(
                        f"Cannot change {name}: the metastore compares types of columns by their position; set "
                        f"{_TYPES} to false in its hive-site.xml"
                    ) from error
                raise

    def drop(self, name: TargetName) -> None:
        """Take an entry away, and nothing else; nothing happens if there is none."""
        with self.client() as client, _unless("NoSuchObjectException"):
            client.dropTable(name.namespace, name.name, False, True)

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Connect for as long as the block lasts."""
        try:
            client = self._jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(self._conf)
        except Py4JJavaError as error:
            raise TargetError(self._unreached(first_line(error))) from error
        try:
            yield client
        finally:
            client.close()

    def _unreached(self, said: str) -> str:
        if self._catalog.uri is not None:
            return f"Cannot reach the metastore at {self._catalog.uri}: {said}"
        return (
            f"Cannot open the embedded metastore in {self._warehouse}: {said}. It serves one process at a time: stop "
            "the other, or use a metastore server (target.catalog.uri)"
        )

    def _allow_types(self, client: Any) -> None:
        """Ask for columns to become others; a metastore before Hive 3 is told in its own configuration only."""
        if self._catalog.uri is not None:
            with suppress(Py4JJavaError):
                client.setMetaConf(_TYPES, "false")

    def _configured(self, spark: SparkSession) -> Any:
        blank = self._jvm.org.apache.hadoop.hive.conf.HiveConf()
        hadoop = spark._jsparkSession.sessionState().newHadoopConf()
        conf = self._jvm.org.apache.hadoop.hive.conf.HiveConf(hadoop, blank.getClass())
        if self._catalog.uri is not None:
            # Hive's own ten minutes are long for a batch.
            settings = {"hive.metastore.uris": self._catalog.uri, "hive.metastore.client.socket.timeout": "60s"}
        else:
            folder = self._warehouse.removeprefix("file:")
            # Derby writes a log where the process was started, unless told otherwise before it starts.
            self._jvm.java.lang.System.setProperty("derby.stream.error.file", f"{folder}/derby.log")
            settings = {
                "hive.metastore.uris": "",
                "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/{EMBEDDED};create=true",
                "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
                "datanucleus.schema.autoCreateAll": "true",
                "datanucleus.connectionPoolingType": "NONE",
                "hive.metastore.schema.verification": "false",
                "hive.metastore.warehouse.dir": self._warehouse,
                # It reads an entry in several statements, by default as each finds things: columns of one state with
                # the files of the next. So each reading locks what it has read, and whoever loses tries again.
                "datanucleus.transactionIsolation": "repeatable-read",
                "hive.hmshandler.retry.attempts": "10",
                "hive.hmshandler.retry.interval": "50ms",
                _TYPES: "false",
            }
        for key, value in {**settings, **self._catalog.properties}.items():
            conf.set(key, value)
        return conf

    def _make_database(self, client: Any, name: str) -> None:
        """Make a database if there is none: who may not make any is refused before it is looked for."""
        try:
            client.getDatabase(name)
        except Py4JJavaError as error:
            if not is_problem(error, "NoSuchObjectException"):
                raise
            place, nothing = f"{self._warehouse}/{name}.db", self._jvm.java.util.HashMap()
            with _unless("AlreadyExistsException"):
                client.createDatabase(self.api.Database(name, "", place, nothing))

    def _table(self, name: TargetName, entry: Entry) -> Any:
        table = self.api.Table()
        table.setDbName(name.namespace)
        table.setTableName(name.name)
        table.setSd(self.place(entry))
        table.setPartitionKeys(self._fields(entry.keys))
        # A managed table would be Hive's to move and to delete, from Hive 3 on also to hold transactions.
        table.setTableType("EXTERNAL_TABLE")
        table.setParameters(self.mapped({"EXTERNAL": "TRUE", **entry.parameters}))
        return table

    @property
    def api(self) -> Any:
        """The JVM's classes of what a metastore is told."""
        return self._jvm.org.apache.hadoop.hive.metastore.api

    def place(self, entry: Entry) -> Any:
        """Return where and how files lie, as the metastore is told."""
        serde = self.api.SerDeInfo()
        serde.setSerializationLib(entry.form.serde)
        # Where Spark looks for the files of a table that has `spark.sql.sources.provider`.
        serde.setParameters(self.mapped({**entry.form.options, "serialization.format": "1", _PATH: entry.location}))
        place = self.api.StorageDescriptor()
        place.setCols(self._fields(entry.columns))
        place.setLocation(entry.location)
        place.setInputFormat(entry.form.input)
        place.setOutputFormat(entry.form.output)
        place.setSerdeInfo(serde)
        return place

    def listed(self, items: Iterable[Any]) -> Any:
        """Return a list of the JVM."""
        return java_list(self._jvm, items)

    def _fields(self, columns: tuple[HiveColumn, ...]) -> Any:
        return self.listed(self.api.FieldSchema(column.name, column.type, column.comment) for column in columns)

    def asking(self, word: str) -> Any:
        """Return what goes with a call that is to do something else than by itself. Source: Hive, `StatsSetupConst`."""
        context = self.api.EnvironmentContext()
        context.setProperties(self.mapped({word: "true"}))
        return context

    def mapped(self, values: Mapping[str, str]) -> Any:
        """Return a map of the JVM."""
        return java_map(self._jvm, values)


def _found(client: Any, name: TargetName) -> Any:
    try:
        return client.getTable(name.namespace, name.name)
    except Py4JJavaError as error:
        if is_problem(error, "NoSuchObjectException"):
            return None
        raise


def _columns_of(fields: Any) -> tuple[HiveColumn, ...]:
    return tuple(HiveColumn(it.getName(), it.getType(), it.getComment()) for it in fields)


def _form_of(place: Any) -> Form:
    serde = place.getSerdeInfo()
    options = {key: value for key, value in dict(serde.getParameters()).items() if key not in _OF_EVERY_TABLE}
    return Form(
        input=str(place.getInputFormat()),
        output=str(place.getOutputFormat()),
        serde=str(serde.getSerializationLib()),
        options=options,
    )


@contextmanager
def _unless(problem: str) -> Iterator[None]:
    """Pass over a problem that says that there is nothing to do."""
    try:
        yield
    except Py4JJavaError as error:
        if not is_problem(error, problem):
            raise


def is_problem(error: Py4JJavaError, problem: str) -> bool:
    """Tell whether what the JVM threw is of a class, given without its package."""
    return bool(error.java_exception.getClass().getSimpleName() == problem)
