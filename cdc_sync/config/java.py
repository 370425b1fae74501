"""Kafka client settings from librdkafka's names to Java's, as far as a log-in needs them.

Sources: librdkafka CONFIGURATION.md; Kafka's own "Security" chapter (PEM trust stores, JAAS line of the SASL modules).
"""

from __future__ import annotations

from collections.abc import Mapping

from cdc_sync.config.secrets import Secret

_DRIVER_ONLY = frozenset({"sasl.username", "sasl.password", "sasl.mechanisms", "ssl.ca.location"})
_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def is_translated(name: str) -> bool:
    """Whether a name of librdkafka's is said to Spark in Java's words."""
    return name in _DRIVER_ONLY


def java_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Translate what has another name in Java; everything else stays as it is."""
    settings = {name: value for name, value in properties.items() if name not in _DRIVER_ONLY}
    mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms"))
    if mechanism is not None:
        settings["sasl.mechanism"] = mechanism
    if "ssl.ca.location" in properties:
        settings["ssl.truststore.type"] = "PEM"
        settings["ssl.truststore.location"] = properties["ssl.ca.location"]
    user, password = properties.get("sasl.username"), properties.get("sasl.password")
    module = _MODULES.get(mechanism or "")
    if user is not None and password is not None and module is not None:
        settings["sasl.jaas.config"] = _jaas(module, user, password)
    return settings


def _jaas(module: str, user: str, password: str) -> str:
    line = f"{module} required username={_quoted(user)} password={_quoted(password)};"
    parts = tuple(part for text in (user, password) if isinstance(text, Secret) for part in text.parts)
    return Secret(line, reference=f"{module} required ...;", parts=parts) if parts else line


def _quoted(text: str) -> str:
    # Formatting keeps the value itself even of a Secret, which is what the client must get.
    escaped = f"{text}".replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
