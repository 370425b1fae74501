"""The rows of the table of conversions for dates, times and intervals."""

from __future__ import annotations

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.debezium.rules import INT32, INT64, Conversion, Rule, always, struct, text
from cdc_sync.core.debezium.wire import (
    Unit,
    WireDate,
    WireDateText,
    WireInstant,
    WireTime,
    WireTimestamp,
    WireTimestampText,
)

_ALL = "every value has a place"
_DAYS = "outside the years 1 to 9999, infinities too: `out_of_range`; an infinite day of Postgres has no sign"
_MOMENTS = "outside the years 1 to 9999, infinities too: `out_of_range`"
_TEXTS = f"{_MOMENTS}; not a point in time: the record is set aside"
_NANOS = f"{_MOMENTS}; nanoseconds are rounded down to microseconds"
_CLOCK = "beyond a day and below zero too"
_LOCAL = "since 1970-01-01T00:00:00, without zone"


def _row(
    type_: str, name: str, rule: Rule, *, origin: str, unit: str, values: str, otherwise: str, source: str | None = None
) -> Conversion:
    return Conversion(
        rule=rule,
        example=ConnectSchema(type=type_, name=name, version=1, optional=True),
        origin=origin,
        unit=unit,
        values=values,
        otherwise=otherwise,
        source=source or f"Debezium `{name.rpartition('.')[2]}`",
    )


def _structured(name: str, origin: str, *members: str) -> Conversion:
    return Conversion(
        rule=struct,
        example=ConnectSchema(
            type="struct",
            name=f"io.debezium.time.Structured{name}",
            version=1,
            optional=True,
            members=tuple(_part(member) for member in members),
        ),
        origin=f"{origin} with `time.precision.mode=structured`, from 3.7 on",
        unit="parts, as sent",
        values="zero dates and infinities too",
        otherwise="by member",
        source=f"Debezium `Structured{name}`",
    )


def _part(name: str) -> ConnectSchema:
    type_ = {"picoseconds": "int64", "seconds": "int64", "zone": "string", "specialValue": "string"}.get(name, "int32")
    return ConnectSchema(type=type_, field=name, optional=True)


_DATE = ("year", "month", "day")
_TIME = ("hour", "minute", "second", "picoseconds")
_KAFKA = "Kafka Connect `{}`, `time.precision.mode=connect`"

_DATES = (
    _row(
        "int32",
        "io.debezium.time.Date",
        always(WireDate()),
        origin="DATE",
        unit="days since 1970-01-01",
        values="-719162 to 2932896",
        otherwise=_DAYS,
    ),
    _row(
        "int32",
        "org.apache.kafka.connect.data.Date",
        always(WireDate()),
        origin="DATE",
        unit="days since 1970-01-01",
        values="-719162 to 2932896",
        otherwise=_DAYS,
        source=_KAFKA.format("Date"),
    ),
    _row(
        "string",
        "io.debezium.time.IsoDate",
        always(WireDateText()),
        origin="DATE",
        unit="ISO 8601, the Z is decoration",
        values="0001-01-01 to 9999-12-31",
        otherwise=_TEXTS,
    ),
    _row(
        "int32",
        "io.debezium.time.Year",
        INT32,
        origin="MySQL YEAR",
        unit="years",
        values="1901 to 2155, 1900 for year 0000",
        otherwise=_ALL,
    ),
)

_CLOCKS: tuple[tuple[str, str, Unit, str, str | None], ...] = (
    ("int32", "io.debezium.time.Time", "milli", "TIME(0..3)", None),
    ("int64", "io.debezium.time.MicroTime", "micro", "TIME(4..6), MySQL TIME", None),
    ("int64", "io.debezium.time.NanoTime", "nano", "TIME(7..9)", None),
    ("int32", "org.apache.kafka.connect.data.Time", "milli", "TIME", _KAFKA.format("Time")),
)
_TIMES = tuple(
    _row(
        type_,
        name,
        always(WireTime(unit=unit)),
        origin=origin,
        unit=f"{unit}seconds since midnight",
        values=_CLOCK,
        otherwise="-2^63: the record is set aside",
        source=source,
    )
    for type_, name, unit, origin, source in _CLOCKS
)

