"""The model behind the confusion matrix does what real servers do: generated statements lead to the same columns."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pymysql
import pytest

from cdc_sync.local.mariadb import USER, MariadbServer
from cdc_sync.local.ports import LOOPBACK, free_ports
from cdc_sync.local.postgres import PostgresServer
from tests.laws.identity_course import Course
from tests.laws.identity_model import KINDS
from tests.laws.identity_mysql_themes import mysql_course
from tests.laws.identity_postgres_themes import postgres_course

pytestmark = pytest.mark.kafka
COURSES = 40


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the servers' own users may enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name) / "server"


@pytest.fixture
def postgres(folder: Path) -> Iterator[psycopg.Cursor[tuple[object, ...]]]:
    server = PostgresServer(folder, port=free_ports(1)[0])
    server.start()
    try:
        with psycopg.connect(server.dsn, autocommit=True) as connection, connection.cursor() as cursor:
            yield cursor
    finally:
        server.stop()


@pytest.fixture
def mariadb(folder: Path) -> Iterator[pymysql.cursors.Cursor]:
    server = MariadbServer(folder, port=free_ports(1)[0])
    server.start()
    try:
        connection = pymysql.connect(host=LOOPBACK, port=server.port, user=USER, autocommit=True)
        with connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = ''")
            yield cursor
    finally:
        server.stop()


def test_postgres_has_the_columns_and_numbers_of_the_model(postgres: psycopg.Cursor[tuple[object, ...]]) -> None:
    for seed in range(COURSES):
        course = postgres_course(seed)
        postgres.execute("DROP SCHEMA public CASCADE")
        postgres.execute("CREATE SCHEMA public")
        for statement in filter(None, course.statements):
            postgres.execute(statement.encode())
        for name, columns in course.final:
            postgres.execute(
                "SELECT attname, attnum, format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                (f"public.{name}",),
            )
            expected = [(column.name, column.number, KINDS[column.kind].postgres) for column in columns]
            assert postgres.fetchall() == expected, (seed, name)


def test_postgres_gives_commands_the_numbers_of_the_model(postgres: psycopg.Cursor[tuple[object, ...]]) -> None:
    told = 0
    for seed in range(2 * COURSES):
        course = postgres_course(seed)
        postgres.execute("DROP SCHEMA public CASCADE")
        postgres.execute("CREATE SCHEMA public")
        for transaction in transactions(course.script):
            postgres.execute("BEGIN")
            for statement in transaction:
                postgres.execute(statement.encode())
        last = course.states[-1]
        postgres.execute(
            "SELECT 0, CASE WHEN xmax::text = '0' THEN cmin::text::int END FROM pg_type WHERE typrelid = %s::regclass"
            " UNION ALL SELECT attnum, CASE WHEN xmax::text = '0' THEN cmin::text::int END FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY 1",
            ("public.t", "public.t"),
        )
        stamps = [last.named, *(item.stamp for item in last.attributes or ())]
        expected = [(number, None if stamp is None else stamp.command) for number, stamp in enumerate(stamps)]
        found = postgres.fetchall()
        assert found == expected, seed
        told += sum(command is not None for _, command in found)
    assert told > 5 * COURSES


def transactions(script: Sequence[str]) -> Iterator[list[str]]:
    """Yield the statements of each transaction, and what ends it."""
    found: list[str] = []
    for statement in script:
        found.append(statement)
        if statement in ("commit", "rollback"):
            yield found
            found = []


def test_mariadb_has_the_columns_of_the_model(mariadb: pymysql.cursors.Cursor) -> None:
    for seed in filter(_is_for_mariadb, range(2 * COURSES)):
        course = mysql_course(seed)
        for statement in (
            "DROP DATABASE IF EXISTS shop",
            "CREATE DATABASE shop CHARSET utf8mb4",
            "USE shop",
            *course.statements,
        ):
            mariadb.execute(statement)
        for name, columns in course.final:
            mariadb.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = 'shop' AND table_name = %s "
                "ORDER BY ordinal_position",
                (name,),
            )
            assert [row[0] for row in mariadb.fetchall()] == [column.name for column in columns], (seed, name)


def _is_for_mariadb(seed: int) -> bool:
    course: Course = mysql_course(seed)
    # A client sends two statements in one text as two.
    return course.connector == "mariadb" and "said oddly" not in course.themes
