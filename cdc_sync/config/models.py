"""The typed configuration. Every key is explained in conf/reference.yaml, which a test keeps complete."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cdc_sync.config.fields import Duration, Location, Properties, Regex, Scalar, Text, problem
from cdc_sync.config.java import java_settings
from cdc_sync.config.routes import check_rules
from cdc_sync.config.secrets import Secret
from cdc_sync.config.template import Template, TemplateError
from cdc_sync.migrate.capabilities import FORMATS
from cdc_sync.migrate.readers import regime_of, right_for, why_not
from cdc_sync.migrate.removal import why_not_removed, why_not_renamed
from cdc_sync.schema.partitioning import Partitioning, PartitioningError
from cdc_sync.schema.policy import Mode
from cdc_sync.upkeep import Upkeep


class _Section(BaseModel):
    """A part of the configuration: frozen, and strict about types and unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, validate_default=True
    )


class Pipeline(_Section):
    """Who the pipeline is and where it keeps what it must not forget."""

    name: Text
    state: Location = "./state"

    @model_validator(mode="after")
    def _name_is_a_folder_name(self) -> Pipeline:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", self.name):
            problem("must be letters, digits, '.', '_' and '-', because a folder is named after it", "name")
        return self

    @property
    def root(self) -> str:
        """Folder or URL below which all files of this pipeline live."""
        return f"{self.state.rstrip('/')}/{self.name}"


class Kafka(_Section):
    """Where events come from. `properties` goes to both clients, the others to one each."""

    bootstrap_servers: Text
    topics: tuple[Text, ...] | None = None
    topic_pattern: Regex | None = None
    properties: Properties = {}
    driver_properties: Properties = {}
    spark_properties: Properties = {}
    request_timeout: Duration = timedelta(seconds=10)
    attempts: Annotated[int, Field(ge=1, le=100)] = 5
    outage_timeout: Duration = timedelta(minutes=10)

    @model_validator(mode="after")
    def _one_way_to_name_topics(self) -> Kafka:
        if self.topics is not None and self.topic_pattern is not None:
            problem("stands beside kafka.topics; keep one of the two", "topic_pattern")
        if self.topics is None and self.topic_pattern is None:
            problem("names no topics; add topics (a list) or topic_pattern (a regular expression)")
        if self.topics is not None and not self.topics:
            problem("must not be empty", "topics")
        for index, topic in enumerate(self.topics or ()):
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic):
                problem(
                    "is no topic name: letters, digits, '.', '_' and '-' only; for a pattern use topic_pattern",
                    "topics",
                    index,
                )
        return self

    @model_validator(mode="after")
    def _servers_are_named_once(self) -> Kafka:
        for section in ("properties", "driver_properties", "spark_properties"):
            for name in ("bootstrap.servers", "kafka.bootstrap.servers"):
                if name in getattr(self, section):
                    problem("is set by kafka.bootstrap_servers; remove it here", section, name)
        return self

    @property
    def driver_settings(self) -> dict[str, str]:
        """Settings of the driver's own client (librdkafka's names)."""
        return {"bootstrap.servers": self.bootstrap_servers, **self.properties, **self.driver_properties}

    @property
    def spark_settings(self) -> dict[str, str]:
        """Options of Spark's Kafka source: Java's names, each with the prefix `kafka.`.

        What librdkafka and Java name differently and a log-in needs (SASL user and password, the CA's file) is said
        once, in librdkafka's words, and translated here; `spark_properties` has the last word.
        """
        settings = {"bootstrap.servers": self.bootstrap_servers, **java_settings(self.properties)}
        return {f"kafka.{name}": value for name, value in {**settings, **self.spark_properties}.items()}