_MOMENT_FORMS: tuple[tuple[str, Unit, str, str | None], ...] = (
    ("io.debezium.time.Timestamp", "milli", "TIMESTAMP(0..3), MySQL DATETIME(0..3), Oracle DATE", None),
    ("io.debezium.time.MicroTimestamp", "micro", "TIMESTAMP(4..6), DATETIME(4..6)", None),
    ("io.debezium.time.NanoTimestamp", "nano", "DATETIME2(7), Oracle TIMESTAMP(7..9)", None),
    ("org.apache.kafka.connect.data.Timestamp", "milli", "TIMESTAMP", _KAFKA.format("Timestamp")),
)
_TIMESTAMPS = tuple(
    _row(
        "int64",
        name,
        always(WireTimestamp(unit=unit)),
        origin=origin,
        unit=f"{unit}seconds {_LOCAL}",
        values="years 1677 to 2262" if unit == "nano" else "years 1 to 9999",
        otherwise=_NANOS if unit == "nano" else _MOMENTS,
        source=source,
    )
    for name, unit, origin, source in _MOMENT_FORMS
)

_TEXT_FORMS = (
    _row(
        "string",
        "io.debezium.time.IsoTimestamp",
        always(WireTimestampText()),
        origin="TIMESTAMP, DATETIME",
        unit="ISO 8601, the Z is decoration",
        values="0 to 9 digits of a second",
        otherwise=_TEXTS,
    ),
    _row(
        "string",
        "io.debezium.time.ZonedTimestamp",
        always(WireInstant()),
        origin="timestamptz, MySQL TIMESTAMP, DATETIMEOFFSET",
        unit="ISO 8601 with an offset, which is not kept",
        values="0 to 9 digits of a second, `infinity`",
        otherwise=_TEXTS,
    ),
    _row(
        "string",
        "io.debezium.time.ZonedTime",
        text,
        origin="timetz",
        unit="ISO 8601, as sent",
        values="any",
        otherwise=_ALL,
    ),
    _row(
        "string",
        "io.debezium.time.IsoTime",
        text,
        origin="TIME",
        unit="ISO 8601, as sent",
        values="any",
        otherwise=_ALL,
    ),
)

_INTERVALS = (
    _row(
        "int64",
        "io.debezium.time.MicroDuration",
        INT64,
        origin="interval",
        unit="microseconds, a month as 365.25 / 12 days",
        values="-2^63 to 2^63-1",
        otherwise=_ALL,
    ),
    _row(
        "int64",
        "io.debezium.time.NanoDuration",
        INT64,
        origin="interval",
        unit="nanoseconds, a month as 365.25 / 12 days",
        values="-2^63 to 2^63-1",
        otherwise=_ALL,
    ),
    _row(
        "string",
        "io.debezium.time.Interval",
        text,
        origin="interval with `interval.handling.mode=string`",
        unit="ISO 8601 `P1Y2M3DT4H5M6.78S`, as sent",
        values="any",
        otherwise=_ALL,
    ),
)

_STRUCTURED = (
    _structured("Date", "DATE", *_DATE, "specialValue"),
    _structured("Time", "TIME", *_TIME, "precision"),
    _structured("Timestamp", "TIMESTAMP", *_DATE, *_TIME, "specialValue", "precision"),
    _structured("ZonedTimestamp", "timestamptz", *_DATE, *_TIME, "zone", "specialValue", "precision"),
    _structured("ZonedTime", "timetz", *_TIME, "zone", "precision"),
    _structured(
        "Duration", "interval", "years", "months", "days", "hours", "minutes", "seconds", "picoseconds", "precision"
    ),
)

TEMPORAL: tuple[Conversion, ...] = (*_DATES, *_TIMES, *_TIMESTAMPS, *_TEXT_FORMS, *_INTERVALS, *_STRUCTURED)
