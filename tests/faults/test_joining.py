"""A rename that is declared long after it: the table is what it would be if the rename had been known in time."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from cdc_sync.api import commands, requests
from cdc_sync.core.history.joined import joined_columns
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.migration import JoinValues, migration
from cdc_sync.core.migration.routes import Join
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.deciding import Decided, Words
from cdc_sync.core.planning.merge_columns import find_join, join_version
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.policy import Policy
from cdc_sync.errors import RefusedError
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.operations import replay
from cdc_sync.runtime.joined_values import Joining
from cdc_sync.spark.placeholders import PLACEHOLDER
from cdc_sync.testing import INT32, INT64, TEXT, Record, SourceTable, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal, files
from tests.plan.model import ROUTE
from tests.plan.tables import Table

if TYPE_CHECKING:
    from cdc_sync.runtime.context import Context
    from cdc_sync.runtime.job import SyncJob

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

Start = Callable[[], "tuple[SyncJob, Context]"]


class Shop:
    """A table without proof of anything, and a job whose batches the test drives and which it can start anew."""

    def __init__(self, lake: Pipeline, start: Start, produce: Produce, table: SourceTable, partitions: int) -> None:
        self.lake, self.table = lake, table
        self._start, self._produce, self._partitions = start, produce, partitions
        self._sent = 0
        self.job, self.context = start()

    def restart(self) -> None:
        """Begin again with what was written down, as a new process does."""
        target = self.context.target
        self.job, self.context = self._start()
        if self.context.config.target.format == "memory":
            object.__setattr__(self.context, "target", target)
        self.job.tables.restore()

    def send(self) -> None:
        for record in self.table.records[self._sent :]:
            self.send_one(record)
        self._sent = len(self.table.records)

    def send_one(self, record: Record) -> None:
        # What a key's bytes are in this test decides, so that the same key stays where it is.
        partition = sum(record.key or b"") % self._partitions
        self._produce(self.table.topic, [record], partition=partition, partitions=self._partitions)

    def run(self) -> TableStatus:
        """Read everything there is, then do what is done between two batches."""
        self.send()
        ends = self.context.kafka.ends([self.table.topic])
        self.job.process({(topic, part): end for topic, parts in ends.items() for part, end in parts.items()})
        self.job.catch_up()
        self.job.finish()
        (status,) = self.context.state.tables()
        return status

    def decide(self, *pairs: tuple[str, str]) -> Decided:
        return requests.decide(self.context.config, "t", Words(renames=dict(pairs)))

    def ids(self) -> dict[str, int]:
        history = self.context.history.load(self.table.id)
        return {item.name: item.id for item in history.head.schema.columns}

    def rows(self) -> list[dict[str, Any]]:
        from cdc_sync.targets.memory.target import MemoryTarget

        target = self.context.target
        (sync,) = self.job.tables.all()
        if isinstance(target, MemoryTarget):
            return target.rows(sync.route.target)
        found: list[dict[str, Any]] = self.lake.table(self.table.id).scan().to_arrow().to_pylist()
        return found

    def assert_as_if_known_in_time(self) -> None:
        if self.context.config.target.format == "iceberg":
            assert_equal(self.lake, self.table)
            return
        names = [item.field for item in self.table.columns]
        found = sorted(self.rows(), key=repr)
        assert all(list(row) == names for row in found)
        assert found == sorted(({name: row[name or ""] for name in names} for row in self.table.rows), key=repr)


class NewShop(Protocol):
    def __call__(
        self, prefix: str, *, rule: str = "", target: str = "memory", partitions: int = 1, **options: Any
    ) -> Shop: ...


@pytest.fixture
def shop(pipeline: NewPipeline, produce: Produce, spark: Callable[[], None]) -> Iterator[NewShop]:
    from cdc_sync.spark.session import build_session
    from tests.corpus.runs import memory_job

    with ExitStack() as stack:

        def make(prefix: str, *, rule: str = "", target: str = "memory", partitions: int = 1, **options: Any) -> Shop:
            lake = pipeline(f"join-{prefix}", rules=f"[{{pattern: '.*'{rule}}}]")
            config = replace(lake, format=target).config

            def start() -> tuple[SyncJob, Context]:
                spark()
                return stack.enter_context(memory_job(config, build_session(config)))

            columns = [column("id", INT32, optional=False), column("n", INT32), column("a", options.pop("type", TEXT))]
            table = SourceTable("t", columns, prefix=lake.prefix, null_is_default=False, **options)
            return Shop(lake, start, produce, table, partitions)

        yield make


def _fill(table: SourceTable, count: int = 12) -> None:
    for number in range(1, count + 1):
        table.insert(id=number, n=0, a=None if number == 8 else f"old {number}")


def _change(table: SourceTable) -> None:
    """Everything that may happen to rows: 5 is never touched, nor is 8, which holds NULL."""
    table.rename_column("a", "b")
    table.update({"id": 1}, b="new")
    table.update({"id": 2}, b=None)
    table.update({"id": 3}, n=1)
    table.delete({"id": 4})
    table.update({"id": 6}, id=16, n=2)
    table.delete({"id": 7})
    table.insert(id=7, n=3, b=None)
    table.insert(id=20, n=4, b="inserted")
    table.insert(id=21, n=5, b=None)
    table.update({"id": 9}, b="first")
    table.update({"id": 9}, b="second")
    table.update({"id": 10}, b=None)
    table.update({"id": 10}, b="back")


@pytest.mark.parametrize("target", ["memory", "iceberg"])
def test_a_late_declaration_joins_data_and_history(target: str, shop: NewShop) -> None:
    it = shop(f"late-{target}", target=target)
    _fill(it.table)
    it.table.insert(id=30, n=0, a="comes late")
    it.table.insert(id=31, n=0, a="comes before the decision")
    early, late = it.table.records.pop(), it.table.records.pop()
    it.run()
    _change(it.table)
    assert it.run().state == "running"
    it.send_one(early)
    it.run()
    assert it.ids() == {"id": 1, "n": 2, "a": 3, "b": 4}

    it.decide(("a", "b"))
    status = it.run()

    assert (status.state, status.version) == ("running", 3)
    assert it.ids() == {"id": 1, "n": 2, "b": 3}
    it.send_one(late)
    it.table.update({"id": 11}, b="after")
    it.table.update({"id": 12}, b=None)
    it.run()
    it.assert_as_if_known_in_time()
    (version,) = commands.history(it.context.config, "t")[0].versions[2:]
    assert [change.text for change in version.changes] == [
        "join column b into column a",
        "rename column a to b",
        "fill column b again, which the source has again",
    ]
    (why,) = version.evidence
    assert (why.subject, why.kind) == ("a", "decided")
    assert why.text.startswith("renamed to 'b': the operator declared it later; both had been kept since version 2")

    with pytest.raises(RefusedError, match="'a' and 'b' are one column since version 3; nothing is to be done"):
        it.decide(("a", "b"))


_POINTS = (
    "cdc_sync.storage.requests.OperatorRequests.add",
    "cdc_sync.storage.history.HistoryStore.append",
    "cdc_sync.targets.iceberg.target.widen",
    "cdc_sync.targets.iceberg.change.Change.run",
    "cdc_sync.targets.iceberg.target.alter",
    "cdc_sync.targets.iceberg.target.IcebergTarget.migrate",
)
"""Whatever is done on the way; killed before each and behind each."""


class _Killed(Exception):
    """The process ended here."""


def test_killed_anywhere_on_the_way_it_ends_the_same(shop: NewShop, monkeypatch: pytest.MonkeyPatch) -> None:
    it = shop("killed", target="iceberg", type=INT32)
    for number in range(1, 9):
        it.table.insert(id=number, n=0, a=number)
    it.run()
    it.table.rename_column("a", "b")
    it.table.alter_column("b", lambda old: column("b", INT64))  # so that the older column has to be widened, too
    it.table.update({"id": 1}, b=1 << 40)
    it.table.update({"id": 2}, b=None)
    it.table.update({"id": 3}, id=13)
    it.table.delete({"id": 4})
    it.run()
    it.decide(("a", "b"))
    seen = []
    for point in _POINTS:
        for when in ("before", "behind"):
            it.restart()
            with monkeypatch.context() as patched:
                _kill(patched, point, when)
                it.job.catch_up()
                it.job.finish()
            (first, *_) = rows = it.rows()
            seen.append(tuple(first))
            if "a" in first:
                assert {row["id"]: row["b"] for row in rows if row["id"] in (1, 2)} == {1: 1 << 40, 2: None}
            else:
                it.assert_as_if_known_in_time()

    assert set(seen) == {("id", "n", "a", "b"), ("id", "n", "b")}
    assert sorted(seen, key=len, reverse=True) == seen, "the columns change once"
    it.restart()
    it.table.insert(id=9, n=0, b=9)
    it.table.update({"id": 5}, b=55)
    status = it.run()

    assert (status.state, status.version, it.ids()) == ("running", 3, {"id": 1, "n": 2, "b": 3})
    it.assert_as_if_known_in_time()


def _kill(patched: pytest.MonkeyPatch, point: str, when: str) -> None:
    module, _, name = point.rpartition(".")
    owner = pkgutil.resolve_name(module)
    original = getattr(owner, name)

    def killed(*arguments: Any, **named: Any) -> None:
        if when == "behind":
            original(*arguments, **named)
        raise _Killed(f"{when} {point}")

    patched.setattr(owner, name, killed)


def _leave_out(table: SourceTable, where: dict[str, object], **values: object) -> None:
    """An update whose event does not hold `b`, which did not change."""
    (index,) = [index for index, row in enumerate(table.rows) if where.items() <= row.items()]
    held = table.rows[index]["b"]
    table.update(where, {**values, "b": PLACEHOLDER})
    table.rows[index]["b"] = held


def _set_aside(table: SourceTable, where: dict[str, object], **values: object) -> None:
    """An update whose event is damaged, so that it is not applied."""
    (index,) = [index for index, row in enumerate(table.rows) if where.items() <= row.items()]
    held = table.rows[index]
    table.update(where, values)
    table.rows[index] = held
    record = table.records.pop()
    assert record.value is not None
    assert b'"n":0' in record.value
    table.records.append(replace(record, value=record.value.replace(b'"n":0', b'"n":"?"')))


def test_an_event_without_the_value_touches_nothing(shop: NewShop) -> None:
    it = shop("toast")
    _fill(it.table)
    it.run()
    it.table.rename_column("a", "b")
    _leave_out(it.table, {"id": 1}, n=1)
    it.table.update({"id": 2}, b="new")
    _leave_out(it.table, {"id": 2}, n=2)
    _leave_out(it.table, {"id": 3}, id=103)
    it.run()
    _leave_out(it.table, {"id": 103}, id=203, n=3)
    it.table.update({"id": 4}, b=None)
    _leave_out(it.table, {"id": 4}, id=104)
    _leave_out(it.table, {"id": 8}, n=4)
    _set_aside(it.table, {"id": 9}, b="never applied")
    assert it.run().state == "running"
    assert len(it.lake.set_aside()) == 1

    it.decide(("a", "b"))
    assert it.run().version == 3
    it.assert_as_if_known_in_time()

    _leave_out(it.table, {"id": 5}, id=105)
    _leave_out(it.table, {"id": 203}, id=303)
    it.run()
    it.assert_as_if_known_in_time()


def test_several_partitions_and_changes_behind_it(shop: NewShop) -> None:
    it = shop("halves", partitions=3)
    _fill(it.table)
    it.run()
    _change(it.table)
    it.run()
    it.table.add_column(column("c", INT32, default=7), initial=7)
    it.table.insert(id=40, n=0, b="b", c=1)
    it.run()
    it.table.rename_column("b", "d")  # proven by its place, for `c` stands behind it
    it.table.update({"id": 11}, d="eleven")
    it.run()
    assert it.ids() == {"id": 1, "n": 2, "a": 3, "d": 4, "c": 5}

    it.decide(("a", "d"))
    it.run()

    assert it.ids() == {"id": 1, "n": 2, "d": 3, "c": 5}
    it.assert_as_if_known_in_time()
    it.table.add_column(column("e", INT32))
    it.table.update({"id": 12}, d=None, e=6)
    it.run()
    assert it.ids()["e"] == 6, "the id that went is never used again"
    it.assert_as_if_known_in_time()


def test_rows_without_a_key(shop: NewShop) -> None:
    it = shop("heap", target="iceberg", key=(), full_identity=True)
    _fill(it.table)
    it.run()
    it.table.rename_column("a", "b")
    it.table.insert(id=20, n=0, b="since")
    it.table.insert(id=21, n=0, b=None)
    assert it.run().state == "running"
    it.table.update({"id": 1}, b="new")  # the target does not have the row that this event shows as the one before
    paused = it.run()
    assert paused.state == "paused"

    it.decide(("a", "b"))
    it.run()
    status = it.run()

    assert (status.state, status.version) == ("running", 3), status
    found = sorted(it.rows(), key=repr)
    assert found == sorted(it.table.rows, key=repr)


@pytest.mark.parametrize(
    ("optional", "default", "missing_rows", "said"),
    [
        (True, None, "pause", None),
        (False, None, "pause", None),
        (True, "d", "pause", "a row with that value may have been taken for another one"),
        (True, None, "insert", "deletes of rows that were not found were passed over"),
    ],
)
def test_rows_without_a_key_are_joined_only_where_they_tell_which_value_is_theirs(
    optional: bool, default: str | None, missing_rows: Literal["pause", "insert"], said: str | None
) -> None:
    table = Table(column("id", INT32), column("z", TEXT, optional=optional), key=(), full_identity=True)
    table.alter_column("z", lambda _: column("y", TEXT, default=default))
    history = table.row(y="x").history()
    join = find_join(history, "z", "y")
    assert isinstance(join, Join)
    version = join_version(history, join, ICEBERG)
    assert isinstance(version, Version)
    joined = history.extended(version)
    (step, _) = migration(history.head, history.head, version, joined=joined_columns(joined.versions)).steps
    assert isinstance(step, JoinValues)
    context: Any = None  # rows tell it by themselves, so nothing is read
    joining = Joining(
        context=context,
        route=replace(ROUTE, policy=Policy(missing_rows=missing_rows)),
        history=joined,
        step=step,
        progress=Progress(version=2),
    )

    found = joining.values()

    assert (found is None) is (said is None)
    if said is not None:
        assert isinstance(found, Refused)
        assert said in found.reason


def test_a_changelog(shop: NewShop, spark: Callable[[], None]) -> None:
    it = shop("log", target="iceberg", rule=", mode: append")
    _fill(it.table, 2)
    it.table.rename_column("a", "b")
    it.table.update({"id": 1}, b="new")
    it.table.update({"id": 2}, b=None)
    it.run()

    it.decide(("a", "b"))
    it.table.update({"id": 1}, b="newer")
    it.send()
    spark()
    it.lake.run()  # the whole job, as `cdc-sync run --once`

    rows = sorted(it.rows(), key=lambda row: int(row["_cdc_offset"]))
    assert [row["b"] for row in rows] == ["old 1", "old 2", "new", None, "newer"]
    assert "a" not in rows[0]


def test_without_the_events_the_table_stays_as_it_is(shop: NewShop, kafka: KafkaServer) -> None:
    it = shop("gone")
    _fill(it.table)
    it.run()
    _change(it.table)
    it.run()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    (version,) = it.context.history.load(it.table.id).versions[1:]
    place = TopicPartition(it.table.topic, 0, version.kafka.offset + 1)
    admin.delete_records([place])[place].result()
    before = it.rows()
    it.decide(("a", "b"))

    status = it.run()

    assert (status.state, status.version, it.rows()) == ("running", 2, before)
    assert "events since version 2 are gone from the topic" in status.warnings[-1]


@pytest.mark.parametrize("known", [True, False])
def test_of_another_partition_only_what_lies_before_the_change_may_be_gone(
    known: bool, shop: NewShop, kafka: KafkaServer
) -> None:
    it = shop(f"other-{known}".lower(), partitions=2)
    _fill(it.table)
    it.run()
    _change(it.table)
    it.run()
    (version,) = it.context.history.load(it.table.id).versions[1:]
    partition = 1 - version.kafka.partition
    end = it.context.kafka.ends([it.table.topic])[it.table.topic][partition]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    place = TopicPartition(it.table.topic, partition, 1 if known else end - 1)
    admin.delete_records([place])[place].result()
    it.decide(("a", "b"))

    status = it.run()

    assert status.version == (3 if known else 2)
    if known:
        it.assert_as_if_known_in_time()
    else:
        assert "events since version 2 are gone from the topic" in status.warnings[-1]


@pytest.mark.parametrize("left_out", [False, True])
def test_a_compacted_topic_is_enough_where_events_are_whole(left_out: bool, shop: NewShop, kafka: KafkaServer) -> None:
    it = shop(f"compacted-{left_out}".lower())
    _fill(it.table)
    it.run()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, it.table.topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result()
    _change(it.table)
    if left_out:
        _leave_out(it.table, {"id": 11}, n=1)
    it.run()
    it.decide(("a", "b"))

    status = it.run()

    assert status.version == (2 if left_out else 3)
    if left_out:
        assert "the topic is compacted, so an event that had it may be gone" in status.warnings[-1]
    else:
        it.assert_as_if_known_in_time()


def test_a_replay_knows_what_was_decided_at_a_pause(shop: NewShop, spark: Callable[[], None]) -> None:
    it = shop("pause", rule=", policy: {unproven_rename: pause}")
    _fill(it.table)
    _change(it.table)
    assert it.run().state == "paused"
    it.decide(("a", "b"))
    assert it.run().state == "running"
    it.assert_as_if_known_in_time()

    spark()
    report = replay.replay(it.lake.config, into=str(it.lake.folder / "replayed"), batch_size=None)

    assert [table.refused for table in report.tables] == [None]
    assert files(it.lake.folder / "replayed") == it.lake.history_files()


def test_a_replay_has_what_was_decided(shop: NewShop, spark: Callable[[], None]) -> None:
    it = shop("replayed")
    _fill(it.table)
    it.run()
    _change(it.table)
    it.run()
    it.decide(("a", "b"))
    it.run()
    it.table.add_column(column("c", INT32))
    it.table.insert(id=50, n=0, b="fifty", c=1)
    it.run()
    written = it.lake.history_files()
    assert len(written) == 4

    for size in (None, 5):
        into = it.lake.folder / f"replayed-{size}"
        spark()
        replay.replay(it.lake.config, into=str(into), batch_size=size)
        assert files(into) == written
