"""Values of every type: what the source holds, and what the target then holds, each in its own SQL.

The pairs are written by hand, from the databases' manuals and docs/types.md; nothing of the program is in
them. Each value is of another kind than its neighbours, so all texts of one case must differ from each other as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
    Field,
    ListType,
    StructType,
)

POINT = StructType(
    fields=(
        Field(id=11, name="x", type=FLOAT64),
        Field(id=12, name="y", type=FLOAT64),
        Field(id=13, name="wkb", type=BINARY),
        Field(id=14, name="srid", type=INT32),
    )
)
SHAPE = StructType(fields=(Field(id=11, name="wkb", type=BINARY), Field(id=12, name="srid", type=INT32)))


def decimal(precision: int, scale: int) -> DecimalType:
    return DecimalType(precision=precision, scale=scale)


def list_of(element: DataType) -> ListType:
    return ListType(element_id=11, element=element)


@dataclass(frozen=True, slots=True)
class Case:
    """A source type, the tracked type it becomes, and pairs of SQL: the source's value, Spark's value."""

    source: str
    tracked: DataType
    values: tuple[tuple[str, str], ...]


def _same(*values: str) -> tuple[tuple[str, str], ...]:
    return tuple((value, value) for value in values)


def _cast(type_: str, *values: str) -> tuple[tuple[str, str], ...]:
    return tuple((value, f"cast({value} as {type_})") for value in values)


_TEXTS = ("''", "' '", "'a'", "'A'", "'a '", "'N'", "','", "'0'", "'vc é 漢字 😀'", "'é'", "'e\u0301'", "'x,y'")
_DOUBLES = (
    "0.1",
    "1.5",
    "-2.5",
    "1e20",
    "1e-7",
    "12345678.9",
    "5e-324",
    "1.7976931348623157e308",
    "2.2250738585072014e-308",
    "0.30000000000000004",
    "0.3",
    "9007199254740993",
    "100",
    "0",
)
_FLOATS = ("0.1", "1.5", "-2.5", "16777217", "3.4028235e38", "1.17549435e-38", "0", "100", "0.3")

_POINT = (
    "named_struct('x', 1.5D, 'y', -2.25D, 'wkb', X'0101000000000000000000f83f00000000000002c0', "
    "'srid', cast(null as int))"
)

POSTGRES = (
    Case("boolean", BOOLEAN, _same("true", "false")),
    Case("smallint", INT16, _cast("smallint", "0", "-32768", "32767")),
    Case("integer", INT32, _cast("int", "0", "-2147483648", "2147483647")),
    Case("bigint", INT64, _cast("bigint", "0", "'-9223372036854775808'", "9223372036854775807")),
    Case("oid", INT64, _cast("bigint", "42", "4294967295")),
    Case("numeric(10,2)", decimal(10, 2), _cast("decimal(10,2)", "0", "1.5", "-99999999.99", "0.01", "100", "-0.10")),
    Case(
        "numeric(38,10)",
        decimal(38, 10),
        _cast("decimal(38,10)", "0", "0.0000000001", "'-1234567890123456789012345678.0123456789'", "10", "0.0000001"),
    ),
    Case("numeric(38,38)", decimal(38, 38), _cast("decimal(38,38)", "0", "'0.00000000000000000000000000000000000001'")),
    Case("numeric(6,0)", decimal(6, 0), _cast("decimal(6,0)", "0", "100", "-999999", "10")),
    Case("numeric(5,-2)", decimal(7, 0), (("12300", "cast(12300 as decimal(7,0))"), ("0", "cast(0 as decimal(7,0))"))),
    # Decided at the source, still on its way to the target.
    Case("numeric(12,4)", decimal(10, 2), _cast("decimal(10,2)", "1.5", "100")),
    Case(
        "numeric",
        STRING,
        (
            ("3.14159265358979323846264338327950288", "'3.14159265358979323846264338327950288'"),
            ("1.5000", "'1.5'"),
            ("1e30", "'1000000000000000000000000000000'"),
            ("1e-20", "'0.00000000000000000001'"),
            ("0", "'0'"),
            ("100", "'100'"),
            ("'NaN'", "'NaN'"),
        ),
    ),
    Case(
        "money",
        decimal(38, 2),
        (
            ("'1234.56'", "cast(1234.56 as decimal(38,2))"),
            ("'-0.01'", "cast(-0.01 as decimal(38,2))"),
            ("'92233720368547758.07'", "cast('92233720368547758.07' as decimal(38,2))"),
        ),
    ),
    Case(
        "double precision",
        FLOAT64,
        (
            *_cast("double", *(f"'{item}'" for item in _DOUBLES)),
            *_cast("double", "'NaN'", "'Infinity'", "'-Infinity'"),
            ("'-0'", "-0D"),
        ),
    ),
    Case(
        "real",
        FLOAT32,
        (
            *_cast("float", *(f"'{item}'" for item in _FLOATS)),
            *_cast("float", "'NaN'", "'Infinity'"),
            ("'1e-45'", "cast('1.4E-45' as float)"),
        ),
    ),
    Case("numeric(10,2)", FLOAT64, _cast("double", "0.1", "12345.67")),
    Case("text", STRING, _same(*_TEXTS)),
    Case("varchar(20)", STRING, _same(*_TEXTS)),
    Case("char(5)", STRING, (("'ab'", "'ab   '"), ("''", "'     '"), ("'é'", "'é    '"))),
    Case(
        "bytea",
        BINARY,
        ((r"'\x'", "X''"), (r"'\xdeadbeef00ff'", "X'deadbeef00ff'"), (r"'\x00'", "X'00'"), (r"'\x0000'", "X'0000'")),
    ),
    Case("bit(1)", BOOLEAN, (("B'1'", "true"), ("B'0'", "false"))),
    Case("bit(8)", BINARY, (("B'10101010'", "X'aa'"), ("B'00000001'", "X'01'"), ("B'00000000'", "X'00'"))),
    Case("bit(20)", BINARY, (("B'00000000000000000001'", "X'010000'"), ("B'10000000000000000000'", "X'000008'"))),
    Case("bit varying(20)", BINARY, (("B'1011'", "X'0b'"), ("B'100000001'", "X'0101'"), ("B''", "X''"))),
    Case(
        "date",
        DATE,
        tuple(
            (f"'{day}'", f"date'{day}'")
            for day in ("2024-02-29", "0001-01-01", "9999-12-31", "1582-10-10", "1970-01-01")
        ),
    ),
    Case(
        "time",
        STRING,
        (
            ("'23:59:59.999999'", "'23:59:59.999999'"),
            ("'24:00:00'", "'24:00:00'"),
            ("'12:30'", "'12:30:00'"),
            ("'00:00:00.1'", "'00:00:00.1'"),
        ),
    ),
    Case(
        "timetz",
        STRING,
        (
            ("'12:34:56.123456+05:30'", "'07:04:56.123456Z'"),
            ("'01:00:00+00'", "'01:00:00Z'"),
            ("'23:30:00-02'", "'01:30:00Z'"),
        ),
    ),
    Case(
        "timestamp",
        TIMESTAMP,
        tuple(
            (f"'{at}'", f"timestamp_ntz'{at}'")
            for at in (
                "2024-02-29 12:34:56.123456",
                "2024-02-29 12:34:56.123457",
                "2024-02-29 12:34:56",
                "2024-02-29 12:34:56.1",
                "0001-01-01 00:00:00",
                "9999-12-31 23:59:59.999999",
                "1582-10-10 01:02:03",
            )
        ),
    ),
    Case(
        "timestamptz",
        TIMESTAMP_TZ,
        (
            ("'2024-02-29 12:34:56.123456+02'", "timestamp'2024-02-29 10:34:56.123456Z'"),
            ("'1900-01-01 00:00:00+00'", "timestamp'1900-01-01 00:00:00Z'"),
            ("'0001-01-01 00:00:00+00'", "timestamp'0001-01-01 00:00:00Z'"),
            ("'2024-06-30 12:00:00.5+00'", "timestamp'2024-06-30 12:00:00.500Z'"),
        ),
    ),
    Case(
        "interval",
        INT64,
        (
            ("'1 year 2 mons 3 days 04:05:06.789'", "37091106789000L"),
            ("'-1 mons +2 days -00:00:00.000001'", "-2457000000001L"),
            ("'0'", "0L"),
            ("'178000000 years'", "9223372036854775807L"),
            ("'1 day'", "86400000000L"),
        ),
    ),
    Case("uuid", STRING, _same("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'")),
    Case("json", STRING, _same("""'{"a": 1, "b": [1,2.50,null]}'""", "'null'", "'[]'")),
    Case("jsonb", STRING, (("""'{"b":1,"a":1.10}'""", """'{"a": 1.10, "b": 1}'"""),)),
    Case("xml", STRING, _same("'<a>x</a>'")),
    Case("inet", STRING, _same("'192.168.1.5/24'", "'192.168.1.5'", "'::1'")),
    Case("cidr", STRING, _same("'10.0.0.0/8'")),
    Case("macaddr", STRING, _same("'08:00:2b:01:02:03'")),
    Case("tsvector", STRING, (("'a fat cat'", "\"'a' 'cat' 'fat'\""),)),
    Case("int4range", STRING, _same("'[1,10)'", "'empty'", "'(,5)'")),
    Case("mood", STRING, _same("'sad'", "'happy'")),
    Case("posint", INT32, _cast("int", "7", "8")),
    Case(
        "point",
        POINT,
        (
            (
                "'(1.5,-2.25)'",
                _POINT,
            ),
        ),
    ),
    Case(
        "int[]",
        list_of(INT32),
        (
            ("'{1,NULL,3}'", "array(1, null, 3)"),
            ("'{}'", "cast(array() as array<int>)"),
            ("'{NULL}'", "array(cast(null as int))"),
            ("'{1,3}'", "array(1, 3)"),
            ("'{3,1}'", "array(3, 1)"),
        ),
    ),
    Case(
        "text[]",
        list_of(STRING),
        (
            (r"""'{"a","b,c",NULL,"d\"e"}'""", "array('a', 'b,c', null, 'd\"e')"),
            ("'{\"\"}'", "array('')"),
            ("'{N}'", "array('N')"),
            ("array[null]::text[]", "array(cast(null as string))"),
            ("'{a,b}'", "array('a', 'b')"),
            ("'{\"a,b\"}'", "array('a,b')"),
        ),
    ),
    Case(
        "numeric(6,2)[]",
        list_of(decimal(6, 2)),
        (("'{1.10,2.25}'", "array(cast(1.1 as decimal(6,2)), cast(2.25 as decimal(6,2)))"),),
    ),
    Case(
        "timestamptz[]",
        list_of(TIMESTAMP_TZ),
        (("'{\"2024-01-01 00:00:00+00\"}'", "array(timestamp'2024-01-01 00:00:00Z')"),),
    ),
)

MARIADB = (
    Case("tinyint(1)", INT16, _cast("smallint", "0", "1", "-128")),
    Case("boolean", BOOLEAN, (("true", "true"), ("false", "false"))),
    Case("tinyint unsigned", INT16, _cast("smallint", "255")),
    Case("int unsigned", INT64, _cast("bigint", "4294967295", "0")),
    Case("int(6) zerofill", INT64, _cast("bigint", "42", "0")),
    Case("bigint", INT64, _cast("bigint", "'-9223372036854775808'", "9223372036854775807")),
    Case("bigint unsigned", INT64, (("18446744073709551615", "-1L"), ("9223372036854775807", "9223372036854775807L"))),
    Case(
        "bigint unsigned",
        decimal(20, 0),
        (("18446744073709551615", "cast('18446744073709551615' as decimal(20,0))"), ("0", "cast(0 as decimal(20,0))")),
    ),
    Case("decimal(10,2)", decimal(10, 2), _cast("decimal(10,2)", "0", "1.5", "-99999999.99", "0.01", "100", "-0.10")),
    Case("decimal(5)", decimal(5, 0), _cast("decimal(5,0)", "0", "100", "12345")),
    Case(
        "decimal(38,30)",
        decimal(38, 30),
        _cast(
            "decimal(38,30)", "0", "'0.000000000000000000000000000001'", "'-12345678.012345678901234567890123456789'"
        ),
    ),
    Case(
        "decimal(65,30)",
        STRING,
        (
            (
                "12345678901234567890123456789012345.012345678901234567890123456789",
                "'12345678901234567890123456789012345.012345678901234567890123456789'",
            ),
            ("1.5", "'1.500000000000000000000000000000'"),
            ("0", "'0.000000000000000000000000000000'"),
        ),
    ),
    Case("double", FLOAT64, _cast("double", *(f"'{item}'" for item in _DOUBLES if item != "5e-324"))),
    Case("float", FLOAT32, _cast("float", *(f"'{item}'" for item in _FLOATS if item not in ("1.17549435e-38",)))),
    Case("varchar(20)", STRING, _same(*(item for item in _TEXTS))),
    Case("varchar(20) character set latin1", STRING, _same("'é'", "'a'", "''")),
    Case("char(5)", STRING, (("'ab '", "'ab'"), ("''", "''"))),
    Case("longtext", STRING, _same("'x'", "''")),
    Case("json", STRING, _same("""'{"a":1,"b":[1,2.50]}'""")),
    Case("enum('a','b','c d','é')", STRING, _same("'a'", "'c d'", "'é'")),
    Case("set('x','y','z')", STRING, _same("'x,z'", "''")),
    Case("uuid", STRING, _same("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'")),
    Case("binary(4)", BINARY, (("x'0102'", "X'01020000'"), ("x''", "X'00000000'"))),
    Case("varbinary(10)", BINARY, (("x'ff00'", "X'ff00'"), ("x'ff'", "X'ff'"), ("x''", "X''"))),
    Case("longblob", BINARY, (("x'deadbeef'", "X'deadbeef'"),)),
    Case("bit(1)", BOOLEAN, (("b'1'", "true"), ("b'0'", "false"))),
    Case("bit(8)", BINARY, (("b'10101010'", "X'aa'"), ("b'1'", "X'01'"), ("b'0'", "X'00'"))),
    Case(
        "bit(64)",
        BINARY,
        (("18446744073709551615", "X'ffffffffffffffff'"), ("9223372036854775808", "X'0000000000000080'")),
    ),
    Case("date", DATE, tuple((f"'{day}'", f"date'{day}'") for day in ("2024-02-29", "1000-01-01", "9999-12-31"))),
    Case("time", STRING, _same("'-838:59:59'", "'00:00:00'")),
    Case(
        "time(6)",
        STRING,
        (
            ("'12:34:56.123456'", "'12:34:56.123456'"),
            ("'12:34:56.5'", "'12:34:56.5'"),
            ("'-00:00:00.000001'", "'-00:00:00.000001'"),
        ),
    ),
    Case("datetime", TIMESTAMP, (("'2024-02-29 12:34:50'", "timestamp_ntz'2024-02-29 12:34:50'"),)),
    Case(
        "datetime(6)",
        TIMESTAMP,
        tuple(
            (f"'{at}'", f"timestamp_ntz'{at}'")
            for at in (
                "2024-02-29 12:34:56.123456",
                "2024-02-29 12:34:56.123457",
                "2024-02-29 12:34:50",
                "1000-01-01 00:00:00.1",
            )
        ),
    ),
    Case(
        "timestamp(6) null",
        TIMESTAMP_TZ,
        tuple(
            (f"'{at}'", f"timestamp'{at}Z'")
            for at in ("2024-02-29 12:34:56.123456", "1970-01-01 00:00:01", "2024-02-29 12:34:50.5")
        ),
    ),
    Case("year", INT32, _cast("int", "2024", "1901")),
    Case(
        "point",
        POINT,
        (
            (
                "point(1.5,-2.25)",
                _POINT,
            ),
        ),
    ),
    Case(
        "linestring",
        SHAPE,
        (
            (
                "st_geomfromtext('LINESTRING(0 0,1 1)', 4326)",
                "named_struct('wkb', X'010200000002000000"
                + "00" * 16
                + "000000000000f03f000000000000f03f', 'srid', 4326)",
            ),
        ),
    ),
)
