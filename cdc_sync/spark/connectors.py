"""The connector jars for the running PySpark: pinned here and nowhere else."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from cdc_sync.errors import SetupError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One line of Spark; its own connectors must equal the PySpark version exactly.

    Attributes:
        hudi: None where Hudi has no bundle for it.
    """

    scala: str
    iceberg: str
    delta: str
    hudi: str | None


_LINES = {
    "3.5": _Line(scala="2.12", iceberg="1.12.0", delta="3.3.3", hudi="1.2.0"),
    "4.0": _Line(scala="2.13", iceberg="1.11.0", delta="4.0.1", hudi=None),
}
LOCKED_PYSPARK = "3.5.7"
"""For this version every jar is pinned by checksum in `local/jars.lock`; other versions resolve coordinates."""
_KAFKA_CLIENTS = "org.apache.kafka:kafka-clients:3.9.2"
"""Newer than what Spark brings, whose versions have CVE-2025-27817 and CVE-2025-27818 (fixed in 3.9.1)."""
_JDBC = ("org.xerial:sqlite-jdbc:3.54.1.0", "org.postgresql:postgresql:42.7.14")
"""Drivers of the databases that Iceberg's catalog of type jdbc may lie in."""


def coordinates(pyspark_version: str, sets: Collection[str]) -> tuple[str, ...]:
    """Return the Maven coordinates of Kafka, Avro and what a table format and its store need (`formats.jar_sets`).

    Raises:
        SetupError: for a Spark line without known connectors, or without those of the format; `spark.packages` in the
            configuration overrides.
    """
    line = ".".join(pyspark_version.split(".")[:2])
    if line not in _LINES:
        known = ", ".join(sorted(_LINES))
        raise SetupError(
            f"Cannot choose connectors: PySpark {pyspark_version} is not of a known line ({known}). "
            "Install one of those, or set spark.packages or spark.jars in the configuration."
        )
    found = _LINES[line]
    spark = tuple(
        f"org.apache.spark:{name}_{found.scala}:{pyspark_version}" for name in ("spark-sql-kafka-0-10", "spark-avro")
    )
    runtime = f"org.apache.iceberg:iceberg-spark-runtime-{line}_{found.scala}:{found.iceberg}"
    if "hudi" in sets and found.hudi is None:
        raise SetupError(
            f"Cannot choose connectors: Hudi has no bundle for PySpark {pyspark_version}. "
            f"Install PySpark {LOCKED_PYSPARK}, or set spark.packages or spark.jars in the configuration."
        )
    needed = {
        "iceberg": (runtime, *_JDBC),
        "s3": (f"org.apache.iceberg:iceberg-aws-bundle:{found.iceberg}",),
        "delta": (f"io.delta:delta-spark_{found.scala}:{found.delta}",),
        "hudi": (f"org.apache.hudi:hudi-spark{line}-bundle_{found.scala}:{found.hudi}",),
    }
    return (*spark, _KAFKA_CLIENTS, *(jar for name in sets for jar in needed.get(name, ())))
