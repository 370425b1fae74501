"""The one table of conversions, as data: `docs/types.md` shows it, `debezium.conversions` acts by it."""

from __future__ import annotations

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.rules import (
    BITS,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    Conversion,
    Rule,
    always,
    array,
    decimal,
    map_,
    struct,
    text,
    variable_decimal,
)
from cdc_sync.core.debezium.temporal_table import TEMPORAL
from cdc_sync.core.debezium.wire import WireBoolean

__all__ = ["CONVERSIONS", "Conversion"]

_ALL = "every value has a place"
_NUMERIC = "with `decimal.format=NUMERIC` of more digits than can be read exactly: the record is set aside"
_KAFKA = "org.apache.kafka.connect.data"
_DATA = "io.debezium.data"
_LITERAL = "Kafka Connect `Schema.Type`"
_PRECISE = "Kafka Connect `Decimal`; Debezium `JdbcValueConverters`, `decimal.handling.mode=precise`"


def _plain(type_: str, rule: Rule, origin: str, unit: str, values: str) -> Conversion:
    return Conversion(
        rule=rule,
        example=ConnectSchema(type=type_, optional=True),
        origin=origin,
        unit=unit,
        values=values,
        otherwise=_ALL,
        source=_LITERAL,
    )


def _text(name: str, origin: str, values: str, source: str) -> Conversion:
    return Conversion(
        rule=text,
        example=ConnectSchema(type="string", name=name, version=1, optional=True),
        origin=origin,
        unit="text, as sent",
        values=values,
        otherwise=_ALL,
        source=source,
    )


def _decimal(parameters: dict[str, str], origin: str, values: str, otherwise: str) -> Conversion:
    return Conversion(
        rule=decimal,
        example=ConnectSchema(type="bytes", name=f"{_KAFKA}.Decimal", version=1, optional=True, parameters=parameters),
        origin=origin,
        unit="unscaled value",
        values=values,
        otherwise=otherwise,
        source=_PRECISE,
    )


def _struct(name: str, members: tuple[ConnectSchema, ...], origin: str, unit: str, source: str) -> Conversion:
    return Conversion(
        rule=struct,
        example=ConnectSchema(type="struct", name=name, version=1, optional=True, members=members),
        origin=origin,
        unit=unit,
        values="by member",
        otherwise="by member",
        source=source,
    )


def _vector(name: str, rule: Rule, element: str, origin: str) -> Conversion:
    return Conversion(
        rule=array,
        example=ConnectSchema(
            type="array", name=f"{_DATA}.{name}", version=1, optional=True, items=ConnectSchema(type=element)
        ),
        origin=origin,
        unit="coordinates",
        values="by element",
        otherwise=_ALL,
        source=f"Debezium `{name}`",
    )


def _member(name: str, type_: str, *, optional: bool = False) -> ConnectSchema:
    return ConnectSchema(type=type_, field=name, optional=optional)


_WKB = _member("wkb", "bytes", optional=True)
_SRID = _member("srid", "int32", optional=True)
_POINT = (_member("x", "double"), _member("y", "double"), _WKB, _SRID)
_CENTER = ConnectSchema(type="struct", name=f"{_DATA}.geometry.Point", version=1, field="center", members=_POINT)
_TEXT, _OPTIONAL_TEXT = ConnectSchema(type="string"), ConnectSchema(type="string", optional=True)
_EXTENSIONS = ConnectSchema(type="map", keys=_TEXT, values=_OPTIONAL_TEXT, field="extensions", optional=True)
_SPARSE = ConnectSchema(
    type="map", keys=ConnectSchema(type="int16"), values=ConnectSchema(type="double"), field="vector"
)

