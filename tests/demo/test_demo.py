"""The demo, run as a user runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.kafka, pytest.mark.iceberg, pytest.mark.spark]

_MARK = "CDC_SYNC_DEMO_TEST"


class Demo:
    """A running `cdc-sync demo --json` whose processes can be told from all others by a variable they inherit."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._mark = f"{_MARK}={uuid.uuid4()}"
        self._progress = folder / "progress"
        name, value = self._mark.split("=")
        with self._progress.open("wb") as progress:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cdc_sync", "demo", "--json", *arguments],
                stdout=subprocess.PIPE,
                stderr=progress,
                env={**os.environ, name: value},
            )

    @property
    def progress(self) -> str:
        return self._progress.read_text()

    @property
    def folder(self) -> Path:
        match = re.search(r" in (\S+cdc-sync-demo-\S+)", self.progress)
        assert match, self.progress
        return Path(match[1])

    def wait_for(self, text: str, *, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.progress:
            assert self.process.poll() is None, self.progress
            assert time.monotonic() < deadline, self.progress
            time.sleep(0.1)

    def processes(self) -> list[str]:
        """The command lines of everything it started that still runs; empty where there is no /proc."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:  # ended meanwhile, or somebody else's
                continue
        return found


@pytest.fixture
def demo(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Demo]:
    running = Demo(tmp_path, *getattr(request, "param", ()))
    with running.process:
        try:
            yield running
        finally:
            if running.process.poll() is None:
                running.process.send_signal(signal.SIGTERM)
                running.process.wait(60)


@pytest.mark.parametrize(
    ("demo", "alters"),
    [((), 11), (("--source", "mariadb"), 10)],
    ids=["postgres", "mariadb"],
    indirect=["demo"],
)
def test_source_and_lake_are_equal_at_the_end_and_nothing_is_left_behind(demo: Demo, alters: int) -> None:
    out, _ = demo.process.communicate(timeout=500)
    assert demo.process.returncode == 0, demo.progress
    report = json.loads(out)
    assert report["equal"]
    assert report["job_exit_code"] == 0
    assert {table["source"]["name"] for table in report["tables"]} == {"inv.orders", "inv.products", "inv.shipments"}
    assert [table["differences"] for table in report["tables"]] == [[], [], []]
    assert len(report["alters"]) == alters
    assert any("rename column customer to buyer" in version["changes"] for version in report["history"])
    assert demo.processes() == []
    assert not demo.folder.exists()


def test_ctrl_c_ends_everything(demo: Demo) -> None:
    demo.wait_for("Kafka Connect runs")
    if Path("/proc").is_dir():
        assert len(demo.processes()) > 4
    demo.process.send_signal(signal.SIGINT)
    demo.process.communicate(timeout=90)
    assert demo.process.returncode == 130, demo.progress
    assert demo.processes() == []
    assert not demo.folder.exists()
