"""The typed configuration. Every key is explained in conf/reference.yaml, which a test keeps complete."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, Field, model_validator

from cdc_sync.config.fields import Duration, FolderName, Location, Properties, Text, problem
from cdc_sync.config.formats import BUILT_IN, format_of
from cdc_sync.config.rules import check_rules, evolution_of, policy_of, readers_of
from cdc_sync.config.secrets import Secret
from cdc_sync.config.section import Section
from cdc_sync.config.sources import Connector, Evidence, Kafka, Registry, SourceDatabase, is_topic_name
from cdc_sync.config.tables import PolicyDefaults, PolicyOverride, TableRule
from cdc_sync.config.target import Target
from cdc_sync.core.migration.maintenance import Upkeep
from cdc_sync.core.migration.removal import why_not_removed, why_not_renamed
from cdc_sync.core.model.dead_letters import Payload


class Pipeline(Section):
    """Who the pipeline is and where it keeps what it must not forget."""

    name: FolderName
    state: Location = "./state"

    @property
    def root(self) -> str:
        """Folder or URL below which all files of this pipeline live."""
        return f"{self.state.rstrip('/')}/{self.name}"


class Job(Section):
    """The pace of the job."""

    trigger_interval: Duration = timedelta(seconds=1)
    max_offsets_per_batch: Annotated[int, Field(ge=1)] = 200_000
    max_bytes_per_batch: Annotated[int, Field(ge=1024 * 1024)] = 2 * 1024 * 1024 * 1024
    whole_transactions: bool = False
    parallel_tables: Annotated[int, Field(ge=1, le=64)] = 4
    stop_within: Duration = timedelta(seconds=60)
    compile_from_rows: Annotated[int, Field(ge=0)] = 100_000


class Verify(Section):
    """How `cdc-sync verify` goes about it."""

    settle: Duration = timedelta(seconds=30)
    rows_in_memory: Annotated[int, Field(ge=256, le=10_000_000)] = 20_000


class Maintenance(Section):
    """How tables are kept small and quick to read, by `cdc-sync maintain` or by the job itself."""

    every: Duration | None = None
    keep_for: Duration = timedelta(hours=120)
    keep_at_least: Annotated[int, Field(ge=1)] = 10
    target_file_size: Annotated[int, Field(ge=1024 * 1024)] = 128 * 1024 * 1024
    compact_from_files: Annotated[int, Field(ge=2)] = 5
    orphans_older_than: Duration = timedelta(hours=72)

    @model_validator(mode="after")
    def _a_write_may_take_a_day(self) -> Maintenance:
        if self.every is not None and self.every < timedelta(seconds=1):
            problem("must be at least 1s; leave it out to maintain by command only", "every")
        if self.orphans_older_than < timedelta(hours=24):
            problem("must be at least 24h, for a younger file may be of a write that goes on", "orphans_older_than")
        return self

    @property
    def upkeep(self) -> Upkeep:
        """What is wanted of each table."""
        return Upkeep(
            keep_for=self.keep_for,
            keep_at_least=self.keep_at_least,
            target_file_size=self.target_file_size,
            compact_from_files=self.compact_from_files,
            orphans_older_than=self.orphans_older_than,
        )


class Limits(Section):
    """What is refused because no sane source sends it."""

    max_message_bytes: Annotated[int, Field(ge=1)] = 16 * 1024 * 1024
    max_columns: Annotated[int, Field(ge=1)] = 2000
    max_depth: Annotated[int, Field(ge=1, le=64)] = 32
    max_name_length: Annotated[int, Field(ge=1)] = 255
    max_versions_per_hour: Annotated[int, Field(ge=1)] = 1000
    max_new_tables_per_hour: Annotated[int, Field(ge=1)] = 1000
    max_dead_letters_per_hour: Annotated[int, Field(ge=0)] = 100_000


class DeadLetters(Section):
    """What becomes of records that cannot be applied."""

    payload: Payload = "full"
    topic: Text | None = None
    keep_for: Duration | None = None
    keep_bytes: Annotated[int, Field(ge=0)] | None = None

    @property
    def kept(self) -> tuple[float, float]:
        """For how many seconds letters are kept, and how many bytes of them; without end where nothing is said."""
        seconds = math.inf if self.keep_for is None else self.keep_for.total_seconds()
        return seconds, math.inf if self.keep_bytes is None else self.keep_bytes


class Spark(Section):
    """The Spark session; anything given to spark-submit wins over None."""

    master: Text | None = None
    packages: tuple[Text, ...] | None = None
    jars: tuple[Text, ...] = ()
    conf: Properties = {}


class Config(Section):
    """All of one pipeline's configuration."""

    pipeline: Pipeline
    kafka: Kafka
    registry: Registry | None = None
    connector: Connector = Connector()
    source: SourceDatabase | None = None
    evidence: Evidence = Evidence()
    tables: tuple[TableRule, ...]
    policy: PolicyDefaults = PolicyDefaults()
    target: Target = Field(default_factory=Target)
    job: Job = Job()
    verify: Verify = Verify()
    maintenance: Maintenance = Maintenance()
    limits: Limits = Limits()
    dead_letters: DeadLetters = DeadLetters()
    spark: Spark = Spark()

    @model_validator(mode="after")
    def _rules_can_work(self) -> Config:
        if not self.tables:
            problem("must not be empty; add a rule with table or pattern", "tables")
        check_rules(self.tables)
        self._check_removals()
        self._check_partitionings()
        self._check_merges()
        self._check_readers()
        self._check_dead_letters()
        return self

    def _check_dead_letters(self) -> None:
        """Refuse to write dead letters where they cannot be, or would be read as records."""
        topic = self.dead_letters.topic
        if topic is not None and not is_topic_name(topic):
            problem("is no topic name: letters, digits, '.', '_' and '-' only", "dead_letters", "topic")
        if topic is not None and self.kafka.matching([topic]):
            problem("is a topic that the kafka section has the job read; name another one", "dead_letters", "topic")

    def _check_removals(self) -> None:
        """Refuse to drop or rename tables where that is not one step."""
        said: list[tuple[tuple[str | int, ...], PolicyDefaults | PolicyOverride]] = [(("policy",), self.policy)]
        said += [(("tables", index, "policy"), rule.policy) for index, rule in enumerate(self.tables)]
        catalog, format_ = self.target.catalog, format_of(self.target.format).usual
        for place, policy in said:
            for setting, refused in (("drop_table", why_not_removed), ("rename_table", why_not_renamed)):
                reason = refused(format_, getattr(policy, setting), catalog=catalog.type, warehouse=catalog.warehouse)
                if reason is not None:
                    problem(reason, *place, setting)

    def _check_partitionings(self) -> None:
        """Refuse to partition tables of a format that is not partitioned here."""
        target = self.target
        format_ = target.format
        *able, last = (name for name, found in BUILT_IN.items() if found.usual.partitions is not None)
        for index, rule in enumerate(self.tables):
            if rule.partition_by is not None and format_of(format_).usual.partitions is None:
                problem(
                    f"has no use with target.format {format_}: cdc_sync partitions {', '.join(able)} and {last} tables "
                    "only; remove it",
                    *("tables", index, "partition_by"),
                )
            if rule.partition_by and format_of(format_).capabilities(evolution_of(target, rule)).partitions is None:
                problem(
                    "stands beside schema_evolution: on_read, where Spark shows wrong values of columns that tables "
                    "are partitioned by; remove it, or say schema_evolution: on_write",
                    *("tables", index, "partition_by"),
                )
            if rule.partition_by and format_ == "hudi" and target.metastore:
                problem(
                    "has no use with a metastore, which is not told of partitions of hudi tables: most engines would "
                    "find no rows; remove it, or leave out target.catalog.type",
                    *("tables", index, "partition_by"),
                )

    def _check_merges(self) -> None:
        """Refuse to merge tables where the format, or what is to become of a target, concerns rows of others."""
        format_ = self.target.format
        for index, rule in enumerate(self.tables):
            if rule.merge is None:
                continue
            place = ("tables", index, "merge")
            if not format_of(format_).usual.merges:
                problem(f"has no use with target.format {format_}: only iceberg and delta tables are shared", *place)
            if format_ != "iceberg" and self.target.metastore:
                problem(
                    "has no use with a metastore, which is not told of shared tables; leave out its catalog", *place
                )
            policy = policy_of(self.policy, rule)
            for setting, answer, others in (("drop_table", "archive", "keep, drop or pause"), _FOLLOW):
                if getattr(policy, setting) == answer:
                    problem(
                        f"stands beside policy.{setting}: {answer}, which renames a target, and rows of other tables "
                        f"are in it; say {others} in the rule's policy",
                        *place,
                    )

    def _check_readers(self) -> None:
        """Refuse rules whose tables would be read wrong, as the target's section is."""
        target = self.target
        for index, rule in enumerate(self.tables):
            own = {
                "schema_evolution": rule.schema_evolution,
                "readers": rule.readers,
                "partition_by": rule.partition_by,
            }
            inherits = frozenset(name for name, said in own.items() if said is None)
            if len(inherits) < len(own):
                kept = replace(
                    target.kept,
                    evolution=evolution_of(target, rule),
                    partitioned=bool(rule.partition_by),
                    readers=readers_of(target, rule),
                    place=("tables", index),
                    inherits=inherits,
                )
                kept.check()

    @property
    def secrets(self) -> frozenset[Secret]:
        """Every text that came from a reference, for whoever prints."""
        return frozenset(secrets_in(self))


_FOLLOW = ("rename_table", "follow", "stay or pause")


def secrets_in(value: object) -> Iterator[Secret]:
    """Yield every text in a configuration that came from a reference, for whoever prints."""
    match value:
        case Secret():
            yield value
        case BaseModel():
            for name in type(value).model_fields:
                yield from secrets_in(getattr(value, name))
        case Mapping():
            for item in value.values():
                yield from secrets_in(item)
        case tuple():
            for item in value:
                yield from secrets_in(item)
