"""`cdc-sync verify` as its users see it: a real Postgres, the real job, the real command line."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymysql
import pytest

from cdc_sync.testing import INT32, TEXT, SourceTable, column, decimal
from tests.cli.runner import CommandLine
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline
from tests.verify.twin import create, events, fixed_rows, planted

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

ROWS = 20_000


@pytest.fixture
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_dsn, autocommit=True) as found:
        yield found
        found.execute("drop schema public cascade; create schema public")


@pytest.fixture
def new(pipeline: NewPipeline, postgres_dsn: str) -> Callable[..., Pipeline]:
    """Makes a pipeline that knows its source."""

    def make(prefix: str, *, settle: str = "0s", memory: int = 2000, **options: str) -> Pipeline:
        said = f"source: {{dsn: '{postgres_dsn}'}}\nverify: {{settle: {settle}, rows_in_memory: {memory}}}"
        return pipeline(prefix, settings=said, **options)

    return make


def written(lake: Pipeline) -> Path:
    """Return the pipeline's configuration as a file."""
    path = lake.folder / "pipeline.yaml"
    path.write_text(lake.text)
    return path


def test_each_planted_difference_is_found_and_no_other(
    new: Callable[..., Pipeline], produce: Produce, connection: psycopg.Connection[Any], verify: CommandLine
) -> None:
    lake, data = new("planted"), fixed_rows(ROWS)
    create(connection, "planted", data)
    table = events("planted", data, prefix="planted")
    produce(table.topic, table.records)
    lake.run()
    config = written(lake)

    ran = verify(config)
    assert ran.out.startswith("postgres.public.planted -> public.planted: equal: 20000 rows"), ran
    assert ran.exit_code == 0

    changes = planted(ROWS)
    assert len(changes) == 20
    for change in changes:
        assert connection.execute(change.on("planted").encode()).rowcount == 1
    ran = verify(config, "planted", "--json", "--limit", 100)
    (found,) = ran.json["tables"]
    assert ran.exit_code == 2
    assert found["not_compared"] == []
    rows = [
        (int(row["key"]["id"]), item["column"] if item else None)
        for row in found["differences"]
        for item in row["columns"] or [None]
    ]
    assert sorted(rows) == sorted(place for change in changes for place in change.found)
    assert found["counts"] == {"only_in_source": 2, "only_in_target": 2, "different": 17, "unsettled": 0}


def test_it_says_in_words_what_differs(
    new: Callable[..., Pipeline], produce: Produce, connection: psycopg.Connection[Any], verify: CommandLine
) -> None:
    lake = new("words")
    table = SourceTable(
        "words",
        [column("k", TEXT, optional=False), column("v", TEXT), column("extra", INT32)],
        key=("k",),
        database="postgres",
        prefix="words",
        null_is_default=False,
    )
    connection.execute("create table words (k text primary key, v text, secret text)")
    for key in ("a", "A", "", "ü", "b"):
        connection.execute("insert into words values (%s, 'v')", (key,))
        table.insert(k=key, v="v")
    produce(table.topic, table.records)
    lake.run()
    connection.execute("update words set v = null where k = 'A'; delete from words where k = ''")
    connection.execute("insert into words values ('z', 'new')")
    ran = verify(written(lake), "words")
    head, *lines = ran.out.splitlines()
    assert ran.exit_code == 2
    assert head.startswith("postgres.public.words -> public.words: different: 5 rows in the source, 5 in the target, ")
    assert lines[0] == "  1 only in the source, 1 only in the target, 1 different"
    assert sorted(lines[1:4]) == [
        "  k='': only in the target",
        "  k='A': v is NULL in the source, 'v' in the target",
        "  k='z': only in the source",
    ]
    assert lines[4:] == [
        "  column 'extra' is not compared: the source has no column of this name now; the target follows with the "
        "table's next change of a row",
        "  column 'secret' is not compared: the target has no such column",
    ]


def words(prefix: str, *, key: tuple[str, ...] = ("k",)) -> SourceTable:
    """Return a small table as a connector would send it."""
    return SourceTable(
        "words",
        [column("k", TEXT, optional=False), column("v", TEXT)],
        key=key,
        database="postgres",
        prefix=prefix,
        null_is_default=False,
        full_identity=not key,
    )


