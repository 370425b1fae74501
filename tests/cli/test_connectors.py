"""Connectors that are dead or fail, in `cdc-sync status`: by Kafka Connect's own word, and by their heartbeats."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from cdc_sync.sources.connectors import connector_lines, heartbeat_line
from tests.cli.runner import CommandLine
from tests.cli.test_status_command import fill


def answer(*tasks: str, state: str = "RUNNING", trace: str = "") -> dict[str, Any]:
    found = [{"id": number, "state": task, "worker_id": "w", "trace": trace} for number, task in enumerate(tasks)]
    return {"status": {"name": "shop", "connector": {"state": state, "worker_id": "w"}, "tasks": found}}


@pytest.mark.parametrize(
    ("status", "well", "text"),
    [
        (answer("RUNNING"), True, "RUNNING"),
        (answer("RUNNING", "FAILED", trace="Boom: no slot\n\tat a.B"), False, "task 1 is FAILED: Boom: no slot"),
        (answer("RUNNING", state="PAUSED"), False, "it is PAUSED"),
        (answer("UNASSIGNED"), False, "task 0 is UNASSIGNED"),
        (answer(), False, "it has no task"),
    ],
)
def test_a_connector_is_well_if_it_and_all_its_tasks_run(status: dict[str, Any], *, well: bool, text: str) -> None:
    for names in (None, ("shop",)):
        (line,) = connector_lines({"shop": status}, names)
        assert (line.name, line.well, line.text) == ("shop", well, text)


def test_a_connector_that_is_not_there_is_said() -> None:
    assert [line.text for line in connector_lines({"a": answer("RUNNING")}, ("b", "a"))] == [
        "there is no such connector",
        "RUNNING",
    ]
    damaged: tuple[dict[str, Any], ...] = ({"a": {}}, {"a": 3}, {"a": {"status": {"connector": {}, "tasks": []}}})
    for wrong in damaged:
        with pytest.raises(ValueError, match="the answer is not understood"):
            connector_lines(wrong, None)


def test_a_heartbeat_is_well_for_some_time() -> None:
    def line(last: int | None) -> tuple[bool, str]:
        found = heartbeat_line("h", last, now=10_000.0, within=timedelta(minutes=5))
        return found.well, found.text

    assert line(9_700_000) == (True, "the last heartbeat came 0:05:00 ago")
    assert line(9_699_000) == (False, "the last heartbeat came 0:05:01 ago")
    assert line(10_001_000) == (True, "the last heartbeat came 0:00:00 ago"), "clocks differ"
    assert line(None)[0] is False


@contextmanager
def connect(answer: bytes) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers.get('Authorization')}")
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_status_asks_connect_and_reads_the_heartbeats(
    cdc_sync: CommandLine, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0})
    producer.produce("heartbeats", value=b"v", partition=0, timestamp=int(time.time() * 1000) - 3_600_000)
    producer.flush(5)
    broker = next(iter(producer.list_topics(timeout=5).brokers.values()))
    fill(config)
    with connect(json.dumps({"shop": answer("FAILED", trace="Boom")}).encode()) as (server, asked):
        monkeypatch.setenv("CONNECT_URL", f"http://me:secret@{server}/root/")
        section = "connector: {connect: {url: '${env:CONNECT_URL}'}, heartbeats: {topics: [heartbeats, nothing]}}\n"
        text = config.read_text().replace("127.0.0.1:9", f"{broker.host}:{broker.port}")
        config.write_text(f"{text}\n{section}")
        ran = cdc_sync("status", config, "--json")

    assert ran.exit_code == 0
    assert asked == ["/root/connectors?expand=status Basic bWU6c2VjcmV0"]
    sources = [(source["name"], source["well"], source["text"]) for source in ran.json["sources"]]
    assert sources[0] == ("shop", False, "task 0 is FAILED: Boom")
    assert sources[1][:2] == ("heartbeats", False)
    assert sources[1][2].startswith("the last heartbeat came 1:00:0")
    assert sources[2] == ("nothing", False, "no heartbeat is there; set heartbeat.interval.ms in the connector")


def test_a_connect_that_is_away_is_said_and_the_rest_is_shown(cdc_sync: CommandLine, config: Path) -> None:
    fill(config)
    config.write_text(config.read_text() + "\nconnector: {connect: {url: 'http://127.0.0.1:9'}}\n")
    ran = cdc_sync("status", config)
    assert ran.exit_code == 0
    (line,) = [line for line in ran.out.splitlines() if line.startswith("source ")]
    assert line.startswith("source 127.0.0.1:9 is not well: Kafka Connect does not answer: ")
