"""What a configuration means once it is loaded."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from cdc_sync.config import Config, Kafka, load_config, parse_config
from cdc_sync.config.advice import advice
from cdc_sync.errors import ConfigError

SMALLEST = """
pipeline: {name: inventory}
kafka: {bootstrap_servers: 'localhost:9092', topics: [shop.inv.orders]}
tables: [{table: shop.inv.orders}]
"""


def with_lines(*lines: str) -> Config:
    return parse_config(SMALLEST + "\n".join(lines), environ={})


def with_rule(rule: str) -> Config:
    return parse_config(SMALLEST.replace("{table: shop.inv.orders}", rule), environ={})


def test_the_smallest_configuration_writes_iceberg_into_an_embedded_catalog_below_the_current_folder() -> None:
    config = parse_config(SMALLEST)

    here = os.getcwd()
    assert config.target.format == "iceberg"
    assert config.target.catalog.warehouse == f"{here}/warehouse"
    assert config.target.catalog.service == f"jdbc:sqlite:{here}/warehouse/catalog.db"
    assert config.pipeline.root == f"{here}/state/inventory"


def test_urls_are_left_as_they_are() -> None:
    config = with_lines(
        "target: {catalog: {type: rest, uri: 'http://catalog:8181', warehouse: 's3://lake/tables'}}",
    )

    assert config.target.catalog.warehouse == "s3://lake/tables"
    assert config.target.catalog.service == "http://catalog:8181"


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        parse_config(SMALLEST).pipeline.name = "other"  # type: ignore[misc]


def test_config_dir_is_the_folder_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text(SMALLEST + "target: {catalog: {warehouse: '${config_dir}/lake'}}")

    config = load_config(file)

    assert config.target.catalog.warehouse == f"{tmp_path}/lake"
    assert not config.secrets


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: Cannot read the file: No such file or directory"):
        load_config(tmp_path / "none.yaml")


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "conf.yaml"
    file.write_bytes(b"pipeline: \xff")

    with pytest.raises(ConfigError, match=r"conf\.yaml: Cannot read the file: byte 11 is not UTF-8"):
        load_config(file)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("10s", timedelta(seconds=10)),
        ("5m", timedelta(minutes=5)),
        ("1h", timedelta(hours=1)),
        ("0s", timedelta()),
    ],
)
def test_durations_have_a_unit(written: str, meant: timedelta) -> None:
    assert with_lines(f"job: {{trigger_interval: {written}}}").job.trigger_interval == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("no", "no"),
        ("on", "on"),
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("12:30:00", "12:30:00"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("'007'", "007"),
        ("007", 7),
        ("-5", -5),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("true", True),
        ("null", None),
        ("~", None),
        ("", None),
    ],
)
def test_values_are_read_as_yaml_1_2_means_them(written: str, meant: object) -> None:
    value = with_rule(f"{{table: d.s.t, initial_values: {{a: {written}}}}}").tables[0].initial_values["a"]

    assert value == meant
    assert type(value) is type(meant)


def test_numbers_and_booleans_among_properties_become_text() -> None:
    conf = with_lines("spark: {conf: {spark.sql.shuffle.partitions: 8, spark.ui.enabled: false}}").spark.conf

    assert conf == {"spark.sql.shuffle.partitions": "8", "spark.ui.enabled": "false"}


def test_an_alias_stands_for_what_it_names() -> None:
    config = parse_config(
        SMALLEST.replace(
            "[{table: shop.inv.orders}]",
            "[{table: d.s.a, policy: &strict {unproven_rename: pause}}, {table: d.s.b, policy: *strict}]",
        )
    )

    assert config.tables[1].policy.unproven_rename == "pause"


def test_one_set_of_kafka_properties_serves_both_clients() -> None:
    kafka = with_lines().kafka.model_copy(
        update={
            "properties": {
                "security.protocol": "SASL_SSL",
                "sasl.mechanisms": "SCRAM-SHA-512",
                "sasl.username": "me",
                "sasl.password": 'pass"word',
                "ssl.ca.location": "ca.pem",
            },
            "driver_properties": {"client.id": "driver"},
            "spark_properties": {"client.dns.lookup": "use_all_dns_ips"},
        }
    )

    assert kafka.driver_settings == {
        "bootstrap.servers": "localhost:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": 'pass"word',
        "ssl.ca.location": "ca.pem",
        "client.id": "driver",
    }
    assert kafka.spark_settings == {
        "kafka.bootstrap.servers": "localhost:9092",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": "ca.pem",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="me" password="pass\\"word";',
        "kafka.client.dns.lookup": "use_all_dns_ips",
    }


def test_advice_names_what_a_usable_configuration_may_regret() -> None:
    config = with_lines(
        "target: {format: memory, catalog: {properties: {jdbc.password: plain}}}",
        "spark: {jars: [a.jar], packages: ['g:a:1']}",
        "connector: {signals: {topic: asked, prefix: shop}}",
    )

    assert advice(config) == (
        "target.format memory keeps nothing after the process ends; use iceberg for real data",
        "spark.packages is ignored because spark.jars is set; remove one of the two",
        "connector.signals without connector.notifications: nobody tells when a resync has ended; set both, or say "
        "`cdc-sync resync --done` yourself",
        "target.catalog.properties.jdbc.password stands in the file in plain text; write ${env:NAME} or ${file:PATH} "
        "instead",
    )


def test_advice_names_settings_that_java_s_client_would_ignore() -> None:
    config = parse_config(
        """
