"""Readings of a real Postgres' catalogue: who wrote each attribute last, and rows at any place in the log around."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from cdc_sync.config.sources import SourceCatalogue as Settings
from cdc_sync.core.lineage.catalogue import CatalogueReading, Moment
from cdc_sync.core.lineage.kept import Missed, Span
from cdc_sync.core.lineage.laying import certain, possible_tokens
from cdc_sync.core.model.positions import Commit, SourcePosition, TableId
from cdc_sync.errors import SetupError
from cdc_sync.local.postgres import DATABASE, PostgresServer
from cdc_sync.sources.catalog_reader import SourceCatalogue
from cdc_sync.sources.databases.catalogue_sql import read_catalogue
from cdc_sync.storage.state import StateStore
from tests.postgres import postgres_server

pytestmark = pytest.mark.kafka
T = TableId(database=DATABASE, schema="public", table="t")


@pytest.fixture(scope="module", params=["on", "off"])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server that keeps the times of commits, and one that does not."""
    times = f"alter system set track_commit_timestamp = {request.param}"
    with postgres_server(times, "create role reader login") as server:
        yield server


@dataclass
class Source:
    """A table `t`, and a reader without any rights of its own."""

    server: PostgresServer
    owner: Any
    reader: Any

    @property
    def times(self) -> bool:
        return bool(self.owner.execute("show track_commit_timestamp").fetchone()[0] == "on")

    def run(self, *statements: str) -> None:
        with self.owner.transaction():
            for statement in statements:
                self.owner.execute(statement)

    def read(self, table: TableId = T) -> CatalogueReading:
        return read_catalogue(self.reader, [table]).found[table]

    def row(self, *before: str) -> Moment:
        """Return when a row of a transaction was written."""
        with self.owner.transaction():
            for statement in before:
                self.owner.execute(statement)
            self.owner.execute("insert into t default values")
            (xid,) = self.owner.execute("select txid_current() % (2^32)::bigint").fetchone()
            (lsn,) = self.owner.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
            (at,) = self.owner.execute("select (extract(epoch from clock_timestamp()) * 1000000)::bigint").fetchone()
        time.sleep(0.002)
        return Moment(lsn=int(lsn), commit=Commit(at=at, xid=xid))


@pytest.fixture
def source(server: PostgresServer) -> Iterator[Source]:
    with (
        psycopg.connect(server.dsn, autocommit=True) as owner,
        psycopg.connect(make_conninfo(server.dsn, user="reader"), autocommit=True) as reader,
    ):
        owner.execute("drop schema public cascade; create schema public; grant usage on schema public to public")
        owner.execute("create table t (id int, gone text, a numeric(8,2), z text)")
        time.sleep(0.005)
        yield Source(server, owner, reader)


def names(reading: CatalogueReading) -> dict[int, str]:
    return {item.number: item.name for item in reading.attributes}


def xids(reading: CatalogueReading) -> list[int]:
    return [item.stamp.xid for item in reading.attributes if item.stamp is not None]


def test_a_reading_tells_who_wrote_each_attribute_last_and_when(source: Source) -> None:
    first = source.read()
    assert [(item.number, item.name, item.type) for item in first.attributes] == [
        (1, "id", "integer"), (2, "gone", "text"), (3, "a", "numeric(8,2)"), (4, "z", "text")
    ]  # fmt: skip
    assert len({*xids(first)}) == 1
    source.run("alter table t drop column gone")
    source.run("savepoint one", "alter table t rename a to b", "release one", "savepoint two",
               "alter table t rename z to y", "rollback to two")  # fmt: skip
    source.run("alter table t add n int")
    second = source.read()
    assert names(second) == {1: "id", 2: "", 3: "b", 4: "z", 5: "n"}
    assert xids(second)[0] == xids(second)[3] == xids(first)[0], "what was taken back was never written"
    assert len({*xids(second)}) == 4
    assert second.named == first.named
    assert first.ended <= second.begun <= second.ended
    assert second.server == first.server
    known = [item.stamp.at for item in second.attributes if item.stamp is not None]
    if source.times:
        assert known[0] is not None
        assert sorted(filter(None, known)) == [known[0], known[0], known[1], known[2], known[4]]
        assert known[0] <= second.taken
    else:
        assert known == [None] * 5
    source.run("alter table t rename to u", "alter table u rename to t")
    assert source.read().named != first.named
    source.run("drop table t", "create table t (id int)")
    assert source.read().relid != first.relid


