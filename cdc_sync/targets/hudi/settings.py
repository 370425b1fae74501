"""What Hudi's write client is told, and what a reader of tables in the regime schema-on-read is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pyspark.sql import SparkSession

from cdc_sync.errors import TargetError
from cdc_sync.spark.formats import HUDI_SETTINGS
from cdc_sync.targets.hudi.schema import KEY

SETTINGS = {
    # Presto and Trino read no later table version.
    "hoodie.write.table.version": "6",
    "hoodie.write.auto.upgrade": "false",
    # Whoever begins a commit takes back what is unfinished, but not before nobody can complete it (`timeline`).
    "hoodie.clean.failed.writes.policy": "NEVER",
    # Files are found by listing one folder; the metadata table would cost a second commit each time.
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    # Nothing is looked for by an index: each record says where it lies. The filter would take 400 KB of every file.
    "hoodie.index.type": "SIMPLE",
    "hoodie.parquet.bloom.filter.enabled": "false",
    # A batch has one row for each key, and the newest commit wins.
    "hoodie.combine.before.upsert": "false",
    "hoodie.combine.before.insert": "false",
    "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    "hoodie.datasource.write.recordkey.field": KEY,
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    # The columns of a commit are those it is given: what changed was decided before.
    "hoodie.avro.schema.validate": "false",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    # What can be read again; the timeline keeps more than that, so that nothing readable is archived.
    "hoodie.clean.commits.retained": "50",
    "hoodie.clean.trigger.max.commits": "10",
    "hoodie.keep.min.commits": "70",
    "hoodie.keep.max.commits": "100",
}
TABLE_TYPE = "hoodie.datasource.write.table.type"
"""Hudi's own name of the choice between COPY_ON_WRITE, the default, and MERGE_ON_READ; made when a table is created."""
MERGE_ON_READ = {
    # Changes are logs beside the files; they are merged into them after so many commits, by the commit that is due.
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "10",
}
ON_READ: Mapping[str, str] = {"hoodie.schema.on.read.enable": "true"}
"""What writers and readers of a table whose columns have ids have to be told; a reader that is not finds columns by
their names, without an error. Source: Hudi's `HoodieCommonConfig.SCHEMA_EVOLUTION_ENABLED`."""
_KEY_GENERATOR = "hoodie.datasource.write.keygenerator.class"
Operation = Literal["upsert", "overwrite"]


def partition_settings(fields: Sequence[str]) -> Mapping[str, str]:
    """Return what the write client is told of a table that is divided by columns; nothing if there are none."""
    if not fields:
        return {}
    return {
        "hoodie.datasource.write.partitionpath.field": ",".join(fields),
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        _KEY_GENERATOR: key_generator(fields),
        # It concerns keys that the generator makes; ours are given. Source: `KeyGenUtils.
        # isComplexKeyGeneratorWithSingleRecordKeyField`.
        "hoodie.write.complex.keygen.validation.enable": "false",
    }


def key_generator(fields: Sequence[str]) -> str:
    """Return the class that a table divided by columns names: readers tell by it what its folders mean."""
    kind = {0: "Nonpartitioned", 1: "Simple"}.get(len(fields), "Complex")
    return f"org.apache.hudi.keygen.{kind}KeyGenerator"


def check_serializer(spark: SparkSession) -> None:
    """Refuse a session that would damage rows: what a JVM serializes with is said when it is started."""
    key, kryo = "spark.serializer", HUDI_SETTINGS["spark.serializer"]
    if spark.conf.get(key, None) != kryo:
        settings = " ".join(f"--conf {name}={HUDI_SETTINGS[name]}" for name in (key, "spark.kryo.registrator"))
        raise TargetError(f"Cannot write Hudi tables: Spark was started without {kryo}; give spark-submit {settings}")
