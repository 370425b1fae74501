"""Kafka client settings by which a client runs code that is not its own, or takes a file of the machine for an answer.

Sources: Kafka's CVE-2023-25194 (login modules), CVE-2024-31141 (configuration providers), CVE-2025-27817 (`file:` as a
token endpoint); librdkafka's CONFIGURATION.md (`plugin.library.paths`, `ssl.engine.location`, and others).
"""

from __future__ import annotations

import re

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
