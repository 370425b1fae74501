"""What Spark has to be told about the target's table format."""

from __future__ import annotations

from cdc_sync.config.formats import format_of
from cdc_sync.config.target import Catalog, Target

_EXTENSIONS = "spark.sql.extensions"
_SESSION_CATALOG = "spark.sql.catalog.spark_catalog"
CLASSES = {
    "iceberg": "org.apache.iceberg.spark.SparkCatalog",
    "delta": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "hudi": "org.apache.hudi.client.SparkRDDWriteClient",
    "s3": "org.apache.iceberg.aws.s3.S3FileIO",
}
"""A class that is on the class path if the jars of a format or store are."""
_FILE_IO = "io-impl"


def jar_sets(target: Target) -> tuple[str, ...]:
    """Return what a target needs jars for: its format, and the store that its files lie in."""
    if target.format == "iceberg" and _file_io(target.catalog) == CLASSES["s3"]:
        return target.format, "s3"
    return (target.format,)


def _file_io(catalog: Catalog) -> object:
    """Return the class that reads and writes files, None for Iceberg's own choice: Hadoop's, which here has no S3."""
    return catalog.properties.get(_FILE_IO, CLASSES["s3"] if catalog.warehouse.startswith("s3://") else None)


def format_settings(target: Target) -> dict[str, str]:
    """Return the Spark settings of the configured format; some count only when the JVM is started with them."""
    match target.format:
        case "iceberg":
            extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            return {_EXTENSIONS: extensions, **catalog_settings(target.catalog)}
        case "delta":
            return {
                _EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
                _SESSION_CATALOG: CLASSES["delta"],
                **DELTA_SETTINGS,
            }
        case "hudi":
            return HUDI_SETTINGS
        case "parquet":
            return PARQUET_SETTINGS
        case name:
            return dict(format_of(name).spark)


DELTA_SETTINGS = {
    # A commit that changes no row says how far the table has come all the same.
    "spark.databricks.delta.skipRecordingEmptyCommits": "false",
    # Columns change by migrations only, never because some rows have others.
    "spark.databricks.delta.schema.autoMerge.enabled": "false",
    # Delta's 50 partitions for a table's list of files are made for lists of millions.
    "spark.databricks.delta.snapshotPartitions": "2",
    # Dates are written as they are, those before 1582 too; nobody reads Delta tables with Spark 2.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    # Spark's own form of a moment, of 12 bytes, is read by few.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""What the Delta target relies on."""


PARQUET_SETTINGS = {
    # As for Delta, for the same reasons: files have to be read by others.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""What the Parquet target relies on."""


HUDI_CALENDAR = {
    # Hudi writes the proleptic Gregorian calendar and does not say so, as Spark would.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInWrite": "CORRECTED",
}
"""How dates before 1582 are read and written."""

HUDI_SETTINGS = {
    # With Java's serializer records of more than 1 KB lose their end on the way between tasks, without an error.
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    **HUDI_CALENDAR,
}
"""What the Hudi target relies on."""


def catalog_settings(catalog: Catalog) -> dict[str, str]:
    """Return the Spark settings of the configured Iceberg catalog."""
    prefix = f"spark.sql.catalog.{catalog.name}"
    settings = {
        prefix: CLASSES["iceberg"],
        f"{prefix}.type": catalog.type,
        f"{prefix}.warehouse": catalog.warehouse,
        # Tables change under the session (by this very job): every statement must see the newest metadata.
        f"{prefix}.cache-enabled": "false",
    }
    if catalog.service is not None:
        settings[f"{prefix}.uri"] = catalog.service
    if catalog.type == "jdbc":
        settings[f"{prefix}.jdbc.schema-version"] = "V1"
    if (file_io := _file_io(catalog)) is not None:
        settings[f"{prefix}.{_FILE_IO}"] = str(file_io)
    settings |= {f"{prefix}.{key}": value for key, value in catalog.properties.items()}
    return settings
