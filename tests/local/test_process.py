"""Server processes end with the program that started them, whichever way it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdc_sync.errors import SetupError
from cdc_sync.local.ports import accepts_connections, free_ports
from cdc_sync.local.process import ServerProcess

SLEEP = ["sleep", "60"]
DEAF = [
    sys.executable,
    "-S",
    "-c",
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)",
]

PARENT = """
import sys, time
from pathlib import Path
from cdc_sync.local.process import ServerProcess
server = ServerProcess("sleeper", ["sleep", "60"], log=Path(sys.argv[1]))
name = Path(f"/proc/{{server.pid}}/comm")
while name.exists() and name.read_text().strip() != "sleep":
    time.sleep(0.01)  # the kernel is asked to end it with its parent before its own program begins
print(server.pid, flush=True)
{then}
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[list[str]], ServerProcess]]:
    started: list[ServerProcess] = []

    def start_one(command: list[str]) -> ServerProcess:
        started.append(ServerProcess("sleeper", command, log=tmp_path / "log"))
        return started[-1]

    yield start_one
    for server in started:
        server.kill()


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process whose parent is gone may stay a zombie where nobody reaps.
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.is_file() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def ends_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while exists(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def run_parent(then: str, log: Path) -> tuple[subprocess.Popen[str], int]:
    """Starts a program that starts a server and then does `then`; returns it and the server's pid."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(then=then), str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.stdout.close()
    return parent, pid


def test_a_stopped_process_is_gone(start: Callable[[list[str]], ServerProcess]) -> None:
    server = start(SLEEP)
    assert server.running

    server.stop()

    assert not server.running
    assert not exists(server.pid)


def test_stopping_twice_does_nothing(start: Callable[[list[str]], ServerProcess]) -> None:
    server = start(SLEEP)

    server.stop()
    server.stop()


def test_a_process_deaf_to_sigterm_is_killed(start: Callable[[list[str]], ServerProcess]) -> None:
    server = start(DEAF)
    server.wait_until(lambda: "deaf" in server.log_tail(), timeout=10)

    server.stop(timeout=0.1)

    assert not exists(server.pid)


def test_it_runs_in_a_session_of_its_own(start: Callable[[list[str]], ServerProcess]) -> None:
    server = start(SLEEP)

    assert os.getsid(server.pid) == server.pid


def test_an_end_during_start_is_told_with_the_log(start: Callable[[list[str]], ServerProcess]) -> None:
    server = start(["sh", "-c", "echo out of luck; exit 7"])

    with pytest.raises(SetupError, match=r"(?s)Cannot start sleeper: it ended with code 7.*out of luck"):
        server.wait_until(lambda: False, timeout=10)


def test_a_start_that_takes_too_long_is_told(start: Callable[[list[str]], ServerProcess]) -> None:
    server = start(SLEEP)

    with pytest.raises(SetupError, match=r"Cannot start sleeper: not ready after 0\.1 s"):
        server.wait_until(lambda: False, timeout=0.1)


@pytest.mark.parametrize("then", ["", "raise ValueError", "sys.exit(3)"])
def test_it_ends_when_its_program_ends(then: str, tmp_path: Path) -> None:
    parent, server = run_parent(then, tmp_path / "log")

    parent.wait(10)

    assert ends_within(server, 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_its_program_is_interrupted(number: signal.Signals, tmp_path: Path) -> None:
    parent, server = run_parent("time.sleep(60)", tmp_path / "log")

    parent.send_signal(number)
    parent.wait(10)

    assert ends_within(server, 1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the parent-death signal is Linux's")
def test_it_ends_when_its_program_is_killed(tmp_path: Path) -> None:
    parent, server = run_parent("time.sleep(60)", tmp_path / "log")

    parent.kill()
    parent.wait(10)

    assert ends_within(server, 30)


def test_it_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    then = """
import threading
def start():
    global other
    other = ServerProcess("other", ["sleep", "60"], log=Path(sys.argv[1]))
thread = threading.Thread(target=start)
thread.start()
thread.join()
time.sleep(0.2)
sys.exit(0 if other.running else 1)
"""
    parent, _ = run_parent(then, tmp_path / "log")

    assert parent.wait(10) == 0


def test_free_ports_are_different_and_nobody_listens() -> None:
    ports = free_ports(5)

    assert len(set(ports)) == 5
    assert not any(accepts_connections(port) for port in ports)
