"""What Python's side of the JVM gateway looks up by name."""

from __future__ import annotations

from typing import Any

_OFTEN = (
    "functions",
    "Column",
    "PythonUtils",
    "SparkSession",
    "SparkSession$",
    "java.lang.String",
    "org.apache.iceberg.catalog.TableIdentifier",
    "org.apache.spark.sql.SparkSession",
    "org.apache.spark.sql.avro.functions",
    "org.apache.spark.sql.catalyst.expressions.ArrayTransform",
    "org.apache.spark.sql.catalyst.expressions.LambdaFunction",
    "org.apache.spark.sql.catalyst.expressions.UnresolvedNamedLambdaVariable",
    "py4j.reflection.TypeUtil",
)
"""Names that PySpark 3.5 and the job ask for while they build expressions."""


def remember_names(jvm: Any) -> None:
    """Look names of Java classes up once.

    The gateway keeps none: each `F.col` asks the JVM anew what `functions` is, which tries it in every imported package
    and for each searches all jars of the class path in vain. That was a fifth of the time of small batches.
    """
    for path in _OFTEN:
        place = jvm
        for name in path.split("."):
            found = getattr(place, name)
            setattr(place, name, found)
            place = found
