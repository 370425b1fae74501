"""Where events come from, what writes them, and what else the source says of itself."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, model_validator

from cdc_sync.config.clientnames import REGISTRY
from cdc_sync.config.fields import ColumnRegex, Duration, Properties, Regex, SecretText, Text, problem
from cdc_sync.config.java import java_settings
from cdc_sync.config.secrets import Secret
from cdc_sync.config.section import Section
from cdc_sync.core.patterns import full_match

_KAFKA_S_OWN = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_JOB_S_OWN = frozenset(
    {
        "auto.offset.reset",
        "enable.auto.commit",
        "group.id",
        "isolation.level",
        "key.deserializer",
        "value.deserializer",
    }
)
"""How each reads is decided by who reads; Spark refuses most of them."""
_RUN = frozenset(
    {
        "config.providers",
        "metric.reporters",
        "partition.assignment.strategy",
        "plugin.library.paths",
        "sasl.kerberos.kinit.cmd",
        "security.providers",
        "ssl.engine.id",
        "ssl.engine.location",
        "ssl.provider",
        "ssl.providers",
    }
)
_KAFKA = "org.apache.kafka.common.security."
_MODULES = frozenset(
    {
        _KAFKA + "plain.PlainLoginModule",
        _KAFKA + "scram.ScramLoginModule",
        _KAFKA + "oauthbearer.OAuthBearerLoginModule",
        "com.sun.security.auth.module.Krb5LoginModule",
    }
)


def is_topic_name(text: str) -> bool:
    """Return whether Kafka can have a topic of that name."""
    return re.fullmatch(r"[A-Za-z0-9._-]{1,249}", text) is not None


class Kafka(Section):
    """Where events come from. `properties` goes to both clients, the others to one each."""

    bootstrap_servers: Text
    topics: tuple[Text, ...] | None = None
    topic_pattern: Regex | None = None
    bound_topics: bool = False
    allow: tuple[Text, ...] = ()
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
            if not is_topic_name(topic):
                problem(
                    "is no topic name: letters, digits, '.', '_' and '-' only; for a pattern use topic_pattern",
                    "topics",
                    index,
                )
            if topic in _KAFKA_S_OWN:
                problem("is Kafka's own, which Spark does not read; remove it", "topics", index)
        return self

    @model_validator(mode="after")
    def _commas_are_of_lists(self) -> Kafka:
        if "," in re.sub(r"\{\d*,\d*\}", "", self.topic_pattern or ""):
            problem("holds a comma, which no topic's name does; write a|b, or topics: [a, b]", "topic_pattern")
        return self

    @model_validator(mode="after")
    def _settings_are_the_operator_s(self) -> Kafka:
        for section in ("properties", "driver_properties", "spark_properties"):
            for name in getattr(self, section):
                if name in ("bootstrap.servers", "kafka.bootstrap.servers"):
                    problem("is set by kafka.bootstrap_servers; remove it here", section, name)
                if name.startswith("kafka."):
                    problem(f"has Spark's prefix; write {name.removeprefix('kafka.')}", section, name)
                if name in _JOB_S_OWN:
                    problem("is set by the job itself; remove it", section, name)
                foreign = why_foreign(name, getattr(self, section)[name])
                if foreign is not None and name not in self.allow:
                    problem(f"{foreign}; if you trust it, name the setting in kafka.allow", section, name)
        return self

    def matching(self, present: Iterable[str]) -> tuple[str, ...]:
        """Return which of the topics that exist are read, ordered by name.

        A pattern does not match names that begin with `__`: Kafka, Debezium (heartbeats) and others name topics so that
        hold no rows. A list is taken at its word.
        """
        if self.topics is not None:
            return tuple(sorted(set(self.topics) & set(present)))
        pattern = self.topic_pattern or ""
        return tuple(sorted(name for name in present if not name.startswith("__") and full_match(pattern, name)))

    def why_nothing_is_read(self, present: Collection[str]) -> str | None:
        """Say that none of the topics that exist is read, with those that may be meant; None if any is."""
        if self.matching(present):
            return None
        others = [name for name in sorted(present) if not name.startswith("_")]
        asked = ", ".join(self.topics) if self.topics is not None else str(self.topic_pattern)
        near = difflib.get_close_matches(re.sub(r"[\\^$()*+?|]", "", asked), others, n=3, cutoff=0.3) or others[:3]
        there = f"; there are {', '.join(near)}" if near else "; there is none"
        more = f" and {len(others) - len(near)} more" if len(others) > len(near) else ""
        named = "kafka.topics" if self.topics is not None else "kafka.topic_pattern"
        return f"no topic is read: none matches {named} ({asked}){there}{more}"

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


class Registry(Section):
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

    @model_validator(mode="after")
    def _properties_are_known(self) -> Registry:
        for name in self.properties:
            if name not in REGISTRY:
                near = difflib.get_close_matches(name, sorted(REGISTRY), n=1)
                meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(REGISTRY))}"
                problem(f"is no setting of the registry's client; {meant}", "properties", name)
        if self.properties.get("bearer.auth.credentials.source", "STATIC_TOKEN") != "STATIC_TOKEN":
            problem("must be STATIC_TOKEN", "properties", "bearer.auth.credentials.source")
        return self


class Flattened(Section):
    """Settings of the transform ExtractNewRecordState, as the connector has them."""

    add_fields: tuple[Text, ...] = ()
    add_fields_prefix: str = "__"


class Signals(Section):
    """The Kafka topic through which a connector is asked for something."""

    topic: Text
    prefix: Text


class Connect(Section):
    """Where Kafka Connect's REST API is."""

    url: Text
    names: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    timeout: Duration = timedelta(seconds=3)

    @model_validator(mode="after")
    def _url_is_one(self) -> Connect:
        if not re.match(r"https?://", self.url):
            problem("must begin with http:// or https://", "url")
        if re.search(r"://[^/@]*:[^/@]*@", self.url) and not isinstance(self.url, Secret):
            problem("holds a password in plain text; write ${env:NAME} or ${file:PATH}", "url")
        return self


