"""Secrets and rows are searched for in everything that a job of its own process writes and shows while it runs."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdc_sync.local.kafka import KafkaServer
from cdc_sync.local.process import ServerProcess
from cdc_sync.testing import INT32, TEXT, Record, SourceTable, column
from tests.conftest import Produce
from tests.processes import command_line, family, open_ports

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_ROOT = Path(__file__).parents[2]
_PATIENCE = 90.0
_SECRETS = {"PLANTED_STORE": "planted-store-1", "PLANTED_KAFKA": "planted-kafka-2", "PLANTED_USER": "planted-user-3"}
_FILE = "planted-file-4"
_ROW, _SPOILT = "planted-row-5", "planted-spoilt-6"
_CONFIG = """
pipeline: {{name: planted, state: '{folder}/state'}}
kafka:
  bootstrap_servers: '{servers}'
  topic_pattern: 'searched\\..*'
  properties: {{sasl.password: '${{env:PLANTED_KAFKA}}', sasl.username: '${{env:PLANTED_USER}}'}}
tables: [{{pattern: '.*'}}]
target:
  catalog: {{warehouse: '{folder}/warehouse', properties: {{jdbc.password: '${{file:{folder}/secret/file}}'}}}}
job: {{trigger_interval: 200ms}}
dead_letters: {{payload: masked}}
spark:
  master: local[2]
  conf:
    spark.driver.memory: 1g
    spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
    spark.hadoop.fs.s3a.secret.key: ${{env:PLANTED_STORE}}
"""


def test_no_secret_is_anywhere_and_no_row_outside_its_table(
    kafka: KafkaServer, produce: Produce, tmp_path: Path
) -> None:
    table = SourceTable("orders", [column("id", INT32, optional=False), column("a", TEXT)], prefix="searched")
    table.insert(id=1, a=_ROW)
    (bad,) = table.insert(id=2, a=_SPOILT)
    spoilt = Record(key=bad.key, value=(bad.value or b"").replace(b'"id":2', b'"id":"x"'))
    produce(table.topic, [table.records[0], spoilt])
    for name in ("secret", "tmp", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "secret" / "file").write_text(_FILE)
    config = tmp_path / "conf.yaml"
    config.write_text(_CONFIG.format(folder=tmp_path, servers=kafka.bootstrap_servers))
    environment = {**_SECRETS, "TMPDIR": str(tmp_path / "tmp")}

    command = [sys.executable, "-m", "cdc_sync", "run", "--verbose", str(config)]
    log = tmp_path / "out" / "job.log"
    job = ServerProcess("the job", command, log=log, cwd=_ROOT, environment=environment)
    try:
        done = ("batch written", "records set aside")
        job.wait_until(lambda: all(text in log.read_text() for text in done), timeout=_PATIENCE)
        processes = family(job.pid)
        shown = [command_line(pid) for pid in processes]
        ports = [port for pid in processes for port in open_ports(pid)]
        open_folders = [
            path.name for path in (tmp_path / "tmp").iterdir() if path.is_dir() and path.stat().st_mode & 0o77
        ]
    finally:
        job.stop(timeout=_PATIENCE)
    commands = (["validate"], ["status"], ["dead-letters", "list"])
    for number, words in enumerate([*words, *more] for words in commands for more in ([], ["--json"])):
        command = [sys.executable, "-m", "cdc_sync", *words, str(config)]
        found = subprocess.run(command, cwd=_ROOT, env={**os.environ, **environment}, capture_output=True, check=True)
        (tmp_path / "out" / f"{number}").write_bytes(found.stdout + found.stderr)

    assert len(processes) > 1, "Python and the JVM"
    assert ports == []
    assert open_folders == []
    written = {
        path: path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file() and path != tmp_path / "secret" / "file"
    }
    assert len(written) > 20
    for secret in (*_SECRETS.values(), _FILE):
        assert [line for line in shown if secret in line] == []
        assert [str(path) for path, data in written.items() if _holds(data, secret)] == []
    holding = [path for path, data in written.items() if _holds(data, _ROW) or _holds(data, _SPOILT)]
    assert holding
    assert [path for path in holding if tmp_path / "warehouse" not in path.parents] == []
    assert (tmp_path / "state").stat().st_mode & 0o77 == 0


def _holds(data: bytes, text: str) -> bool:
    """Whether data has a text in it, as it is or as base64 wherever that begins."""
    forms = [text.encode()]
    for before in range(3):
        whole = base64.b64encode(b"x" * before + text.encode())
        forms.append(whole[4 if before else 0 : len(whole) - 4])
    return any(form in data for form in forms)
