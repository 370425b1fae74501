"""What a run would do with what is waiting in the topics, without doing any of it.

It is the run itself: the same job surveys, plans, records, pauses and migrates, on a copy of the pipeline's files and
on a target that only keeps the steps. What is left out are the rows: they are counted, not read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from cdc_sync.config.models import Config
from cdc_sync.core.migration.migration import Migration
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.explain import ExplainedStep, explain
from cdc_sync.core.table.state import TableState
from cdc_sync.errors import TargetError
from cdc_sync.runtime.actor import TableActor
from cdc_sync.runtime.bounds import progress_after
from cdc_sync.runtime.context import Context, open_context
from cdc_sync.runtime.executor import Executor
from cdc_sync.runtime.job import SyncJob
from cdc_sync.runtime.reports import Plan, PlannedTable, table_history
from cdc_sync.runtime.write_plan import Outcome, WritePlan
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.sources.records import Offsets, lag
from cdc_sync.spark.session import build_session
from cdc_sync.storage.history import HistoryStore
from cdc_sync.storage.object_store import copy_files
from cdc_sync.targets.formats import makes_catalog, open_target
from cdc_sync.targets.memory.target import MemoryTarget
from cdc_sync.targets.wrappers.dry_run import DraftTarget

_COPIED = (
    *("history", "tables", "decisions", "joins", "rollbacks", "regimes"),
    *("catalogue", "values", "registry", "passed"),
)
"""What a run's decisions depend on; dead letters of before are none of it."""


class _DryRun(Executor):
    """Carries everything out on a draft, but for the rows: they are passed over."""

    def _keep_unconverted(self, state: TableState, steps: Migration) -> TableState:
        """Do without: the rows are not looked at, and may have other columns than the steps before would give them."""
        return state

    def _written(self, plan: WritePlan) -> Outcome:
        before = plan.progress or Progress(version=plan.head.number)
        return Outcome(progress=progress_after(self._context, before, plan.head.number, plan.ranges, {}))


def preview(config: Config) -> Plan:
    """Find out what a run would do with everything that is in the topics now.

    Raises:
        KafkaUnavailable: if Kafka stays away through the bounded retries.
        TargetError: if the catalog cannot be opened; one table that cannot be read is that table's problem.
        HistoryError: if what is there cannot be read.
    """
    kafka = KafkaClient(config.kafka)
    topics = kafka.matching_topics(config.kafka)
    problem = config.kafka.why_nothing_is_read(kafka.topics())
    spark = build_session(config)
    try:
        with tempfile.TemporaryDirectory(prefix="cdc_sync_plan_") as folder:
            pipeline = config.pipeline.model_copy(update={"state": folder})
            copy_files(config.pipeline.root, pipeline.root, _COPIED)
            recorded = _recorded(HistoryStore(f"{pipeline.root}/history"))
            target = _draft(config, spark)
            drafted = config.model_copy(update={"pipeline": pipeline})
            context = open_context(drafted, spark, kafka, target=target)
            ends, beginnings = kafka.ends(topics), kafka.beginnings(topics)
            try:
                job = _run(context, ends)
            finally:
                context.catalogue.close()
            tables = []
            for table in job.tables.all():
                drafted_target = table.target
                assert isinstance(drafted_target, DraftTarget)
                name = table.route.target
                steps = tuple(explain(step, name) for step in drafted_target.steps(name))
                mine = [topic for topic in topics if table in job.tables.of(topic)]
                offsets = lag(_read_so_far(drafted_target, table, context, mine), beginnings, ends)
                tables.append(_planned(table, steps, recorded.get(table.table, 0), offsets))
            dead_letters = context.state.dead_letters.counts()
            return Plan(pipeline=config.pipeline.name, tables=tuple(tables), dead_letters=dead_letters, problem=problem)
    finally:
        spark.stop()
        kafka.close()


def _read_so_far(
    target: DraftTarget, table: TableActor, context: Context, topics: Sequence[str]
) -> Mapping[str, Mapping[int, int]]:
    """Return by topic and partition the next offset to read; of a target that cannot be read, as it was last known."""
    try:
        return target.read_so_far(table.route.target, topics)
    except TargetError:
        status = context.state.load(table.table)
        return {topic: status.offsets.get(topic, {}) if status else {} for topic in topics}


def _run(context: Context, ends: Offsets) -> SyncJob:
    # Known schemas are looked at as well, for only a survey shows a TRUNCATE.
    job = SyncJob(context, executor=_DryRun, takes_known=False)
    job.tables.restore()
    job.process({(topic, number): end for topic, found in ends.items() for number, end in found.items()})
    job.catch_up()
    return job


def _draft(config: Config, spark: SparkSession) -> DraftTarget:
    """Open the target to look at it; an embedded catalog that is not there yet is not made."""
    if makes_catalog(config.target):
        return DraftTarget(MemoryTarget(), config.target.capabilities)
    real = open_target(config.target, spark)
    return DraftTarget(real, real.capabilities)


def _recorded(store: HistoryStore) -> dict[TableId, int]:
    return {table: len(store.load(table).versions) for table in store.tables()}


def _planned(table: TableActor, steps: tuple[ExplainedStep, ...], recorded: int, offsets: int) -> PlannedTable:
    state = table.state
    pause, failure, wait = state.stop, state.failure, state.wait
    return PlannedTable(
        table=table.table,
        target=str(table.route.target),
        offsets=offsets,
        versions=table_history(table.state.history).versions[recorded:] if table.state.history else (),
        steps=steps,
        problem=pause.reason if pause else failure.text if failure else wait.text if wait else None,
        paused=pause is not None,
        remedy=pause.remedy if pause else None,
        at=pause.at if pause else None,
        warnings=table.state.warnings,
    )