def test_an_event_is_told_by_its_commit_or_between_two_readings(source: Source) -> None:
    before = source.read()
    source.run("alter table t rename z to y")
    time.sleep(0.005)
    event = source.row()
    source.run("alter table t drop column y", "alter table t add m text")
    after = source.read()
    shown = ("id", "gone", "a", "y")
    expected = {"id": 1, "gone": 2, "a": 3}
    # The schema was made a moment ago; only between two readings is it known that it had its name.
    assert certain(None, after, event) is None
    found = possible_tokens(before, after, shown, event)
    assert found is not None
    assert {name: [token.number[1] for token in found[name]] for name in expected} == {  # type: ignore[index]
        name: [number] for name, number in expected.items()
    }
    assert {token.number[1] for token in found["y"]} == {4, 5}, "both were touched later"  # type: ignore[index]
    later = source.row()
    found = possible_tokens(before, source.read(), ("id", "gone", "a", "m"), later)
    assert found is not None
    told = {token.number[1] for token in found["m"]}  # type: ignore[index]
    assert told == ({5} if source.times else {4, 5})


def test_partitioned_tables_are_read_and_missing_ones_views_and_other_databases_are_not(source: Source) -> None:
    source.run("create table p (id int, day date) partition by range (day)", "create view v as select 1 as id",
               'create schema "Odd.One"', 'create table "Odd.One"."a b" (id int)', "create table empty ()")  # fmt: skip
    wanted = [
        *(TableId(database=DATABASE, schema="public", table=name) for name in ("p", "v", "absent", "empty")),
        TableId(database=DATABASE, schema="Odd.One", table="a b"),
        TableId(database="elsewhere", schema="public", table="t"),
    ]
    found = read_catalogue(source.reader, wanted).found
    assert sorted(table.table for table in found) == ["a b", "empty", "p"]
    assert [table.highest for _, table in sorted(found.items())] == [1, 0, 2]
    source.run('drop schema "Odd.One" cascade')


def test_a_table_that_is_being_changed_is_left_out(source: Source) -> None:
    with psycopg.connect(source.server.dsn) as other:
        other.execute("alter table t rename a to b")
        found = read_catalogue(source.reader, [T])
        assert not found.found
        assert found.locked == {T}
        other.rollback()
    assert names(source.read())[3] == "a"


def test_times_of_commits_that_may_have_come_by_replication_are_not_used(source: Source) -> None:
    source.run("select pg_replication_origin_create('other')")
    try:
        assert {item.stamp.at for item in source.read().attributes if item.stamp is not None} == {None}
    finally:
        source.run("select pg_replication_origin_drop('other')")


