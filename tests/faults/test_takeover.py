"""Several jobs on one pipeline, each a process of its own: one writes, and another takes its place when it is gone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cdc_sync.testing import INT32, TEXT, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal, files
from tests.targets.hive import AS_ADVISED, start_metastore

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

_PATIENCE = 180.0
_FORMATS = [pytest.param(it, marks=getattr(pytest.mark, it)) for it in ("iceberg", "delta", "hudi", "parquet")]


class Job:
    """One process of `cdc-sync run`, and what it said."""

    def __init__(self, lake: Pipeline, name: str, *arguments: str) -> None:
        configuration = lake.folder / "pipeline.yaml"
        configuration.write_text(lake.text, encoding="utf-8")
        self._log = lake.folder / f"{name}.log"
        command = [sys.executable, "-m", "cdc_sync", "run", str(configuration), *arguments]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self.pid = self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    def says(self, text: str) -> None:
        """Return when it said so."""
        deadline = time.monotonic() + _PATIENCE
        while text not in self.log:
            assert self._process.poll() is None, self.log[-3000:]
            assert time.monotonic() < deadline, self.log[-3000:]
            time.sleep(0.1)

    def signal(self, number: signal.Signals) -> None:
        """Give a signal to the process and its JVM, or to nobody if they have ended."""
        if self._process.poll() is None:
            os.killpg(self.pid, number)

    def ends(self) -> int:
        """Return its exit code, once it has ended by itself."""
        return self._process.wait(_PATIENCE)

    def stop(self) -> int:
        self._process.terminate()
        return self.ends()


@contextmanager
def jobs(lake: Pipeline, *arguments: tuple[str, ...]) -> Iterator[list[Job]]:
    """Start one job after the other; none of them is left at the end."""
    with ExitStack() as left:
        found = []
        for number, words in enumerate(arguments):
            job = Job(lake, f"job{number}", *words)
            left.callback(job.signal, signal.SIGKILL)
            job.says("lease taken" if not words else "standing by")
            found.append(job)
        yield found


def orders(prefix: str) -> SourceTable:
    columns = [column("id", INT32, optional=False), column("note", TEXT)]
    return SourceTable("orders", columns, prefix=prefix, null_is_default=False)


def wait_until_read(lake: Pipeline, source: SourceTable) -> None:
    deadline, end = time.monotonic() + _PATIENCE, len(source.records)
    while (found := lake.statuses().get("orders")) is None or found.offsets.get(source.topic) != {0: end}:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def status(lake: Pipeline) -> list[str]:
    command = [sys.executable, "-m", "cdc_sync", "status", str(lake.folder / "pipeline.yaml")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.iceberg
def test_of_three_jobs_one_writes_one_is_refused_and_one_goes_on_when_the_first_is_killed(
    pipeline: NewPipeline, produce: Produce
) -> None:
    source, lake = orders("three"), pipeline("three", settings="job: {trigger_interval: 200ms}")
    produce(source.topic, source.insert(id=1, note="first"))
    with jobs(lake, (), ("--standby",)) as (first, standby):
        wait_until_read(lake, source)

        third = Job(lake, "third")

        assert third.ends() == 4
        assert (
            f"another job writes the tables of this pipeline, on {os.uname().nodename} with pid {first.pid}"
            in third.log
        )
        told = status(lake)
        assert re.match(rf"job: running on .* \(pid {first.pid}\) since .*Z, \d+ batch.*, heard of \d s ago$", told[0])
        assert re.match(rf"standby: .* \(pid {standby.pid}\) since", told[1])

        produce(source.topic, source.insert(id=2, note="while it is killed"))
        first.signal(signal.SIGKILL)
        killed = time.monotonic()
        wait_until_read(lake, source)

        assert time.monotonic() - killed < 45
        assert_equal(lake, source)
        assert re.match(rf"job: running on .* \(pid {standby.pid}\)", status(lake)[0])
        assert standby.stop() == 0
        assert re.match(r"job: stopped at .*Z on .* after \d+ batch", status(lake)[0])


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Callable[[Pipeline], Pipeline]]:
    """Gives a pipeline a catalog that several jobs can use: an embedded metastore serves one process."""
    with ExitStack() as left:

        def share(lake: Pipeline) -> Pipeline:
            if lake.format != "parquet":
                return lake
            (folder := tmp_path / "metastore").mkdir()
            server, uri = start_metastore(folder, AS_ADVISED)
            left.callback(server.kill)
            return replace(lake, uri=uri)

        yield share


@pytest.mark.parametrize("format", _FORMATS)
def test_a_job_that_was_frozen_while_another_one_took_its_place_writes_nothing(
    pipeline: NewPipeline, produce: Produce, shared: Callable[[Pipeline], Pipeline], format: str
) -> None:
    prefix = f"frozen_{format}"
    source = orders(prefix)
    lake = shared(pipeline(prefix, format=format, settings="job: {trigger_interval: 200ms}"))
    produce(source.topic, source.insert(id=1, note="first"))
    with jobs(lake, (), ("--standby",)) as (first, standby):
        wait_until_read(lake, source)
        first.signal(signal.SIGSTOP)
        frozen = time.monotonic()
        source.add_column(column("more", TEXT))
        produce(
            source.topic,
            [*source.insert(id=2, note="while it is frozen", more="x"), *source.update({"id": 1}, note="u")],
        )
        wait_until_read(lake, source)
        time.sleep(max(0.0, 60 - (time.monotonic() - frozen)))
        lies = files(Path(lake.config.target.catalog.warehouse))

        first.signal(signal.SIGCONT)

        assert first.ends() == 4
        assert "another job has taken this one's place (lease 2, this one had 1)" in first.log
        assert files(Path(lake.config.target.catalog.warehouse)) == lies
        produce(source.topic, source.insert(id=3, note="behind it", more="y"))
        wait_until_read(lake, source)
        assert standby.stop() == 0
    assert lake.run().batches >= 0  # with a session for who reads by it
    assert_equal(lake, source)