pipeline: {name: inventory}
kafka:
  bootstrap_servers: localhost:9092
  topics: [t]
  properties: {ssl.certificate.location: a.pem, sasl.mechanism: PLAIN, client.id: us}
  spark_properties: {fetch.max.byte: 1, ssl.ca.pem: x, client.rack: a, aws.region: eu}
tables: [{table: d.s.t}]
"""
    )

    assert advice(config) == (
        "kafka.spark_properties: fetch.max.byte is no setting of Java's client, which ignores it; did you mean "
        "fetch.max.bytes?",
        "kafka.spark_properties: ssl.ca.pem is a name of librdkafka's, which Java's client ignores",
        "kafka.spark_properties: aws.region is no setting of Java's client, which ignores it unless a class named "
        "there reads it",
        "kafka.properties.ssl.certificate.location is a name of librdkafka's, and Spark's readers log in without it; "
        "say the same in Java's words under kafka.spark_properties, such as ssl.keystore.location",
    )


def test_there_is_nothing_to_advise_on_the_smallest_configuration() -> None:
    assert advice(parse_config(SMALLEST)) == ()


_PRESENT = ("__consumer_offsets", "__debezium-heartbeat.shop", "_schemas", "shop", "shop.inv.orders", "shop.inv.items")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"topic_pattern": ".*"}, ("_schemas", "shop", "shop.inv.items", "shop.inv.orders")),
        ({"topic_pattern": r"(?P<prefix>.*shop)\.inv\.o.*"}, ("shop.inv.orders",)),
        ({"topic_pattern": "inv"}, ()),
        ({"topics": ("shop.inv.orders", "none")}, ("shop.inv.orders",)),
        ({"topics": ("__debezium-heartbeat.shop",)}, ("__debezium-heartbeat.shop",)),
    ],
)
def test_a_pattern_means_no_internal_topic_and_a_list_what_it_says(
    asked: dict[str, object], found: tuple[str, ...]
) -> None:
    kafka = Kafka.model_validate({"bootstrap_servers": "b:1", **asked})

    assert kafka.matching(_PRESENT) == found


@pytest.mark.parametrize(
    ("asked", "present", "said"),
    [
        ({"topic_pattern": r"shop\.inv\..*"}, _PRESENT, None),
        (
            {"topic_pattern": r"shop\.inve\.orders"},
            _PRESENT,
            r"none matches kafka.topic_pattern (shop\.inve\.orders); there are shop.inv.orders, shop.inv.items, shop",
        ),
        (
            {"topics": ("a",)},
            _PRESENT,
            "none matches kafka.topics (a); there are shop, shop.inv.items, shop.inv.orders",
        ),
        ({"topic_pattern": "x"}, ("__consumer_offsets",), "none matches kafka.topic_pattern (x); there is none"),
        (
            {"topic_pattern": "x"},
            ("a", "b", "c", "d"),
            "none matches kafka.topic_pattern (x); there are a, b, c and 1 more",
        ),
    ],
)
def test_where_nothing_is_read_it_is_said_what_there_is(
    asked: dict[str, object], present: tuple[str, ...], said: str | None
) -> None:
    kafka = Kafka.model_validate({"bootstrap_servers": "b:1", **asked})

    assert kafka.why_nothing_is_read(present) == (None if said is None else f"no topic is read: {said}")


def test_aliases_inside_aliases_do_not_fill_the_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join(f'*a{n - 1}' for _ in range(10))}]" for n in range(1, 12)]
    with pytest.raises(ConfigError, match="with its aliases it holds more than 1000000 values"):
        parse_config("\n".join(lines))
    with pytest.raises(ConfigError, match="longer than 16777216 characters"):
        parse_config("#" * (16 * 1024 * 1024 + 1))
