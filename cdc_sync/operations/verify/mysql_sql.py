"""The dialect of MariaDB and MySQL: how a source column of each type is written in each form."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_sync.operations.verify.dialect import Dialect, Templates
from cdc_sync.operations.verify.forms import Form

MYSQL = Dialect(
    quoted=lambda name: "`{}`".format(name.replace("`", "``")),
    md5="md5({c})",
    md5_bytes="md5({c})",
    joined=lambda parts: f"concat_ws(',', {', '.join(parts)})",
    # It has no lists.
    elements="{c}{part}",
    word="cast(conv(substr({k}, 1, 15), 16, 10) as unsigned)",
    prefix="substr({k}, 1, {n})",
    shown="left({c}, {n})",
    shown_bytes="lower(hex(left({c}, {n})))",
    plain="cast({c} as char character set utf8mb4)",
)

_TEXT = "convert({c} using utf8mb4)"
# A number is added to, so that ZEROFILL does not count.
_NUMBER = "cast({c} + 0 as char character set utf8mb4)"
# The upper half of BIGINT UNSIGNED arrives negative, as it is held.
_SIGNED = "cast(cast({c} as signed) as char character set utf8mb4)"
_MOMENT = "cast({c} as char character set utf8mb4)"


def _trimmed(text: str) -> str:
    """Return a text without the zeros at the end of its fraction."""
    return f"if(locate('.', {text}) > 0, trim(trailing '.' from trim(trailing '0' from {text})), {text})"


def _bits(wkb: str, coordinate: int) -> str:
    """Return the bits of a point's coordinate; its bytes, lowest first, stand behind five for order and kind."""
    first = 11 + 16 * coordinate
    bytes_ = (f"substr({wkb}, {place}, 2)" for place in range(first + 14, first - 2, -2))
    return f"concat({', '.join(bytes_)})"


# There is no function for the bits of a number, but a point's bytes hold them.
_BITS_OF_DOUBLE = f"if({{c}} is null, null, {_bits('hex(st_asbinary(point(cast({c} as double), 0)))', 0)})"
# As it is stored, behind the SRID; MySQL's st_asbinary swaps the axes of some.
_WKB = "substr(hex({c}), 9)"
_SHAPE = f"concat({_WKB}, ' ', coalesce(nullif(st_srid({{c}}), 0), 'N'))"
_POINT = f"concat({_bits(_WKB, 0)}, ' ', {_bits(_WKB, 1)}, ' ', {_SHAPE})"

_IS_TRUE = "case when {c} + 0 = 0 then '0' when {c} is not null then '1' end"
_INTEGER: Templates = {Form.INTEGER: _SIGNED, Form.TEXT: _NUMBER, Form.DECIMAL: _NUMBER, Form.BOOLEAN: _IS_TRUE}
_FLOAT: Templates = {Form.FLOAT: _BITS_OF_DOUBLE}
_AS_TEXT: Templates = {Form.TEXT: _TEXT}
_AS_BYTES: Templates = {Form.BYTES: "{c}"}
_AS_SHAPE: Templates = {Form.SHAPE: _SHAPE}

TYPES: Mapping[str, Templates] = {
    "tinyint": _INTEGER,
    "smallint": _INTEGER,
    "mediumint": _INTEGER,
    "int": _INTEGER,
    "bigint": _INTEGER,
    # A year 0000 is sent as 1900.
    "year": {Form.INTEGER: "cast(if({c} = 0, 1900, {c} + 0) as char character set utf8mb4)"},
    "bit": {
        Form.BOOLEAN: _IS_TRUE,
        Form.BITS: "trim(trailing '0' from reverse(bin({c} + 0)))",
    },
    "decimal": {Form.DECIMAL: _trimmed(_MOMENT), Form.DIGITS: _trimmed(_MOMENT), **_FLOAT},
    "float": _FLOAT,
    "double": _FLOAT,
    "char": _AS_TEXT,
    "varchar": _AS_TEXT,
    "tinytext": _AS_TEXT,
    "text": _AS_TEXT,
    "mediumtext": _AS_TEXT,
    "longtext": _AS_TEXT,
    "enum": _AS_TEXT,
    "set": _AS_TEXT,
    "uuid": _AS_TEXT,
    "inet4": _AS_TEXT,
    "inet6": _AS_TEXT,
    "binary": _AS_BYTES,
    "varbinary": _AS_BYTES,
    "tinyblob": _AS_BYTES,
    "blob": _AS_BYTES,
    "mediumblob": _AS_BYTES,
    "longblob": _AS_BYTES,
    "date": {Form.DATE: _MOMENT},
    "datetime": {Form.LOCAL: _trimmed(_MOMENT)},
    "timestamp": {Form.INSTANT: _trimmed(_MOMENT)},
    "time": {Form.TEXT: _trimmed(_MOMENT)},
    "point": {Form.POINT: _POINT, Form.SHAPE: _SHAPE},
    "geometry": _AS_SHAPE,
    "linestring": _AS_SHAPE,
    "polygon": _AS_SHAPE,
    "multipoint": _AS_SHAPE,
    "multilinestring": _AS_SHAPE,
    "multipolygon": _AS_SHAPE,
    "geometrycollection": _AS_SHAPE,
}
"""By `information_schema.columns.data_type`."""

REASONS: Mapping[str, str] = {
    "json": "the connector writes MySQL's binary JSON in other words than the server",
}
"""Why a type is not compared, where that is not plain."""

SETTINGS = (
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION sql_mode = ''",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
)
"""What the texts above rely on."""
