"""The pure core runs where there is no Spark, no Kafka client, no pydantic and no object store."""

from __future__ import annotations

import subprocess
import sys

PURE = (
    "cdc_sync.errors",
    "cdc_sync.core.model.positions",
    "cdc_sync.core.schema",
    "cdc_sync.core.history.history",
    "cdc_sync.core.history.revision",
    "cdc_sync.core.migration",
    "cdc_sync.core.debezium",
    "cdc_sync.core.migration.routes",
    "cdc_sync.core.model.progress",
    "cdc_sync.core.planning.plan",
    "cdc_sync.core.planning.next_version",
    "cdc_sync.core.lineage",
    "cdc_sync.core.planning.refusals",
    "cdc_sync.core.planning.replaced_nulls",
    "cdc_sync.core.planning.type_changes",
    "cdc_sync.core.planning.observation",
    "cdc_sync.core.planning.column_mappings",
    "cdc_sync.core.planning.limits",
    "cdc_sync.core.planning.partition_fit",
    "cdc_sync.core.planning.truncation",
    "cdc_sync.core.planning.explain",
    "cdc_sync.core.migration.operator_requests",
    "cdc_sync.core.planning.resync",
    "cdc_sync.core.debezium.schema_book",
    *(f"cdc_sync.testing.{name}" for name in ("connect", "envelope", "history", "postgres")),
    "cdc_sync.core.schema.identifiers",
    "cdc_sync.spark.connectors",
    "cdc_sync.operations.verify.columns",
    "cdc_sync.operations.verify.compare",
    "cdc_sync.operations.verify.dialect",
    "cdc_sync.operations.verify.differences",
    "cdc_sync.operations.verify.forms",
    "cdc_sync.operations.verify.mysql_sql",
    "cdc_sync.operations.verify.postgres_sql",
    "cdc_sync.operations.verify.queries",
    "cdc_sync.operations.verify.ranges",
    "cdc_sync.operations.verify.report",
    "cdc_sync.operations.verify.settle",
    "cdc_sync.operations.verify.sides",
    "cdc_sync.operations.verify.spark_sql",
    "cdc_sync.operations.verify.text",
)
REFUSED = ("pyspark", "py4j", "confluent_kafka", "pydantic", "obstore", "fastavro", "yaml", "structlog")

_PROGRAM = """
import importlib, pkgutil, sys

class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {refused!r}:
            raise ImportError("not to be imported here: " + name)

sys.meta_path.insert(0, Refuses())
count = 0
for name in {pure!r}:
    module = importlib.import_module(name)
    for item in pkgutil.iter_modules(getattr(module, "__path__", ()), name + "."):
        importlib.import_module(item.name)
        count += 1
print(count)
"""


def test_every_pure_module_can_be_imported_without_third_party_libraries() -> None:
    program = _PROGRAM.format(refused=REFUSED, pure=PURE)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 25
