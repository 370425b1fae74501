"""One job per pipeline: who has the lease, who may take it, and who has lost it. Without a JVM, on a folder."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.core.model.lease import BEAT, FENCE, TERM, Lease, Process, Pulse, is_free, state_of, watched
from cdc_sync.core.model.times import utc
from cdc_sync.errors import HistoryError, LeaseHeld, LeaseLost, TransientError
from cdc_sync.runtime.lease import JobLease, is_gone, since_boot, this_process
from cdc_sync.storage.leases import Leases

T = TypeVar("T")

ELSEWHERE = Process(host="other", pid=7)
SEEN = Lease(number=4, job="j", process=ELSEWHERE, version="1", started=0.0)


class Clock(threading.Event):
    """What a job waits on, and its clock: waiting takes no time but on this clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.meanwhile: Callable[[], None] = lambda: None

    def wait(self, timeout: float | None = None) -> bool:
        self.now += timeout or 0.0
        self.meanwhile()
        return self.is_set()

    def __call__(self) -> float:
        return self.now


class Away(Leases):
    """Leases of a store that may be away, or lose its replies."""

    is_away = False
    loses_reply = False

    def newest(self) -> Lease | None:
        return self._asked(super().newest)

    def newest_number(self) -> int:
        return self._asked(super().newest_number)

    def renew(self, lease: Lease) -> None:
        self._asked(lambda: super(Away, self).renew(lease))

    def make(self, lease: Lease) -> bool:
        made = self._asked(lambda: super(Away, self).make(lease))
        if self.loses_reply:
            raise TransientError("no reply")
        return made

    def _asked(self, ask: Callable[[], T]) -> T:
        if self.is_away:
            raise TransientError("the store is away")
        return ask()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def leases(tmp_path: Path) -> Away:
    return Away(str(tmp_path / "state"), create=True)


@pytest.fixture
def job(leases: Away, clock: Clock) -> Iterator[JobLease]:
    made = JobLease(leases, clock, process=ELSEWHERE, clock=clock)
    yield made
    made.give_back("stopped")


def other(leases: Leases, clock: Clock, **process: object) -> JobLease:
    return JobLease(leases, clock, process=replace(ELSEWHERE, pid=8, **process), clock=clock)  # type: ignore[arg-type]


# What is decided.


def test_a_lease_is_free_when_it_was_given_back_or_its_process_is_gone_or_its_term_is_over() -> None:
    watch = watched(None, SEEN, 10.0)

    assert not is_free(SEEN, watch, 10.0 + TERM, gone=False)
    assert is_free(SEEN, watch, 10.0 + TERM + 0.1, gone=False)
    assert is_free(SEEN, watch, 10.0, gone=True)
    assert is_free(replace(SEEN, ended="failed"), watch, 10.0, gone=False)


def test_a_term_begins_anew_with_each_renewal_and_each_lease() -> None:
    first = watched(None, SEEN, 10.0)

    assert watched(first, SEEN, 20.0) == first
    renewed = watched(first, replace(SEEN, beats=1), 20.0)
    assert (renewed.since, renewed.lives) == (20.0, True)
    taken = watched(renewed, replace(SEEN, number=5, beats=1), 30.0)
    assert (taken.number, taken.since, taken.lives) == (5, 30.0, False)


def test_the_holder_stops_before_another_job_begins() -> None:
    assert BEAT * 3 < FENCE < TERM


@pytest.mark.parametrize(
    ("ended", "age", "gone", "state"),
    [
        (None, 3.0, False, "running"),
        (None, TERM + 1, False, "dead"),
        (None, 3.0, True, "dead"),
        ("stopped", 1e6, True, "stopped"),
        ("failed", 1e6, False, "failed"),
    ],
)
def test_who_looks_once_sees_how_a_job_is(ended: str | None, age: float, gone: bool, state: str) -> None:
    assert state_of(replace(SEEN, ended=ended), age, gone=gone) == state  # type: ignore[arg-type]


