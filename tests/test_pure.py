"""The pure core runs where there is no Spark, no Kafka client, no pydantic and no object store."""

from __future__ import annotations

import subprocess
import sys

PURE = (
    "cdc_sync.errors",
    "cdc_sync.events",
    "cdc_sync.schema",
    "cdc_sync.history.history",
    "cdc_sync.history.revision",
    "cdc_sync.migrate",
    "cdc_sync.debezium",
    "cdc_sync.naming",
    "cdc_sync.progress",
    "cdc_sync.plan",
    "cdc_sync.planversion",
    "cdc_sync.evidence",
    "cdc_sync.refused",
    "cdc_sync.replacednulls",
    "cdc_sync.typechanges",
    "cdc_sync.sighting",
    "cdc_sync.readings",
    "cdc_sync.limits",
    "cdc_sync.partitionfit",
    "cdc_sync.truncation",
    "cdc_sync.explain",
    "cdc_sync.rewritestate",
    "cdc_sync.resync",
    "cdc_sync.schemabook",
    "cdc_sync.testing",
    "cdc_sync.quote",
    "cdc_sync.spark.connectors",
    "cdc_sync.verify.columns",
    "cdc_sync.verify.compare",
    "cdc_sync.verify.dialect",
    "cdc_sync.verify.differences",
    "cdc_sync.verify.forms",
    "cdc_sync.verify.mysql_sql",
    "cdc_sync.verify.postgres_sql",
    "cdc_sync.verify.queries",
    "cdc_sync.verify.ranges",
    "cdc_sync.verify.report",
    "cdc_sync.verify.settle",
    "cdc_sync.verify.sides",
    "cdc_sync.verify.spark_sql",
    "cdc_sync.verify.text",
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
