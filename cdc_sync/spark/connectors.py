"""The connector jars for the running PySpark: pinned here and nowhere else."""

from __future__ import annotations

from cdc_sync.errors import SetupError

# Spark line -> (Scala line, Iceberg runtime version). Spark's own connectors must equal the PySpark version exactly.
_LINES = {
    "3.5": ("2.12", "1.11.0"),
    "4.0": ("2.13", "1.11.0"),
}
LOCKED_PYSPARK = "3.5.7"
"""For this version every jar is pinned by checksum in `local/jars.lock`; other versions resolve coordinates."""
_SQLITE = "org.xerial:sqlite-jdbc:3.46.1.3"


def coordinates(pyspark_version: str) -> tuple[str, ...]:
    """Return the Maven coordinates of Kafka, Avro, Iceberg and the embedded catalog's driver.

    Raises:
        SetupError: for a Spark line without known connectors; `spark.packages` in the configuration overrides.
    """
    line = ".".join(pyspark_version.split(".")[:2])
    if line not in _LINES:
        known = ", ".join(sorted(_LINES))
        raise SetupError(
            f"Cannot choose connectors: PySpark {pyspark_version} is not of a known line ({known}). "
            "Install one of those, or set spark.packages or spark.jars in the configuration."
        )
    scala, iceberg = _LINES[line]
    return (
        f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{pyspark_version}",
        f"org.apache.spark:spark-avro_{scala}:{pyspark_version}",
        f"org.apache.iceberg:iceberg-spark-runtime-{line}_{scala}:{iceberg}",
        _SQLITE,
    )