def test_moments_are_said_in_utc() -> None:
    assert utc(1_790_000_000.7) == "2026-09-21T14:13:20Z"


# A job and its lease.


def test_the_first_job_takes_number_one_and_the_next_one_the_next(leases: Away, clock: Clock, job: JobLease) -> None:
    assert job.take()
    job.guard()
    job.give_back("failed")
    assert (found := leases.newest()) is not None
    assert (found.number, found.ended, found.process) == (1, "failed", ELSEWHERE)

    second = other(leases, clock)
    assert second.take()
    assert leases.newest_number() == 2
    assert not second.follows_a_kill
    second.give_back("stopped")


def test_while_a_job_lives_another_one_is_refused_with_who_it_is(leases: Away, clock: Clock, job: JobLease) -> None:
    job.take()
    clock.meanwhile = job.renew

    with pytest.raises(LeaseHeld, match=r"on other with pid 7 since .*; stop it first, or run with --standby") as found:
        other(leases, clock).take()

    assert found.value.exit_code == 4
    job.guard()
    assert leases.newest_number() == 1


def test_a_job_that_is_not_heard_of_is_replaced_when_its_term_is_over(
    leases: Away, clock: Clock, job: JobLease
) -> None:
    job.take()
    began = clock.now
    second = other(leases, clock)

    assert second.take()

    assert TERM < clock.now - began < TERM + 3
    assert second.follows_a_kill
    with pytest.raises(TransientError, match=r"not renewed for 3\d s"):
        job.guard()
    job.renew()
    with pytest.raises(LeaseLost, match="lease 2, this one had 1"):
        job.guard()
    assert clock.is_set()  # the job ends
    second.guard()
    job.give_back("failed")
    assert (found := leases.newest()) is not None
    assert (found.number, found.ended) == (2, None)
    second.give_back("stopped")


def test_who_stands_by_is_seen_waits_and_goes_on_at_once(leases: Away, clock: Clock, job: JobLease) -> None:
    job.take()
    waited: list[int] = []

    def meanwhile() -> None:
        waited.extend(lease.process.pid for lease in leases.standing_by())
        if clock.now < 400:
            job.renew()
        elif leases.newest_number() == 1:
            job.give_back("stopped")

    clock.meanwhile = meanwhile
    second = other(leases, clock)

    assert second.take(wait=True)

    assert 400 <= clock.now < 402
    assert set(waited) == {8}
    assert leases.standing_by() == []
    second.give_back("stopped")


def test_who_stands_by_waits_for_the_store_too_and_can_be_stopped(leases: Away, clock: Clock, job: JobLease) -> None:
    job.take()

    def meanwhile() -> None:
        leases.is_away = 110 < clock.now < 120
        if clock.now > 125:
            clock.set()

    clock.meanwhile = meanwhile

    assert not other(leases, clock).take(wait=True)
    assert leases.standing_by() == []
    clock.clear()
    leases.is_away = True
    with pytest.raises(TransientError, match="away"):
        other(leases, clock).take()
    leases.is_away = False


def test_a_store_that_is_away_stops_what_would_be_written_until_it_is_back(
    leases: Away, clock: Clock, job: JobLease
) -> None:
    job.take()
    leases.is_away = True
    clock.now += FENCE
    job.guard()
    clock.now += 0.1
    with pytest.raises(TransientError, match="not renewed for 20 s, and after 30 s another job"):
        job.guard()
    with pytest.raises(TransientError, match="away"):
        job.renew()
    leases.is_away = False

    job.renew()

    job.guard()
    job.check()


def test_a_lost_reply_is_no_lost_lease(leases: Away, clock: Clock, job: JobLease) -> None:
    leases.loses_reply = True
    with pytest.raises(TransientError):
        job.take()
    leases.loses_reply = False
    assert leases.newest_number() == 1

    assert leases.make(replace(SEEN, number=2, job="a"))
    assert leases.make(replace(SEEN, number=2, job="a"))
    assert not leases.make(replace(SEEN, number=2, job="b"))