def test_no_reading_ever_claims_a_structure_that_a_row_did_not_have(source: Source) -> None:
    """Rows and DDL, in transactions of all kinds, against readings as fast as they come."""
    stop = threading.Event()
    readings: list[CatalogueReading] = []
    rows: list[tuple[Moment, int, dict[int, str]]] = []

    def read() -> None:
        while not stop.is_set():
            readings.extend(read_catalogue(source.reader, [T]).found.values())

    def work(seed: int) -> None:
        chance = random.Random(seed)
        with psycopg.connect(source.server.dsn) as connection:
            while not stop.is_set():
                try:
                    wrote, xid = transaction(connection, chance)
                except psycopg.Error:  # deadlocks, and tables that somebody else dropped
                    connection.rollback()
                    continue
                if chance.random() < 0.15:
                    connection.rollback()
                    continue
                connection.commit()
                commit = None
                if source.times:
                    asked = "select (extract(epoch from pg_xact_commit_timestamp(%s::text::xid)) * 1000000)::bigint"
                    (at,) = connection.execute(asked, (xid,)).fetchone() or (0,)
                    commit = Commit(at=at, xid=xid)
                    connection.rollback()
                rows.extend((Moment(lsn=lsn, commit=commit), relid, at) for lsn, relid, at in wrote)

    threads = [threading.Thread(target=read), *(threading.Thread(target=work, args=(seed,)) for seed in range(3))]
    for thread in threads:
        thread.start()
    time.sleep(4.0)
    stop.set()
    for thread in threads:
        thread.join()
    readings.append(source.read())
    decided = 0
    for moment, relid, columns in rows:
        after = next(item for item in readings if item.begun >= moment.lsn)
        before = next((item for item in reversed(readings) if item.ended <= moment.lsn), None)
        found = None if before is None else possible_tokens(before, after, tuple(columns.values()), moment)
        for number, name in columns.items() if found is not None else ():
            tokens = found[name] if found is not None else frozenset()
            assert (relid, number) in {token.number for token in tokens}
            decided += len(tokens) == 1
    assert len(readings) > 50
    assert len(rows) > 50
    assert decided > len(rows)


def transaction(connection: Any, chance: random.Random) -> tuple[list[tuple[int, int, dict[int, str]]], int]:
    """Write rows, with DDL before and between or without; return where they stand and what they show."""
    wrote = []
    if chance.random() < 0.2:
        connection.execute("select txid_current()")
    if chance.random() < 0.3:
        connection.execute("lock table t in access exclusive mode")
    for _ in range(chance.randint(1, 3)):
        if chance.random() < 0.4:
            change(connection, chance)
        connection.execute("insert into t default values")
        wrote.append(state(connection))
    return wrote, int(connection.execute("select txid_current() % (2^32)::bigint").fetchone()[0])


def change(connection: Any, chance: random.Random) -> None:
    connection.execute("lock table t in access exclusive mode")
    names = [name for (name,) in connection.execute(
        "select attname from pg_attribute where attrelid = 't'::regclass and attnum > 0 and not attisdropped"
    ).fetchall()]  # fmt: skip
    name, free = chance.choice(names), chance.choice([n for n in "abcdefgh" if n not in names])
    kind = chance.random()
    if kind < 0.3 and len(names) < 7:
        connection.execute(f"alter table t add {free} int")
    elif kind < 0.5 and len(names) > 2:
        connection.execute(f"alter table t drop column {name}")
    elif kind < 0.55:
        definitions = ", ".join(f"{column} int" for column in names)
        connection.execute(f"drop table t; create table t ({definitions})")
    else:
        connection.execute(f"alter table t rename {name} to {free}")


def state(connection: Any) -> tuple[int, int, dict[int, str]]:
    """Return the place in the log of a row that was just written, and the columns it has."""
    (lsn,) = connection.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    rows = connection.execute(
        "select attrelid::bigint, attnum, attname from pg_attribute"
        " where attrelid = 't'::regclass and attnum > 0 and not attisdropped order by attnum"
    ).fetchall()
    return int(lsn), rows[0][0], {number: name for _, number, name in rows}


