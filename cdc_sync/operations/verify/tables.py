"""Verifies the tables of a pipeline, one after the other."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from structlog import get_logger

from cdc_sync.config.models import Config
from cdc_sync.config.routes import route
from cdc_sync.core.migration.names import held_target
from cdc_sync.core.migration.routes import Route, TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.resync import marked
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.errors import CdcSyncError, RefusedError, TargetError, TransientError
from cdc_sync.operations.verify.columns import Compared, pair_columns
from cdc_sync.operations.verify.compare import compare
from cdc_sync.operations.verify.differences import count, show
from cdc_sync.operations.verify.queries import Relation
from cdc_sync.operations.verify.report import Outcome, TableVerified, Verified
from cdc_sync.operations.verify.settle import Clock, settle
from cdc_sync.operations.verify.sides import Side
from cdc_sync.operations.verify.source import Source, open_source
from cdc_sync.operations.verify.spark_sql import SPARK
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.spark.session import activate, build_session
from cdc_sync.storage.history import HistoryStore
from cdc_sync.storage.state import StateStore
from cdc_sync.targets.formats import makes_catalog, open_target
from cdc_sync.targets.protocol import Target
from cdc_sync.targets.wrappers.merged import SharedTables

_CHANGELOG = "its target is a changelog (mode: append), which holds every event and not the source's rows"
VIEW = "cdc_sync_verify"
"""The session's own name for the table."""


class TargetTable:
    """One table of the target, as it was after one commit."""

    def __init__(self, spark: SparkSession, target: Target, name: TargetName, version: int, schema: InternalSchema):
        """Begin with the newest commit.

        Args:
            version: what the table's columns are stamped with.
            schema: that version's.
        """
        self._spark = spark
        self._target = target
        self._name = name
        self._version = version
        self._schema = schema
        self.renew()

    def ask(self, query: str) -> Sequence[Sequence[Any]]:
        """Run a query on the commit, of `VIEW` and `value_column(id)`.

        Raises:
            TargetError: it cannot be read, for its files are gone or the catalog is away.
        """
        activate(self._spark)
        try:
            return [tuple(row) for row in self._spark.sql(query).collect()]
        except PySparkException as error:
            said = str(error).strip().partition("\n")[0]
            raise TargetError(f"Cannot read {self._name}: {said}") from error

    def renew(self) -> None:
        """Go on to the newest commit.

        Raises:
            TransientError: the table has other columns now.
        """
        activate(self._spark)
        state = self._target.state(self._name)
        if state is None or state.version != self._version:
            raise TransientError(f"Cannot verify {self._name}: its columns changed meanwhile; run it again")
        commit = self._target.commits(self._name, 1)[0]
        ids = [column.id for column in self._schema.columns]
        self._target.read(self._name, self._schema, ids, commit).createOrReplaceTempView(VIEW)


