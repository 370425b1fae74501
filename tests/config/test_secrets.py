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
    assert "'${env:PASSWORD}'" in shown


def test_what_is_no_secret_is_shown_wherever_it_comes_from(tmp_path: Path) -> None:
    config = loaded()
    assert "broker-7" in repr(config)
    assert {secret.reference for secret in config.secrets} == {
        "${env:PASSWORD}",
        "jdbc:postgresql://me:${env:PASSWORD}@db/lake",
    }

    text = TEXT.replace("jdbc:postgresql://me:${env:PASSWORD}@db/lake", "${env:CATALOG}")
    for address, is_secret in (
        ("jdbc:postgresql://db/lake", False),
        ("jdbc:postgresql://me:hunter2@db/lake", True),
        ("jdbc:postgresql://db/lake?user=me&password=hunter2", True),
    ):
        uri = parse_config(text, environ={"SERVERS": "b:1", "PASSWORD": "x", "CATALOG": address}).target.catalog.uri
        assert isinstance(uri, Secret) is is_secret
        assert redact("login with hunter2 failed", [uri] if isinstance(uri, Secret) else []).count("hunter2") == (
            0 if is_secret else 1
        )

    (tmp_path / "servers").write_text("broker-8:9092")
    kept = parse_config(
        TEXT.replace("${env:SERVERS}", f"${{file:{tmp_path}/servers}}"), environ={"PASSWORD": "x"}
    ).kafka.bootstrap_servers
    assert isinstance(kept, Secret)


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

    assert text == "login of me:${env:PASSWORD} at broker-7:9092 failed"


def secret(value: str, name: str = "P") -> Secret:
    return Secret(value, reference=f"${{env:{name}}}", parts=((value, f"${{env:{name}}}"),))


@pytest.mark.parametrize("value", ["1", "read", "orders", "password", "2026"])
def test_a_password_that_may_be_a_word_does_not_tell_itself(value: str) -> None:
    text = f"read 1 of 2026 orders, password {value}s; {value}: done, x_{value}={value[::-1]}, mode {value}"
    assert redact(text, [secret(value)]) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("FATAL: password=read, mode=read", "FATAL: password=${env:P}, mode=read"),
        ("cannot read jdbc:x://me:read@db/lake", "cannot read jdbc:x://me:${env:P}@db/lake"),
        ('{"Password": "read", "do": "read"}', '{"Password": "${env:P}", "do": "read"}'),
        ("password=ready to read", "password=ready to read"),
    ],
)
def test_it_is_left_out_where_a_password_stands(text: str, shown: str) -> None:
    assert redact(text, [secret("read")]) == shown


def test_of_other_software_s_settings_only_likely_secrets_are_looked_for_in_text() -> None:
    text = TEXT.replace("sasl.username: me", "sasl.username: '${env:KAFKA_USER}', x.region: '${file:/etc/hostname}'")
    text = text.replace("security.protocol: SASL_SSL", "security.protocol: '${env:PROTOCOL}'")
    environ = {"SERVERS": "b:1", "PASSWORD": "hunter2", "KAFKA_USER": "kafka-7", "PROTOCOL": "SASL_SSL"}
    config = parse_config(text, environ=environ)
    assert "'${env:KAFKA_USER}'" in repr(config), "who knows what it is"
    assert (
        redact("kafka-7 logs in by SASL_SSL: hunter2", config.secrets) == "kafka-7 logs in by SASL_SSL: ${env:PASSWORD}"
    )


def test_redaction_replaces_the_longer_of_two_values_first() -> None:
    assert redact("pass-12 pass-1", [secret("pass-1", "A"), secret("pass-12", "B")]) == "${env:B} ${env:A}"


def test_a_secret_survives_pickling() -> None:
    copy = pickle.loads(pickle.dumps(loaded().kafka.properties["sasl.password"]))

    assert (copy, repr(copy)) == ("hunter2", "'${env:PASSWORD}'")


def test_a_file_that_is_none_or_too_large_is_no_secret(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "large").write_bytes(b"x" * (1024 * 1024 + 1))
    for name, said in (("fifo", "is no file"), ("large", "is larger than 1048576 bytes"), (".", "is no file")):
        with pytest.raises(UnresolvedError, match=said) as failed:
            resolve(f"${{file:{tmp_path}/{name}}}", config_dir=".", environ={})
        assert "xxx" not in str(failed.value)
    with pytest.raises(UnresolvedError, match="is no file"):
        resolve("${file:/dev/zero}", config_dir=".", environ={})
