"""The job is an ordinary Spark application."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from cdc_sync.local.jars import spark_jars
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_PROGRAM = Path(__file__).parents[2] / "cdc_sync" / "__main__.py"


def test_it_runs_under_spark_submit_with_the_settings_given_there(
    pipeline: NewPipeline, produce: Produce, kafka: KafkaServer, tmp_path: Path
) -> None:
    columns = [column("id", INT32, optional=False), column("a", TEXT)]
    source = SourceTable("orders", columns, prefix="submitted", null_is_default=False)
    source.insert(id=1, a="before")
    source.add_column(column("b", INT32))
    source.insert(id=2, a="after", b=5)
    produce(source.topic, source.records)
    lake = pipeline("submitted")
    configuration = tmp_path / "submitted.yaml"
    configuration.write_text(lake.text, encoding="utf-8")
    command = [str(Path(pyspark.__path__[0]) / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--jars", ",".join(str(path) for path in spark_jars("iceberg"))]
    events = tmp_path / "events"
    events.mkdir()
    for setting in ("spark.eventLog.enabled=true", f"spark.eventLog.dir={events}", "spark.sql.shuffle.partitions=3"):
        command += ["--conf", setting]

    ended = subprocess.run(
        [*command, str(_PROGRAM), "run", str(configuration), "--once"],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr[-3000:]
    assert_equal(lake, source)
    (log,) = events.glob("local-*")
    assert '"spark.sql.shuffle.partitions":"3"' in log.read_text()
