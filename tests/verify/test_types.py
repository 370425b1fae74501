"""Equal values have equal texts on both sides, and values that differ have others, for every type."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from urllib.parse import urlsplit

import psycopg
import pymysql
import pytest
from pyspark.sql import SparkSession

from cdc_sync.core.model.positions import TableId
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.operations.verify.columns import pair_columns
from cdc_sync.operations.verify.source import MysqlSource, PostgresSource, Source
from tests.verify.type_values import MARIADB, POSTGRES, Case

pytestmark = pytest.mark.spark


def _texts(source: Source, table: TableId, case: Case, spark: SparkSession) -> tuple[list[str], list[str]]:
    """Return each value's part in a row's text, of both sides, NULL's last."""
    found = source.table(table)
    assert not isinstance(found, str), found
    schema = InternalSchema(columns=(Column(id=1, name="v", type=case.tracked),), primary_key=(), last_column_id=20)
    columns, left = pair_columns(schema, found.columns, source.types)
    assert [item.column for item in left] == ["n"], left
    (column,) = columns
    ours = source.ask(f"select {column.source.part}, {column.source.shown} from {found.sql} order by n")
    values = " union all ".join(
        f"select {place} as n, {value} as c1" for place, value in enumerate([*(b for _, b in case.values), "null"])
    )
    theirs = spark.sql(f"select {column.target.part} p, {column.target.shown} s from ({values}) order by n").collect()
    return [str(part) for part, _ in ours], [row.p for row in theirs]


def _check(case: Case, ours: Sequence[str], theirs: Sequence[str]) -> None:
    assert list(ours) == list(theirs), f"{case.source}: {case.values}"
    assert len(set(ours)) == len(ours), f"{case.source}: values that differ have one text"
    assert all("," not in text and len(text) < 60 for text in ours)


@pytest.mark.parametrize("case", POSTGRES, ids=lambda case: f"{case.source}-{type(case.tracked).__name__}")
def test_postgres(case: Case, postgres_dsn: str, session: SparkSession) -> None:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("drop table if exists t; drop type if exists mood; drop domain if exists posint")
        connection.execute("create type mood as enum ('sad', 'happy'); create domain posint as int")
        connection.execute(f"create table t (n int, v {case.source})".encode())
        for place, (value, _) in enumerate((*case.values, ("null", ""))):
            connection.execute(f"insert into t values ({place}, {value})".encode())
        # The server's own settings must not matter.
        connection.execute("set time zone 'Asia/Kolkata'; set datestyle to 'German'; set extra_float_digits to -5")
        source = PostgresSource(connection)
        _check(case, *_texts(source, TableId(database="postgres", schema="public", table="t"), case, session))


@pytest.mark.parametrize("case", MARIADB, ids=lambda case: f"{case.source}-{type(case.tracked).__name__}")
def test_mariadb(case: Case, mariadb_url: str, session: SparkSession) -> None:
    place = urlsplit(mariadb_url)
    with (
        closing(
            pymysql.connect(
                host=place.hostname, port=place.port or 0, user=place.username, charset="utf8mb4", autocommit=True
            )
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("create database if not exists v")
        cursor.execute("drop table if exists v.t")
        cursor.execute(f"create table v.t (n int, v {case.source})")
        cursor.execute("set session sql_mode=''")
        for number, (value, _) in enumerate((*case.values, ("null", ""))):
            cursor.execute(f"insert into v.t values ({number}, {value})")
        cursor.execute("set session time_zone='+05:30'")
        source = MysqlSource(connection)
        _check(case, *_texts(source, TableId(database="v", schema="", table="t"), case, session))