def test_rows_on_their_way_are_waited_for_and_rows_that_keep_changing_are_no_differences(
    new: Callable[..., Pipeline],
    produce: Produce,
    connection: psycopg.Connection[Any],
    verify: CommandLine,
    postgres_dsn: str,
) -> None:
    lake, table = new("moving", settle="4s"), words("moving")
    connection.execute("create table words (k text primary key, v text)")
    connection.execute("insert into words values ('still', 'a'), ('busy', '0')")
    table.insert(k="still", v="a")
    table.insert(k="busy", v="0")
    produce(table.topic, table.records)
    lake.run()
    started, stop = threading.Event(), threading.Event()

    def change() -> None:
        with psycopg.connect(postgres_dsn, autocommit=True) as own:
            number = 1
            while not stop.is_set():
                own.execute("update words set v = %s where k = 'busy'", (str(number),))
                number += 1
                started.set()
                stop.wait(0.1)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        assert started.wait(30)
        ran = verify(written(lake), "words")
    finally:
        stop.set()
        thread.join()
    assert ran.exit_code == 4, ran
    head, counts, row = ran.out.splitlines()
    assert (": unsettled: 2 rows in the source" in head, counts) == (True, "  1 unsettled")
    assert row.startswith("  k='busy': v is ")
    assert row.endswith("in the source, '0' in the target, unsettled")

    # Events that are in the topic, and that the job has not read, are no differences either.
    connection.execute("update words set v = 'b' where k = 'still'; update words set v = '0' where k = 'busy'")
    produce(table.topic, table.update({"k": "still"}, v="b"))
    ran = verify(written(lake), "words")
    assert (ran.exit_code, "the job has not read 1 records" in ran.out) == (4, True), ran
    lake.run()
    ran = verify(written(lake), "words")
    assert (ran.exit_code, ": equal: 2 rows" in ran.out) == (0, True), ran


def test_a_table_without_a_key_is_compared_by_whole_rows(
    new: Callable[..., Pipeline], produce: Produce, connection: psycopg.Connection[Any], verify: CommandLine
) -> None:
    lake, table = new("verifykeyless"), words("verifykeyless", key=())
    connection.execute("create table words (k text, v text)")
    for _ in range(3):
        connection.execute("insert into words values ('a', null)")
        table.insert(k="a")
    produce(table.topic, table.records)
    lake.run()
    assert verify(written(lake)).exit_code == 0
    connection.execute("delete from words where ctid = (select ctid from words limit 1)")
    connection.execute("insert into words values ('b', '')")
    ran = verify(written(lake))
    assert ran.exit_code == 2
    assert sorted(ran.out.splitlines()[1:]) == [
        "  1 only in the source, 1 only in the target",
        "  k='a', v=NULL: in the source 2 times, in the target 3 times",
        "  k='b', v='': only in the source",
    ]


@pytest.mark.parametrize(
    "format_",
    [
        pytest.param("delta", marks=pytest.mark.delta),
        pytest.param("hudi", marks=pytest.mark.hudi),
        pytest.param("parquet", marks=pytest.mark.parquet),
    ],
)
def test_the_other_formats(
    format_: str,
    new: Callable[..., Pipeline],
    produce: Produce,
    connection: psycopg.Connection[Any],
    verify: CommandLine,
) -> None:
    data = fixed_rows(300)
    lake, table = new(f"of-{format_}", format=format_), events("formats", data, prefix=f"of-{format_}")
    create(connection, "formats", data)
    produce(table.topic, table.records)
    lake.run()
    ran = verify(written(lake))
    assert (ran.exit_code, ": equal: 300 rows" in ran.out) == (0, True), ran
    for change in planted(300):
        connection.execute(change.on("formats").encode())
    found = verify(written(lake), "--json").json["tables"][0]["counts"]
    assert found == {"only_in_source": 2, "only_in_target": 2, "different": 17, "unsettled": 0}


