"""One capture through a real Kafka and the real job, into a lake or into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from cdc_sync.config import Config, parse_config
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.runtime.context import Context, open_context
from cdc_sync.runtime.job import SyncJob
from cdc_sync.runtime.reports import RunReport
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.storage.state import StateStore
from cdc_sync.targets.memory.target import MemoryTarget
from cdc_sync.testing import Record
from tests.conftest import Produce
from tests.corpus.images import Image, lake_image, memory_image
from tests.corpus.reader import PREFIXES, database, schemas, topics
from tests.corpus.steps import Seen, Step
from tests.lakes.opening import open_lake
from tests.lakes.table import Place
from tests.registry.ccompat import SmallRegistry

# As a sensible operator would: the key that events are true about, NULL for values that no target holds or that nobody
# sent (a row of `toast` holds the very text of the placeholder), and nothing guessed. The captures have
# replace.null.with.default=true, which is warned of.
_CONFIG = """
pipeline: {{name: {name}, state: '{folder}/state'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: '{topics}'}}
{registry}
evidence: {evidence}
tables:
  - {{table: postgres.inv.gen, policy: {{unproven_rename: add}}}}
  - {{table: postgres.inv.iidx, key: [code]}}
  - {{table: postgres.inv.toast, policy: {{missing_rows: insert}}}}
{apart}
  - {{pattern: 'postgres\\..*'}}
  - {{pattern: '.*', target: '{{database}}.{{table}}'}}
policy: {{unproven_rename: pause, rename_table: follow, out_of_range: 'null'}}
target: {{format: {target}, catalog: {{{metastore}warehouse: '{folder}/warehouse'}}}}
job: {{max_offsets_per_batch: {size}, compile_from_rows: {compile_from}}}
"""

_UPPER, _APART = ("inv", "CASE"), ("inv", "upper_case")
"""A table beside one whose name differs only in case, and the target that an operator has to give it in a metastore."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run over a capture ended; tables by their name in the truth.

    Attributes:
        aside: (topic, offset, reason) of each record that was set aside.
        history: the files of the schema history.
    """

    statuses: Mapping[str, TableStatus]
    images: Mapping[str, Image]
    other_records: Mapping[str, int]
    aside: tuple[tuple[str, int, str], ...]
    history: Mapping[str, bytes]


@contextmanager
def registry_of(capture: str) -> Iterator[str | None]:
    """Serve an Avro capture's schemas under the ids its messages carry; yields the address, None for JSON."""
    if not capture.endswith("avro"):
        yield None
        return
    with SmallRegistry(schemas(capture)) as registry:
        yield registry.confluent_url


def produce_capture(produce: Produce, capture: str) -> None:
    """Write every captured message, headers and all, at its own offset."""
    for topic, messages in topics(capture).items():
        records = [Record(key=message.key, value=message.value, headers=message.headers) for message in messages]
        assert produce(topic, records) == tuple(message.offset for message in messages)


def corpus_config(
    capture: str,
    *,
    folder: Path,
    servers: str,
    target: str,
    size: int = 200_000,
    registry: str | None = None,
    metastore: str | None = None,
    name: str = "corpus",
    pattern: str | None = None,
    told: bool = True,
    compiled: bool = False,
) -> Config:
    """Configure a pipeline for a capture.

    Args:
        told: also read what the source says of its own DDL.
        compiled: Spark compiles whatever it runs; else it interprets all, for the tables are small.
    """
    prefix = PREFIXES[capture]
    topics_of = {
        "postgres": f"{{messages: [{prefix}.message], wait: 0s}}",
        "mariadb": f"{{schema_changes: [{prefix}], wait: 0s}}",
    }
    text = _CONFIG.format(
        name=name,
        folder=folder,
        servers=servers,
        topics=pattern or rf"{PREFIXES[capture]}(\..*)?",
        registry=f"registry: {{url: '{registry}'}}" if registry else "",
        target=target,
        metastore=f"uri: '{metastore}', " if metastore else "",
        size=size,
        compile_from=0 if compiled else 100_000,
        evidence=topics_of[database(capture)] if told else "{}",
        apart=rf"  - {{pattern: '(.*\.)?{_dotted(_UPPER)}', target: {_dotted(_APART)}}}" if target == "parquet" else "",
    )
    return parse_config(text, path=str(folder / "corpus.yaml"))