def test_the_job_keeps_what_it_reads_and_goes_on_where_it_cannot(source: Source, tmp_path: Path) -> None:
    state = StateStore(str(tmp_path), create=True)
    dsn = make_conninfo(source.server.dsn, user="reader")
    catalogue = SourceCatalogue(Settings(dsn=dsn, every="0s"), state)  # type: ignore[arg-type]
    first = source.row()
    kept = catalogue.prepare(T, None, [first])
    assert kept.covers(first)
    catalogue.refresh()
    source.run("alter table t rename z to y")
    catalogue.refresh()
    assert [type(entry) for entry in catalogue.kept(T).entries] == [Span, Span]
    assert state.readings(T).entries[1] == catalogue.kept(T).entries[1]

    replayed = catalogue.kept_only()
    assert replayed.prepare(T, None, [first]).around(first) == kept.around(first)
    assert replayed.prepare(T, None, [Moment(lsn=2**50)]) == state.readings(T)

    elsewhere = TableId(database="elsewhere", schema="public", table="t")
    assert catalogue.prepare(elsewhere, None, [first]).entries == ()
    gone = TableId(database=DATABASE, schema="public", table="dropped")
    assert catalogue.prepare(gone, None, [first]).entries == (Missed(lsn=first.lsn),)

    with psycopg.connect(source.server.dsn) as other:
        other.execute("alter table t rename y to x")
        began = time.monotonic()
        locked = Moment(lsn=source_lsn(source))
        assert catalogue.prepare(T, None, [locked]).around(locked) is None
        assert time.monotonic() - began < 4
        other.rollback()
    old = SourcePosition(kind="postgresql", parts=(5, 5))
    assert SourceCatalogue(Settings(dsn=dsn), StateStore(str(tmp_path / "b"), create=True)).prepare(
        T, old, [first]
    ).entries[0] == Missed(lsn=5)  # fmt: skip

    away = SourceCatalogue(Settings(dsn="host=127.0.0.1 port=1"), state)
    later = Moment(lsn=2**49)
    began = time.monotonic()
    assert away.prepare(T, None, [later]).entries[-1] == Missed(lsn=2**49)
    away.refresh()
    assert time.monotonic() - began < 4
    assert away.problem is not None
    assert away.problem.startswith("Cannot read the catalogue: ")
    for item in (catalogue, away):
        item.close()


def test_a_reading_tells_which_columns_are_generated(source: Source) -> None:
    source.run("alter table t add g int generated always as (id + 1) stored", "alter table t drop column gone")
    assert [item.generated for item in source.read().attributes] == [False, None, False, False, True]


def test_tables_are_read_before_their_first_event_comes(source: Source, tmp_path: Path) -> None:
    state = StateStore(str(tmp_path), create=True)
    settings = Settings(dsn=make_conninfo(source.server.dsn, user="reader"), every="0s")  # type: ignore[arg-type]
    source.run("create table other (id int)")
    catalogue = SourceCatalogue(settings, state, lambda table: table == T)
    catalogue.refresh()
    catalogue.refresh()
    first = source.row("alter table t rename z to y")
    catalogue.refresh()
    assert state.readings(T).entries == (), "nothing is kept before an event is planned"
    assert len(catalogue.kept(T).cuts) == 2
    assert catalogue.kept(replace(T, table="other")).entries == ()
    kept = catalogue.prepare(T, None, [first])
    assert state.readings(T) == kept
    around = kept.around(first)
    assert around is not None
    assert around[0] is not None
    assert [names(item)[4] for item in around if item is not None] == ["z", "y"]
    catalogue.close()

    again = SourceCatalogue(settings, state, lambda table: table == T)
    source.run("alter table t rename y to x")
    again.refresh()
    later = source.row()
    again.refresh()
    entries = again.prepare(T, None, [later]).entries
    assert entries[:2] == kept.entries
    assert len(entries) == 3
    assert state.readings(T).entries == entries
    again.close()


def test_a_table_with_a_history_from_before_readings_is_decided_without_them_up_to_there(
    source: Source, tmp_path: Path
) -> None:
    settings = Settings(dsn=make_conninfo(source.server.dsn, user="reader"), every="0s")  # type: ignore[arg-type]
    catalogue = SourceCatalogue(settings, StateStore(str(tmp_path), create=True), lambda table: table == T)
    catalogue.refresh()
    event = source.row()
    head = SourcePosition(kind="postgresql", parts=(5, 5))
    missed, *rest = catalogue.prepare(T, head, [event]).entries
    assert missed == Missed(lsn=5)
    assert [type(entry) for entry in rest] == [Span]
    catalogue.close()


