"""Statements whose commit carries properties, which Java runs by calling back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from cdc_sync.targets.common.java import java_map


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