@contextmanager
def session_of_its_own(shared: SparkSession) -> Iterator[None]:
    """Let whatever starts a session find a new one in the shared JVM, which outlives the job that stops it."""

    class Prepared(SparkSession):
        def stop(self) -> None:
            """Leave the JVM to the next run."""

    SparkSession._instantiatedSession = Prepared(shared.sparkContext, shared._jsparkSession.newSession())
    try:
        yield
    finally:
        SparkSession._instantiatedSession = shared


def run_into_lake(config: Config, run_once: Callable[[Config], RunReport]) -> Ended:
    """Run the whole job, Structured Streaming included, and read its lake without Spark."""
    report = run_once(config)
    lake = open_lake(config.target)
    places = {table_name(status): place_of(status) for status in report.tables}
    if config.target.format == "parquet":
        places[_dotted(_UPPER)] = _APART
    tables = {name: lake.table(place) for name, place in places.items()}
    lake.close()
    images = {name: lake_image(table) for name, table in tables.items() if table is not None}
    return _ended(config, report.tables, images, report.other_records)


def run_into_memory(config: Config, spark: SparkSession, steps: Sequence[Step]) -> tuple[Ended, tuple[Seen, ...]]:
    """Run the job's batch function over each step, then over the rest, and what follows between batches."""
    seen: list[Seen] = []
    with memory_job(config, spark) as (job, context):
        read: Mapping[str, int] = {}
        for step in steps:
            job.process({(topic, 0): end for topic, end in step.ends.items() if end != read.get(topic, 0)})
            job.catch_up()
            job.finish()
            read = step.ends
            seen += _seen(job, context, step)
        job.process(ends_of(context))
        job.catch_up()
        job.finish()
        return ended_in_memory(job, context), tuple(seen)


def _seen(job: SyncJob, context: Context, step: Step) -> Iterator[Seen]:
    """Return the tables of a step as they are now; the target of one that the job does not know has no image."""
    images = _memory_images(job, context)
    for status in context.state.tables():
        table = table_name(status)
        if table in step.tables:
            yield Seen(step=step, table=table, status=status, image=images.get(table))


@contextmanager
def memory_job(config: Config, spark: SparkSession) -> Iterator[tuple[SyncJob, Context]]:
    """Open a job whose batches the caller drives."""
    kafka = KafkaClient(config.kafka)
    try:
        context = open_context(config, spark, kafka)
        yield SyncJob(context), context
    finally:
        kafka.close()


def ends_of(context: Context) -> dict[tuple[str, int], int]:
    """Return the present end of every partition that the pipeline reads."""
    names = context.kafka.matching_topics(context.config.kafka)
    ends = context.kafka.ends(names)
    return {(topic, partition): end for topic, found in ends.items() for partition, end in found.items()}


def ended_in_memory(job: SyncJob, context: Context) -> Ended:
    return _ended(context.config, context.state.tables(), _memory_images(job, context), job.other_records())


def _memory_images(job: SyncJob, context: Context) -> dict[str, Image]:
    target = context.target
    assert isinstance(target, MemoryTarget)
    images = {}
    for sync in job.tables.all():
        if target.state(sync.route.target) is not None:
            schema = target._tables[sync.route.target].schema
            images[str(sync.route.target)] = memory_image(schema, target.rows(sync.route.target))
    return images


def _ended(
    config: Config, statuses: tuple[TableStatus, ...], images: Mapping[str, Image], others: Mapping[str, int]
) -> Ended:
    state = StateStore(config.pipeline.root)
    root = Path(config.pipeline.root) / "history"
    return Ended(
        statuses={table_name(status): status for status in statuses},
        images=images,
        other_records=dict(others),
        aside=tuple(sorted({(item.topic, item.offset, item.reason) for item in state.dead_letters.letters()})),
        history={str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.json"))},
    )


def table_name(status: TableStatus) -> str:
    """Return a table's name in the truth."""
    return _dotted(place_of(status))


def _dotted(place: Place) -> str:
    return ".".join(place)


def place_of(status: TableStatus) -> Place:
    """Return namespace and name of a table's target, as these configurations route it."""
    return status.table.schema or status.table.database, status.table.table