def test_many_tables_are_read_in_several_questions_and_what_went_is_forgotten(source: Source, tmp_path: Path) -> None:
    made = [f"create table m{number} (id int)" for number in range(350)]
    source.run(*made, "create unlogged table u (id int)")
    settings = Settings(dsn=make_conninfo(source.server.dsn, user="reader"), every="0s")  # type: ignore[arg-type]
    asked: list[TableId] = []

    def is_wanted(table: TableId) -> bool:
        asked.append(table)
        return True

    catalogue = SourceCatalogue(settings, StateStore(str(tmp_path), create=True), is_wanted)
    catalogue.refresh()
    source.run("drop table m1", "create table later (id int)")
    catalogue.refresh()
    assert Counter(asked).most_common(1)[0][1] == 1, "whether a table has a route is asked once"
    assert not {"u", "pg_class"} & {table.table for table in asked}
    read = {name: len(catalogue.kept(replace(T, table=name)).cuts) for name in ("m0", "m1", "m349", "later", "u")}
    assert read == {"m0": 1, "m1": 0, "m349": 1, "later": 1, "u": 0}
    catalogue.close()


def test_of_a_table_that_sends_no_events_the_newest_readings_are_held(source: Source, tmp_path: Path) -> None:
    settings = Settings(dsn=make_conninfo(source.server.dsn, user="reader"), every="0s")  # type: ignore[arg-type]
    catalogue = SourceCatalogue(settings, StateStore(str(tmp_path), create=True), lambda table: table == T)
    for number in range(104):
        source.run(f"alter table t rename z{number or ''} to z{number + 1}")
        catalogue.refresh()
    assert len(catalogue.kept(T).cuts) == 100
    catalogue.close()


def test_a_name_that_cannot_be_read_keeps_no_table_of_which_events_came_from_being_read(
    server: PostgresServer, tmp_path: Path
) -> None:
    """A database without an encoding takes any bytes; names come as text all the same."""
    dsn = make_conninfo(server.dsn, dbname="plain")
    with psycopg.connect(server.dsn, autocommit=True) as owner:
        owner.execute("create database plain encoding 'SQL_ASCII' locale 'C' template template0")
    plain = replace(T, database="plain")
    settings = Settings(dsn=dsn, every="0s")  # type: ignore[arg-type]
    catalogue = SourceCatalogue(settings, StateStore(str(tmp_path), create=True), lambda _: True)
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute('create table t (id int, "naïve" text)'.encode())
        other = replace(plain, table="other")
        owner.execute("create table other (id int)")
        catalogue.refresh()
        assert len(catalogue.kept(other).cuts) == 1
        (lsn,) = owner.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone() or (0,)
        first = catalogue.prepare(plain, None, [Moment(lsn=int(lsn))]).entries
        assert [names(entry.first) for entry in first if isinstance(entry, Span)] == [{1: "id", 2: "naïve"}]
        owner.execute(b'create table "n\xe4" (id int)')
        owner.execute("alter table t add z int")
        catalogue.refresh()
        assert catalogue.problem is None
        assert len(catalogue.kept(plain).cuts) == 2
        owner.execute("alter table t rename z to y")
        (lsn,) = owner.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone() or (0,)
        entries = catalogue.prepare(plain, None, [Moment(lsn=int(lsn))]).entries
        assert [type(entry) for entry in entries] == [Span] * 3, "the question about a table with events is asked"
        owner.execute(b'alter table t add "n\xe4" int')
        later = Moment(lsn=2**49)
        assert catalogue.prepare(plain, None, [later]).entries[-1] == Missed(lsn=2**49)
        assert "invalid byte sequence" in str(catalogue.problem)
    catalogue.close()


def source_lsn(source: Source) -> int:
    return int(source.owner.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()[0])


def test_a_standby_is_refused() -> None:
    class Standby:
        def execute(self, _: str) -> Any:
            return type("Rows", (), {"fetchone": lambda self: (True,)})()

    with pytest.raises(SetupError, match="Use the primary"):
        read_catalogue(Standby(), [T])
