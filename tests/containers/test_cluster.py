"""The job under spark-submit on a standalone cluster of Spark: a master and two workers, one of which is killed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from testcontainers.core.network import Network

from cdc_sync.demo.compare import TableImage
from tests.containers import engine
from tests.containers.job import CONFIGURATION, Job
from tests.containers.shop import JAVA, Shop, configuration, lake_image, lake_of

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

_MASTER = "spark://spark-master:7077"
_TABLE = "inv.bulk"
_ROWS = 9_000
_BATCHES = "job: {max_offsets_per_batch: 8000}"
_SUBMIT = f"""
exec spark-submit --master {_MASTER} --driver-memory 1g --total-executor-cores 2 \
  --executor-memory 640m --executor-cores 1 \
  --driver-java-options "{JAVA}" --conf "spark.executor.extraJavaOptions={JAVA}" \
  --jars "$(echo /opt/cdc_sync/connectors/*.jar | tr ' ' ,)" \
  "$(python -c 'import cdc_sync.__main__ as m; print(m.__file__)')" run {CONFIGURATION} --once
"""


class Cluster:
    """A master and two workers; what the job writes, the workers write."""

    def __init__(self, network: Network, warehouse: Path) -> None:
        self._master = self._daemon(
            network, "spark-master", "master.Master", "--host", "spark-master", "--port", "7077"
        )
        self.workers = [
            self._daemon(network, f"worker-{n}", "worker.Worker", _MASTER, "--cores", "1", "--memory", "1g")
            .with_env("SPARK_WORKER_DIR", "/tmp/work")
            .with_volume_mapping(str(warehouse), str(warehouse), "rw")
            for n in (1, 2)
        ]
        self._all = [self._master, *self.workers]

    def __enter__(self) -> Cluster:
        with ExitStack() as stack:
            for one in self._all:
                stack.callback(one.stop)
                one.start()
            assert engine.wait_for(lambda: len(self._registered()) == 2), self.log()
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        for one in reversed(self._all):
            one.stop()

    def _registered(self) -> set[str]:
        """Return the addresses of workers; one that lost its way registers again."""
        return set(re.findall(r"Registering worker (\S+)", self._said(self._master)))

    def kill_a_worker(self) -> None:
        """End a worker and the executor in it at once."""
        assert "Asked to launch executor" in self._said(self.workers[0])
        self.workers[0].get_wrapped_container().kill("SIGKILL")

    def log(self) -> str:
        """What all of it said."""
        return "\n".join(self._said(one)[-3000:] for one in self._all)

    def _said(self, one: Any) -> str:
        return str(one.get_wrapped_container().logs().decode())

    def _daemon(self, network: Network, alias: str, name: str, *arguments: str) -> Any:
        made = engine.container(engine.JOB, network, alias=alias, read_only=True)
        made = made.with_env("SPARK_DAEMON_MEMORY", "256m").with_env("SPARK_DAEMON_JAVA_OPTS", JAVA)
        return made.with_command(["spark-class", f"org.apache.spark.deploy.{name}", *arguments])


@pytest.fixture
def on_cluster(shop: Shop, tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path / "cluster", shop.network, _configuration(tmp_path / "cluster"))
    yield made
    made.remove()


def test_a_cluster_that_loses_a_worker_writes_what_local_mode_writes(shop: Shop, on_cluster: Job, job: Job) -> None:
    lake = lake_of(on_cluster.warehouse)
    with shop.source() as source:
        source.execute(
            [
                f"create table {_TABLE} (id int primary key, a text)",
                f"insert into {_TABLE} select n, 'row ' || n from generate_series(1, {_ROWS}) n",
            ]
        )
        source.execute([f"alter table {_TABLE} rename a to note", f"alter table {_TABLE} add column b int default 7"])
        source.execute(
            [f"update {_TABLE} set note = 'changed' where id % 3 = 0", f"delete from {_TABLE} where id % 5 = 0"]
        )
        shop.wait_equal(lake_of(job.warehouse), _TABLE, job.log)
        with Cluster(shop.network, on_cluster.warehouse) as cluster:
            on_cluster.start("-c", _SUBMIT, entrypoint=["tini", "--", "sh"])
            assert engine.wait_for(lambda: lake.table(_TABLE) is not None), on_cluster.log()[-4000:]
            first = lake.stamp()
            assert engine.wait_for(lambda: lake.stamp() != first), on_cluster.log()[-4000:]
            cluster.kill_a_worker()
            assert on_cluster.wait(timeout=400) == 0, on_cluster.log()[-4000:] + cluster.log()
        assert "Lost executor" in on_cluster.log()

        shop.wait_equal(lake, _TABLE, on_cluster.log, timeout=10)
    ours, theirs = (_image(job) for job in (on_cluster, job))
    assert ours.columns == theirs.columns
    assert sorted(ours.rows, key=repr) == sorted(theirs.rows, key=repr)


def _image(job: Job) -> TableImage:
    image = lake_image(lake_of(job.warehouse), _TABLE)
    assert image is not None
    return image


def _configuration(folder: Path) -> str:
    own = configuration(folder / "warehouse", name="bulk", more=_BATCHES)
    return own.replace("topic_pattern: 'shop\\.inv\\..*'", f"topics: [shop.{_TABLE}]")
