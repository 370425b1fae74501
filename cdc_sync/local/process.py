"""Server processes that never outlive the program that started them.

They end on `stop`, on normal exit, on an exception, on Ctrl-C and on SIGTERM; on Linux also when the program is
killed with SIGKILL, through the kernel's parent-death signal.
"""

from __future__ import annotations

import atexit
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from cdc_sync.errors import SetupError

_LOG_TAIL = 2000
_POLL = 0.05


class ServerProcess:
    """One running server: its pid, its log file, its end.

    Args:
        name: what error messages call it.
        command: the command line; the process gets a session of its own, so the terminal's Ctrl-C does not reach it.
        log: file that receives stdout and stderr, appended.
        stop_signal: what makes this server end in good order.
        cwd: working folder.
        environment: variables set besides those of this program.
        user: (uid, gid) to run as, for root; None keeps the user.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        stop_signal: signal.Signals = signal.SIGTERM,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        user: tuple[int, int] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._stop_signal = stop_signal
        _end_on_sigterm()

        def spawn() -> subprocess.Popen[bytes]:
            with log.open("ab") as output:
                return subprocess.Popen(
                    [*_guard(stop_signal, user), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=cwd,
                    env={**os.environ, **(environment or {})},
                    start_new_session=True,
                )

        self._process = _SPAWNER.call(spawn)
        _RUNNING.append(self)

    @property
    def pid(self) -> int:
        """The process id; also the id of its session and group."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def wait_until(self, ready: Callable[[], bool], *, timeout: float) -> None:
        """Polls `ready` until it holds.

        Raises:
            SetupError: the process ended, or `timeout` seconds passed; with the end of the log.
        """
        deadline = time.monotonic() + timeout
        while not ready():
            if not self.running:
                code = self._process.returncode
                raise SetupError(f"Cannot start {self.name}: it ended with code {code}.\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise SetupError(f"Cannot start {self.name}: not ready after {timeout:g} s.\n{self.log_tail()}")
            time.sleep(_POLL)

    def log_tail(self) -> str:
        """The last lines it wrote."""
        text = self.log.read_text(errors="replace") if self.log.is_file() else ""
        return f"End of {self.log}:\n{text[-_LOG_TAIL:]}"

    def stop(self, *, timeout: float = 15.0) -> None:
        """Asks it to end, and kills it after `timeout` seconds; does nothing when it has ended."""
        if self.running:
            self._process.send_signal(self._stop_signal)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout)
        self.kill()

    def kill(self) -> None:
        """Ends it at once, as a power cut would."""
        if self.running:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
        with suppress(ValueError):
            _RUNNING.remove(self)


_RUNNING: list[ServerProcess] = []


@atexit.register
def stop_all() -> None:
    """Stops every server this program still runs, the last started first: it may need the earlier ones."""
    for server in reversed(tuple(_RUNNING)):
        server.stop()


class _Spawner:
    """One thread that starts every process and lives as long as the program.

    Linux sends the parent-death signal when the *thread* that started a process ends, so a server started by a
    short-lived worker thread would die with the worker.
    """

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], subprocess.Popen[bytes]], Future[subprocess.Popen[bytes]]]]
        self._calls = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def call(self, spawn: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():  # not alive: this program is a fork
                self._thread = threading.Thread(target=self._serve, name="server-spawner", daemon=True)
                self._thread.start()
        answer: Future[subprocess.Popen[bytes]] = Future()
        self._calls.put((spawn, answer))
        return answer.result()

    def _serve(self) -> None:
        while True:
            spawn, answer = self._calls.get()
            try:
                answer.set_result(spawn())
            except BaseException as error:
                answer.set_exception(error)


_SPAWNER = _Spawner()


def run_as(user: tuple[int, int] | None) -> tuple[str, ...]:
    """The command prefix that runs a command as (uid, gid), without supplementary groups."""
    return ("setpriv", f"--reuid={user[0]}", f"--regid={user[1]}", "--clear-groups") if user else ()


def _guard(stop_signal: signal.Signals, user: tuple[int, int] | None) -> tuple[str, ...]:
    """The command prefix that ties a process to this program's life and gives it its user.

    `setpriv` rather than a function run between fork and exec: the kernel forgets the parent-death signal when the
    user changes, and Python warns of such functions in programs with threads.
    """
    if not _knows_parent_death():
        return run_as(user)
    # A server that stops in good order on SIGTERM may wait for others that are gone too; only databases get time.
    last = stop_signal.name if stop_signal is not signal.SIGTERM else "KILL"
    return (*(run_as(user) or ("setpriv",)), "--pdeathsig", last.removeprefix("SIG"), "--")


@lru_cache(maxsize=1)
def _knows_parent_death() -> bool:
    if not sys.platform.startswith("linux") or not shutil.which("setpriv"):
        return False
    answer = subprocess.run(["setpriv", "--help"], capture_output=True, text=True, check=False)
    return "--pdeathsig" in answer.stdout


def _end_on_sigterm() -> None:
    """Turns SIGTERM into a normal exit, so that servers stop and folders go; never replaces somebody's handler."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
