"""The session keeps strangers off: what it listens on, and what it takes names for."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from cdc_sync.spark.session import closed
from tests.processes import command_line, open_ports


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]"])
def test_a_job_in_one_process_listens_to_itself_alone(master: str) -> None:
    assert closed(master) == {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.authenticate": "true",
    }


def test_on_a_cluster_that_makes_a_secret_strangers_need_it() -> None:
    for master in ("yarn", "k8s://https://cluster:6443"):
        assert closed(master) == {"spark.authenticate": "true"}
    assert closed("spark://master:7077") == {}, "a secret has to be given to all by the operator"


def pid_of(session: SparkSession) -> int:
    return int(session._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


@pytest.mark.spark
def test_credentials_are_not_on_the_jvm_s_command_line_and_reach_spark_all_the_same(session: SparkSession) -> None:
    command = command_line(pid_of(session))
    assert "-Xmx1g" in command
    assert "planted-credential" not in command
    hadoop = session._jsparkSession.sparkContext().hadoopConfiguration()
    assert hadoop.get("fs.s3a.secret.key") == "planted-credential"


@pytest.mark.spark
def test_no_port_of_the_jvm_is_open_to_others(session: SparkSession) -> None:
    assert open_ports(pid_of(session)) == []
