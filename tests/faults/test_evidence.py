"""What a source tells of its columns, in time, late, twice or never, through the real job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from cdc_sync.config import parse_config
from cdc_sync.core.history.history import History
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.testing import TEXT, column
from tests.conftest import Produce
from tests.corpus.reader import topics
from tests.faults.told import ToldTable

if TYPE_CHECKING:
    from cdc_sync.runtime.context import Context
    from cdc_sync.runtime.job import SyncJob

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

_CONFIG = """
pipeline: {{name: p, state: '{folder}'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: '{prefix}\\..*'}}
evidence: {{messages: [{prefix}.message], wait: {wait}}}
tables: [{{pattern: '.*'{rule}}}]
target: {{format: memory}}
"""


class Driven:
    """A job whose batches the test drives, for one table."""

    def __init__(self, job: SyncJob, context: Context, table: ToldTable, produce: Produce) -> None:
        self.job, self.context, self.table, self._produce = job, context, table, produce
        self._sent = {"rows": 0, "messages": 0}

    def write(self) -> None:
        """Let the events written since the last time reach Kafka."""
        self._produce(self.table.topic, self.table.records[self._sent["rows"] :])
        self._sent["rows"] = len(self.table.records)

    def tell(self) -> None:
        """Likewise the messages."""
        self._produce(f"{self.table._prefix}.message", self.table.messages[self._sent["messages"] :])
        self._sent["messages"] = len(self.table.messages)

    def run(self) -> TableStatus:
        """Process everything there is."""
        names = self.context.kafka.matching_topics(self.context.config.kafka)
        ends = self.context.kafka.ends([name for name in names if not name.endswith(".message")])
        self.job.process({(topic, part): end for topic, parts in ends.items() for part, end in parts.items()})
        (status,) = self.context.state.tables()
        return status

    @property
    def history(self) -> History:
        found = self.context.history.find(self.table.id)
        assert found is not None
        return found

    def ids(self) -> dict[str, int]:
        return {column.name: column.id for column in self.history.head.schema.live}

    def rows(self) -> list[dict[str, object]]:
        from cdc_sync.targets.memory.target import MemoryTarget

        target = self.context.target
        assert isinstance(target, MemoryTarget)
        (sync,) = self.job.tables.all()
        names = [column.name for column in self.history.head.schema.columns]
        return sorted(
            ({name: row[name] for name in names} for row in target.rows(sync.route.target)),
            key=lambda row: str(row["id"]),
        )


class NewDriven(Protocol):
    def __call__(self, prefix: str, *, wait: str = "60s", rule: str = "") -> Driven: ...


@pytest.fixture
def driven(kafka: KafkaServer, produce: Produce, spark: Callable[[], None], tmp_path: Path) -> Iterator[NewDriven]:
    from cdc_sync.spark.session import build_session
    from tests.corpus.runs import memory_job

    with ExitStack() as stack:

        def make(prefix: str, *, wait: str = "60s", rule: str = "") -> Driven:
            prefix = f"told-{prefix}"  # no other test's topics
            text = _CONFIG.format(
                folder=tmp_path / prefix, servers=kafka.bootstrap_servers, prefix=prefix, wait=wait, rule=rule
            )
            config = parse_config(text)
            spark()
            job, context = stack.enter_context(memory_job(config, build_session(config)))
            made = Driven(job, context, ToldTable(prefix), produce)
            made.table.insert(id=1, z="z", a="first")
            return made

        yield make


def _said(history: History) -> list[tuple[str, str]]:
    return [(item.subject, item.kind) for version in history.versions[1:] for item in version.evidence]


def test_the_status_says_since_when_messages_tell_of_the_table(driven: NewDriven) -> None:
    it = driven("covered")
    it.write()
    status = it.run()
    assert status.evidence == {"evidence.messages": None}
    assert "install-ddl-capture" in status.evidence_gaps[0]

    it.table.rename_column("a", "b")
    it.tell()
    for _ in range(2):  # what is read in the one is written down in the next
        it.job.catch_up()
        it.job.finish()

    (status,) = it.context.state.tables()
    assert status.evidence == {"evidence.messages": str(it.context.evidence.logs[0].of(it.table.id)[0].position)}
    assert status.evidence_gaps == ()


def test_a_renamed_last_column_is_one_column(driven: NewDriven) -> None:
    it = driven("renamed")
    it.table.rename_column("a", "b")
    it.table.insert(id=2, z="z", b="second")
    it.tell()
    it.write()

    status = it.run()

    assert (status.state, it.ids()) == ("running", {"id": 1, "z": 2, "b": 3})
    assert [row["b"] for row in it.rows()] == ["first", "second"]
    assert _said(it.history) == [("a", "message"), ("a", "considered")]


def test_a_name_that_was_dropped_and_added_again_is_another_column(driven: NewDriven) -> None:
    it = driven("again")
    it.write()
    it.run()
    it.table.drop_column("a")
    it.table.add_column(column("a", TEXT))
    it.table.insert(id=2, z="z", a="second")
    it.tell()
    it.write()

    status = it.run()

    assert (status.state, it.ids()) == ("running", {"id": 1, "z": 2, "a": 4})
    assert [row["a"] for row in it.rows()] == [None, "second"]
    assert _said(it.history) == [("a", "message"), ("a", "message"), ("a", "considered")]


def test_a_late_message_is_waited_for(driven: NewDriven) -> None:
    it = driven("late")
    it.table.insert(id=2, z="z", a="second")
    it.table.rename_column("a", "b")
    it.table.insert(id=3, z="z", b="third")
    it.write()

    waiting = it.run()

    assert waiting.state == "waiting"
    assert waiting.reason is not None
    assert "the topic of logical messages" in waiting.reason
    assert [row["a"] for row in it.rows()] == ["first", "second"], "what stands before the change is written"

    it.tell()
    it.job.catch_up()
    it.job.finish()
    (status,) = it.context.state.tables()

    assert (status.state, it.ids()) == ("running", {"id": 1, "z": 2, "b": 3})
    assert [row["b"] for row in it.rows()] == ["first", "second", "third"]


def test_a_message_that_stays_away_leaves_the_policy_and_is_said_when_it_comes(driven: NewDriven) -> None:
    it = driven("away", wait="0s")
    it.table.rename_column("a", "b")
    it.table.insert(id=2, z="z", b="second")
    it.write()

    status = it.run()

    assert (status.state, it.ids()) == ("running", {"id": 1, "z": 2, "b": 4})
    assert [(row["a"], row["b"]) for row in it.rows()] == [("first", None), (None, "second")]

    it.tell()
    said: list[str] = []
    for number in range(3, 13):  # a topic that was made just now is not in the brokers' answers at once
        it.table.insert(id=number, z="z", b="later")
        it.write()
        status = it.run()
        said = [text for text in status.warnings if "are one column, as the source told later" in text]
        if said:
            break

    assert status.state == "running"
    (text,) = said
    assert text.startswith("version 2: 'a' and 'b' are one column, as the source told later; `cdc-sync decide`")


def test_a_compacted_topic_with_a_hole_proves_nothing_across_it(kafka: KafkaServer) -> None:
    """A record that is missing looks the same as one of a transaction that was aborted: an offset without a record."""
    from cdc_sync.config.sources import Evidence, Kafka
    from cdc_sync.core.debezium.schema_book import SchemaBook
    from cdc_sync.sources.evidence_topics import EvidenceTopics
    from cdc_sync.sources.kafka import KafkaClient

    servers: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
    messages = topics("mariadb-json")["maj"]
    hole = next(number for number, item in enumerate(messages) if item.value and b"rename column b to a" in item.value)
    for name, policy in (("holes", "compact"), ("whole", "delete")):
        admin = AdminClient(servers)
        admin.create_topics([NewTopic(name, 1, 1, config={"cleanup.policy": policy})])[name].result()
        producer = Producer({**servers, "transactional.id": name})
        producer.init_transactions()
        for lost, part in ((False, messages[:hole]), (True, messages[hole : hole + 1]), (False, messages[hole + 1 :])):
            producer.begin_transaction()
            for message in part:
                producer.produce(name, key=message.key, value=message.value)
            producer.flush()
            (producer.abort_transaction if lost else producer.commit_transaction)()
    client = KafkaClient(Kafka(bootstrap_servers=kafka.bootstrap_servers, topics=("whole",)))
    topics_ = EvidenceTopics(Evidence(schema_changes=("holes", "whole")), client, SchemaBook())

    topics_.refresh()

    table = TableId(database="inv", schema="", table="reorder")  # no statement of it is missing
    last = SourcePosition(kind="binlog", parts=(9, 0, 0))
    holes, whole = topics_.logs
    before, after = (whole.of(table)[0], whole.at(table, last))
    assert after is not None
    assert {column.token for column in after.columns} == {column.token for column in before.columns}
    broken = holes.at(table, last)
    assert broken is not None
    eras = [{column.token.era for column in structure.columns} for structure in (broken, holes.of(table)[0])]
    assert eras[0].isdisjoint(eras[1])