_LITERALS = (
    _plain("boolean", always(WireBoolean()), "boolean, BIT(1), MySQL BOOLEAN learnt from DDL", "true or false", "both"),
    _plain("int8", INT8, "MySQL TINYINT from 3.7 on, Oracle NUMBER(1..2)", "1", "-2^7 to 2^7-1"),
    _plain("int16", INT16, "SMALLINT, TINYINT and its UNSIGNED, BOOLEAN learnt from snapshots", "1", "-2^15 to 2^15-1"),
    _plain("int32", INT32, "INTEGER, MEDIUMINT, SMALLINT UNSIGNED", "1", "-2^31 to 2^31-1"),
    _plain(
        "int64",
        INT64,
        "BIGINT, INT UNSIGNED, oid; BIGINT UNSIGNED, whose upper half arrives negative unless "
        "`bigint.unsigned.handling.mode=precise`",
        "1",
        "-2^63 to 2^63-1",
    ),
    _plain("float", FLOAT32, "REAL, MySQL FLOAT(0..24)", "IEEE 754", "NaN and the infinities too"),
    _plain(
        "double",
        FLOAT64,
        "DOUBLE PRECISION, decimals with `decimal.handling.mode=double`",
        "IEEE 754",
        "NaN and the infinities too",
    ),
    _plain(
        "string",
        text,
        "text types, ranges, inet, cidr, macaddr, citext; decimals, binaries, bigints in their text modes",
        "text, as sent",
        "any",
    ),
    _plain("bytes", BYTES, "bytea, BLOB, BINARY(n) padded with zeros, `include.unknown.datatypes`", "bytes", "any"),
    Conversion(
        rule=array,
        example=ConnectSchema(type="array", optional=True, items=ConnectSchema(type="int32", optional=True)),
        origin="Postgres arrays of one dimension",
        unit="by element",
        values="NULL elements too",
        otherwise="by element",
        source=_LITERAL,
    ),
    Conversion(
        rule=map_,
        example=ConnectSchema(type="map", optional=True, keys=_TEXT, values=_OPTIONAL_TEXT),
        origin="hstore with `hstore.handling.mode=map`",
        unit="by entry",
        values="NULL values too",
        otherwise="by entry; a NULL key or the same key twice: the record is set aside",
        source=_LITERAL,
    ),
    Conversion(
        rule=struct,
        example=ConnectSchema(
            type="struct",
            optional=True,
            members=(_member("a", "int32", optional=True), _member("b", "string", optional=True)),
        ),
        origin="custom converters",
        unit="by member",
        values="by member",
        otherwise="by member",
        source=_LITERAL,
    ),
)

_NUMBERS = (
    _decimal(
        {"scale": "2", "connect.decimal.precision": "10"},
        "NUMERIC(p,s), DECIMAL(p,s), SQL Server MONEY, BIGINT UNSIGNED in precise mode",
        "p and s in 0 to 38",
        "more than p digits: the record is set aside",
    ),
    _decimal(
        {"scale": "2"},
        "Postgres money, NUMERIC without precision",
        "38 digits",
        "more than 38 digits: the record is set aside",
    ),
    _decimal({"scale": "30", "connect.decimal.precision": "65"}, "MySQL DECIMAL(39..65,s)", "any digits", _NUMERIC),
    _decimal(
        {"scale": "1000", "connect.decimal.precision": "1000"}, "Postgres NUMERIC(p,39..)", "any digits", _NUMERIC
    ),
    _decimal(
        {"scale": "-5", "connect.decimal.precision": "10"},
        "Oracle NUMBER(p,-s), p+s up to 38",
        "whole numbers",
        "more than p+s digits: the record is set aside",
    ),
    _decimal({"scale": "-5", "connect.decimal.precision": "38"}, "Oracle NUMBER(p,-s), p+s over 38", "any", _NUMERIC),
    _decimal(
        {"scale": "2046", "connect.decimal.precision": "5"},
        "Postgres NUMERIC(p,-s), p+s up to 38: the scale is sent modulo 2048",
        "whole numbers",
        "more than p+s digits: the record is set aside",
    ),
    _decimal(
        {"scale": "2046", "connect.decimal.precision": "40"}, "Postgres NUMERIC(p,-s), p+s over 38", "any", _NUMERIC
    ),
    Conversion(
        rule=variable_decimal,
        example=ConnectSchema(
            type="struct",
            name=f"{_DATA}.VariableScaleDecimal",
            version=1,
            optional=True,
            members=(_member("scale", "int32"), _member("value", "bytes")),
        ),
        origin="Postgres NUMERIC, Oracle NUMBER and FLOAT, Db2 DECFLOAT without a scale",
        unit="unscaled value and its scale",
        values="every value its own scale, trailing zeros as sent",
        otherwise="a scale beyond 131072 or a value beyond 64 KiB: the record is set aside",
        source="Debezium `VariableScaleDecimal`",
    ),
    Conversion(
        rule=BITS,
        example=ConnectSchema(type="bytes", name=f"{_DATA}.Bits", version=1, optional=True, parameters={"length": "8"}),
        origin="BIT(n), Postgres VARBIT",
        unit="bits, lowest byte first, as sent",
        values="VARBIT without its leading zero bytes",
        otherwise=_ALL,
        source="Debezium `Bits`",
    ),
)

