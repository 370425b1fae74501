"""The Spark session of a pipeline."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Protocol

import pyspark
from py4j.java_gateway import JavaClass, JavaMember, JavaPackage
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from cdc_sync.config.formats import format_of
from cdc_sync.config.models import Limits, Pipeline, Spark
from cdc_sync.config.target import Target
from cdc_sync.errors import SetupError
from cdc_sync.local.jars import spark_jars
from cdc_sync.local.java import java_home
from cdc_sync.spark.connectors import LOCKED_PYSPARK, coordinates
from cdc_sync.spark.formats import CLASSES, format_settings, jar_sets

_GATEWAY = "PYSPARK_GATEWAY_PORT"
"""Environment variable: set where `spark-submit` started the JVM and then this process."""
_AT_START = ("spark.jars", "spark.driver.memory", "spark.driver.extra", "spark.driver.defaultJavaOptions")
"""What names of settings begin with that tell how to start a JVM."""
_NO_MASTER = "local[*]"
"""What PySpark takes where nothing is said."""
_EXECUTOR_OPTIONS = "spark.executor.extraJavaOptions"
_AVRO_LIMITS = ("string.maxLength", "bytes.maxLength", "collectionItems.maxLength")
_LEAST_AVRO_LIMIT = 16 * 1024 * 1024
_ROOTS = ("com", "java", "org", "py4j", "scala")
"""What names of packages begin with."""
_SHORT = ("Column", "PythonUtils", "SparkSession", "SparkSession$", "functions")
"""Classes that PySpark 3.5 asks for without their package."""
_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
_FILES = "org.apache.spark.sql.execution.datasources"
_DEAR = (
    # Compares both sides of each AND and OR, the events' whole conversion among them, to find conditions said twice.
    f"{_OPTIMIZER}.BooleanSimplification",
    # Compares the branches of each CASE in the same way; those whose condition is constant are few.
    f"{_OPTIMIZER}.SimplifyConditionals",
    # No query of the job has a scalar subquery.
    f"{_OPTIMIZER}.MergeScalarSubqueries",
)
_OF_FILES = (f"{_FILES}.SchemaPruning", f"{_FILES}.PruneFileSourcePartitions")
"""Look for Spark's own readers of files, which Iceberg's tables and Kafka are not read by."""


class _Package(JavaPackage):  # type: ignore[misc]
    """A Java package that is asked for each of its names once; what looks like a class and is none may be one later."""

    def __getattr__(self, name: str) -> Any:
        found = _remembering(super().__getattr__(name))
        if isinstance(found, JavaClass) or name[0].islower():
            setattr(self, name, found)
        return found


class _Class(JavaClass):  # type: ignore[misc]
    """A Java class that is asked for each of its static methods once."""

    def __getattr__(self, name: str) -> Any:
        found = _remembering(super().__getattr__(name))
        if isinstance(found, JavaMember | JavaClass):
            setattr(self, name, found)
        return found


def _remembering(found: Any) -> Any:
    match found:
        case JavaPackage():
            return _Package(found._fqn, found._gateway_client, found._jvm_id)
        case JavaClass():
            return _Class(found._fqn, found._gateway_client)
        case _:
            return found


class Session(Protocol):
    """What a session is started from: the configuration of a pipeline, or of a migrator."""

    @property
    def pipeline(self) -> Pipeline:
        """Whose session it is."""
        ...

    @property
    def target(self) -> Target:
        """What is written."""
        ...

    @property
    def spark(self) -> Spark:
        """Settings of the session itself."""
        ...

    @property
    def limits(self) -> Limits:
        """How large a record may be."""
        ...


def build_session(config: Session) -> SparkSession:
    """Start the session, or take the one `spark-submit` prepared, and set what the job relies on.

    Raises:
        SetupError: if Java or the connectors are missing.
    """
    java_home()
    settings = _settings(config, given=_submitted())
    _start_jvm(settings)
    builder = SparkSession.builder.appName(f"cdc_sync {config.pipeline.name}")
    if config.spark.master is not None:
        builder = builder.master(config.spark.master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    _silence_expected(spark)
    _limit_avro(spark, _avro_limits(config))
    for key, value in _REQUIRED.items():
        spark.conf.set(key, value)
    _check_connectors(spark, config.target)
    remember_names(spark._jvm)
    return spark


def _settings(config: Session, *, given: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration's settings, those the job relies on, and defaults where nothing is `given`."""
    master = config.spark.conf.get("spark.master") or config.spark.master or given.get("spark.master", _NO_MASTER)
    defaults = {key: value for key, value in (_defaults(config.target) | closed(master)).items() if key not in given}
    settings = defaults | format_settings(config.target) | _connectors(config) | dict(config.spark.conf)
    # Executors have JVMs of their own, whatever else they are started with.
    limits = " ".join(f"-D{name}={limit}" for name, limit in _avro_limits(config).items())
    started_with = settings.get(_EXECUTOR_OPTIONS, given.get(_EXECUTOR_OPTIONS, ""))
    return settings | {_EXECUTOR_OPTIONS: f"{started_with} {limits}".strip()}


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM with what it needs at its start alone: its command line is for everybody on the machine to read.

    All other settings, credentials among them, go through the gateway once it runs.
    """
    if _GATEWAY in os.environ:
        return
    at_start = SparkConf(loadDefaults=False)
    at_start.setAll([(key, value) for key, value in settings.items() if key.startswith(_AT_START)])
    SparkContext._ensure_initialized(conf=at_start)


def closed(master: str) -> dict[str, str]:
    """Return the settings that keep strangers off the ports that Spark listens on.

    Where Spark makes a secret by itself, whoever connects has to know it; a job in one process listens to itself only.
    Elsewhere a secret has to be given to all, which the operator does. Source: Spark, `SecurityManager.initializeAuth`.
    """
    if re.fullmatch(r"local(\[.*\])?", master):
        here = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        return {**here, "spark.authenticate": "true"}
    if master == "yarn" or master.startswith("k8s"):
        return {"spark.authenticate": "true"}
    return {}


def _avro_limits(config: Session) -> dict[str, int]:
    """Return how long strings and bytes, and how many items of lists and maps, Avro's reader makes room for at once.

    It believes what a record says of itself: a damaged one that claims a text of a gigabyte ends the whole process. No
    part of a record is longer than the record; headers of Iceberg's manifests are read with the same limits.
    Source: `SystemLimitException` of Avro 1.11.3 and later.
    """
    limit = max(config.limits.max_message_bytes, _LEAST_AVRO_LIMIT)
    return {f"org.apache.avro.limits.{name}": limit for name in _AVRO_LIMITS}


def _limit_avro(spark: SparkSession, limits: Mapping[str, int]) -> None:
    """Set Avro's limits in the driver's JVM, which may have read them before."""
    jvm: Any = spark._jvm
    for name, limit in limits.items():
        jvm.java.lang.System.setProperty(name, str(limit))
    gateway: Any = spark.sparkContext._gateway
    limited = jvm.java.lang.Class.forName("org.apache.avro.SystemLimitException")
    read_again = limited.getDeclaredMethod("resetLimits", gateway.new_array(jvm.java.lang.Class, 0))
    read_again.setAccessible(True)
    read_again.invoke(None, gateway.new_array(jvm.java.lang.Object, 0))


def _submitted() -> dict[str, str]:
    """Return the settings that `spark-submit` was given; there are none where it did not start this process."""
    if _GATEWAY not in os.environ:
        return {}
    SparkContext._ensure_initialized()  # before there is a JVM, a SparkConf is empty
    return dict(SparkConf().getAll())


def activate(spark: SparkSession) -> None:
    """Make the session the calling thread's; a thread without one sees Spark's defaults instead of its settings."""
    spark._jvm.org.apache.spark.sql.SparkSession.setActiveSession(spark._jsparkSession)  # type: ignore[union-attr]


# What the code's meaning depends on, whatever the session was started with.
_REQUIRED = {
    # A cast that fails gives NULL, which the job compares with its input: on Spark 4 it would raise instead.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    # Asked for members alone that a file is older than, readers give NULL for the struct around them, or lose elements.
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # Else `${env:…}` and `${system:…}` in the name of a source table or column is replaced where it meets SQL.
    "spark.sql.variable.substitute": "false",
}


def _defaults(target: Target) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # What its page would show Spark keeps without one too: 100 MB, after some hundreds of batches.
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "2g",
        # HotSpot never compiles methods of more than 8 KB; generated code for wide or fast-changing tables is larger.
        "spark.driver.extraJavaOptions": "-XX:-DontCompileHugeMethods",
        _EXECUTOR_OPTIONS: "-XX:-DontCompileHugeMethods",
        "spark.sql.adaptive.enabled": "false",
        # What Spark infers from many aliases grows exponentially: planning a table of all types took minutes.
        "spark.sql.constraintPropagation.enabled": "false",
        "spark.sql.optimizer.excludedRules": ",".join(rules_left_out(target)),
        "spark.sql.optimizer.enableCsvExpressionOptimization": "false",
        # Spark's list without Kafka, whose old source makes two copies of every record on its way.
        "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
        # Row structs of wide tables are part of plans; printing them costs more than the batch.
        "spark.sql.maxPlanStringLength": "2000",
        # Spark keeps 100 compiled classes: with some dozens of tables each batch would write and compile them all anew.
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.sql.streaming.numRecentProgressUpdates": "5",
        # Of each read Spark keeps what was fetched beyond it, for five minutes: hundreds of MB where batches are short.
        "spark.kafka.consumer.fetchedData.cache.timeout": "10s",
        "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "5s",
        # Where the checkpoint lies on a disk, Spark's choice runs `readlink` two dozen times for each batch.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
        ),
    }


def _silence_expected(spark: SparkSession) -> None:
    """Keep Spark from printing a stack trace for each record that stops a write: the job says what it found."""
    jvm: Any = spark._jvm
    off = jvm.org.apache.logging.log4j.Level.OFF
    for name in (
        "org.apache.spark.executor.Executor",
        "org.apache.spark.scheduler.TaskSetManager",
        "org.apache.spark.sql.execution.datasources.v2",
        "org.apache.spark.util.Utils",
    ):
        jvm.org.apache.logging.log4j.core.config.Configurator.setLevel(name, off)


def _connectors(config: Session) -> dict[str, str]:
    if _GATEWAY in os.environ:
        return {}  # spark-submit started the JVM, and what is on its class path was said there
    if config.spark.jars:
        return {"spark.jars": ",".join(config.spark.jars)}
    if config.spark.packages is not None:
        return {"spark.jars.packages": ",".join(config.spark.packages)} if config.spark.packages else {}
    packages = format_of(config.target.format).packages
    found = {}
    if pyspark.__version__ == LOCKED_PYSPARK:
        found["spark.jars"] = ",".join(str(path) for path in spark_jars(*jar_sets(config.target)))
    else:
        packages = (*coordinates(pyspark.__version__, jar_sets(config.target)), *packages)
    return {**found, "spark.jars.packages": ",".join(packages)} if packages else found


def _check_connectors(spark: SparkSession, target: Target) -> None:
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    needed = ["org.apache.spark.sql.kafka010.KafkaSourceProvider"]
    needed += [CLASSES[name] for name in jar_sets(target) if name in CLASSES]
    for name in needed:
        try:
            loader.loadClass(name)
        except Exception as error:
            raise SetupError(
                f"Cannot start: {name} is not on Spark's class path. Leave spark.packages unset to have the pinned "
                "connectors fetched, or list their jars under spark.jars; with spark-submit, give "
                f"--packages {','.join(coordinates(pyspark.__version__, jar_sets(target)))}"
            ) from error


def remember_names(jvm: Any) -> None:
    """Look names of Java's packages and classes, and of their static methods, up once.

    The gateway keeps none: each `F.col` asks the JVM anew what `functions` is, which tries it in every imported package
    and for each searches all jars of the class path in vain, and then what its `col` is. That was a fifth of the time
    of small batches; of what was left of building expressions, asking for methods was a third.
    """
    for name in (*_ROOTS, *_SHORT):
        setattr(jvm, name, _remembering(getattr(jvm, name)))


def rules_left_out(target: Target) -> tuple[str, ...]:
    """Return the classes of the rules, for `spark.sql.optimizer.excludedRules`."""
    return _DEAR + _OF_FILES if target.format == "iceberg" else _DEAR
