"""Settings that would have a Kafka client run something are refused, unless the operator names them."""

from __future__ import annotations

import pytest

from cdc_sync.config import parse_config
from cdc_sync.config.sources import why_foreign
from cdc_sync.errors import ConfigError

CONFIG = """
pipeline: {{name: p}}
kafka: {{bootstrap_servers: b:1, topics: [t], {section}: {{{name}: '{value}'}}, allow: [{allow}]}}
tables: [{{pattern: '.*'}}]
target: {{catalog: {{warehouse: /w}}}}
"""
KAFKA = "org.apache.kafka.common.security."
REFUSED = (
    ("driver_properties", "plugin.library.paths", "/tmp/evil.so", "loads code"),
    ("driver_properties", "ssl.engine.location", "/tmp/evil.so", "loads code"),
    ("properties", "sasl.kerberos.kinit.cmd", "curl evil", "loads code"),
    ("spark_properties", "interceptor.classes", "evil.Interceptor", "loads code"),
    ("spark_properties", "sasl.login.callback.handler.class", "evil.Handler", "loads code"),
    ("spark_properties", "config.providers", "file", "loads code"),
    (
        "spark_properties",
        "sasl.jaas.config",
        "com.sun.security.auth.module.JndiLoginModule required;",
        "JndiLoginModule",
    ),
    ("spark_properties", "sasl.jaas.config", f"{KAFKA}plain.PlainLoginModule required; x.Y required;", "x.Y"),
    ("spark_properties", "sasl.oauthbearer.token.endpoint.url", "file:///etc/passwd", "read a file"),
    ("spark_properties", "sasl.oauthbearer.jwks.endpoint.url", " FILE:/x", "read a file"),
)


@pytest.mark.parametrize(("section", "name", "value", "reason"), REFUSED)
def test_it_is_refused_and_can_be_allowed(section: str, name: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"kafka.{section}.{name}: it .*{reason}.* name the setting in kafka.allow"):
        parse_config(CONFIG.format(section=section, name=name, value=value, allow=""))
    config = parse_config(CONFIG.format(section=section, name=name, value=value, allow=name))
    assert getattr(config.kafka, section)[name] == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sasl.jaas.config", rf'{KAFKA}scram.ScramLoginModule required password="a; \"b; c";'),
        ("sasl.jaas.config", "com.sun.security.auth.module.Krb5LoginModule required;"),
        ("sasl.oauthbearer.token.endpoint.url", "https://login/token"),
        ("ssl.truststore.location", "/etc/ca.pem"),
        ("client.id", "me"),
    ],
)
def test_what_is_the_client_s_own_is_not(name: str, value: str) -> None:
    assert why_foreign(name, value) is None