_TEXTS = (
    _text(f"{_DATA}.Json", "json, jsonb, hstore in JSON mode", "any", "Debezium `Json`"),
    _text(f"{_DATA}.Uuid", "uuid", "any", "Debezium `Uuid`"),
    _text(f"{_DATA}.Xml", "xml", "any", "Debezium `Xml`"),
    _text(f"{_DATA}.Ltree", "ltree", "any", "Debezium `Ltree`"),
    _text(f"{_DATA}.Tsvector", "tsvector", "any", "Debezium `TsVector`"),
    _text(f"{_DATA}.Enum", "enum", "a label; MySQL's invalid index is ''", "Debezium `Enum`"),
    _text(f"{_DATA}.EnumSet", "MySQL SET", "labels joined by commas", "Debezium `EnumSet`"),
    _text("com.example.Unknown", "custom converters: any name not in this table", "by the Connect type", _LITERAL),
)

_SHAPES = (
    _struct(f"{_DATA}.geometry.Point", _POINT, "point", "x, y, WKB, SRID", "Debezium `Point`"),
    _struct(
        f"{_DATA}.geometry.Geometry",
        (_WKB, _SRID, _EXTENSIONS),
        "PostGIS geometry, MySQL spatial types; `extensions` from 3.7 on",
        "WKB, SRID",
        "Debezium `Geometry`",
    ),
    _struct(f"{_DATA}.geometry.Geography", (_WKB, _SRID), "PostGIS geography", "WKB, SRID", "Debezium `Geography`"),
    _struct(
        f"{_DATA}.geometry.Circle",
        (_CENTER, _member("radius", "double")),
        "Postgres circle from 3.7 on",
        "center, radius",
        "Debezium `Circle`",
    ),
    _struct(
        f"{_DATA}.geometry.Line",
        tuple(_member(name, "double") for name in "abc"),
        "Postgres line from 3.7 on",
        "coefficients",
        "Debezium `Line`",
    ),
    _vector("DoubleVector", FLOAT64, "double", "pgvector vector"),
    _vector("FloatVector", FLOAT32, "float", "pgvector halfvec, MySQL VECTOR"),
    _struct(
        f"{_DATA}.SparseDoubleVector",
        (_member("dimensions", "int16"), _SPARSE),
        "pgvector sparsevec",
        "dimensions, coordinate by index",
        "Debezium `SparseDoubleVector`",
    ),
)

CONVERSIONS: tuple[Conversion, ...] = (*_LITERALS, *_NUMBERS, *TEMPORAL, *_TEXTS, *_SHAPES)
"""A name that is not here, or on another Connect type than here, is read as its Connect type without a name is."""
