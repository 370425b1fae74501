"""Two writers of one table: what was made on a state that is not the newest any more is not committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark import InheritableThread
from pyspark.sql import DataFrame, Row

from cdc_sync.core.migration.migration import Backfill, Migration
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column
from cdc_sync.core.schema.types import INT32, INT64
from cdc_sync.errors import TargetMoved
from cdc_sync.spark.session import activate
from cdc_sync.targets.common.claims import Claims
from tests.targets.conftest import Lake, schema_of

pytestmark = pytest.mark.spark

SCHEMA = schema_of(Column(id=1, name="id", type=INT64), Column(id=2, name="a", type=INT32))
_PATIENCE = 120


def at(offset: int) -> Progress:
    return Progress(version=1, offsets={"t": {0: offset}})


class Held:
    """Rows that are not there before somebody lets them through."""

    def __init__(self, folder: Path) -> None:
        self._asked, self._let = folder / "asked", folder / "let"

    def __call__(self, frame: DataFrame) -> DataFrame:
        asked, let = str(self._asked), str(self._let)

        def wait(row: Row) -> Row:
            Path(asked).touch()
            deadline = time.monotonic() + _PATIENCE
            while not Path(let).exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            return row

        return frame.sparkSession.createDataFrame(frame.rdd.coalesce(1).map(wait), frame.schema)

    def wait(self, writing: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not self._asked.exists():
            assert writing(), "it ended before it asked for its rows"
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def let(self) -> None:
        self._let.touch()


@contextmanager
def late(lake: Lake, folder: Path, rows: list[dict[str, Any]], **options: Any) -> Iterator[list[BaseException | None]]:
    """Have a writer look at the table and wait for its rows while the block lasts; what came of it is in the list."""
    folder.mkdir()
    outcome: list[BaseException | None] = []
    held = Held(folder)

    def write() -> None:
        activate(lake.session)
        try:
            lake.write(SCHEMA, rows, through=held, **options)
            outcome.append(None)
        except BaseException as error:
            outcome.append(error)

    writer = InheritableThread(target=write)
    writer.start()
    try:
        held.wait(writer.is_alive)
        yield outcome
    finally:
        held.let()
        writer.join()


@pytest.mark.parametrize("append", [True, False], ids=["append", "merge"])
def test_of_two_writers_that_saw_the_same_state_one_writes(lake: Lake, append: bool, tmp_path: Path) -> None:
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"id": 0, "a": 0}], progress=at(1))

    new = [{"id": 1, "a": 1}]
    with late(lake, tmp_path / "one", new, progress=at(2), append=append) as outcome:
        lake.write(SCHEMA, new, progress=at(2), append=append)
    (error,) = outcome
    assert isinstance(error, TargetMoved), error
    assert lake.rows() == [{"id": 0, "a": 0}, {"id": 1, "a": 1}]
    assert lake.held == at(2)

    # One that is late altogether, and one that goes on behind what there is.
    with pytest.raises(TargetMoved, match="run one job per pipeline"):
        lake.write(SCHEMA, new, progress=at(2), append=append, behind=at(1))
    lake.write(SCHEMA, [{"id": 3, "a": 3}], progress=at(3), append=append, behind=at(2))
    assert [row["id"] for row in lake.rows()] == [0, 1, 3]


@pytest.mark.parametrize(
    "lake", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("hudi", "parquet")], indirect=True
)
def test_a_commit_that_a_crash_kept_from_being_shown_is_shown_by_the_next(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Crash(Exception):
        """The process ends here."""

    take = Claims.take

    def crash(claims: Claims, number: int, text: str) -> bool:
        assert take(claims, number, text)
        raise Crash

    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"id": 0}], progress=at(1))
    with monkeypatch.context() as patch:
        patch.setattr(Claims, "take", crash)
        with pytest.raises(Crash):
            lake.write(SCHEMA, [{"id": 1}], progress=at(2), append=True)
    assert [row["id"] for row in lake.rows()] == [0]
    assert lake.held == at(2)
    assert [row["id"] for row in lake.rows()] == [0, 1]
    lake.write(SCHEMA, [{"id": 2}], progress=at(3), append=True, behind=at(2))
    assert [row["id"] for row in lake.rows()] == [0, 1, 2]


def test_nothing_is_done_to_a_table_that_holds_something_else(lake: Lake) -> None:
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"id": 0}], progress=at(1))
    step = Backfill(columns=(replace(SCHEMA.column(2), initial=7),))
    steps = Migration(version=1, schema=SCHEMA, steps=(step,))
    with pytest.raises(TargetMoved):
        lake.target.truncate(lake.name, at(1), None)
    with pytest.raises(TargetMoved):
        lake.target.mark(lake.name, at(1), at(0))
    with pytest.raises(TargetMoved):
        lake.target.migrate(lake.name, steps, at(2))
    assert (lake.rows(), lake.held) == ([{"id": 0, "a": None}], at(1))
