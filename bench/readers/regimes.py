"""The kinds of table that are read: formats, and the ways of keeping them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cdc_sync.config import Config, parse_config

PREFIX = "readers"
TABLE = "items"
NAMESPACE = "public"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """One kind of table.

    Attributes:
        kind: what `cdc_sync.core.migration.readers` takes it for.
        target: the configuration's section; `{warehouse}` and `{metastore}` stand for where it lies.
        rule: what is said of the table besides.
        namespace: of the table: those of one metastore have one each.
    """

    name: str
    kind: str
    target: str
    rule: str = ""
    namespace: str = NAMESPACE


_MERGE_ON_READ = "hoodie.datasource.write.table.type: MERGE_ON_READ"
_ON_READ = "schema_evolution: on_read, readers: [spark]"
REGIMES = (
    Regime(name="iceberg", kind="iceberg", target="{{catalog: {{warehouse: '{warehouse}'}}}}"),
    Regime(
        name="iceberg partitioned",
        kind="iceberg",
        target="{{catalog: {{warehouse: '{warehouse}'}}}}",
        rule=", partition_by: ['bucket(3, id)', 'truncate(100, qty)']",
    ),
    Regime(name="delta", kind="delta", target="{{format: delta, catalog: {{warehouse: '{warehouse}'}}}}"),
    Regime(
        name="delta partitioned",
        kind="delta",
        target="{{format: delta, catalog: {{warehouse: '{warehouse}'}}}}",
        rule=", partition_by: ['bucket(3, id)', flag, 'truncate(1, a)', year(due)]",
    ),
    Regime(name="hudi", kind="hudi", target="{{format: hudi, catalog: {{warehouse: '{warehouse}'}}}}"),
    Regime(
        name="hudi partitioned",
        kind="hudi partitioned",
        target="{{format: hudi, catalog: {{warehouse: '{warehouse}'}}}}",
        rule=", partition_by: ['bucket(3, id)', 'truncate(100, qty)']",
    ),
    Regime(
        name="hudi merge-on-read",
        kind="hudi merge-on-read",
        target="{{format: hudi, catalog: {{warehouse: '{warehouse}'}}, table_properties: {{" + _MERGE_ON_READ + "}}}}",
    ),
    Regime(
        name="hudi on read",
        kind="hudi on read",
        target="{{format: hudi, catalog: {{warehouse: '{warehouse}'}}, " + _ON_READ + "}}",
    ),
    Regime(
        name="hudi on read merge-on-read",
        kind="hudi on read",
        target="{{format: hudi, catalog: {{warehouse: '{warehouse}'}}, "
        + _ON_READ
        + ", table_properties: {{"
        + _MERGE_ON_READ
        + "}}}}",
    ),
    Regime(
        name="parquet",
        kind="parquet",
        target="{{format: parquet, catalog: {{type: hive, uri: '{metastore}', warehouse: '{warehouse}'}}}}",
    ),
    Regime(
        name="parquet partitioned",
        kind="parquet",
        target="{{format: parquet, catalog: {{type: hive, uri: '{metastore}', warehouse: '{warehouse}'}}}}",
        rule=", partition_by: ['bucket(3, id)', 'truncate(100, qty)'], target: 'partitioned.{table}'",
        namespace="partitioned",
    ),
)


def regime(name: str) -> Regime:
    """Return the kind of table of this name."""
    return next(known for known in REGIMES if known.name == name)


def topic_prefix(kind: Regime) -> str:
    """Return the connector's prefix: each regime has topics of its own."""
    return f"{PREFIX}-{kind.name.replace(' ', '-')}"


def configuration(kind: Regime, folder: Path, servers: str, metastore: str) -> Config:
    """Return the pipeline that keeps the table in one regime; all its files lie in `folder`."""
    prefix = topic_prefix(kind)
    return parse_config(
        f"""
pipeline: {{name: readers, state: '{folder}/state'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: '{prefix}\\..*'}}
evidence: {{messages: [{prefix}.message], wait: 5s}}
tables: [{{pattern: '.*'{kind.rule}}}]
target: {kind.target.format(warehouse=folder / "warehouse", metastore=metastore)}
spark:
  master: 'local[2]'
  conf:
    spark.driver.memory: 1g
    spark.sql.shuffle.partitions: '1'
    spark.driver.extraJavaOptions: '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'
"""
    )
