"""Which commands a real Postgres' catalogue tells, when it may not be believed, and rows of these transactions."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from cdc_sync.core.lineage.catalogue import CatalogueReading, Moment
from cdc_sync.core.lineage.laying import possible_tokens
from cdc_sync.core.model.positions import Commit
from cdc_sync.local.postgres import PostgresServer
from tests.capture.test_catalogue import Source, names
from tests.postgres import postgres_server

pytestmark = pytest.mark.kafka


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with postgres_server("alter system set track_commit_timestamp = on", "create role reader login") as server:
        yield server


@pytest.fixture
def source(server: PostgresServer) -> Iterator[Source]:
    with connected(server) as source:
        source.owner.execute("create table t (id int, gone text, a numeric(8,2), z text)")
        time.sleep(0.005)
        yield source


@contextmanager
def connected(server: PostgresServer) -> Iterator[Source]:
    with (
        psycopg.connect(server.dsn, autocommit=True) as owner,
        psycopg.connect(make_conninfo(server.dsn, user="reader"), autocommit=True) as reader,
    ):
        yield Source(server, owner, reader)


def commands(reading: CatalogueReading) -> list[int | None]:
    """Return the name's command, and those of the attributes."""
    assert reading.named is not None
    return [reading.named.command, *(item.stamp.command for item in reading.attributes if item.stamp is not None)]


def row(source: Source, *before: str) -> Moment:
    """Return when a row of a transaction was written that did something before, with the time of its commit."""
    moment = source.row(*before)
    assert moment.commit is not None
    asked = "select (extract(epoch from pg_xact_commit_timestamp(%s::text::xid)) * 1000000)::bigint"
    (at,) = source.owner.execute(asked, (moment.commit.xid,)).fetchone()
    return replace(moment, commit=Commit(at=at, xid=moment.commit.xid))


def shown(found: object) -> dict[str, set[int]] | None:
    assert found is None or isinstance(found, dict)
    return None if found is None else {name: {token.number[1] for token in tokens} for name, tokens in found.items()}


def test_a_reading_tells_which_command_of_its_transaction_wrote_what_last(source: Source) -> None:
    assert commands(source.read()) == [0] * 5
    source.run("insert into t default values", "alter table t drop column gone", "alter table t rename z to y",
               "alter table t rename to u", "insert into u default values", "alter table u rename to t")  # fmt: skip
    assert commands(source.read()) == [5, 0, 1, 0, 2]
    source.run("alter table t add n int, drop column a")
    assert names(source.read()) == {1: "id", 2: "", 3: "", 4: "y", 5: "n"}
    assert commands(source.read())[3:] == [0, 2, 1], "one statement, and two commands"


def test_what_was_taken_back_leaves_no_number_to_be_believed(source: Source) -> None:
    source.run("insert into t default values", "alter table t rename a to b", "alter table t rename z to y")
    with source.owner.transaction(force_rollback=True):
        source.owner.execute("alter table t rename b to c")
    (number,) = source.owner.execute(
        "select cmin::text from pg_attribute where attrelid = 't'::regclass and attname = 'b'"
    ).fetchone()
    assert number == "0", "the server tells the other transaction's"
    assert commands(source.read()) == [0, 0, 0, None, 2]
    source.run("savepoint one", "alter table t rename y to x", "rollback to one")
    assert commands(source.read()) == [0, 0, 0, None, None]


def test_what_a_vacuum_may_have_frozen_tells_no_number(source: Source) -> None:
    """It removes the trace of what was taken back, but not the number that this wrote."""
    source.run("insert into t default values", "alter table t rename a to b", "alter table t rename z to y")
    with source.owner.transaction(force_rollback=True):
        source.owner.execute("alter table t rename b to c")
    source.owner.execute("vacuum (freeze) pg_attribute")
    (trace,) = source.owner.execute(
        "select cmin::text || ' ' || xmax::text from pg_attribute where attrelid = 't'::regclass and attname = 'b'"
    ).fetchone()
    assert trace == "0 0"
    assert commands(source.read()) == [None] * 5
    time.sleep(0.005)
    source.run("alter table t rename b to c")
    assert commands(source.read()) == [None, None, None, 0, None]
    with psycopg.connect(source.server.dsn) as other:
        other.execute("lock table pg_attribute in share update exclusive mode")
        assert commands(source.read()) == [None] * 5, "a vacuum may be under way"
        other.rollback()
    source.owner.execute("vacuum full pg_type")
    source.owner.execute("select pg_stat_reset()")
    assert commands(source.read()) == [None] * 5, "when that was last is forgotten"


def test_rows_of_the_catalogue_that_were_replayed_tell_no_number(source: Source) -> None:
    """The log does not hold it."""
    source.run("insert into t default values", "alter table t rename a to b")
    assert commands(source.read())[3] == 1
    source.owner.execute("select pg_switch_wal()")
    pid = int((source.server.data / "postmaster.pid").read_text().split("\n")[0])
    os.kill(pid, signal.SIGQUIT)
    time.sleep(1.0)
    source.server.stop()
    source.server.start()
    with connected(source.server) as again:
        (number,) = again.owner.execute(
            "select cmin::text from pg_attribute where attrelid = 't'::regclass and attname = 'b'"
        ).fetchone()
        assert number == "0", "the server tells another one than before"
        assert commands(again.read()) == [None] * 5


def test_rows_of_the_transaction_that_changed_the_table_are_known(source: Source) -> None:
    before = source.read()
    moment = row(source, "alter table t add n text", "alter table t drop column z")
    found = possible_tokens(before, source.read(), ("id", "gone", "a", "n"), moment)
    assert shown(found) == {"id": {1}, "gone": {2}, "a": {3}, "n": {5}}

    before = source.read()
    moment = row(source, "insert into t default values", "alter table t add m text", "alter table t drop column n")
    found = possible_tokens(before, source.read(), ("id", "gone", "a", "m"), moment)
    assert shown(found) == {"id": {1}, "gone": {2}, "a": {3}, "m": {5, 6}}, "a row may have come before"


def test_rows_of_the_transaction_that_gave_the_table_its_name_are_known_unless_another_may_have_had_it(
    source: Source,
) -> None:
    before = source.read()
    moment = row(source, "alter table t rename to u", "alter table u rename a to b", "alter table u rename to t")
    found = possible_tokens(before, source.read(), ("id", "gone", "b", "z"), moment)
    assert shown(found) == {"id": {1}, "gone": {2}, "b": {3}, "z": {4}}

    source.run("create table v (id int, gone text, b numeric(8,2), z text)")
    before = source.read()
    moment = row(source, "alter table t rename to u", "alter table v rename to t", "insert into t default values",
                 "alter table t rename to v", "alter table u rename to t")  # fmt: skip
    assert possible_tokens(before, source.read(), ("id", "gone", "b", "z"), moment) is None

    source.run("drop table t")
    moment = row(source, "create table t (id int, gone text)")
    before = source.read()
    found = possible_tokens(replace(before, relid=1, begun=0, ended=0), before, ("id", "gone"), moment)
    assert found is None, "the schema was made a moment ago"
    old = replace(before, schema_named=replace(before.schema_named, at=0))  # type: ignore[type-var]
    found = possible_tokens(None, old, ("id", "gone"), moment)
    assert shown(found) == {"id": {1}, "gone": {2}}