class PolicyOverride(_Section):
    """A table's own answers; None leaves the answer of the policy section."""

    mode: Mode | None = None
    add_column: Literal["apply", "ignore", "pause"] | None = None
    drop_column: Literal["apply", "keep", "pause"] | None = None
    rename_column: Literal["apply", "pause"] | None = None
    change_type: Literal["apply", "pause"] | None = None
    change_key: Literal["apply", "pause"] | None = None
    unproven_rename: Literal["add", "pause"] | None = None
    ambiguous_null: Literal["warn", "pause"] | None = None
    missing_rows: Literal["pause", "insert"] | None = None
    out_of_range: Literal["quarantine", "null", "clamp"] | None = None
    truncate: Literal["apply", "ignore", "pause"] | None = None
    recreate: Literal["apply", "pause"] | None = None
    drop_table: Literal["keep", "drop", "archive", "pause"] | None = None
    rename_table: Literal["stay", "follow", "pause"] | None = None
    incompatible_types: Literal["rewrite", "side_column", "pause"] | None = None
    unknown_values: Literal["mark", "pause"] | None = None
    rewrite_limit: Annotated[int, Field(ge=0)] | None = None


class PolicyDefaults(_Section):
    """What to do where nothing is proven, for tables that say nothing of their own."""

    mode: Mode = "evolve"
    add_column: Literal["apply", "ignore", "pause"] = "apply"
    drop_column: Literal["apply", "keep", "pause"] = "apply"
    rename_column: Literal["apply", "pause"] = "apply"
    change_type: Literal["apply", "pause"] = "apply"
    change_key: Literal["apply", "pause"] = "apply"
    unproven_rename: Literal["add", "pause"] = "add"
    ambiguous_null: Literal["warn", "pause"] = "warn"
    missing_rows: Literal["pause", "insert"] = "pause"
    out_of_range: Literal["quarantine", "null", "clamp"] = "quarantine"
    truncate: Literal["apply", "ignore", "pause"] = "apply"
    recreate: Literal["apply", "pause"] = "apply"
    drop_table: Literal["keep", "drop", "archive", "pause"] = "keep"
    rename_table: Literal["stay", "follow", "pause"] = "stay"
    incompatible_types: Literal["rewrite", "side_column", "pause"] = "rewrite"
    unknown_values: Literal["mark", "pause"] = "mark"
    rewrite_limit: Annotated[int, Field(ge=0)] = 10 * 1024**3


class TableRule(_Section):
    """One rule of the tables section; the first that matches a table wins."""

    table: Text | None = None
    pattern: Regex | None = None
    exclude: tuple[Regex, ...] = ()
    target: Text = "{schema}.{table}"
    mode: Literal["upsert", "append"] = "upsert"
    key: tuple[Text, ...] | None = None
    renames: Mapping[str, Text] = {}
    drops: tuple[Text, ...] = ()
    initial_values: Mapping[str, Scalar] = {}
    partition_by: tuple[Text, ...] | None = None
    policy: PolicyOverride = PolicyOverride()

    @model_validator(mode="after")
    def _one_way_to_match(self) -> TableRule:
        if self.table is not None and self.pattern is not None:
            problem("stands beside table; keep one of the two", "pattern")
        if self.table is None and self.pattern is None:
            problem("matches nothing; add table (an exact name) or pattern (a regular expression)")
        if self.table is not None and self.exclude:
            problem("has no use beside table, which matches one table only; remove it", "exclude")
        if self.table is not None and "." not in self.table:
            problem("must be database.schema.table, or database.table where there are no schemas", "table")
        return self

    @model_validator(mode="after")
    def _target_is_a_template(self) -> TableRule:
        try:
            Template.parse(self.target, groups=frozenset(re.compile(self.pattern or "").groupindex))
        except TemplateError as error:
            problem(str(error), "target")
        return self

    @model_validator(mode="after")
    def _declarations_agree(self) -> TableRule:
        news: dict[str, str] = {}
        for old, new in self.renames.items():
            if old == new:
                problem("renames a column to its own name; remove it", "renames", old)
            if new in news:
                problem(f"is the new name of column {news[new]!r} already; keep one of the two", "renames", old)
            news[new] = old
        for index, name in enumerate(self.drops):
            if name in self.renames:
                problem(
                    f"is renamed to {self.renames[name]!r} in the same rule; keep one of the two",
                    "drops",
                    index,
                )
        return self

    @model_validator(mode="after")
    def _partitioning_can_be_read(self) -> TableRule:
        try:
            Partitioning.parse(self.partition_by or ())
        except PartitioningError as error:
            problem(error.reason, "partition_by", error.index)
        return self

    def matches(self, name: str) -> re.Match[str] | None:
        """Match a dotted table name; exact names and patterns alike must cover all of it."""
        if self.table is not None:
            return re.fullmatch(re.escape(self.table), name)
        if any(re.fullmatch(exclude, name) for exclude in self.exclude):
            return None
        return re.fullmatch(self.pattern or "", name)


