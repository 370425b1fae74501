"""The types of Postgres whose columns every connector sends; it leaves out what it does not know, without a word.

Source: Debezium, `PostgresValueConverter.schemaBuilder` (`include.unknown.datatypes`); names are `format_type`'s.
"""

from __future__ import annotations

import re

_ARRAYED = frozenset({
    "smallint", "integer", "bigint", "numeric", "real", "double precision", "boolean", "text", "character varying",
    "character", "date", "timestamp without time zone", "timestamp with time zone", "uuid",
})  # fmt: skip
_SCALARS = _ARRAYED | {
    "bytea", "json", "jsonb", "time without time zone", "time with time zone", "interval", "money", "oid", "bit",
    "bit varying", "xml", "inet", "cidr", "macaddr",
}  # fmt: skip
_MODIFIER = re.compile(r"\([0-9]+(,-?[0-9]+)?\)")


def is_sent(type_: str) -> bool:
    """Whether columns of a type are in events for certain. Types of users and of extensions never are."""
    plain = _MODIFIER.sub("", type_)
    return plain.removesuffix("[]") in _ARRAYED if plain.endswith("[]") else plain in _SCALARS
