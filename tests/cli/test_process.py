"""The program as a process: how it is started, what it loads, how it stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdc_sync.cli.signals import exit_code, interruptible

_PACKAGE = Path(__file__).parents[2] / "cdc_sync"


def test_commands_that_only_look_start_no_jvm_and_load_no_pyspark(config: Path) -> None:
    program = f"""
import sys
from cdc_sync.cli.app import main
for command in (["validate", "--check"], ["status"], ["history"]):
    main([command[0], {str(config)!r}, *command[1:]])
main(["diff", {str(config)!r}, "orders", "1", "2"])
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("pyspark", "py4j")))
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_the_package_can_be_given_to_spark_submit_as_a_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, _PACKAGE / "__main__.py", "validate", "none.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "cdc-sync: none.yaml: Cannot read the file: No such file or directory\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_sets_the_stop_event_and_the_work_ends_itself(number: signal.Signals) -> None:
    former = signal.getsignal(number)

    def work(stop: threading.Event) -> str:
        os.kill(os.getpid(), number)
        assert stop.wait(5)
        return "done"

    assert interruptible(work) == "done"
    assert signal.getsignal(number) is former


@pytest.mark.parametrize("in_terminal", [False, True])
def test_sighup_is_for_the_configuration_unless_a_terminal_was_closed(
    monkeypatch: pytest.MonkeyPatch, in_terminal: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: in_terminal))
    now = threading.Event()

    def work(stop: threading.Event) -> tuple[bool, bool]:
        os.kill(os.getpid(), signal.SIGHUP)
        (stop if in_terminal else now).wait(5)
        return now.is_set(), stop.is_set()

    assert interruptible(work, hangup=now) == (not in_terminal, in_terminal)


def test_what_the_work_raises_is_raised_to_the_caller() -> None:
    def work(_: threading.Event) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        interruptible(work)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("then", "within"), [("time.sleep(1.1); os.kill(os.getpid(), number)", "60"), ("pass", "1")], ids=["again", "late"]
)
def test_a_second_signal_or_too_long_a_wait_leaves_at_once(number: signal.Signals, then: str, within: str) -> None:
    program = f"""
import os, signal, time
from cdc_sync.cli.signals import interruptible

number = signal.Signals({int(number)})

def work(stop):
    os.kill(os.getpid(), number)
    os.kill(os.getpid(), number)  # as a process and its group get it
    stop.wait(5)
    {then}
    time.sleep(30)

interruptible(work, within={within})
"""
    started = time.monotonic()

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)

    assert done.returncode == exit_code(number)
    assert time.monotonic() - started < 10