class Heartbeats(Section):
    """The topics that connectors write heartbeats to."""

    topics: Annotated[tuple[Text, ...], Field(min_length=1)]
    within: Duration = timedelta(minutes=5)


class Connector(Section):
    """Settings of the connectors that events do not show, for all topics of the pipeline."""

    connect: Connect | None = None
    heartbeats: Heartbeats | None = None

    signals: Signals | None = None
    signal_table: Text | None = None
    notifications: Text | None = None
    decimal_format: Literal["base64", "numeric"] = "base64"
    unavailable_value_placeholder: Text = "__debezium_unavailable_value"
    flattened: Flattened | None = None
    excluded_columns: tuple[ColumnRegex, ...] | None = None

    def is_signal_table(self, name: str) -> bool:
        """Whether a table, by its dotted name, is the one that signals to the connector are written to."""
        wanted = self.signal_table or "debezium_signal"
        return name == wanted or name.endswith(f".{wanted}")


def _check_no_password(dsn: str, otherwise: str) -> None:
    if not isinstance(dsn, Secret) and re.search(r"password\s*=|://[^/@]*:[^/@]*@", dsn):
        problem(f"holds a password in plain text; write ${{env:NAME}} or ${{file:PATH}}, or {otherwise}", "dsn")


class SourceDatabase(Section):
    """The source database, where something is asked of it directly."""

    dsn: Text
    password: SecretText | None = None

    @model_validator(mode="after")
    def _no_password_in_the_file(self) -> SourceDatabase:
        _check_no_password(self.dsn, "use source.password")
        if self.password is not None and not isinstance(self.password, Secret):
            problem("stands in plain text; write ${env:NAME} or ${file:PATH}", "password")
        return self


class SourceCatalogue(Section):
    """A source database whose catalogue is read; only Postgres has one that helps."""

    dsn: Text
    every: Duration = timedelta(seconds=10)
    timeout: Duration = timedelta(seconds=3)

    @model_validator(mode="after")
    def _no_password_in_the_file(self) -> SourceCatalogue:
        _check_no_password(self.dsn, "set PGPASSWORD")
        return self


class SourceValues(Section):
    """How much of a topic is read to find out whether values go on under another name."""

    distinct: Annotated[int, Field(ge=2, le=1_000_000)] = 20
    records: Annotated[int, Field(ge=1, le=10_000_000)] = 20_000


class Evidence(Section):
    """Where the source itself tells what its DDL did."""

    schema_changes: tuple[Text, ...] = ()
    messages: tuple[Text, ...] = ()
    catalogue: SourceCatalogue | None = None
    values: SourceValues | None = None
    wait: Duration = timedelta(seconds=60)


def why_foreign(name: str, value: str) -> str | None:
    """Return what a setting has a client do, None if nothing that is not its own.

    Args:
        name: of the setting, librdkafka's or Java's, without Spark's prefix.
        value: what it is set to.
    """
    if name in _RUN or name.endswith((".class", ".classes")):
        return "loads code into the client"
    if name == "sasl.jaas.config":
        unquoted = re.sub(r'"(?:[^"\\]|\\.)*"', "", value)  # a password may hold a semicolon
        modules = [entry.split()[0] for entry in unquoted.split(";") if entry.strip()]
        other = next((module for module in modules if module not in _MODULES), None)
        return None if other is None else f"has the client log in by {other}, which is not Kafka's"
    if name.endswith(".url") and not value.strip().lower().startswith(("https:", "http:")):
        return "has the client read a file of this machine in place of a server's answer"
    return None
