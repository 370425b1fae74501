"""Tests leave nothing behind, not even those that were killed; and say why where they cannot run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.containers import engine


@pytest.mark.docker
def test_what_a_killed_run_left_is_removed_and_what_is_in_use_is_not() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    theirs = {name: str(ended.pid) for name in engine.LABELS}
    client = engine.client()
    left = client.containers.create(engine.JOB, labels=theirs).id
    left_network = client.networks.create("left-by-a-test", labels=theirs).id
    used = client.containers.create(engine.JOB, labels=engine.LABELS)
    try:
        engine.sweep()

        containers = {container.id for container in client.containers.list(all=True, ignore_removed=True)}
        assert left not in containers
        assert used.id in containers
        assert left_network not in {network.id for network in client.networks.list()}
    finally:
        used.remove(v=True)


def test_without_an_engine_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")

    assert "no container engine answers" in str(engine.problem())


def test_where_tests_cannot_run_they_are_skipped_unless_they_must() -> None:
    with pytest.raises(pytest.skip.Exception, match="no engine"):
        engine.give_up("no engine", {})
    with pytest.raises(pytest.fail.Exception, match="CDC_SYNC_NEED_ENGINE is set, but no engine"):
        engine.give_up("no engine", {"CDC_SYNC_NEED_ENGINE": "1"})


@pytest.mark.parametrize(("environ", "outcome"), [({}, "skipped"), ({"CDC_SYNC_NEED_ENGINE": "1"}, "failed")])
def test_a_skip_for_any_reason_is_a_failure_where_tests_must_run(environ: dict[str, str], outcome: str) -> None:
    report = pytest.TestReport(
        "a test", ("a file", 7, "a test"), {}, "skipped", ("a file", 7, "Skipped: it is too hot"), "call"
    )

    judged = engine.judged(report, environ)

    assert judged.outcome == outcome
    assert "it is too hot" in str(judged.longrepr)
