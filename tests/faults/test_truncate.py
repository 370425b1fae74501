"""TRUNCATE, through a broker and the real job: what was there before it is gone, what came after it stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc_sync.api import commands
from cdc_sync.config import parse_config
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.errors import TargetError
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.spark.session import build_session
from cdc_sync.targets.iceberg.target import IcebergTarget
from cdc_sync.targets.memory.target import MemoryTarget
from cdc_sync.targets.protocol import Batch
from cdc_sync.testing import INT32, TEXT, Record, SourceTable, Wal, column
from tests.conftest import Produce
from tests.corpus.runs import ends_of, memory_job, session_of_its_own
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
UNCHANGED = "__debezium_unavailable_value"


def source(name: str, prefix: str, *, key: tuple[str, ...] = ("id",), wal: Wal | None = None) -> SourceTable:
    columns = [column("id", INT32, optional=False), column("a", TEXT), column("n", INT32)]
    full = not key
    return SourceTable(name, columns, key=key, prefix=prefix, wal=wal, full_identity=full, null_is_default=False)


def lived(prefix: str, *, key: tuple[str, ...] = ("id",)) -> SourceTable:
    """Rows before, between and after TRUNCATEs, and an ALTER right before one and right after another."""
    t = source("t", prefix, key=key)
    t.truncate()
    t.insert(id=1, a="x")
    t.insert(id=2, a="y")
    t.update({"id": 2}, a="z")
    t.add_column(column("late", INT32, default=7), initial=7)
    t.truncate()
    t.insert(id=2, a="again", late=1)
    t.insert(id=3)
    t.delete({"id": 3})
    t.truncate()
    t.truncate()
    t.rename_column("n", "m")
    t.insert(id=1, m=5)
    t.insert(id=3, m=6)
    t.update({"id": 3}, a="end")
    return t


@pytest.fixture
def sessions(_spark: SparkSession) -> Iterator[None]:
    with session_of_its_own(_spark):
        yield


def in_memory(
    lake: Pipeline, table: SourceTable, folder: Path, *, ends: Sequence[dict[int, int]] = (), size: int = 1000
) -> Counter[tuple[Any, ...]]:
    """Run the job's batch function over the topic, batch by batch, and return the rows."""
    text = replace(lake, format="memory").text + f"\njob: {{max_offsets_per_batch: {size}}}"
    config = parse_config(text.replace(f"{lake.folder}/state", str(folder)))
    with memory_job(config, build_session(config)) as (job, context):
        for batch in [*({(table.topic, partition): end for partition, end in item.items()} for item in ends), None]:
            job.process(ends_of(context) if batch is None else batch)
            job.catch_up()
            job.finish()
        (sync,) = job.tables.all()
        assert sync.state.failure is None
        assert sync.state.stop is None
        assert isinstance(context.target, MemoryTarget)
        names = [column.field or "" for column in table.columns]
        return Counter(tuple(row[name] for name in names) for row in context.target.rows(sync.route.target))


def rows(table: SourceTable) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[column.field or ""] for column in table.columns) for row in table.rows)


@pytest.mark.usefixtures("sessions")
def test_any_split_into_batches_gives_the_same_whole_rows(
    pipeline: NewPipeline, produce: Produce, tmp_path: Path
) -> None:
    """Of rows that are found by a key, `laws.test_table_laws` proves it."""
    t, lake = lived("truncate-split", key=()), pipeline("truncate-split")
    produce(t.topic, t.records)
    for size in (1000, 1, 4):
        assert in_memory(lake, t, tmp_path / str(size), size=size) == rows(t), f"batches of {size}"


@pytest.mark.usefixtures("sessions")
def test_a_declared_key(pipeline: NewPipeline, produce: Produce, tmp_path: Path) -> None:
    t = lived("truncate-declared", key=())
    lake = pipeline("truncate-declared", rules="[{pattern: '.*', key: [id]}]")
    produce(t.topic, t.records)
    assert in_memory(lake, t, tmp_path / "s", size=5) == rows(t)


