"""The lease of a job: taken before anything is written, renewed by a thread, looked at before each change."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from structlog import get_logger

from cdc_sync.core.model.lease import BEAT, FENCE, TERM, End, Lease, Process, Pulse, Watch, is_free, watched
from cdc_sync.core.model.times import utc
from cdc_sync.errors import CdcSyncError, LeaseHeld, LeaseLost, TransientError
from cdc_sync.storage.leases import Leases

_LOOK_SECONDS = 1.0
_SAID_EVERY = 5
"""Looks from one sign of who stands by to the next."""


class JobLease:
    """What makes this job the one that writes a pipeline's tables.

    Attributes:
        pulse: asked, at each renewal, what the job does.
        follows_a_kill: the job whose lease this one took over did not end: it was killed, or its machine was.
    """

    def __init__(self, leases: Leases, stop: threading.Event, *, process: Process, clock: Callable[[], float]) -> None:
        """Begin without a lease.

        Args:
            stop: set by whoever wants the job to end, and here when the lease is lost.
            process: this one.
            clock: in seconds; never goes back, and goes on while the process is stopped.
        """
        self.pulse: Callable[[], Pulse] = Pulse
        self.follows_a_kill = False
        self._leases = leases
        self._stop = stop
        self._process = process
        self._clock = clock
        self._job = uuid.uuid4().hex
        self._lease: Lease | None = None
        self._renewed = 0.0
        self._lost: str | None = None
        self._began = time.time()
        self._watch: Watch | None = None
        self._looks = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_over, name="lease", daemon=True)

    @property
    def is_taken(self) -> bool:
        """Whether this job ever took the lease."""
        return self._lease is not None

    @property
    def number(self) -> int:
        """Of the lease; 0 if it was never taken."""
        return 0 if self._lease is None else self._lease.number

    def take(self, *, wait: bool = False) -> bool:
        """Take the lease; false if the job was stopped while it waited.

        One whose holder ended, or whose process is gone, is taken at once; one that is not renewed, when it is over.

        Args:
            wait: also for a holder that lives.

        Raises:
            LeaseHeld: if the holder lives and is not to be waited for.
            TransientError: if the store does not answer, and the holder is not to be waited for.
        """
        try:
            while not self._stop.is_set():
                with self._patience(wait=wait):
                    if self.look(wait=wait):
                        return True
                self._stop.wait(_LOOK_SECONDS)
            return False
        finally:
            if wait and self._looks:
                with suppress(CdcSyncError):
                    self._leases.leave(self._new(0))

    def look(self, *, wait: bool = False) -> bool:
        """Look once whether the lease can be taken, and take it if so; as `take`."""
        seen, now = self._leases.newest(), self._clock()
        if seen is None:
            return self._make(0)
        self._watch = watch = watched(self._watch, seen, now)
        if is_free(seen, watch, now, gone=is_gone(seen.process, self._process)):
            self.follows_a_kill = seen.ended is None
            return self._make(seen.number)
        if watch.lives and not wait:
            raise _held(seen)
        if wait and self._looks % _SAID_EVERY == 0:
            self._leases.stand_by(replace(self._new(0), beats=self._looks))
        if self._looks == 0:
            event = "standing by" if wait else "another job may still run; it is watched for a while"
            get_logger().info(event, host=seen.process.host, pid=seen.process.pid)
        self._looks += 1
        return False

    @contextmanager
    def _patience(self, *, wait: bool) -> Iterator[None]:
        """Who stands by waits for the store, too."""
        try:
            yield
        except TransientError as error:
            if not wait or isinstance(error, LeaseHeld):
                raise
            get_logger().warning("the lease cannot be looked at", error=str(error))

    def _new(self, number: int) -> Lease:
        """Return what this job says of itself; of the lease, when it took it, and else, since when it waits for it."""
        started = time.time() if number else self._began
        return Lease(number=number, job=self._job, process=self._process, version=_version(), started=started)

    def _make(self, before: int) -> bool:
        lease, began = self._new(before + 1), self._clock()
        if not self._leases.make(lease):
            return False
        self._lease, self._renewed = lease, began
        self._thread.start()
        get_logger().info("lease taken", number=lease.number)
        return True

    def guard(self) -> None:
        """Return if this job may change something now.

        Raises:
            LeaseLost: if another job has taken its place.
            TransientError: if another one may have, for the lease could not be renewed; it is tried again.
        """
        self.check()
        silent = self._clock() - self._renewed
        if silent > FENCE:
            raise TransientError(
                f"Cannot change anything now: the pipeline's lease was not renewed for {silent:.0f} s, and after "
                f"{TERM:.0f} s another job may take this one's place"
            )

    def check(self) -> None:
        """Return if no other job has taken this one's place.

        Raises:
            LeaseLost: if one has.
        """
        if self._lost is not None:
            raise LeaseLost(self._lost)

    def renew(self) -> None:
        """Say once more that the job lives, unless another one has taken its place.

        Raises:
            TransientError: if the store does not answer.
        """
        lease = self._lease
        assert lease is not None
        began = self._clock()
        newest = self._leases.newest_number()
        if newest > lease.number:
            self._lost = (
                f"Cannot go on: another job has taken this one's place (lease {newest}, this one had {lease.number}); "
                "nothing more is written here"
            )
            self._stop.set()
            return
        self._lease = replace(lease, beats=lease.beats + 1, pulse=self.pulse())
        self._leases.renew(self._lease)
        self._renewed = began

    def give_back(self, end: End) -> None:
        """End the lease, so that the next job need not wait; nothing happens if it was never taken, or is lost."""
        self._over.set()
        if self._lease is None:
            return
        self._thread.join(BEAT)
        if self._lost is None and not self._thread.is_alive():
            with suppress(CdcSyncError):
                lease = replace(self._lease, beats=self._lease.beats + 1, pulse=self.pulse(), ended=end)
                self._leases.renew(lease)

    def _renew_until_over(self) -> None:
        told = False
        while not self._over.wait(BEAT) and self._lost is None:
            try:
                self.renew()
                told = False
            except TransientError as error:
                if not told:
                    get_logger().warning("the lease cannot be renewed", error=str(error))
                told = True
        if self._lost is not None:
            get_logger().error("lease lost", reason=self._lost)


def _version() -> str:
    try:
        return metadata.version("cdc-sync")
    except metadata.PackageNotFoundError:  # given to spark-submit as a file
        return "unknown"


def since_boot() -> float:
    """Return seconds that go on while the process, or on Linux the machine, is stopped."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def _held(lease: Lease) -> LeaseHeld:
    return LeaseHeld(
        f"Cannot run: another job writes the tables of this pipeline, on {lease.process.host} with pid "
        f"{lease.process.pid} since {utc(lease.started)}; stop it first, or run with --standby to take its place when "
        "it ends"
    )


def this_process() -> Process:
    """Return which process this is; on systems without `/proc` one that only renewals can prove to live."""
    pid = os.getpid()
    space = began = None
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        space = f"{boot} {os.readlink('/proc/self/ns/pid')}"
        began = _began(pid)
    return Process(host=socket.gethostname(), pid=pid, space=space, began=began)


def is_gone(process: Process, here: Process) -> bool:
    """Whether a process has certainly ended; of another machine nobody knows."""
    if process.space is None or process.began is None or process.space != here.space:
        return False
    return _began(process.pid) != process.began


def _began(pid: int) -> int | None:
    """Return when a process began, in ticks since the machine's start; None if there is none, or only its exit code.

    Source: proc(5), `/proc/<pid>/stat`: the third field is the state, the 22nd the start.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])
