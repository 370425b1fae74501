"""Maintenance: fewer files, fewer states, and everything that a reader or the job relies on as it was."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable as DeltaRs
from pyspark.sql import Row, SparkSession

from cdc_sync.config import Catalog
from cdc_sync.config import Target as TargetConfig
from cdc_sync.core.migration.capabilities import DELTA, ICEBERG, PARQUET
from cdc_sync.core.migration.maintenance import Holdings, Maintained, Upkeep, chores
from cdc_sync.core.migration.migration import migration
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column
from cdc_sync.core.schema.types import INT32, INT64, STRING
from cdc_sync.errors import TargetError
from cdc_sync.runtime.maintenance import most_overdue, why_left_alone
from cdc_sync.spark.session import activate
from cdc_sync.targets.delta.target import DeltaTarget
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.protocol import Batch, Target
from cdc_sync.testing.targets import version
from tests.targets.conftest import Lake, fresh_name, schema_of

pytestmark = pytest.mark.spark

ID, NO, NOTE = (
    Column(id=1, name="id", type=INT64, optional=False),
    Column(id=2, name="no", type=INT32),
    Column(id=3, name="note", type=STRING),
)
SCHEMA = schema_of(ID, NO, NOTE)
UPKEEP = Upkeep(
    keep_for=timedelta(0),
    keep_at_least=1,
    target_file_size=64 * 1024 * 1024,
    compact_from_files=2,
    orphans_older_than=timedelta(days=1),
)


both = pytest.mark.parametrize(
    "lake", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("iceberg", "delta")], indirect=True
)


def state_of(lake: Lake) -> TargetState:
    found = lake.target.state(lake.name)
    assert found is not None
    return found


def progress(offset: int, version: int = 1) -> Progress:
    return Progress(version=version, offsets={"t": {0: offset}})


def now() -> int:
    return time.time_ns() // 1_000_000


def maintained(lake: Lake, upkeep: Upkeep = UPKEEP) -> Maintained:
    return lake.target.maintain(lake.name, chores(holdings(lake, upkeep), upkeep, now()))


def holdings(lake: Lake, upkeep: Upkeep = UPKEEP) -> Holdings:
    return lake.target.holdings(lake.name, upkeep)


def filled(lake: Lake) -> None:
    """Five batches, of new, changed and deleted rows."""
    lake.create(SCHEMA)
    lake.write(SCHEMA, [{"id": id_, "no": id_, "note": "first"} for id_ in range(6)], progress=progress(6), append=True)
    lake.write(SCHEMA, [{"id": id_, "no": -id_, "note": "second"} for id_ in range(3)], progress=progress(9))
    lake.write(SCHEMA, [{"id": 1, "deleted": True}, {"id": 5, "deleted": True}], progress=progress(11))
    lake.write(SCHEMA, [{"id": 7, "no": 7}], progress=progress(12))
    lake.write(SCHEMA, [{"id": 8, "no": 8, "note": "last"}], progress=progress(13))


def test_rows_columns_and_progress_stay_what_they_are(lake: Lake) -> None:
    filled(lake)
    rows, state = lake.rows(), state_of(lake)

    maintained(lake)

    assert lake.rows() == rows
    assert [row["id"] for row in rows] == [0, 2, 3, 4, 7, 8]
    assert replace(state_of(lake), size=0) == replace(state, size=0)
    assert state.progress == progress(13)
    lake.write(SCHEMA, [{"id": 9}, {"id": 2, "deleted": True}], progress=progress(15))
    assert [row["id"] for row in lake.rows()] == [0, 3, 4, 7, 8, 9]


def expiring(lake: Lake) -> Maintained:
    """Maintain with nothing kept longer than it must be; the clock is an hour ahead, so that every file is old."""
    later = replace(UPKEEP, keep_for=timedelta(hours=-1), orphans_older_than=timedelta(hours=-1))
    return maintained(lake, later)


def test_a_table_without_rows_needs_nothing(lake: Lake) -> None:
    lake.create(SCHEMA)
    assert not expiring(lake).files_rewritten
    lake.write(SCHEMA, [], progress=progress(1))
    expiring(lake)
    assert (lake.rows(), state_of(lake).progress) == ([], progress(1))


@both
def test_small_files_become_one(lake: Lake) -> None:
    filled(lake)
    before = holdings(lake)

    done = maintained(lake)

    after = holdings(lake)
    assert (after.files, after.change_files) == (1, 0)
    assert done.files_rewritten == before.files > 1
    assert not chores(after, replace(UPKEEP, keep_for=timedelta(days=1)), now()).any, "once is enough"


def test_columns_stay_what_they_became(lake: Lake) -> None:
    """Files of the columns before are compacted with those of after; a name that went comes back as another column."""
    filled(lake)
    amount = Column(id=4, name="no", type=STRING, initial="new")
    after = schema_of(ID, replace(NO, name="number", type=INT64), amount, NOTE)
    lake.change(SCHEMA, after, progress=progress(13, 2))
    lake.write(after, [{"id": 20, "number": 2**40, "no": "text"}, {"id": 3, "number": 33}], progress=progress(15, 2))
    rows, state = lake.rows(), state_of(lake)

    maintained(lake)
    expiring(lake)

    assert lake.rows() == rows
    assert list(rows[0]) == ["id", "number", "no", "note"]
    # A back-fill of Iceberg's replaces files, and deletes that are of none then are counted until they are merged.
    assert replace(state_of(lake), size=0, rows=None) == replace(state, size=0, rows=None)


def test_states_that_can_still_be_read_are_told_and_others_are_not(lake: Lake) -> None:
    filled(lake)
    known = len(lake.target.commits(lake.name, 9))
    assert known == (5 if lake.target.capabilities == PARQUET else 6), (
        "a Parquet table's states are copies, of which few are kept"
    )

    expiring(lake)
    if isinstance(lake.target, DeltaTarget):
        vacuumed_by_another_program(lake)

    left = lake.target.commits(lake.name, 9)
    ids = [sorted(row[0] for row in lake.target.read(lake.name, SCHEMA, [1], commit).collect()) for commit in left]
    assert (left[0].progress, ids[0]) == (progress(13), [0, 2, 3, 4, 7, 8])
    assert len(left) == (1 if lake.target.capabilities in (ICEBERG, DELTA) else known)


def vacuumed_by_another_program(lake: Lake) -> None:
    """Ours removes nothing that is younger than an hour."""
    session = lake.session.newSession()
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    session.conf.set("spark.databricks.delta.vacuum.logging.enabled", "true")
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
    session.sql(f"VACUUM delta.`{folder_of(lake)}` RETAIN 0 HOURS")
    activate(lake.session)


def test_a_rewrite_can_be_rolled_back_after_maintenance(lake: Lake) -> None:
    filled(lake)
    before, text = lake.rows(), schema_of(ID, replace(NO, type=STRING), NOTE)
    lake.migrate(migration(version(1, SCHEMA), version(1, SCHEMA), version(2, text)), progress(13, 2))
    for id_ in range(30, 33):
        lake.write(text, [{"id": id_, "no": "text"}, {"id": 0, "no": str(id_)}], progress=progress(id_, 2))

    expiring(lake)
    expiring(lake)

    assert (state_of(lake).kept, state_of(lake).progress) == (1, progress(32, 2))
    assert lake.target.roll_back(lake.name)
    assert lake.rows() == before
    expiring(lake)
    assert lake.rows() == before


@both
def test_a_batch_whose_files_are_replaced_meanwhile_fails_and_is_written_when_tried_again(
    lake: Lake, tmp_path: Path
) -> None:
    filled(lake)
    rows = [{"id": 3, "no": 300}, {"id": 40, "no": 400}, {"id": 4, "deleted": True}]
    done = tmp_path / "done"

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_after, done, lake, rows)
        wait_until_busy(lake)
        maintained(lake)
        done.touch()
        error = writing.exception()

    assert isinstance(error, TargetError), "which the job takes for a reason to try the table again"
    assert state_of(lake).progress == progress(13)
    lake.write(SCHEMA, rows, progress=progress(16))
    assert {row["id"]: row["no"] for row in lake.rows()} == {0: 0, 2: -2, 3: 300, 7: 7, 8: 8, 40: 400}
    assert state_of(lake).progress == progress(16)


@dataclass
class Waiting:
    """A target whose batches do not end before a file is there."""

    target: Target
    file: Path

    @property
    def capabilities(self) -> object:
        return self.target.capabilities

    def write(self, name: TargetName, batch: Batch) -> None:
        file = self.file

        def rows(found: Iterable[Row]) -> Iterator[Row]:
            for _ in range(1200):
                if file.exists():
                    break
                time.sleep(0.1)
            yield from found

        frame = batch.rows.coalesce(1)  # one core is left to the others
        late = frame.sparkSession.createDataFrame(frame.rdd.mapPartitions(rows), frame.schema)
        self.target.write(name, replace(batch, rows=late))


def write_after(file: Path, lake: Lake, rows: Sequence[Mapping[str, object]]) -> None:
    activate(lake.session)
    late = replace(lake, target=Waiting(lake.target, file))  # type: ignore[arg-type]
    late.write(SCHEMA, rows, progress=progress(16), behind=progress(13))


def wait_until_busy(lake: Lake) -> None:
    tracker = lake.session.sparkContext.statusTracker()
    for _ in range(600):
        if tracker.getActiveJobsIds():
            return
        time.sleep(0.1)
    pytest.fail("the batch does not begin")


@both
def test_only_old_files_of_no_state_go_and_no_other_table_s(lake: Lake) -> None:
    filled(lake)
    archived = replace(lake.name, name=f"{lake.name.name}__dropped_2")
    lake.target.archive(lake.name, archived)
    lake.target.migrate(
        lake.name, migration(None, None, version(3, SCHEMA), capabilities=lake.target.capabilities), progress(0, 3)
    )
    neighbour = replace(lake, name=replace(lake.name, name=f"{lake.name.name}x"))
    filled(neighbour)
    lake.write(SCHEMA, [{"id": 1}], progress=progress(20, 3))
    old, young = (folder_of(lake) / f"part-{word}.parquet" for word in ("old", "young"))
    for file in (old, young):
        file.write_bytes(b"left behind")
    os.utime(old, (time.time() - 3 * 86400,) * 2)

    assert maintained(lake, replace(UPKEEP, keep_for=timedelta(days=2))).files_removed == 1
    assert (old.exists(), young.exists()) == (False, True)
    expiring(lake)

    assert young.exists() == isinstance(lake.target, DeltaTarget), "which has no clock that is ahead"
    for other in (replace(lake, name=archived), neighbour):
        assert [row["id"] for row in other.rows()] == [0, 2, 3, 4, 7, 8]
    assert [row["id"] for row in lake.rows()] == [1]


def folder_of(lake: Lake) -> Path:
    if isinstance(lake.target, DeltaTarget):
        return Path(lake.target.path(lake.name))
    (row,) = lake.session.sql(f"SELECT file_path FROM {lake.sql_name}.files").collect()
    return Path(str(row[0]).removeprefix("file:")).parent


@pytest.mark.delta
class TestDelta:
    """The log forgets what commits say after a month; before that, maintenance says it once more."""

    @pytest.fixture
    def table(self, delta: Target, session: SparkSession) -> Lake:
        lake = Lake(target=delta, session=session, name=fresh_name())
        filled(lake)
        lake.session.sql(f"OPTIMIZE delta.`{folder_of(lake)}`")
        return lake

    def test_the_marker_is_carried_on(self, table: Lake) -> None:
        in_a_fortnight = now() + timedelta(days=16) // timedelta(milliseconds=1)
        found = chores(holdings(table), UPKEEP, in_a_fortnight)
        assert found.carry_marker

        done = table.target.maintain(table.name, replace(found, expire_before=None, compact=False))

        assert done == Maintained(marker_carried=True)
        assert table.target.commits(table.name, 1)[0].progress == progress(13)
        newest = DeltaRs(str(folder_of(table))).history(1)[0]
        assert newest["userMetadata"] == progress(13).to_text()


@pytest.mark.hudi
def test_logs_of_hudi_are_merged_with_the_newest_columns(session: SparkSession, tmp_path: Path) -> None:
    properties = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    config = TargetConfig(format="hudi", catalog=Catalog(warehouse=str(tmp_path)), table_properties=properties)
    lake = Lake(target=open_target(config, session), session=session, name=fresh_name())
    filled(lake)
    after = replace(SCHEMA, columns=(*SCHEMA.columns, Column(id=4, name="more", type=STRING)), last_column_id=4)
    lake.change(SCHEMA, after, progress=progress(13, 2))
    lake.write(after, [{"id": 3, "no": 33, "more": "in a log"}], progress=progress(14, 2))
    rows, state = lake.rows(), state_of(lake)
    assert holdings(lake).change_files > 1

    done = maintained(lake)

    assert (done.change_files > 1, holdings(lake).change_files) == (True, 0)
    assert lake.rows() == rows
    assert replace(state_of(lake), size=0) == replace(state, size=0)
    assert not maintained(lake).any
    lake.write(after, [{"id": 3, "deleted": True}], progress=progress(15, 2))
    assert [row["id"] for row in lake.rows()] == [0, 2, 4, 7, 8]


def test_a_table_is_left_alone_between_two_steps_of_a_migration() -> None:
    def state(version: int | None, marker: int | None) -> TargetState:
        return TargetState(version=version, progress=None if marker is None else Progress(version=marker))

    assert why_left_alone(state(2, 2), 2) is None
    assert why_left_alone(None, 2) == "there is no target table yet"
    assert why_left_alone(state(None, None), 2) == "it was not made by cdc_sync"
    assert why_left_alone(state(2, None), 2) == "nothing was written to it yet"
    for stamp, marker, head in ((1, 1, 2), (2, 1, 2), (2, 2, 3), (2, 2, None)):
        assert why_left_alone(state(stamp, marker), head) == "a migration of it is not complete"


def test_the_table_that_waited_longest_has_its_turn() -> None:
    first, second = (TableId(database="d", schema="s", table=name) for name in "ab")
    hour = timedelta(hours=1)
    assert most_overdue({first: 9000.0, second: 8000.0}, [first, second], hour, 11_000.0) is None
    assert most_overdue({first: 9000.0, second: 8000.0}, [first, second], hour, 13_000.0) == second
    assert most_overdue({first: 9000.0}, [first, second], hour, 9_100.0) == second, "it never was maintained"
