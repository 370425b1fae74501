"""What Python's side of the JVM gateway looks up by name."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass

_OFTEN = (
    "Column",
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
_WHOLE = ("functions", "PythonUtils")
"""Classes of static methods of which PySpark asks for many."""


class _Remembering(JavaClass):  # type: ignore[misc]
    """A Java class that is asked for each of its static methods once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        setattr(self, name, found)
        return found


def remember_names(jvm: Any) -> None:
    """Look names of Java classes, and of the methods expressions are built with, up once.

    The gateway keeps none: each `F.col` asks the JVM anew what `functions` is, which tries it in every imported package
    and for each searches all jars of the class path in vain, and then what its `col` is. That was a fifth of the time
    of small batches; of what was left of building expressions, asking for methods was a third.
    """
    for name in _WHOLE:
        found = getattr(jvm, name)
        setattr(jvm, name, _Remembering(found._fqn, found._gateway_client))
    for path in _OFTEN:
        place = jvm
        for name in path.split("."):
            found = getattr(place, name)
            setattr(place, name, found)
            place = found
