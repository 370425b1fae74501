"""Type changes that need the rows rewritten: every pair of types, every edge, value by value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.migration import RewriteTable, migration
from cdc_sync.core.migration.typechange import InPlace, Rewrite, decide_type_change
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
    FloatType,
    TimestampType,
)
from cdc_sync.spark.columns import value_column
from cdc_sync.spark.types import to_spark
from cdc_sync.spark.unconverted import count_lost
from cdc_sync.testing.targets import version
from tests.targets.cast_oracle import LOST, expected
from tests.targets.conftest import Lake, schema_of

pytestmark = pytest.mark.spark


def decimal(precision: int, scale: int) -> DecimalType:
    return DecimalType(precision=precision, scale=scale)


_WHOLE = [0, 1, -1, 9, 10, 99, 100, 127, -128]
_TEXTS = [
    "", " ", "abc", "0", "-0", "1", " 1 ", "+1", "-1", "1.5", "-1.5", "0.005", "-0.005", "9.995", "99999999.994",
    "99999999.995", ".5", "5.", ".", "1e3", "1E-400", "1e39", "1e400", "NaN", "Infinity", "-Infinity", "nan", "inf",
    "127", "128", "-129", "32768", "2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "9" * 18, "+" + "9" * 18, "1" + "0" * 18, "-000" + "9" * 19, "+0" + "8" * 19,
    "9" * 38, "9" * 39, "0" * 50 + "1", "0.1", "1\n", "1 2", "--1", "0x10", "1_000", "1d", "1f",
    "true", "TRUE", "t", "Yes", "on", "off", "N", "f", "é😀",
    "2024-02-29", "2023-02-29", " 1900-02-28 ", "1900-02-29", "2000-02-29", "0001-01-01", "0000-01-01", "9999-12-31",
    "2024-13-01", "2024-04-31", "2024-1-1", "10000-01-01", "infinity", "2024-02-29 12:34", "2024-02-29T12:34:56",
    "2024-02-29 12:34:56.7", "2024-02-29 12:34:56.123456", "2024-02-29 12:34:56.1234567", "2024-02-29 24:00:00",
    "2024-02-29 12:34:56Z", "2024-02-29 12:34:56+02", "2024-02-29 12:34:56.5-03:30", "0001-01-01 00:00:00+02:00",
    "9999-12-31 23:59:59-10:00", "2024-02-29 12:34:60", "2024-02-29 12:34:56+25:00", "2024-02-29Z",
]  # fmt: skip
_FLOATS = [
    0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 0.125, 127.0, 128.0, -128.0, -129.0, 1e7, 12345678.0, 1e-4, 1e-5,
    123.456, 99.995, 999.99, 65504.0, 2147483648.0, 1e20, 1.5e30, 1e-7, math.nan, math.inf, -math.inf,
]  # fmt: skip
_DOUBLES = [
    *_FLOATS, 0.30000000000000004, 1e14, 1e15, 999999999999999.9, 123456789.123456789, 99999999.994, 99999999.995,
    9007199254740993.0, 9223372036854774784.0, 9223372036854775808.0, -9223372036854775808.0, 1e37, 1e38, 1e39,
    3.4028234663852886e38, 3.5e38, 1e-50, 5e-324, 1.7976931348623157e308, 1e100, -1.25e-9,
]  # fmt: skip
_DATES = [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)]
_MOMENTS = [
    datetime(1900, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 12, 0, 0, 500000),
    datetime(2024, 2, 29, 12, 34, 56, 123456), datetime(9999, 12, 31, 23, 59, 59, 999999),
]  # fmt: skip


def _numbers(precision: int, scale: int) -> list[Decimal]:
    texts = ["0", "1", "-1", "0.5", "-0.5", "1.005", "-1.005", "0.0000001", "9.995", "9.994", "127", "128", "-128.5"]
    texts += ["99.995", "99999999.995", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808"]
    texts += ["9.9999", "0.9995", "9" * (precision - scale) + "." + "9" * scale]
    found = []
    for text in texts:
        number = Decimal(text)
        whole = len(str(int(abs(number))).lstrip("0"))
        digits = -int(number.as_tuple().exponent)
        if whole <= precision - scale and digits <= scale:
            found.append(number)
    return found


VALUES: list[tuple[DataType, list[Any]]] = [
    (BOOLEAN, [True, False]),
    (INT8, _WHOLE),
    (INT16, [*_WHOLE, 32767, -32768]),
    (INT32, [*_WHOLE, 128, 16777217, 99999999, 100000000, 2**31 - 1, -(2**31)]),
    (INT64, [*_WHOLE, 128, 2**31, 99999999, 100000000, 2**53 + 1, 10**17, 2**63 - 1, -(2**63)]),
    (FLOAT32, _FLOATS),
    (FLOAT64, _DOUBLES),
    (decimal(10, 2), _numbers(10, 2)),
    (decimal(5, 4), _numbers(5, 4)),
    (decimal(12, 2), _numbers(12, 2)),
    (decimal(20, 0), _numbers(20, 0)),
    (decimal(38, 10), _numbers(38, 10)),
    (decimal(38, 38), [Decimal("0"), Decimal("0.1"), Decimal("-0." + "9" * 38), Decimal("0." + "0" * 37 + "5")]),
    (STRING, _TEXTS),
    (BINARY, [b"", b"abc", "é😀".encode(), b"\xff", b"a\x00b", b"\xed\xa0\x80"]),
    (DATE, _DATES),
    (TIMESTAMP, [datetime(1, 1, 1), *_MOMENTS]),
    (TIMESTAMP_TZ, _MOMENTS),
]
PAIRS = [
    (old, new, values)
    for old, values in VALUES
    for new, _ in VALUES
    if old != new and isinstance(decide_type_change(ICEBERG, "rewrite", old, new), (InPlace, Rewrite))
]
ROWS = max(len(values) for _, values in VALUES) + 1


def _schema(types: list[DataType]) -> InternalSchema:
    columns = (Column(id=number, name=f"p{number}", type=type_) for number, type_ in enumerate(types, 2))
    return schema_of(Column(id=1, name="id", type=INT64), *columns)


BEFORE = _schema([old for old, _, _ in PAIRS])
AFTER = _schema([new for _, new, _ in PAIRS])


def _rows() -> Iterator[dict[str, Any]]:
    for row in range(ROWS):
        values = {f"p{number}": (values[row : row + 1] or [None])[0] for number, (_, _, values) in enumerate(PAIRS, 2)}
        yield {"id": row, **values}


@pytest.fixture
def rewritten(lake: Lake) -> Lake:
    lake.create(BEFORE)
    lake.write(BEFORE, _rows(), append=True, progress=Progress(version=1, offsets={"t": {0: 5}}))
    return lake


def test_every_pair_of_types_converts_every_value_by_its_rule(rewritten: Lake, session: SparkSession) -> None:
    lake = rewritten
    held = lake.target.read(lake.name, BEFORE, [column.id for column in BEFORE.columns]).persist()
    pairs = [(column, AFTER.column(column.id).type) for column in BEFORE.columns[1:]]
    steps = lake.change(BEFORE, AFTER)
    assert [type(step) for step in steps.steps] == [RewriteTable]

    found = _read(lake)
    lost: dict[str, int] = {}
    wrong = []
    for number, (old, new, values) in enumerate(PAIRS, 2):
        for row, value in enumerate(values):
            wanted = expected(value, old, new)
            if wanted is LOST:
                lost[f"p{number}"] = lost.get(f"p{number}", 0) + 1
            got, wanted = found[row][f"p{number}"], None if wanted is LOST else wanted
            if not _same(got, wanted):
                wrong.append(f"{value!r} from {old} to {new}: {got!r} instead of {wanted!r}")
    assert not wrong, "\n".join(wrong)
    assert count_lost(held, pairs) == lost


def _read(lake: Lake) -> dict[int, dict[str, Any]]:
    """Return the rows by id; instants as datetimes of UTC, which the driver cannot bring from far away."""
    read = lake.target.read(lake.name, AFTER, [column.id for column in AFTER.columns])
    columns = []
    for column in AFTER.columns:
        value = read[value_column(column.id)]
        columns.append((value.cast("string") if isinstance(column.type, TimestampType) else value).alias(column.name))
    found = {}
    for row in read.select(*columns).collect():
        values = row.asDict()
        for column in AFTER.columns:
            if isinstance(column.type, TimestampType) and values[column.name] is not None:
                values[column.name] = datetime.fromisoformat(re.sub(r"\.(\d+)", _padded, values[column.name]))
        found[values["id"]] = values
    return found


def _padded(found: re.Match[str]) -> str:
    return f".{found[1]:0<6}"


def _same(found: Any, wanted: Any) -> bool:
    if isinstance(found, float) and isinstance(wanted, float):
        return repr(found) == repr(wanted)
    if isinstance(found, Decimal) and isinstance(wanted, Decimal):
        return found.as_tuple() == wanted.as_tuple() or (found == wanted == 0)
    return bool(found == wanted) and isinstance(found, bool) == isinstance(wanted, bool)


BASE = schema_of(
    Column(id=1, name="id", type=INT64),
    Column(id=2, name="qty", type=STRING, comment="how many"),
    Column(id=3, name="note", type=STRING),
)
PROGRESS = Progress(version=1, offsets={"t": {0: 7}})


def _changed() -> InternalSchema:
    """Renamed, moved and of another type, beside a new column that existing rows have a value in."""
    qty, note = replace(BASE.columns[1], name="units", type=INT32), BASE.columns[2]
    new = Column(id=4, name="colour", type=STRING, initial="red")
    return InternalSchema(columns=(qty, BASE.columns[0], new, note), primary_key=(1,), last_column_id=4)


@pytest.fixture
def stock(lake: Lake) -> Lake:
    lake.create(BASE)
    lake.write(BASE, [{"id": 1, "qty": "1", "note": "a"}, {"id": 2, "qty": "two"}, {"id": 3}], progress=PROGRESS)
    return lake


def test_one_commit_changes_columns_and_rows_and_says_so(stock: Lake) -> None:
    stock.migrate(migration(version(1, BASE), version(1, BASE), version(2, _changed())), replace(PROGRESS, version=2))

    assert all(list(row) == ["units", "id", "colour", "note"] for row in stock.rows())
    assert sorted((row["id"], row["units"], row["colour"]) for row in stock.rows()) == [
        (1, 1, "red"), (2, None, "red"), (3, None, "red")
    ]  # fmt: skip
    state = stock.target.state(stock.name)
    assert state is not None
    assert (state.version, state.progress, state.kept) == (2, replace(PROGRESS, version=2), 1)
    assert state.rows in (3, None)


def test_a_rewrite_done_again_changes_nothing(stock: Lake) -> None:
    steps = migration(version(1, BASE), version(1, BASE), version(2, _changed()))
    for _ in range(2):
        stock.migrate(steps, replace(PROGRESS, version=2))
    state = stock.target.state(stock.name)
    assert state is not None
    assert (state.version, state.kept) == (2, 1)
    assert state.rows in (3, None)


def test_what_was_before_is_brought_back_with_its_marker_and_columns(stock: Lake) -> None:
    before = stock.rows()
    stock.migrate(migration(version(1, BASE), version(1, BASE), version(2, _changed())), replace(PROGRESS, version=2))
    stock.write(_changed(), [{"id": 9, "units": 9}], progress=Progress(version=2, offsets={"t": {0: 9}}))

    assert stock.target.roll_back(stock.name)

    state = stock.target.state(stock.name)
    assert state is not None
    assert (stock.rows(), state.version, state.progress, state.kept) == (before, 1, PROGRESS, None)
    assert list(stock.rows()[0]) == ["id", "qty", "note"]
    assert not stock.target.roll_back(stock.name)
    stock.migrate(migration(version(1, BASE), version(1, BASE), version(2, _changed())), replace(PROGRESS, version=2))
    assert sorted(row["id"] for row in stock.rows()) == [1, 2, 3]


def test_rows_are_found_by_their_key_of_another_type(stock: Lake) -> None:
    keyed = replace(BASE, columns=(replace(BASE.columns[0], type=STRING), *BASE.columns[1:]))
    stock.migrate(migration(version(1, BASE), version(1, BASE), version(2, keyed)), replace(PROGRESS, version=2))
    changed: list[dict[str, Any]] = [
        {"id": "1", "qty": "10", "created": False},
        {"id": "2", "deleted": True, "created": False},
        {"id": "x"},
    ]
    stock.write(keyed, changed, progress=Progress(version=2, offsets={"t": {0: 9}}), require_rows=True)

    assert sorted((row["id"], row["qty"]) for row in stock.rows() if row["qty"]) == [("1", "10")]
    assert sorted(row["id"] for row in stock.rows()) == ["1", "3", "x"]


@pytest.mark.iceberg
class TestIceberg:
    @pytest.fixture
    def table(self, iceberg: Any, session: SparkSession) -> Lake:
        from tests.targets.conftest import fresh_name

        lake = Lake(target=iceberg, session=session, name=fresh_name())
        lake.create(BASE)
        lake.write(BASE, [{"id": 1, "qty": "1"}, {"id": 2, "qty": "2"}], progress=PROGRESS)
        return lake

    def _metadata_files(self, lake: Lake) -> int:
        return lake.session.sql(f"SELECT * FROM {lake.sql_name}.metadata_log_entries").count()

    def test_it_is_one_metadata_file(self, table: Lake) -> None:
        before = self._metadata_files(table)
        table.change(BASE, _changed())
        assert self._metadata_files(table) == before + 1
        assert table.session.table(table.sql_name).schema["units"].dataType == T.IntegerType()

    def test_a_job_that_fails_leaves_no_trace(self, table: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        from cdc_sync.errors import TargetError
        from cdc_sync.targets.iceberg import target as module

        before, rows = self._metadata_files(table), table.rows()
        failing = F.raise_error(F.lit("found it")).cast("int")
        monkeypatch.setattr(
            module, "converted_rows", lambda rows, *_: rows.select(failing.alias("units"), "id", "note", "note")
        )
        with pytest.raises(TargetError):
            table.change(BASE, _changed())
        assert (self._metadata_files(table), table.rows()) == (before, rows)

    def test_rows_that_another_writer_adds_meanwhile_are_not_lost(
        self, table: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from cdc_sync.errors import TargetError
        from cdc_sync.targets.iceberg.change import Change

        overwrite = Change.overwrite

        def late(*arguments: Any) -> None:
            overwrite(*arguments)
            table.session.sql(f"INSERT INTO {table.sql_name} VALUES (77, '7', 'by hand')")

        monkeypatch.setattr(Change, "overwrite", late)
        with pytest.raises(TargetError, match="somebody else has changed it"):
            table.change(BASE, _changed())
        assert [row["id"] for row in table.rows()] == [1, 2, 77]

    def test_the_state_before_outlives_the_expiry_of_snapshots(self, table: Lake) -> None:
        table.change(BASE, _changed())
        for number in range(3):
            table.write(_changed(), [{"id": 10 + number, "units": 1}], progress=replace(PROGRESS, version=2))
        table.session.sql(
            f"CALL lake.system.expire_snapshots(table => '{table.sql_name.removeprefix('`lake`.')}', "
            "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
        )
        assert table.target.roll_back(table.name)
        assert [row["id"] for row in table.rows()] == [1, 2]


def test_the_float_types_are_all_there() -> None:
    assert {old.bits for old, _, _ in PAIRS if isinstance(old, FloatType)} == {32, 64}
    assert len(PAIRS) > 120
    assert to_spark(INT8) == T.ByteType()
