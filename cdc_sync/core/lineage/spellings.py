"""The ways in which a connector can write values of one type of the source, and the settings that choose among them.

Source: Debezium documentation of the connectors, "Data type mappings".
"""

from __future__ import annotations

from cdc_sync.core.schema.sent import Sent

_DEBEZIUM, _CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."
_DECIMAL = f"{_CONNECT}Decimal"
_BY_NAME = (
    ("interval.handling.mode", "MicroDuration NanoDuration Interval StructuredDuration", ()),
    ("time.precision.mode", "Date IsoDate StructuredDate", ("Date",)),
    ("time.precision.mode", "Time MicroTime NanoTime IsoTime StructuredTime", ("Time",)),
    (
        "time.precision.mode",
        "Timestamp MicroTimestamp NanoTimestamp IsoTimestamp StructuredTimestamp",
        ("Timestamp",),
    ),
    ("time.precision.mode", "ZonedTimestamp StructuredZonedTimestamp", ()),
    ("time.precision.mode", "ZonedTime StructuredZonedTime", ()),
)
_FAMILIES = tuple(
    (setting, frozenset((*(_DEBEZIUM + name for name in names.split()), *(_CONNECT + name for name in connect))))
    for setting, names, connect in _BY_NAME
)
_PLAIN = (
    ("binary.handling.mode", frozenset(("bytes", "string"))),
    ("decimal.handling.mode", frozenset((_DECIMAL, "io.debezium.data.VariableScaleDecimal", "double", "string"))),
    ("bigint.unsigned.handling.mode", frozenset(("int64", _DECIMAL))),
    ("hstore.handling.mode", frozenset(("map", "io.debezium.data.Json"))),
)
"""Where one of the ways is a type without a name."""

_ONLY_BINLOG = frozenset(("bigint.unsigned.handling.mode",))
"""Settings that only the connectors of MySQL and MariaDB have."""

_ORDERED = (("Date",), ("Time", "MicroTime", "NanoTime"), ("Timestamp", "MicroTimestamp", "NanoTimestamp"))
"""Names of Debezium's, each of which holds every value of those before it, in the same words in a target."""
_AS_TEXT = frozenset(f"io.debezium.data.{name}" for name in ("Json", "Xml", "Uuid", "Ltree", "Enum", "EnumSet"))
"""Names of texts that stay what they are where the column becomes a plain text."""


def setting_between(old: Sent, new: Sent) -> str | None:
    """Return the connector's setting that leads from one way of writing values to another, None if none does."""
    if _depth(old) != _depth(new) or _spelled(old) == _spelled(new):
        return None
    for setting, names in (*_FAMILIES, *_PLAIN):
        if _spelled(old) in names and _spelled(new) in names:
            return setting
    return None


def converts_otherwise(old: Sent, new: Sent, kind: str) -> bool:
    """Whether a value converted by its target's rule may be unlike what the connector would write for it now.

    Only where a setting leads from one to the other, and the target's type changes.

    Args:
        old, new: how values were written, and are now.
        kind: of the source's positions, see `debezium.position`.
    """
    setting = setting_between(old, new)
    if setting in _ONLY_BINLOG:
        return kind == "binlog"  # what is above 2^63 was written as a negative number
    if setting == "decimal.handling.mode":
        return _spelled(old) == "double"  # which has no more than 15 certain digits
    return not _holds_as_well(old, new)


def is_respelled(old: Sent, new: Sent) -> bool:
    """Whether values are written in another way."""
    return (_depth(old), _spelled(old)) != (_depth(new), _spelled(new))


def may_differ(old: Sent, new: Sent) -> bool:
    """Whether rows of before may hold what the source, or the connector, would show otherwise now.

    Only for types whose target column stays the same.
    """
    if is_respelled(old, new):
        return not _holds_as_well(old, new)
    labels, now = (sent.parameter("allowed") for sent in (old, new))
    if labels is not None and now is not None:
        return not set(labels.split(",")) <= set(now.split(","))
    return any(old.parameter(name) != new.parameter(name) for name in ("length", "scale")) or _digits(new) < _digits(
        old
    )


def _holds_as_well(old: Sent, new: Sent) -> bool:
    one, other = _spelled(old), _spelled(new)
    if _depth(old) != _depth(new):
        return False
    if one in _DAYS and other in _DAYS:
        return True
    if one in _AS_TEXT and other == "string":
        return True
    for names in _ORDERED:
        spelled = [_DEBEZIUM + name for name in names]
        if one in spelled and other in spelled:
            return spelled.index(one) < spelled.index(other)
    return False


_DAYS = _FAMILIES[1][1] - {f"{_DEBEZIUM}StructuredDate"}


def _digits(sent: Sent) -> int:
    digits = sent.parameter("connect.decimal.precision")
    return int(digits) if digits is not None and digits.isdecimal() else 0


def _depth(sent: Sent) -> int:
    return sent.type.count("array<")


def _spelled(sent: Sent) -> str:
    return sent.name or sent.type.replace("array<", "").rstrip(">")