def verify(config: Config, tables: Sequence[TableId], *, limit: int, named: bool) -> Verified:
    """Compare source tables with their targets.

    Args:
        limit: how many differences are listed of each table.
        named: the tables were asked for by name: one that cannot be compared is refused.

    Raises:
        ConfigError: the configuration names no source database.
        SetupError: the source cannot be read, or Spark cannot be started.
        RefusedError: a table that was asked for by name is not to be compared.
    """
    routes = {table: route(config, table) for table in tables}
    for table, wanted in routes.items():
        if named and wanted is None:
            raise RefusedError(f"Cannot verify {table}: no rule of the configuration matches it")
        if named and wanted is not None and wanted.append:
            raise RefusedError(f"Cannot verify {table}: {_CHANGELOG}")
    if config.target.format == "memory":
        raise RefusedError("Cannot verify: target.format memory keeps nothing after the process ends")
    with open_source(config) as source:
        spark = build_session(config)
        try:
            verifier = _Verifier(config, spark, source, limit)
            found = tuple(verifier.table(wanted) for wanted in routes.values() if wanted is not None)
        finally:
            spark.stop()
    return Verified(pipeline=config.pipeline.name, tables=found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """What is compared of one table."""

    columns: tuple[Compared, ...]
    key: tuple[int, ...]
    source: Side
    target: Side


class _Verifier:
    """What the tables of one run share."""

    def __init__(self, config: Config, spark: SparkSession, source: Source, limit: int) -> None:
        self._config = config
        self._spark = spark
        self._source = source
        self._limit = limit
        self._state = StateStore(config.pipeline.root)
        self._history = HistoryStore(f"{config.pipeline.root}/history")
        self._opened: Target | None = None

    def table(self, wanted: Route) -> TableVerified:
        """Compare one table; what stands in the way of one holds up no other."""
        began = time.monotonic()
        blank = TableVerified(table=wanted.table, target=str(wanted.target), outcome=Outcome.NOT_COMPARED)
        if wanted.append:
            return replace(blank, outcome=Outcome.CHANGELOG, problem=_CHANGELOG)
        status = self._state.load(wanted.table)
        blank = replace(blank, notes=_notes(status))
        try:
            found = self._compared(wanted, blank, status)
        except CdcSyncError as error:
            found = replace(blank, problem=str(error))
        return replace(found, seconds=round(time.monotonic() - began, 3))

    def _compared(self, wanted: Route, blank: TableVerified, status: TableStatus | None) -> TableVerified:
        target = self._target()
        if target is None:
            return replace(blank, problem="there is no target table yet")
        name = held_target(wanted.target, wanted.capabilities.tables)
        target = SharedTables(target).target_of(wanted)
        state = target.state(name)
        if state is None or state.version is None:
            return replace(blank, problem="there is no target table yet")
        there = self._source.table(wanted.table)
        if isinstance(there, str):
            return replace(blank, problem=there)
        self._source.renew()
        schema = self._history.load(wanted.table).version(state.version).schema
        columns, left = pair_columns(schema, there.columns, self._source.types)
        blank = replace(blank, not_compared=left)
        if missing := _missing_key(schema, columns):
            return replace(blank, problem=f"column {missing} of its key cannot be compared, see the columns left out")
        if not columns:
            return replace(blank, problem="none of its columns can be compared")
        rows = TargetTable(self._spark, target, name, state.version, schema)
        return self._verdict(
            blank, _pair(self._source, there.sql, rows, columns, schema.primary_key), status, target, name
        )

    def _verdict(
        self, blank: TableVerified, pair: _Pair, status: TableStatus | None, target: Target, name: TargetName
    ) -> TableVerified:
        settings = self._config.verify
        say = partial(get_logger().info, table=str(blank.table))
        found = compare(pair.source, pair.target, settings.rows_in_memory, say=say)
        ends = self._ends(status) if found.rows else {}
        settled = settle(
            pair.source,
            pair.target,
            found,
            bound=settings.rows_in_memory,
            seconds=settings.settle.total_seconds(),
            clock=Clock(),
            say=say,
        )
        notes = blank.notes
        unsettled = settled.unsettled
        if settled.rows and (behind := _behind(ends, self._state.load(blank.table), target.state(name))):
            unsettled = frozenset(settled.rows)
            notes = (*notes, f"the job has not read {behind} records yet that were in the topics before")
        counts = count(settled.rows, unsettled, keyed=bool(pair.key))
        differ = counts.only_in_source + counts.only_in_target + counts.different
        open_ = counts.unsettled or found.left
        return replace(
            blank,
            outcome=Outcome.DIFFERENT if differ else Outcome.UNSETTLED if open_ else Outcome.EQUAL,
            source_rows=found.source_rows,
            target_rows=found.target_rows,
            ranges=found.ranges,
            ranges_differing=found.ranges_differing,
            ranges_left=len(found.left),
            rows_left=sum(item.rows for item in found.left),
            counts=counts,
            differences=show(pair.source, pair.target, settled.rows, unsettled, pair.columns, pair.key, self._limit),
            notes=notes,
        )

    def _ends(self, status: TableStatus | None) -> Mapping[str, Mapping[int, int]]:
        """Return where the table's topics end now; {} if Kafka does not say."""
        if status is None or not status.offsets:
            return {}
        kafka = KafkaClient(self._config.kafka, attempts=1)
        try:
            return kafka.ends(status.offsets)
        except CdcSyncError as error:
            get_logger().warning("Kafka is not asked whether the job is behind", why=str(error))
            return {}
        finally:
            kafka.close()

    def _target(self) -> Target | None:
        """Return the target; None where opening it would make an embedded catalog."""
        if makes_catalog(self._config.target):
            return None
        if self._opened is None:
            self._opened = open_target(self._config.target, self._spark)
        return self._opened


def _pair(source: Source, table: str, rows: TargetTable, columns: tuple[Compared, ...], key: tuple[int, ...]) -> _Pair:
    by_id = {column.id: column for column in columns}
    ours = Relation(
        dialect=source.types.dialect,
        table=table,
        key=tuple(by_id[id_].source for id_ in key),
        columns=tuple(column.source for column in columns),
    )
    theirs = Relation(
        dialect=SPARK,
        table=VIEW,
        key=tuple(by_id[id_].target for id_ in key),
        columns=tuple(column.target for column in columns),
    )
    return _Pair(
        columns=columns,
        key=key,
        source=Side(relation=ours, ask=source.ask, renew=source.renew),
        target=Side(relation=theirs, ask=rows.ask, renew=rows.renew),
    )


def _missing_key(schema: InternalSchema, columns: Sequence[Compared]) -> str | None:
    known = {column.id for column in columns}
    return next((repr(column.name) for column in schema.key_columns if column.id not in known), None)


def _behind(ends: Mapping[str, Mapping[int, int]], status: TableStatus | None, state: TargetState | None) -> int:
    """Return how many offsets before some ends the table has not read yet."""
    behind = 0
    for topic, partitions in ends.items():
        for partition, end in partitions.items():
            said = status.offsets.get(topic, {}).get(partition, 0) if status is not None else 0
            progress = state.progress if state is not None else None
            held = (progress.next_offset(topic, partition) or 0) if progress is not None else 0
            behind += max(0, end - max(said, held))
    return behind


def _notes(status: TableStatus | None) -> tuple[str, ...]:
    if status is None:
        return ()
    notes = [] if status.state == "running" else [f"the table is {status.state}: {status.reason}"]
    notes += [f"{marked(mark)} needs a resync: {mark.reason}" for mark in status.needs_resync]
    return tuple(notes)
