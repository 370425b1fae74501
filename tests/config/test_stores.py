"""Where tables lie decides which jars are needed."""

from __future__ import annotations

import pytest

from cdc_sync.config import Target, parse_config
from cdc_sync.errors import SetupError
from cdc_sync.spark.connectors import coordinates
from cdc_sync.spark.formats import CLASSES, catalog_settings, jar_sets

_S3 = "uri: 'jdbc:postgresql://db/lake', warehouse: 's3://lake/warehouse'"


def _target(text: str) -> Target:
    return parse_config(f"""
pipeline: {{name: p}}
kafka: {{bootstrap_servers: 'localhost:9092', topics: [t]}}
tables: [{{pattern: '.*'}}]
target: {text}
""").target


@pytest.mark.parametrize(
    ("target", "sets"),
    [
        ("{catalog: {warehouse: /w}}", ("iceberg",)),
        (f"{{catalog: {{{_S3}}}}}", ("iceberg", "s3")),
        (f"{{catalog: {{{_S3}, properties: {{io-impl: org.apache.iceberg.hadoop.HadoopFileIO}}}}}}", ("iceberg",)),
        (
            f"{{catalog: {{type: rest, uri: 'http://c', properties: {{io-impl: {CLASSES['s3']}}}}}}}",
            ("iceberg", "s3"),
        ),
        ("{format: delta, catalog: {warehouse: 's3://lake/warehouse'}}", ("delta",)),
    ],
)
def test_jars_are_those_of_the_format_and_of_the_store(target: str, sets: tuple[str, ...]) -> None:
    assert jar_sets(_target(target)) == sets


def test_iceberg_reads_and_writes_s3_by_its_own_classes_unless_told_otherwise() -> None:
    plain = catalog_settings(_target("{catalog: {warehouse: /w}}").catalog)
    stored = catalog_settings(_target(f"{{catalog: {{{_S3}}}}}").catalog)

    assert "spark.sql.catalog.lake.io-impl" not in plain
    assert stored["spark.sql.catalog.lake.io-impl"] == CLASSES["s3"]


def test_where_nothing_is_pinned_coordinates_say_the_same() -> None:
    found = coordinates("3.5.8", ("iceberg", "s3"))

    assert {name.split(":")[1] for name in found} == {
        "spark-sql-kafka-0-10_2.12",
        "spark-avro_2.12",
        "kafka-clients",
        "iceberg-spark-runtime-3.5_2.12",
        "sqlite-jdbc",
        "postgresql",
        "iceberg-aws-bundle",
    }


def test_a_format_without_connectors_for_a_line_of_spark_is_refused() -> None:
    assert coordinates("4.0.0", ("delta",))

    with pytest.raises(SetupError, match=r"Hudi has no bundle for PySpark 4\.0\.0\. Install PySpark 3\.5"):
        coordinates("4.0.0", ("hudi",))
