"""References: they work as their values and never show them."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from cdc_sync.config import Config, Secret, parse_config, redact
from cdc_sync.config.secrets import UnresolvedError, resolve

TEXT = """
pipeline: {name: inventory}
kafka:
  bootstrap_servers: ${env:SERVERS}
  topics: [shop.inv.orders]
  properties: {sasl.password: '${env:PASSWORD}', security.protocol: SASL_SSL, sasl.username: me, sasl.mechanism: PLAIN}
tables: [{table: shop.inv.orders}]
target: {catalog: {uri: 'jdbc:postgresql://me:${env:PASSWORD}@db/lake'}}
"""


def loaded() -> Config:
    return parse_config(TEXT, environ={"SERVERS": "broker-7:9092", "PASSWORD": "hunter2"})


def test_a_reference_works_as_its_value() -> None:
    config = loaded()

    assert config.kafka.driver_settings["bootstrap.servers"] == "broker-7:9092"
    assert f"{config.target.catalog.uri}" == "jdbc:postgresql://me:hunter2@db/lake"
    assert 'password="hunter2"' in config.kafka.spark_settings["kafka.sasl.jaas.config"]


def test_no_representation_shows_a_value() -> None:
    config = loaded()

    shown = repr(config) + str(config) + repr(config.kafka.spark_settings) + repr(config.secrets)
    assert "hunter2" not in shown
    assert "broker-7" not in shown
    assert "'${env:PASSWORD}'" in shown


def test_a_password_that_stands_in_the_file_is_not_shown_either() -> None:
    config = parse_config(TEXT.replace("${env:PASSWORD}", "plainly"), environ={"SERVERS": "b:1"})

    assert config.kafka.properties["sasl.password"] == "plainly"
    assert "plainly" not in repr(config.kafka)


def test_the_file_of_a_secret_may_end_in_a_line_break(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hunter2\n")
    config = parse_config(
        TEXT.replace("${env:PASSWORD}", "${file:${config_dir}/password}"),
        path=str(tmp_path / "conf.yaml"),
        environ={"SERVERS": "b:1"},
    )

    assert config.kafka.properties["sasl.password"] == "hunter2"


def test_a_doubled_dollar_is_no_reference() -> None:
    config = parse_config(TEXT.replace("${env:SERVERS}", "'$${env:SERVERS}$${config_dir}'"), environ={"PASSWORD": "x"})

    assert config.kafka.bootstrap_servers == "${env:SERVERS}${config_dir}"


def test_redaction_puts_references_back_into_any_text() -> None:
    text = redact("login of me:hunter2 at broker-7:9092 failed", loaded().secrets)

    assert text == "login of me:${env:PASSWORD} at ${env:SERVERS} failed"


def test_redaction_leaves_very_short_values_alone() -> None:
    secret = Secret("1", reference="${env:ONE}", parts=(("1", "${env:ONE}"),))

    assert redact("1 of 10", [secret]) == "1 of 10"


def test_redaction_replaces_the_longer_of_two_values_first() -> None:
    secrets = [
        Secret(value, reference=f"${{env:{name}}}", parts=((value, f"${{env:{name}}}"),))
        for name, value in (("A", "pass"), ("B", "password"))
    ]

    assert redact("password pass", secrets) == "${env:B} ${env:A}"


def test_a_secret_survives_pickling() -> None:
    secret = loaded().kafka.bootstrap_servers

    copy = pickle.loads(pickle.dumps(secret))

    assert (copy, repr(copy)) == ("broker-7:9092", "'${env:SERVERS}'")


def test_a_file_that_is_none_or_too_large_is_no_secret(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "large").write_bytes(b"x" * (1024 * 1024 + 1))
    for name, said in (("fifo", "is no file"), ("large", "is larger than 1048576 bytes"), (".", "is no file")):
        with pytest.raises(UnresolvedError, match=said) as failed:
            resolve(f"${{file:{tmp_path}/{name}}}", config_dir=".", environ={})
        assert "xxx" not in str(failed.value)
    with pytest.raises(UnresolvedError, match="is no file"):
        resolve("${file:/dev/zero}", config_dir=".", environ={})