class Registry(_Section):
    """Where Avro schemas are looked up; every schema found is kept for ever in the pipeline's own files."""

    url: Text
    type: Literal["confluent", "apicurio"] = "confluent"
    ids: Literal["content", "global"] = "content"
    headers: bool = False
    timeout: Duration = timedelta(seconds=10)
    attempts: Annotated[int, Field(ge=1, le=100)] = 5
    properties: Properties = {}

    @model_validator(mode="after")
    def _url_is_one(self) -> Registry:
        if not re.match(r"https?://", self.url):
            problem("must begin with http:// or https://", "url")
        return self


class Flattened(_Section):
    """Settings of the transform ExtractNewRecordState, as the connector has them."""

    add_fields: tuple[Text, ...] = ()
    add_fields_prefix: str = "__"


class Signals(_Section):
    """The Kafka topic through which a connector is asked for something."""

    topic: Text
    prefix: Text


class Connector(_Section):
    """Settings of the connectors that events do not show, for all topics of the pipeline."""

    signals: Signals | None = None
    notifications: Text | None = None
    decimal_format: Literal["base64", "numeric"] = "base64"
    unavailable_value_placeholder: Text = "__debezium_unavailable_value"
    flattened: Flattened | None = None


def _check_no_password(dsn: str, otherwise: str) -> None:
    if not isinstance(dsn, Secret) and re.search(r"password\s*=|://[^/@]*:[^/@]*@", dsn):
        problem(f"holds a password in plain text; write ${{env:NAME}} or ${{file:PATH}}, or {otherwise}", "dsn")


class SourceDatabase(_Section):
    """The source database, where something is asked of it directly."""

    dsn: Text
    password: Text | None = None

    @model_validator(mode="after")
    def _no_password_in_the_file(self) -> SourceDatabase:
        _check_no_password(self.dsn, "use source.password")
        if self.password is not None and not isinstance(self.password, Secret):
            problem("stands in plain text; write ${env:NAME} or ${file:PATH}", "password")
        return self


class SourceCatalogue(_Section):
    """A source database whose catalogue is read; only Postgres has one that helps."""

    dsn: Text
    every: Duration = timedelta(seconds=10)
    timeout: Duration = timedelta(seconds=3)

    @model_validator(mode="after")
    def _no_password_in_the_file(self) -> SourceCatalogue:
        _check_no_password(self.dsn, "set PGPASSWORD")
        return self


class SourceValues(_Section):
    """How much of a topic is read to find out whether values go on under another name."""

    distinct: Annotated[int, Field(ge=2, le=1_000_000)] = 20
    records: Annotated[int, Field(ge=1, le=10_000_000)] = 20_000


class Evidence(_Section):
    """Where the source itself tells what its DDL did."""

    schema_changes: tuple[Text, ...] = ()
    messages: tuple[Text, ...] = ()
    catalogue: SourceCatalogue | None = None
    values: SourceValues | None = None
    wait: Duration = timedelta(seconds=60)