class Spread:
    """A table whose topic has three partitions; TRUNCATEs come in the last one."""

    def __init__(self, prefix: str, produce: Produce) -> None:
        self.table = source("t", prefix)
        self._produce = produce
        self._written = 0

    def send(self) -> None:
        for record in self.table.records[self._written :]:
            self._produce(self.table.topic, [record], partition=self._partition(record), partitions=3)
        self._written = len(self.table.records)

    @staticmethod
    def _partition(record: Record) -> int:
        return 2 if record.key is None else record.key[-3] % 2


def spread(prefix: str, produce: Produce) -> Spread:
    found = Spread(prefix, produce)
    t = found.table
    for number in range(4):
        t.insert(id=number, a="before")
    t.truncate()
    for number in range(1, 6):
        t.insert(id=number, a="after")
    t.update({"id": 2}, a="changed")
    t.delete({"id": 4})
    found.send()
    return found


@pytest.mark.parametrize(
    "ends",
    [
        [{0: 2}, {2: 1}, {1: 1}],
        [{0: 99, 1: 3}, {2: 1, 1: 4}],
    ],
    ids=["others lag", "one ahead, one between"],
)
@pytest.mark.usefixtures("sessions")
def test_partitions_may_be_read_in_any_order(
    ends: list[dict[int, int]], pipeline: NewPipeline, produce: Produce, tmp_path: Path, request: Any
) -> None:
    prefix = f"truncate-spread-{request.node.callspec.indices['ends']}"
    found, lake = spread(prefix, produce), pipeline(prefix)
    sizes = Counter(Spread._partition(record) for record in found.table.records)
    read = dict.fromkeys(range(3), 0)  # as a stream does, each batch names every partition
    bounded = []
    for batch in ends:
        read = read | {partition: min(end, sizes[partition]) for partition, end in batch.items()}
        bounded.append(read)
    assert in_memory(lake, found.table, tmp_path / "s", ends=bounded) == rows(found.table)


@pytest.mark.iceberg
def test_events_of_before_that_come_late_or_again_bring_no_row_back(pipeline: NewPipeline, produce: Produce) -> None:
    found, lake = spread("truncate-late", produce), pipeline("truncate-late")
    lake.run()
    assert_equal(lake, found.table)
    repeated = found.table.records[:5]
    assert repeated[4].key is None
    for record in repeated:
        produce(found.table.topic, [record], partition=Spread._partition(record), partitions=3)

    lake.run()

    assert_equal(lake, found.table)
    (line,) = commands.status(lake.config).tables
    assert line.state == "running"
    assert any("passed over" in warning for warning in line.warnings)
    found.table.insert(id=9, a="new")
    found.send()
    lake.run()
    assert_equal(lake, found.table)


@pytest.mark.iceberg
def test_rows_that_cannot_be_read_again_stay(pipeline: NewPipeline, produce: Produce, kafka: KafkaServer) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    found, lake = Spread("truncate-gone", produce), pipeline("truncate-gone")
    t = found.table
    t.insert(id=0)
    t.insert(id=1)
    (truncate,) = t.truncate()
    t.insert(id=2, a="after")
    t.insert(id=4, a="after")
    late = t.records.pop(2)
    assert late is truncate
    found.send()
    lake.run()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for deleted in admin.delete_records([TopicPartition(t.topic, 0, 2)]).values():
        deleted.result(30)
    produce(t.topic, [truncate], partition=2, partitions=3)

    lake.run()

    (line,) = commands.status(lake.config).tables
    assert (line.state, line.paused_at) == ("paused", f"{t.topic}[2]@0")
    assert "gone from the topic" in (line.reason or "")
    assert sorted(row["id"] for row in lake.table(t.id).scan().to_arrow().to_pylist()) == [0, 1, 2, 4]


