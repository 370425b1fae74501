"""Units of files that are filled together: how they are divided, and that each is done once, whoever is killed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.revisions.fills import DataFile, Fill, FillPlan, Unit, units
from cdc_sync.core.schema.types import INT32
from cdc_sync.errors import TargetMoved
from cdc_sync.operations.migrate.filler import Filler, Pace
from cdc_sync.storage.fill_plans import FillPlans, Rates
from tests.revisions.test_steps import schema_of

T = TargetName(namespace="s", name="t")
FILL = Fill(number=2, schema=schema_of(a=INT32), values=((1, None),))

files = st.lists(
    st.tuples(st.integers(0, 999), st.integers(1, 300), st.sampled_from(("0 2024-01-01", "0 2024-01-02", "1 "))),
    unique_by=lambda file: file[0],
).map(lambda found: [DataFile(path=f"{name:03}", size=size, group=group) for name, size, group in found])


@given(files, st.integers(1, 400), st.randoms(use_true_random=False))
def test_units_hold_each_file_once_and_files_of_one_partition(found: list[DataFile], size: int, chance: Random) -> None:
    made = units(found, size)

    assert sorted(path for unit in made for path in unit.files) == sorted(file.path for file in found)
    known = {file.path: file for file in found}
    for unit in made:
        assert unit.files
        assert len({known[path].group for path in unit.files}) == 1
        assert unit.size == sum(known[path].size for path in unit.files)
        assert unit.size <= size or len(unit.files) == 1
    groups = [known[unit.files[0]].group for unit in made]
    assert groups == sorted(groups, reverse=True), "the newest first"
    assert [unit.number for unit in made] == list(range(1, len(made) + 1))
    shuffled = list(found)
    chance.shuffle(shuffled)
    assert units(shuffled, size) == made


def test_a_plan_tells_what_is_left_of_it() -> None:
    plan = FillPlan(number=1, units=(Unit(number=1, files=("a", "b"), size=2), Unit(number=2, files=("c",), size=1)))

    assert plan.left({"b", "d"}) == (Unit(number=1, files=("b",), size=2),)
    assert plan.left({"c"}) == plan.units[1:]
    assert plan.left(()) == ()


class Killed(Exception):
    """Stands for the end of the process."""


class Lake:
    """A table: files, of which each is filled or not; others write some anew."""

    def __init__(self, files: list[DataFile], chance: Random) -> None:
        self.files = {file.path: file for file in files}
        self.filled: set[str] = set()
        self.runs: list[str] = []
        self.chance = chance
        self.calm = False
        self.names = iter(range(1_000, 10_000))

    def filling(self, table: TargetName, fill: Fill) -> Filling:
        return Filling(self)

    def others_write(self) -> None:
        if self.files and not self.calm and self.chance.random() < 0.2:
            path = self.chance.choice(sorted(self.files))
            file = self.files.pop(path)
            new = f"{next(self.names)}"
            self.files[new] = DataFile(path=new, size=file.size, group=file.group)
            if path in self.filled:
                self.filled.add(new)


class Filling:
    """One snapshot of it."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.files = {path: file for path, file in lake.files.items() if path not in lake.filled}

    def run(self, paths: Sequence[str]) -> None:
        lake = self.lake
        if not lake.calm and lake.chance.random() < 0.2:
            raise Killed
        lake.others_write()
        if not set(paths) <= lake.files.keys():
            raise TargetMoved("others")
        lake.runs += paths
        for path in paths:
            new = f"{next(lake.names)}"
            lake.files[new] = DataFile(path=new, size=lake.files.pop(path).size)
            lake.filled.add(new)
        if not lake.calm and lake.chance.random() < 0.2:
            raise Killed


def filler(lake: Lake, root: Path, stop: threading.Event | None = None, **pace: Any) -> Filler:
    given_pace = Pace(**{"unit_size": 300, **pace})
    plans, rates = partial(FillPlans, str(root)), Rates(str(root))
    return Filler(cast(Any, lake), plans, rates, given_pace, stop or threading.Event())


@settings(max_examples=60, deadline=None)
@given(files, st.integers(min_value=0))
def test_whoever_is_killed_and_whatever_others_write_each_file_is_filled_once(
    tmp_path_factory: pytest.TempPathFactory, found: list[DataFile], seed: int
) -> None:
    lake, root = Lake(found, Random(seed)), tmp_path_factory.mktemp("state")
    lives = 0
    while True:
        lake.calm = lives == 20
        lives += 1
        try:
            assert filler(lake, root).fill(T, FILL)
        except Killed:
            continue
        break

    assert lake.files.keys() <= lake.filled
    assert len(set(lake.runs)) == len(lake.runs)
    assert not list((root / "fills").rglob("*.json"))


def test_two_processes_share_the_units_and_both_wait_for_the_last(tmp_path: Path) -> None:
    lake = Lake([DataFile(path=f"{n:03}", size=300) for n in range(40)], Random(1))
    lake.calm = True
    done: list[bool] = []
    workers = [
        threading.Thread(target=lambda: done.append(filler(lake, tmp_path).fill(T, FILL)), daemon=True)
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)

    assert done == [True] * 3
    assert len(lake.runs) == 40
    assert len(set(lake.runs)) == 40


def test_it_ends_behind_a_unit_when_told_to_or_when_its_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, stop = Lake([DataFile(path=f"{n:03}", size=300) for n in range(4)], Random(1)), threading.Event()
    lake.calm = True

    real = Filling.run

    def run(self: Filling, paths: Sequence[str]) -> None:
        real(self, paths)
        if len(lake.runs) == 2:
            stop.set()

    monkeypatch.setattr(Filling, "run", run)
    assert not filler(lake, tmp_path, stop).fill(T, FILL)
    assert len(lake.runs) == 2
    late = filler(lake, tmp_path, seconds=0.0)
    assert not late.fill(T, FILL)
    assert len(lake.runs) == 2
    assert late.units(T, FILL) == (4, 2)
    assert filler(lake, tmp_path).fill(T, FILL)
    assert filler(lake, tmp_path).units(T, FILL) == (0, 0)


def test_no_more_is_read_in_a_second_than_is_allowed(tmp_path: Path) -> None:
    lake = Lake([DataFile(path=f"{n:03}", size=300) for n in range(4)], Random(1))
    lake.calm = True
    waits: list[float] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return False

    assert filler(lake, tmp_path, Stop(), rate=3).fill(T, FILL)

    assert [round(wait / 100) for wait in waits] == [1, 2, 3, 4]


def test_files_that_others_write_all_the_time_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake([DataFile(path="a", size=1)], Random(1))

    def moved(*_: object) -> None:
        raise TargetMoved("others")

    monkeypatch.setattr(Filling, "run", moved)
    with pytest.raises(TargetMoved):
        filler(lake, tmp_path).fill(T, FILL)


def test_how_long_it_takes_is_told_from_what_was_measured(tmp_path: Path) -> None:
    lake = Lake([DataFile(path="a", size=1_000)], Random(1))
    lake.calm = True
    worker = filler(lake, tmp_path)

    assert worker.seconds(1_000) is None
    assert worker.fill(T, FILL)
    seconds = filler(lake, tmp_path).seconds(1_000)
    assert seconds is not None
    assert 0 < seconds < 60
