"""The pure core runs where there is no Spark, no Kafka client, no pydantic and no object store."""

from __future__ import annotations

import subprocess
import sys

PURE = (
    "cdc_sync.errors",
    "cdc_sync.core",
    *(f"cdc_sync.testing.{name}" for name in ("connect", "envelope", "postgres")),
    "cdc_sync.spark.connectors",
    *(
        f"cdc_sync.operations.verify.{name}"
        for name in (
            *("columns", "compare", "dialect", "differences", "forms", "mysql_sql", "postgres_sql", "queries"),
            *("ranges", "report", "settle", "sides", "spark_sql", "text"),
        )
    ),
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
    for item in pkgutil.walk_packages(getattr(module, "__path__", ()), name + "."):
        importlib.import_module(item.name)
        count += 1
print(count)
"""


def test_every_pure_module_can_be_imported_without_third_party_libraries() -> None:
    program = _PROGRAM.format(refused=REFUSED, pure=PURE)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100