@pytest.mark.iceberg
def test_the_target_keeps_what_was_there(pipeline: NewPipeline, produce: Produce) -> None:
    t, lake = source("t", "truncate-past"), pipeline("truncate-past")
    t.insert(id=1, a="x")
    t.insert(id=2, a="y")
    t.truncate()
    t.insert(id=2, a="z")
    produce(t.topic, t.records)

    lake.run()
    lake.run()

    assert_equal(lake, t)
    table = lake.table(t.id)
    snapshots = table.snapshots()
    assert [s.summary.operation.value for s in snapshots if s.summary] == ["append", "delete", "append"]
    assert lake.progress_of_snapshots(t) == [{0: 2}, {0: 3}, {0: 4}]
    past = table.scan(snapshot_id=snapshots[0].snapshot_id).to_arrow().to_pylist()
    assert sorted(row["a"] for row in past) == ["x", "y"]


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.iceberg
def test_whatever_commit_is_the_last_before_the_process_dies(
    pipeline: NewPipeline, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every commit once fails before it is made, and once succeeds and tells that it failed."""
    lake = pipeline("truncate-killed")
    t = spread("truncate-killed", produce).table
    fates = {what: iter([*("before", "behind", "fine") * 3]) for what in ("write", "truncate")}
    write, truncate = IcebergTarget.write, IcebergTarget.truncate
    failed: list[str] = []

    def meet(what: str, commit: Any) -> None:
        fate = next(fates[what], "fine")
        if fate != "fine":
            failed.append(what)
        if fate != "before":
            commit()
        if fate != "fine":
            raise TargetError(f"Cannot {what}: the connection was lost")

    def lossy_write(target: IcebergTarget, name: TargetName, batch: Batch) -> None:
        meet("write", lambda: write(target, name, batch))

    def lossy_truncate(target: IcebergTarget, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        meet("truncate", lambda: truncate(target, name, progress, behind))

    monkeypatch.setattr(IcebergTarget, "write", lossy_write)
    monkeypatch.setattr(IcebergTarget, "truncate", lossy_truncate)
    runs = 0
    while runs < 30:
        lake.run()
        runs += 1
        if next(iter(lake.statuses().values())).state == "running":
            break
    assert {"write", "truncate"} <= set(failed)
    assert_equal(lake, t)


@pytest.mark.iceberg
def test_a_repeated_stretch_of_one_partition_ends_where_the_source_does(
    pipeline: NewPipeline, produce: Produce
) -> None:
    t, lake = source("t", "truncate-repeat"), pipeline("truncate-repeat")
    t.insert(id=1)
    t.truncate()
    t.insert(id=2)
    produce(t.topic, t.records)
    lake.run()
    produce(t.topic, t.records)

    lake.run()

    assert_equal(lake, t)


@pytest.mark.iceberg
def test_a_value_that_is_left_out_is_never_taken_from_a_row_that_is_gone(
    pipeline: NewPipeline, produce: Produce
) -> None:
    """After a TRUNCATE: an update, and an update of a key in two batches, both without `a`."""
    t, lake = source("t", "truncate-toast"), pipeline("truncate-toast")
    t.insert(id=1, a="gone")
    t.insert(id=3, a="gone too")
    produce(t.topic, t.records)
    lake.run()
    sent = len(t.records)
    t.truncate()
    t.insert(id=1, a="big")
    t.insert(id=2, a="bigger")
    t.update({"id": 1}, a=UNCHANGED, n=1)
    produce(t.topic, t.records[sent:])
    lake.run()
    sent = len(t.records)
    moved = list(t.update({"id": 2}, id=3, a=UNCHANGED))
    produce(t.topic, moved[:1])
    lake.run()
    headers = (("__debezium.oldkey", b'{"id":2}'),)
    produce(t.topic, [moved[1], Record(key=moved[2].key, value=moved[2].value, headers=headers)])

    lake.run()

    assert {status.state for status in lake.statuses().values()} == {"running"}
    found = sorted((row["id"], row["a"], row["n"]) for row in lake.table(t.id).scan().to_arrow().to_pylist())
    assert found == [(1, "big", 1), (3, "bigger", None)]


@pytest.mark.iceberg
def test_a_damaged_record_beside_it_does_not_set_it_aside(pipeline: NewPipeline, produce: Produce) -> None:
    t, lake = source("t", "truncate-damaged"), pipeline("truncate-damaged", settings="job: {max_offsets_per_batch: 3}")
    for number in range(3):
        t.insert(id=number)
    (broken,) = t.insert(id=5)
    assert broken.value is not None
    t.truncate()
    t.insert(id=2)
    damaged = Record(key=broken.key, value=broken.value[:-20])
    produce(t.topic, [*t.records[:3], damaged, *t.records[4:]])

    lake.run()

    assert_equal(lake, t)
    assert [record.offset for record in lake.set_aside()] == [3]