def test_renamed_and_dropped_columns_follow_the_tracked_schema(
    new: Callable[..., Pipeline], produce: Produce, connection: psycopg.Connection[Any], verify: CommandLine
) -> None:
    lake = new("evolved", rules="[{pattern: '.*', renames: {v: w}}]")
    table = words("evolved")
    connection.execute("create table words (k text primary key, v text, gone text)")
    table.add_column(column("gone", TEXT))
    connection.execute("insert into words values ('a', 'x', 'y')")
    table.insert(k="a", v="x", gone="y")
    connection.execute("alter table words rename column v to w; alter table words drop column gone")
    table.rename_column("v", "w")
    table.drop_column("gone")
    connection.execute("insert into words values ('b', 'z')")
    table.insert(k="b", w="z")
    produce(table.topic, table.records)
    lake.run()
    ran = verify(written(lake))
    assert (ran.exit_code, ": equal: 2 rows" in ran.out) == (0, True), ran


def test_what_cannot_be_compared_is_said_in_words(
    new: Callable[..., Pipeline], produce: Produce, connection: psycopg.Connection[Any], verify: CommandLine
) -> None:
    lake, table = new("refused", rules="[{pattern: '.*', mode: append}]"), words("refused")
    table.insert(k="a")
    produce(table.topic, table.records)
    lake.run()
    ran = verify(written(lake))
    assert (ran.exit_code, "changelog (mode: append)" in ran.out) == (0, True), ran
    ran = verify(written(lake), "words")
    assert (ran.exit_code, "Cannot verify postgres.public.words: its target is a changelog" in ran.err) == (5, True)

    upsert = new("refused").named("upsert")
    upsert = replace(upsert, folder=lake.folder / "upsert")
    upsert.run()
    ran = verify(written(upsert))
    assert (ran.exit_code, "not compared: the source has no such table now" in ran.out) == (5, True), ran
    assert verify(written(upsert), "nothing").exit_code == 1
    connection.execute("create table words (k text primary key, v text)")
    connection.execute("create role reader login; grant usage on schema public to reader")
    asking = replace(upsert, settings=upsert.settings.replace("user=postgres", "user=reader"))
    ran = verify(written(asking))
    assert (ran.exit_code, "not compared: Cannot verify: permission denied for table words" in ran.out) == (5, True)
    nameless = replace(upsert, settings="")
    ran = verify(written(nameless))
    assert (ran.exit_code, "names no source database" in ran.err) == (2, True)
    away = replace(upsert, settings="source: {dsn: 'mysql://nobody@127.0.0.1:9/'}")
    ran = verify(written(away))
    assert (ran.exit_code, "Cannot verify: " in ran.err) == (3, True), ran


def test_mariadb(new: Callable[..., Pipeline], produce: Produce, mariadb_url: str, verify: CommandLine) -> None:
    lake = new("mariadb")
    lake = replace(lake, settings=f"source: {{dsn: '{mariadb_url}'}}\nverify: {{settle: 0s}}")
    shapes = [column("id", INT32, optional=False), column("note", TEXT), column("amount", decimal(10, 2))]
    # The source block is Postgres', whose schema is left out of a name if it is empty.
    table = SourceTable("t", shapes, database="shop", schema="", prefix="mariadb", null_is_default=False)
    place = urlsplit(mariadb_url)
    with (
        pymysql.connect(
            host=place.hostname, port=place.port or 0, user=place.username, charset="utf8mb4", autocommit=True
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("create database shop")
        cursor.execute("create table shop.t (id int primary key, note varchar(20), amount decimal(10,2))")
        for number in range(1, 1001):
            row = {"id": number, "note": f"n{number}", "amount": Decimal(number) / 100}
            table.insert(row)
            cursor.execute("insert into shop.t values (%s, %s, %s)", tuple(row.values()))
        produce(table.topic, table.records)
        lake.run()
        ran = verify(written(lake))
        assert (ran.exit_code, "shop.t -> shop.t: equal: 1000 rows" in ran.out) == (0, True), ran
        cursor.execute("update shop.t set note = 'N5' where id = 5")
        cursor.execute("update shop.t set amount = amount + 0.01 where id = 6")
        cursor.execute("delete from shop.t where id = 7")
        ran = verify(written(lake))
    assert ran.exit_code == 2
    assert sorted(ran.out.splitlines()[1:]) == [
        "  1 only in the target, 2 different",
        "  id='5': note is 'N5' in the source, 'n5' in the target",
        "  id='6': amount is '0.07' in the source, '0.06' in the target",
        "  id='7': only in the target",
    ]
