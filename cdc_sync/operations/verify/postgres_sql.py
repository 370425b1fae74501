"""Postgres' dialect: how a source column of each type is written in each form."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_sync.operations.verify.dialect import Dialect, Templates
from cdc_sync.operations.verify.forms import Form

POSTGRES = Dialect(
    quoted=lambda name: '"{}"'.format(name.replace('"', '""')),
    # Of UTF-8, whatever the database is encoded in.
    md5="md5(convert_to({c}, 'UTF8'))",
    md5_bytes="md5({c})",
    joined=lambda parts: f"array_to_string(array[{', '.join(parts)}], ',')",
    elements=(
        "case when {c} is not null then (select coalesce(string_agg({part}, ',' order by place), '') "
        "from unnest({c}) with ordinality as items(element, place)) end"
    ),
    word="('x0' || substr({k}, 1, 15))::bit(64)::bigint",
    prefix="substr({k}, 1, {n})",
    shown="left({c}, {n})",
    shown_bytes="encode(substring({c} from 1 for {n}), 'hex')",
    plain="({c})::text",
)

_TEXT = "({c})::text"
# What the server itself writes for a value; a cast to text takes the blanks off a char(n), and adds /32 to an inet.
_OUTPUT = "case when {c} is not null then format('%s', {c}) end"
_TRIMMED = "rtrim(rtrim(round({c}, greatest(scale({c}), 1))::text, '0'), '.')"
_BITS_OF_DOUBLE = (
    "case when ({c})::float8 = 'NaN' then '7FF8000000000000' else upper(encode(float8send(({c})::float8), 'hex')) end"
)
# As Debezium counts: a month has a twelfth of 365.25 days; beyond 64 bits it is the last number there is.
_MICROSECONDS = (
    "case when {c} is not null then least(9223372036854775807, greatest(-9223372036854775808, trunc("
    "((extract(year from {c})::numeric * 12 + extract(month from {c})::numeric) * 30.4375 "
    "+ extract(day from {c})::numeric) * 86400000000 + extract(hour from {c})::numeric * 3600000000 "
    "+ extract(minute from {c})::numeric * 60000000 + extract(microseconds from {c})::numeric)))::text end"
)


def _wkb(axis: int) -> str:
    """Return the bytes of a coordinate, lowest first, as hexadecimal digits."""
    bytes_ = (f"substring(float8send(({{c}})[{axis}]) from {place} for 1)" for place in range(8, 0, -1))
    return f"upper(encode({' || '.join(bytes_)}, 'hex'))"


_AXES = " || ' ' || ".join(_BITS_OF_DOUBLE.format(c=f"({{c}})[{axis}]") for axis in (0, 1))
_POINT = f"({_AXES} || ' 0101000000' || {_wkb(0)} || {_wkb(1)} || ' N')"

_INTEGER: Templates = {Form.INTEGER: _TEXT, Form.TEXT: _TEXT, Form.DECIMAL: _TEXT}
_FLOAT: Templates = {Form.FLOAT: _BITS_OF_DOUBLE}
_AS_TEXT: Templates = {Form.TEXT: _TEXT}
_BITS = "rtrim(reverse(({c})::text), '0')"

TYPES: Mapping[str, Templates] = {
    "bool": {Form.BOOLEAN: "({c})::int::text"},
    "int2": _INTEGER,
    "int4": _INTEGER,
    "int8": _INTEGER,
    "oid": _INTEGER,
    "float4": _FLOAT,
    "float8": _FLOAT,
    "numeric": {Form.DECIMAL: _TRIMMED, Form.DIGITS: _TRIMMED, **_FLOAT},
    "money": {Form.DECIMAL: _TRIMMED.replace("{c}", "({c})::numeric")},
    "text": _AS_TEXT,
    "varchar": _AS_TEXT,
    "bpchar": {Form.TEXT: _OUTPUT},
    "name": _AS_TEXT,
    "citext": _AS_TEXT,
    "ltree": _AS_TEXT,
    "enum": _AS_TEXT,
    "uuid": _AS_TEXT,
    "json": _AS_TEXT,
    "jsonb": _AS_TEXT,
    "xml": _AS_TEXT,
    "tsvector": _AS_TEXT,
    "inet": {Form.TEXT: _OUTPUT},
    "cidr": {Form.TEXT: _OUTPUT},
    "macaddr": _AS_TEXT,
    "macaddr8": _AS_TEXT,
    "int4range": _AS_TEXT,
    "int8range": _AS_TEXT,
    "numrange": _AS_TEXT,
    "daterange": _AS_TEXT,
    "tsrange": _AS_TEXT,
    "bytea": {Form.BYTES: "{c}"},
    "bit": {Form.BOOLEAN: _TEXT, Form.BITS: _BITS},
    "varbit": {Form.BITS: _BITS},
    "date": {Form.DATE: _TEXT},
    "timestamp": {Form.LOCAL: _TEXT},
    "timestamptz": {Form.INSTANT: "(({c}) at time zone 'UTC')::text"},
    "time": {Form.TEXT: _TEXT},
    "timetz": {Form.TEXT: "replace((({c}) at time zone 'UTC')::text, '+00', 'Z')"},
    "interval": {Form.INTEGER: _MICROSECONDS},
    "point": {Form.POINT: _POINT},
}
"""By the type's name in the catalogue; a domain counts as the type below it, any enum as `enum`."""

REASONS: Mapping[str, str] = {
    "tstzrange": "its text depends on the time zone of the connector's session",
    "tstzmultirange": "its text depends on the time zone of the connector's session",
    "hstore": "the connector writes it as JSON or as a map, which the source cannot be made to write",
}
"""Why a type is not compared, where that is not plain."""

SETTINGS = (
    "SET TIME ZONE 'UTC'",
    "SET DateStyle TO 'ISO, YMD'",
    "SET IntervalStyle TO 'postgres'",
    "SET extra_float_digits TO 1",
    # The target may take longer than the source.
    "SET idle_in_transaction_session_timeout TO 0",
)
"""What the texts above rely on."""