class Catalog(_Section):
    """The catalog of the target's tables."""

    name: Text = "lake"
    type: Literal["jdbc", "hadoop", "hive", "rest"] = "jdbc"
    uri: Text | None = None
    warehouse: Location = "./warehouse"
    properties: Properties = {}

    @model_validator(mode="after")
    def _uri_fits_the_type(self) -> Catalog:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.name):
            problem("must be letters, digits and '_', because Spark's SQL names the catalog by it", "name")
        if self.name == "spark_catalog":
            problem("is the name of Spark's own session catalog; choose another", "name")
        match self.type:
            case "rest":
                if self.uri is None:
                    problem("has no uri, which type rest needs; add it")
            case "hadoop":
                if self.uri is not None:
                    problem("has no use with type hadoop, which needs the warehouse only; remove it", "uri")
            case "jdbc" | "hive":
                pass  # the target tells whether an embedded one will do
        return self

    @property
    def in_store(self) -> bool:
        """Whether the warehouse is not on a local disk."""
        return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", self.warehouse) is not None

    @property
    def service(self) -> str | None:
        """Address of the catalog service: as configured, or an SQLite file inside the warehouse for type jdbc."""
        if self.uri is None and self.type == "jdbc":
            return f"jdbc:sqlite:{self.warehouse.rstrip('/')}/catalog.db"
        return self.uri


_KEPT_STATES = 5


class Target(_Section):
    """Where the tables are written."""

    format: Literal["iceberg", "delta", "hudi", "parquet", "memory"] = "iceberg"
    catalog: Catalog = Field(default_factory=Catalog)
    kept_states: Annotated[int, Field(ge=2, le=1000)] = _KEPT_STATES
    readers: tuple[
        Literal[
            "spark",
            "trino",
            "presto",
            "pyiceberg",
            "duckdb",
            "delta-rs",
            "hudi-rs",
            "polars",
            "daft",
            "clickhouse",
            "arrow",
        ],
        ...,
    ] = ()
    table_properties: Properties = {}

    @model_validator(mode="after")
    def _catalog_fits_the_format(self) -> Target:
        catalog = self.catalog
        if self.format == "iceberg" and catalog.uri is None:
            if catalog.type == "hive":
                problem("has no uri, which type hive needs; add it", "catalog")
            elif catalog.type == "jdbc" and catalog.in_store:
                problem("has no uri, and an SQLite file cannot live in an object store; add a jdbc: uri", "catalog")
        elif self.format == "parquet":
            if "type" in catalog.model_fields_set and catalog.type != "hive":
                problem("must be hive with format parquet, whose tables a Hive metastore names", "catalog", "type")
            self._check_metastore()
        elif self.metastore:
            self._check_metastore()
        elif self.format in ("delta", "hudi"):
            for name in sorted(catalog.model_fields_set - {"warehouse"}):
                reason = f"has no use with format {self.format}, which finds tables by their path; remove it"
                hint = ", or set type: hive to have them registered in a Hive metastore too"
                problem(f"{reason}{hint}", "catalog", name)
        return self

    @property
    def metastore(self) -> bool:
        """Whether a Hive metastore names the tables; Iceberg's own catalogs do not count."""
        return self.format == "parquet" or (self.format in ("delta", "hudi") and self.catalog.type == "hive")

    def _check_metastore(self) -> None:
        catalog = self.catalog
        if "name" in catalog.model_fields_set:
            problem(
                f"has no use with format {self.format}, whose tables a Hive metastore names; remove it",
                *("catalog", "name"),
            )
        if catalog.uri is None and catalog.in_store:
            problem(
                "has no uri, and an embedded metastore cannot live in an object store; add a thrift: uri", "catalog"
            )
        if catalog.uri is not None and not catalog.uri.startswith("thrift://"):
            problem("must begin with thrift://, as addresses of Hive metastores do", "catalog", "uri")

    @model_validator(mode="after")
    def _states_are_kept_where_they_are_copies(self) -> Target:
        if self.kept_states != _KEPT_STATES and self.format != "parquet":
            problem(
                f"has no use with format {self.format}, which keeps states by its own settings; remove it",
                "kept_states",
            )
        return self

    @model_validator(mode="after")
    def _readers_read_right(self) -> Target:
        regime = regime_of(self.format, self.table_properties)
        for index, name in enumerate(self.readers):
            if (reason := why_not(name, regime)) is not None:
                remedy = f"of {', '.join(right_for(name))} tables it shows every value (docs/readers.md)"
                problem(f"names {name}, which is not to read {regime} tables: it {reason}; {remedy}", "readers", index)
        return self


