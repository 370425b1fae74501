"""Reads one table with a Spark session of its own, which has read nothing before, and prints what it shows as JSON.

    TZ=UTC python -m bench.readers.spark REGIME FOLDER METASTORE

PySpark shows moments in the zone of its process.
"""

from __future__ import annotations

import json
import sys
from datetime import timezone
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from bench.readers.regimes import TABLE, Regime, configuration, regime
from bench.readers.values import Value, encode, encode_map
from cdc_sync.config import Config
from cdc_sync.local.jars import spark_jars
from cdc_sync.spark.formats import format_settings, jar_sets
from cdc_sync.targets.hudi.settings import ON_READ


def _session(config: Config, metastore: str) -> SparkSession:
    """Return a session as docs/ tells readers to set it up, and no more."""
    settings = {
        **format_settings(config.target),
        **config.spark.conf,
        "spark.jars": ",".join(map(str, spark_jars(*jar_sets(config.target)))),
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.hadoop.hive.metastore.uris": metastore,
    }
    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    if config.target.format == "parquet":
        builder = builder.enableHiveSupport()
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _table(config: Config, kind: Regime, session: SparkSession, place: str) -> DataFrame:
    match config.target.format:
        case "iceberg":
            return session.table(f"{config.target.catalog.name}.{kind.namespace}.{TABLE}")
        case "parquet":
            return session.table(f"{kind.namespace}.{TABLE}")
        case form:
            told = ON_READ if config.target.schema_evolution == "on_read" else {}
            frame = session.read.format(form).options(**told).load(place)
            return frame.select(*(name for name in frame.columns if not name.startswith("_hoodie_")))


def _value(type_: T.DataType, value: Any) -> Value:
    match value, type_:
        case None, _:
            return None
        case _, T.TimestampType():
            return encode(value.replace(tzinfo=timezone.utc))
        case _, T.MapType():
            return encode_map(list(value.items()))
        case _, T.StructType():
            return ["struct", {field.name: _value(field.dataType, value[field.name]) for field in type_.fields}]
    return encode(value)


def main() -> int:
    name, folder, metastore = sys.argv[1:]
    kind, place = regime(name), (Path(folder) / "place").read_text()
    config = configuration(kind, Path(folder), "none:9", metastore)
    frame = _table(config, kind, _session(config, metastore), place)
    fields = frame.schema.fields
    rows = [{field.name: _value(field.dataType, row[field.name]) for field in fields} for row in frame.collect()]
    print(json.dumps({"version": pyspark.__version__, "columns": frame.columns, "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
