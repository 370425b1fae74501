"""What a usable configuration may still regret."""

from __future__ import annotations

from cdc_sync.config.clientnames import JAVA, why_not_known_to_spark
from cdc_sync.config.java import is_translated
from cdc_sync.config.models import Config
from cdc_sync.config.secrets import HIDDEN, Secret


def advice(config: Config) -> tuple[str, ...]:
    """Return warnings, each a sentence with a remedy."""
    found = []
    if config.target.format == "memory":
        found.append("target.format memory keeps nothing after the process ends; use iceberg for real data")
    if config.spark.jars and config.spark.packages is not None:
        found.append("spark.packages is ignored because spark.jars is set; remove one of the two")
    if config.connector.signals is not None and config.connector.notifications is None:
        found.append(
            "connector.signals without connector.notifications: nobody tells when a resync has ended; set both, or say "
            "`cdc-sync resync --done` yourself"
        )
    found += [
        f"kafka.spark_properties: {reason}"
        for name in config.kafka.spark_properties
        if (reason := why_not_known_to_spark(name)) is not None
    ]
    found += [
        f"kafka.properties.{name} is a name of librdkafka's, and Spark's readers log in without it; say the same in "
        "Java's words under kafka.spark_properties, such as ssl.keystore.location"
        for name in config.kafka.properties
        if name.startswith(("ssl.", "sasl.", "https.")) and not is_translated(name) and name not in JAVA
    ]
    protocol = config.kafka.driver_settings.get("security.protocol", "").upper()
    if protocol == "SASL_PLAINTEXT":
        found.append("security.protocol SASL_PLAINTEXT sends the password in clear; use SASL_SSL")
    found += [
        f"{section}.{name} stands in the file in plain text; write ${{env:NAME}} or ${{file:PATH}} instead"
        for section, values in _properties(config)
        for name, value in values.items()
        if isinstance(value, Secret) and value.reference == HIDDEN
    ]
    found += [
        f"tables[{index}] has the same pattern as tables[{earlier}] and is never used; remove it"
        for index, rule in enumerate(config.tables)
        for earlier, other in enumerate(config.tables[:index])
        if rule.pattern is not None and rule.pattern == other.pattern and not other.exclude
    ]
    return tuple(found)


def _properties(config: Config) -> tuple[tuple[str, dict[str, str]], ...]:
    return (
        ("kafka.properties", config.kafka.properties),
        ("kafka.driver_properties", config.kafka.driver_properties),
        ("kafka.spark_properties", config.kafka.spark_properties),
        ("target.catalog.properties", config.target.catalog.properties),
        ("spark.conf", config.spark.conf),
    )