class Job(_Section):
    """The pace of the job."""

    trigger_interval: Duration = timedelta(seconds=1)
    max_offsets_per_batch: Annotated[int, Field(ge=1)] = 200_000
    parallel_tables: Annotated[int, Field(ge=1, le=64)] = 4
    compile_from_rows: Annotated[int, Field(ge=0)] = 100_000


class Verify(_Section):
    """How `cdc-sync verify` goes about it."""

    settle: Duration = timedelta(seconds=30)
    rows_in_memory: Annotated[int, Field(ge=256, le=10_000_000)] = 20_000


class Maintenance(_Section):
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


class Limits(_Section):
    """What is refused because no sane source sends it."""

    max_message_bytes: Annotated[int, Field(ge=1)] = 16 * 1024 * 1024
    max_columns: Annotated[int, Field(ge=1)] = 2000
    max_depth: Annotated[int, Field(ge=1, le=64)] = 32
    max_name_length: Annotated[int, Field(ge=1)] = 255
    max_versions_per_hour: Annotated[int, Field(ge=1)] = 1000
    max_new_tables_per_hour: Annotated[int, Field(ge=1)] = 1000


class Spark(_Section):
    """The Spark session; anything given to spark-submit wins over None."""

    master: Text | None = None
    packages: tuple[Text, ...] | None = None
    jars: tuple[Text, ...] = ()
    conf: Properties = {}


class Config(_Section):
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
    spark: Spark = Spark()

    @model_validator(mode="after")
    def _rules_can_work(self) -> Config:
        if not self.tables:
            problem("must not be empty; add a rule with table or pattern", "tables")
        check_rules(self.tables)
        self._check_removals()
        self._check_partitionings()
        return self

    def _check_removals(self) -> None:
        """Refuse to drop or rename tables where that is not one step."""
        said: list[tuple[tuple[str | int, ...], PolicyDefaults | PolicyOverride]] = [(("policy",), self.policy)]
        said += [(("tables", index, "policy"), rule.policy) for index, rule in enumerate(self.tables)]
        catalog, format_ = self.target.catalog, FORMATS[self.target.format]
        for place, policy in said:
            for setting, refused in (("drop_table", why_not_removed), ("rename_table", why_not_renamed)):
                reason = refused(format_, getattr(policy, setting), catalog=catalog.type, warehouse=catalog.warehouse)
                if reason is not None:
                    problem(reason, *place, setting)

    def _check_partitionings(self) -> None:
        """Refuse to partition tables of a format that is not partitioned here."""
        format_ = self.target.format
        for index, rule in enumerate(self.tables):
            if rule.partition_by is not None and not FORMATS[format_].repartitions:
                problem(
                    f"has no use with target.format {format_}: cdc_sync partitions iceberg tables only; remove it",
                    *("tables", index, "partition_by"),
                )

    @property
    def secrets(self) -> frozenset[Secret]:
        """Every text that came from a reference, for whoever prints."""
        return frozenset(_secrets(self))


def _secrets(value: object) -> Iterator[Secret]:
    match value:
        case Secret():
            yield value
        case BaseModel():
            for name in type(value).model_fields:
                yield from _secrets(getattr(value, name))
        case Mapping():
            for item in value.values():
                yield from _secrets(item)
        case tuple():
            for item in value:
                yield from _secrets(item)