def test_old_leases_are_deleted_and_their_numbers_never_in_force_again(leases: Away) -> None:
    for number in range(1, 31):
        assert leases.make(replace(SEEN, number=number, job=f"j{number}"))

    assert not leases.make(replace(SEEN, number=3, job="late"))

    assert (found := leases.newest()) is not None
    assert found.job == "j30"


def test_a_damaged_lease_is_said_so(leases: Away, tmp_path: Path, job: JobLease) -> None:
    leases.make(SEEN)
    (tmp_path / "state" / "lease" / "00000004.json").write_text('{"format": 1}')

    with pytest.raises(HistoryError, match="delete the file if no job of this pipeline runs"):
        job.take()


def test_the_pulse_is_in_the_lease(leases: Away, job: JobLease) -> None:
    job.take()
    job.pulse = lambda: Pulse(batches=3, batch_began=5.0, batch_ended=4.0)

    job.renew()

    found = leases.newest()
    assert found is not None
    assert (found.beats, found.pulse.batches, found.pulse.batch_began) == (1, 3, 5.0)
    age = leases.age(found)
    assert age is not None
    assert -1 < age < 5


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["renew", "look", "away", "back", "end"]), st.integers(0, 2), st.floats(0, 20)),
        max_size=60,
    )
)
def test_two_jobs_never_may_write_at_once(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, int, float]]
) -> None:
    clock, root = Clock(), tmp_path_factory.mktemp("leases")
    stores = [Away(str(root), create=True) for _ in range(3)]
    jobs = [JobLease(store, Clock(), process=replace(ELSEWHERE, pid=n), clock=clock) for n, store in enumerate(stores)]
    over: set[int] = set()

    def may_write(job: JobLease) -> bool:
        try:
            job.guard()
        except TransientError:
            return False
        return job.is_taken

    for act, number, passes in acts:
        clock.now += passes
        job = jobs[number]
        try:
            if act in ("away", "back"):
                stores[number].is_away = act == "away"
            elif number in over:
                pass
            elif act == "renew" and job.is_taken:
                job.renew()
            elif act == "look" and not job.is_taken:
                job.look(wait=True)
            elif act == "end" and job.is_taken:
                over.add(number)
                job.give_back("stopped")
        except TransientError:
            pass
        assert sum(may_write(item) for n, item in enumerate(jobs) if n not in over) <= 1
    for job in jobs:
        job.give_back("stopped")


def test_of_jobs_that_start_together_one_takes_the_lease(tmp_path: Path) -> None:
    for round_ in range(50):
        leases = [Leases(str(tmp_path / str(round_)), create=True) for _ in range(4)]
        jobs = [JobLease(store, Clock(), process=ELSEWHERE, clock=since_boot) for store in leases]
        gate = threading.Barrier(4)

        def begin(job: JobLease, gate: threading.Barrier = gate) -> bool:
            gate.wait()
            return job.look(wait=True)

        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(begin, jobs)) == [False, False, False, True]
        for job in jobs:
            job.give_back("stopped")


# Which process a job is.


def test_a_process_is_there_until_it_has_ended() -> None:
    here = this_process()
    assert (here.pid, is_gone(here, here)) == (os.getpid(), False)
    assert is_gone(replace(here, began=(here.began or 0) - 1), here)
    assert not is_gone(ELSEWHERE, here)
    assert not is_gone(replace(here, space="another machine", pid=1), here)

    program = "from cdc_sync.runtime.lease import this_process as t; p = t(); print(p.pid, p.began)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    pid, began = map(int, ended.stdout.split())
    assert is_gone(replace(here, pid=pid, began=began), here)


def test_a_process_that_nobody_has_asked_how_it_ended_is_gone() -> None:
    here = this_process()
    program = "from cdc_sync.runtime.lease import this_process as t; p = t(); print(p.began, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        process = replace(here, pid=child.pid, began=int(child.stdout.readline()))
        assert not is_gone(process, here)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

        assert is_gone(process, here)
