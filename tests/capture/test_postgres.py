"""The event triggers in a real Postgres: behind every statement the messages say what the catalogue says."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from cdc_sync.config.sources import SourceCatalogue as Settings
from cdc_sync.core.lineage.column_log import ColumnLog, Structure
from cdc_sync.core.lineage.initials import told_initial
from cdc_sync.core.lineage.messages import MessageLog
from cdc_sync.core.lineage.records import LogicalMessage
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.schema.initial import InitialValue, Known, Unknown
from cdc_sync.core.schema.observed import ObservedColumn
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
    ListType,
)
from cdc_sync.errors import SetupError
from cdc_sync.local.postgres import PostgresServer
from cdc_sync.sources.catalog_reader import SourceCatalogue
from cdc_sync.sources.databases.advice import advice_on
from cdc_sync.sources.databases.postgres import (
    apply,
    install_ddl_capture,
    install_sql,
    look_at,
    may_be_forged,
    uninstall_sql,
)
from cdc_sync.storage.state import StateStore
from tests.postgres import postgres_server

pytestmark = pytest.mark.kafka

Catalogue = dict[TableId, list[tuple[int, int, str, str]]]
"""Table -> (relid, attnum, name, type) of each live column."""

LIVE = """
SELECT n.nspname, c.relname, c.oid::bigint, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
ORDER BY 1, 2, 4
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@dataclass
class Source:
    """A database of its own with a slot that reads it as Debezium does: pgoutput with messages."""

    dsn: str
    name: str
    connection: Any
    log: MessageLog = field(default_factory=MessageLog)
    received: list[dict[str, Any]] = field(default_factory=list)
    truths: list[tuple[int, str, Catalogue]] = field(default_factory=list)

    def run(self, *statements: str, end: str = "commit") -> None:
        """Run one transaction and remember the catalogue behind each statement, if it is committed."""
        seen = []
        self.connection.execute("begin")
        for statement in statements:
            self.connection.execute(statement)
            seen.append((self.lsn(), statement, self.catalogue()))
        self.connection.execute(end)
        if end == "commit":
            self.truths += seen
        else:
            self.truths.append((self.lsn(), f"rolled back: {statements}", self.catalogue()))

    def lsn(self) -> int:
        return int(self.connection.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()[0])

    def catalogue(self) -> Catalogue:
        found: Catalogue = {}
        # Rows from inside a transaction: types are named as the function names them, whatever the search path.
        path = self.connection.execute("select current_setting('search_path')").fetchone()[0]
        self.connection.execute("select set_config('search_path', 'pg_catalog', false)")
        for schema, table, relid, attnum, name, type_ in self.connection.execute(LIVE).fetchall():
            columns = found.setdefault(TableId(database=self.name, schema=schema, table=table), [])
            if attnum is not None:
                columns.append((relid, attnum, name, type_))
        self.connection.execute("select set_config('search_path', %s, false)", (path,))
        return found

    def read(self) -> ColumnLog:
        """Pass everything that is new in the slot to the log."""
        commit = 0
        # What is not flushed is not decoded, and this server commits without a flush.
        self.connection.execute("set synchronous_commit = on; select pg_logical_emit_message(true, 'flush', '')")
        rows = self.connection.execute(
            "select data from pg_logical_slot_get_binary_changes(%s, null, null,"
            " 'proto_version', '1', 'publication_names', 'everything', 'messages', 'true')",
            (self.name,),
        ).fetchall()
        for offset, (data,) in enumerate(rows):
            if data[:1] == b"C":
                (commit,) = struct.unpack(">Q", data[2:10])
            if data[:1] == b"M":
                flags, lsn = struct.unpack(">BQ", data[1:10])
                prefix, _, rest = data[10:].partition(b"\0")
                assert flags == 1, "transactional"
                content = rest[4:]
                if prefix == b"flush":
                    continue
                self.received.append(json.loads(content))
                self.log.add(
                    LogicalMessage(
                        position=SourcePosition(kind="postgresql", parts=(commit or lsn, lsn)),
                        kafka=KafkaPosition(topic="t", partition=0, offset=offset),
                        database=self.name,
                        prefix=prefix.decode(),
                        content=content,
                    )
                )
        return self.log.log()

    def compare(self) -> tuple[int, int, int]:
        """Compare the log with the catalogue behind every statement; return statements, tables and columns compared."""
        log = self.read()
        tables = columns = 0
        for lsn, statement, truth in self.truths:
            for table in {*truth, *log.tables}:
                structure = in_effect(log.of(table), lsn)
                told = (
                    [] if structure is None else [(*numbers(c.token.number), c.name, c.type) for c in structure.columns]
                )
                assert told == truth.get(table, []), f"{table} behind {statement!r} at {lsn}"
                tables += 1
                columns += len(told)
        return len(self.truths), tables, columns


def numbers(number: Any) -> tuple[int, int]:
    relid, attnum = number
    return relid, attnum


def in_effect(structures: Sequence[Structure], lsn: int) -> Structure | None:
    found = [structure for structure in structures if structure.position.parts[-1] <= lsn]
    return found[-1] if found else None


@pytest.fixture
def source(server: PostgresServer, request: pytest.FixtureRequest) -> Iterator[Source]:
    name = f"d{abs(hash(request.node.name)) % 10**8}"
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    dsn = psycopg.conninfo.make_conninfo(server.dsn, dbname=name)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create publication everything for all tables")
        connection.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
        yield Source(dsn, name, connection)
        connection.execute("select pg_drop_replication_slot(%s)", (name,))


HOSTILE = 'it\'s %s "{}" $$ \\ 🦆\n%%;--/*'


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


TRANSACTIONS: tuple[tuple[str, ...], ...] = (
    ("create schema inv",),
    ("create table inv.orders (id int primary key, a int, b text, c numeric(10,2))",),
    ("alter table inv.orders rename a to total",),
    ("alter table inv.orders add column d timestamptz default now(), drop column c",),
    ("alter table inv.orders drop column b, add column b int",),
    ("alter table inv.orders alter column total type bigint",),
    # a swap and a rotation, in one transaction each
    (
        "alter table inv.orders rename total to tmp",
        "alter table inv.orders rename b to total",
        "alter table inv.orders rename tmp to b",
    ),
    ("insert into inv.orders (id) values (1)", "alter table inv.orders rename d to D2", "update inv.orders set id = 2"),
    # names
    (f"create table {quoted(HOSTILE)} ({quoted(HOSTILE)} int, {quoted('A b')} text)",),
    (f"alter table {quoted(HOSTILE)} rename {quoted(HOSTILE)} to {quoted('x' + HOSTILE)}",),
    (f"alter table {quoted(HOSTILE)} rename to {quoted('T.' + HOSTILE)}",),
    ('create schema "Odd Schema.é"', f'alter table {quoted("T." + HOSTILE)} set schema "Odd Schema.é"'),
    ('alter schema "Odd Schema.é" rename to odd',),
    # types of one's own
    ("create type inv.mood as enum ('sad', 'ok')", "alter table inv.orders add column m inv.mood"),
    ("alter table inv.orders alter m type text using m::text", "drop type inv.mood"),
    ("create domain inv.positive as int check (value > 0)", "alter table inv.orders add column p inv.positive"),
    ("drop domain inv.positive cascade",),
    # tables change places
    (
        "create table inv.orders_new (id int primary key, total int)",
        "alter table inv.orders rename to orders_old",
        "alter table inv.orders_new rename to orders",
    ),
    ("drop table inv.orders_old",),
    ("drop table inv.orders", "create table inv.orders (id int primary key, total int)"),
    # partitions
    (
        "create table inv.part (id int, d date, v text) partition by range (d)",
        "create table inv.part_1 partition of inv.part for values from ('2024-01-01') to ('2025-01-01')",
        "create table inv.part_2 (v text, d date, gone int, id int)",
        "alter table inv.part_2 drop column gone",
        "alter table inv.part attach partition inv.part_2 for values from ('2025-01-01') to ('2026-01-01')",
    ),
    ("alter table inv.part rename v to w", "alter table inv.part add column x int default 7"),
    ("alter table inv.part drop column w",),
    ("alter table inv.part detach partition inv.part_2", "alter table inv.part_2 rename x to y"),
    # inheritance, over two generations
    (
        "create table inv.parent (id int, a int)",
        "create table inv.child (own text) inherits (inv.parent)",
        "create table inv.grandchild () inherits (inv.child)",
    ),
    ("alter table inv.parent rename a to b", "alter table inv.parent add column a int"),
    ("alter table inv.child rename own to owned",),
    ("alter table inv.grandchild no inherit inv.child", "alter table inv.parent drop column b"),
    # tables of a type
    ("create type inv.shape as (id int, w int)", "create table inv.typed of inv.shape"),
    ("alter type inv.shape rename attribute w to width cascade",),
    ("alter type inv.shape add attribute h int cascade, drop attribute id cascade",),
    # other ways to make a table
    ("create table inv.copied as select 1 as one, 'x'::text as two", "select 1 as one into inv.selected"),
    ("create table inv.alike (like inv.orders including all)", "create unlogged table inv.unlogged (id int)"),
    ("create table if not exists inv.orders (something int)",),
    ("create table inv.nothing ()", "alter table inv.nothing add column first int"),
    ("create materialized view inv.seen as select * from inv.orders", "create view inv.view as select 1 as one"),
    ("create temp table orders (z int)", "alter table orders rename z to y", "drop table orders"),
    ("create schema made create table made.inside (id int) create view made.v as select id from made.inside",),
    (
        "do $$ begin for i in 1..3 loop execute format('alter table inv.orders add column l%s int', i); end loop;"
        " execute 'alter table inv.orders drop column l2'; end $$",
    ),
    ("set local session_replication_role = replica", "alter table inv.orders rename l1 to l2"),
    ("comment on column inv.orders.l3 is 'x'", "grant select on inv.orders to public"),
    ("create table inv.rowed (r inv.parent)", "drop table inv.parent cascade"),
    ("create type inv.wide as (a int)", "create table inv.uses (k int, w inv.wide)", "drop type inv.wide cascade"),
    ("drop schema inv cascade",),
    ("create schema inv", "create table inv.orders (id int, total int)"),
)

ROLLED_BACK: tuple[tuple[str, ...], ...] = (
    ("alter table inv.orders rename total to gone",),
    ("drop table inv.orders", "create table inv.orders (nothing int)"),
    ("alter table inv.orders drop column total", "alter table inv.orders add column total int"),
)


def test_behind_every_statement_the_messages_say_what_the_catalogue_says(source: Source) -> None:
    source.connection.execute("create table before_capture (id int, gone int, a text)")
    source.connection.execute("alter table before_capture drop column gone")
    for _ in range(2):
        assert apply(source.dsn, install_sql(revoke_emit=True)) == ()
    source.truths.append((source.lsn(), "installed twice", source.catalogue()))
    for place, statements in enumerate(TRANSACTIONS):
        source.run(*statements)
        if place in (3, 20) or place == len(TRANSACTIONS) - 1:
            for rolled_back in ROLLED_BACK:
                source.run(*rolled_back, end="rollback")
    source.run("savepoint s", "alter table inv.orders rename total to t")
    source.connection.execute("begin")
    source.connection.execute("savepoint s")
    source.connection.execute("alter table inv.orders rename t to never")
    source.connection.execute("rollback to s")
    source.connection.execute("alter table inv.orders rename t to sum")
    source.connection.execute("commit")
    source.truths.append((source.lsn(), "savepoint", source.catalogue()))

    compared = source.compare()

    assert source.log.log().unread == ()
    assert all(len(message["query"]) <= 300 for message in source.received)
    assert not [message for message in source.received if str(message["schema"]).startswith("pg_")]
    # What was before a command was told by the message before it, or there was nothing.
    unsaid = {message["tag"] for message in source.received if message["kind"] == "command" and not message["before"]}
    assert unsaid == {"CREATE TABLE", "CREATE TABLE AS", "CREATE SCHEMA", "SELECT INTO"}
    assert compared == (92, 2116, 1544)


ORDERS_STEPS = (
    "alter table public.orders add column zz int default 7",
    "alter table public.orders rename column x to x_r",
    "alter table public.orders drop column y, add column y int",
    "alter table public.orders rename to items",
    "alter table public.items rename column x_r to x2",
)


@pytest.mark.parametrize("lost", range(len(ORDERS_STEPS)))
def test_each_message_tells_by_itself_what_the_table_was_before(source: Source, lost: int) -> None:
    source.connection.execute("create table public.orders (id int, gone int, x text, y int)")
    source.connection.execute("alter table public.orders drop column gone")
    apply(source.dsn, install_sql())
    for statement in ORDERS_STEPS[:lost]:
        source.connection.execute(statement)
    catalogue = source.catalogue()
    ((table, columns),) = catalogue.items()
    source.read()  # what came so far does not reach the topic: the slot is made later, or made anew
    source.log = MessageLog()

    for statement in ORDERS_STEPS[lost:]:
        source.run(statement)

    assert source.compare()[0] == len(ORDERS_STEPS) - lost
    tokens = source.log.log().before(table, tuple(name for _, _, name, _ in columns))
    assert {name: token.number for name, token in tokens.items()} == {
        name: (relid, at) for relid, at, name, _ in columns
    }
    assert source.log.log().unread == ()
    assert len(source.log.log().name_changes) == (lost <= 3)


def test_what_a_command_had_to_wait_for_is_not_passed_over(source: Source) -> None:
    source.connection.execute("create table public.t (id int, a int)")
    apply(source.dsn, install_sql())
    source.read()
    with psycopg.connect(source.dsn, autocommit=True) as other:
        source.connection.execute("begin; alter table public.t rename a to b")
        waiting = threading.Thread(target=other.execute, args=("alter table public.t rename b to c",))
        waiting.start()
        source.connection.execute("select pg_sleep(0.5); commit")
        waiting.join()
        other.execute("alter table public.t rename c to d")
    source.read()

    told = [message["before"] and message["before"]["columns"][1]["name"] for message in source.received[-3:]]
    assert told == ["a", None, "c"]
    assert source.log.log().unread == ()


@pytest.mark.parametrize("change", ["rename a to b", "add column x int", "set schema elsewhere"])
def test_a_transaction_that_does_not_see_what_another_did_tells_no_columns(source: Source, change: str) -> None:
    source.connection.execute("create schema elsewhere; create table public.t (id int, a int)")
    apply(source.dsn, install_sql())
    with psycopg.connect(source.dsn, autocommit=True) as other:
        other.execute("begin isolation level repeatable read; select 1")
        source.connection.execute(f"alter table public.t {change}")
        other.execute("set local search_path = public, elsewhere; alter table t rename id to key; commit")
    source.read()

    (unread,) = source.log.log().unread
    assert "failed: another transaction changed table" in unread.reason
    assert all(log.columns == () for table in source.log.log().tables for log in source.log.log().of(table)[-1:])


UNSEEN = "it was added with a default that no event shows"


def unsaid(definition: str) -> Unknown:
    return Unknown(reason=f"it was added as `{definition}`, which does not say it")


def unfilled(shown: str) -> Unknown:
    return Unknown(reason=f"the source's catalogue has {shown} for them, which no target's column can be filled with")


ADDED: tuple[tuple[str, DataType, InitialValue | None], ...] = (
    # what is added, as which type a target has it, and what the messages say of rows that were there
    ("int", INT32, Known(value=None)),
    ("int not null default 5, alter id type bigint", INT32, Known(value=5)),
    ("int default 5", INT32, Known(value=5)),
    ("bigint not null default -9000000000", INT64, Known(value=-9000000000)),
    ("boolean default false", BOOLEAN, Known(value=False)),
    ("numeric(12,4) default 1.5", DecimalType(precision=12, scale=4), Known(value="1.5000")),
    (
        "numeric(38,0) default 12345678901234567890123456789012345678",
        DecimalType(precision=38, scale=0),
        Known(value="12345678901234567890123456789012345678"),
    ),
    ("double precision default 0.1", FLOAT64, Known(value=0.1)),
    ("text default 'it''s \"q\"' || chr(10) || 'é'", STRING, Known(value='it\'s "q"\né')),
    ("varchar(9) default ''", STRING, Known(value="")),
    (
        "uuid default '00000000-0000-0000-0000-000000000000'",
        STRING,
        Known(value="00000000-0000-0000-0000-000000000000"),
    ),
    ("bytea default '\\x00ff'", BINARY, Known(value="00ff")),
    ("date default '1970-01-01'", DATE, Known(value="1970-01-01")),
    ("timestamp default '2020-02-03 04:05:06.000007'", TIMESTAMP, Known(value="2020-02-03T04:05:06.000007")),
    ("timestamptz default '2020-02-03 04:05:06+05:30'", TIMESTAMP_TZ, Known(value="2020-02-02T22:35:06Z")),
    ("positive", INT32, Unknown(reason=UNSEEN)),
    ("positive default 4", INT32, Known(value=4)),
    ("int generated always as identity", INT32, unsaid("int generated always as identity")),
    ("uuid default gen_random_uuid()", STRING, unsaid("uuid default gen_random_uuid()")),
    ("timestamptz default clock_timestamp()", TIMESTAMP_TZ, unsaid("timestamptz default clock_timestamp()")),
    ("text default repeat('x', 10001)", STRING, unfilled("a long value")),
    ("int[] default '{1,2}'", ListType(element_id=0, element=INT32), unfilled("[1, 2]")),
    ("double precision default 'Infinity'", FLOAT64, unfilled('"Infinity"')),
    ("numeric(12,4) default 'NaN'", DecimalType(precision=12, scale=4), unfilled('"NaN"')),
    ("json default '\"x\"'", STRING, unfilled('"x"')),
    ("date default 'infinity'", DATE, unfilled('"infinity"')),
    ("char(3) default 'x'", STRING, unfilled('"x  "')),
)


def test_what_rows_read_in_a_column_that_was_added_is_told(source: Source) -> None:
    apply(source.dsn, install_sql())
    source.run("create domain positive as int default 3 check (value > 0)")
    source.run("create table public.t (id int)", "insert into public.t values (1)")
    for number, (definition, _, _) in enumerate(ADDED):
        source.run(f"alter table public.t add column c{number} {definition}")
    log, table = source.read(), TableId(database=source.name, schema="public", table="t")
    last = log.of(table)[-1].position

    def told(number: int, type_: DataType) -> InitialValue | None:
        return told_initial([log], table, last, ObservedColumn(name=f"c{number}", type=type_))

    found = {definition: told(number, type_) for number, (definition, type_, _) in enumerate(ADDED)}
    assert found == {definition: expected for definition, _, expected in ADDED}
    known = {f"c{place}": item[2].value for place, item in enumerate(ADDED) if isinstance(item[2], Known)}
    truth = source.connection.execute(f"select {', '.join(known)} from public.t").fetchone()
    assert dict(zip(known, map(shown, truth), strict=True)) == known


def shown(value: Any) -> Any:
    """A value that was selected, in canonical form."""
    match value:
        case Decimal() | UUID():
            return str(value)
        case bytes():
            return value.hex()
        case datetime(tzinfo=None):
            return value.isoformat()
        case datetime():
            return value.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z"
        case date():
            return value.isoformat()
        case _:
            return value


def test_the_moment_of_now_is_told(source: Source) -> None:
    apply(source.dsn, install_sql())
    source.run("create table public.t (id int)", "insert into public.t values (1)")
    source.run("set local timezone = 'Asia/Kathmandu'", "alter table public.t add column at timestamptz default now()")
    source.run("alter table public.t alter at set default '2000-01-01'")
    log, table = source.read(), TableId(database=source.name, schema="public", table="t")
    column = ObservedColumn(name="at", type=TIMESTAMP_TZ, default="2000-01-01T00:00:00Z")

    told = told_initial([log], table, log.of(table)[-1].position, column)

    (truth,) = source.connection.execute("select at from public.t").fetchone()
    assert told == Known(value=shown(truth))


def test_what_a_block_did_is_told_by_the_file_that_has_the_rows(source: Source) -> None:
    """Its text tells nothing."""
    apply(source.dsn, install_sql())
    source.run("create table public.t (id int)", "insert into public.t values (1)")
    source.run("do $$ begin alter table t add column n int; end $$", "alter table t alter n set default 5")
    block = "alter table t add m int default 5; alter table t alter m drop default; alter table t alter id type bigint"
    source.run(f"do $$ begin {block}; end $$")
    log, table = source.read(), TableId(database=source.name, schema="public", table="t")
    last = log.of(table)[-1].position

    told = [told_initial([log], table, last, ObservedColumn(name=name, type=INT32, default=5)) for name in "nm"]

    assert source.connection.execute("select n, m from public.t").fetchone() == (None, 5)
    assert told == [Known(value=None), Known(value=5)]


def test_who_changes_a_table_needs_no_rights_of_ours(source: Source) -> None:
    source.connection.execute("create role nobody_special; create schema theirs authorization nobody_special")
    apply(source.dsn, install_sql('our "own" schema'))
    source.connection.execute("set role nobody_special")
    source.run("create table theirs.t (id int, a int)")
    source.run("alter table theirs.t rename a to b")
    source.connection.execute("reset role")
    assert source.compare()[0] == 2
    with pytest.raises(SetupError, match=r"Cannot set up DDL capture.*superuser"):
        apply(psycopg.conninfo.make_conninfo(source.dsn, user=login(source)), install_sql())


def login(source: Source) -> str:
    source.connection.execute(
        "do $$ begin if not exists (select from pg_roles where rolname = 'reader') then create role reader login;"
        " end if; end $$"
    )
    return "reader"


def test_a_failure_of_ours_never_fails_the_command_and_is_told(source: Source) -> None:
    source.connection.execute("create role unlucky; create schema theirs authorization unlucky")
    apply(source.dsn, install_sql())
    source.connection.execute("grant usage on schema cdc_sync to unlucky")
    source.connection.execute("grant execute on all functions in schema cdc_sync to unlucky")
    source.run("create table public.other (id int)")
    source.connection.execute("set role unlucky")
    source.run("create table theirs.t (id int, a int)")
    warnings: list[str] = []
    source.connection.add_notice_handler(lambda notice: warnings.append(str(notice.message_primary)))

    source.connection.execute("reset role; alter event trigger cdc_sync_ddl_command_end disable")
    source.connection.execute("revoke execute on function format_type(oid, int) from public")
    source.connection.execute("alter function cdc_sync.capture_ddl() owner to unlucky")
    source.connection.execute("alter event trigger cdc_sync_ddl_command_end enable always")
    source.connection.execute("set role unlucky; alter table theirs.t rename a to b")
    source.connection.execute("reset role")
    log = source.read()
    table = TableId(database=source.name, schema="theirs", table="t")
    assert log.of(table)[-1].columns == ()
    assert len(log.of(TableId(database=source.name, schema="public", table="other"))[-1].columns) == 1
    (unread,) = log.unread
    assert unread.tables == (table,)
    assert "permission denied for function format_type" in unread.reason
    assert "rename a to b" in unread.text
    assert len(warnings) == 1

    source.connection.execute("grant execute on function format_type(oid, int) to public")
    source.connection.execute("revoke execute on function pg_logical_emit_message(boolean, text, bytea) from public")
    source.connection.execute("set role unlucky; alter table theirs.t rename b to c")
    assert len(warnings) == 3
    source.connection.execute("reset role; alter function cdc_sync.capture_ddl() owner to current_user")
    source.run("alter table theirs.t rename c to d")
    assert source.compare()[0] == 3


def test_removal_tells_that_nothing_is_known_any_more(source: Source) -> None:
    install_ddl_capture("postgresql", dsn=source.dsn)
    source.run("create table public.t (id int)")
    for _ in range(2):
        assert install_ddl_capture("postgresql", dsn=source.dsn, uninstall=True).warnings == ()
    source.connection.execute("alter table public.t rename id to key")
    log = source.read()
    assert log.of(TableId(database=source.name, schema="public", table="t"))[-1].columns == ()
    assert source.connection.execute("select count(*) from pg_event_trigger").fetchone() == (0,)
    assert source.connection.execute("select count(*) from pg_namespace where nspname = 'cdc_sync'").fetchone() == (0,)


def test_a_baseline_waits_for_a_change_that_began_before_the_triggers(source: Source) -> None:
    source.connection.execute("create table public.t (id int, a int)")
    with psycopg.connect(source.dsn) as other:
        other.execute("alter table public.t rename a to b")
        timer = threading.Timer(1.0, other.commit)
        timer.start()
        assert apply(source.dsn, install_sql(revoke_emit=True)) == ()
        timer.join()
    source.truths.append((source.lsn(), "installed", source.catalogue()))
    assert source.compare() == (1, 1, 2)


def test_a_table_that_stays_locked_has_no_baseline_and_a_warning_says_so(source: Source) -> None:
    source.connection.execute("create table public.t (id int, a int); create table public.u (id int)")
    with psycopg.connect(source.dsn) as other:
        other.execute("alter table public.t rename a to b")
        older, locked = apply(source.dsn, install_sql(revoke_emit=True))
        other.rollback()
    assert "transactions are older than the event triggers" in older
    assert "no baseline for table public.t" in locked
    assert [str(table) for table in source.read().tables] == [f"{source.name}.public.u"]


def test_removal_script_runs_where_nothing_was_installed(source: Source) -> None:
    assert apply(source.dsn, uninstall_sql("never there")) == ()


def owned(source: Source, *statements: str) -> str:
    """Have a database's owner, who is nobody special, prepare something; return his name."""
    owner = f"owner_{source.name}"
    source.connection.execute(f"create role {owner}; alter database {source.name} owner to {owner}; set role {owner}")
    for statement in statements:
        source.connection.execute(statement)
    source.connection.execute("reset role")
    return owner


def is_superuser(source: Source, role: str) -> bool:
    return bool(source.connection.execute("select rolsuper from pg_roles where rolname = %s", (role,)).fetchone()[0])


def evil(role: str) -> str:
    """What makes a role a superuser, if it ever runs with the rights of one."""
    return f"begin alter role {role} superuser; exception when insufficient_privilege then null; end"


def test_a_schema_that_somebody_else_made_is_refused(source: Source) -> None:
    owner = owned(source, "create schema cdc_sync")
    with pytest.raises(SetupError, match=f"schema cdc_sync belongs to role {owner}, who could change what runs"):
        apply(source.dsn, install_sql())
    assert look_at(source.connection).problem is not None

    source.connection.execute("alter schema cdc_sync owner to current_user")
    apply(source.dsn, install_sql())
    assert look_at(source.connection).problem is None


def test_functions_that_somebody_else_made_are_not_taken_over(source: Source) -> None:
    owner = owned(source)
    source.connection.execute(f"create schema cdc_sync; grant create, usage on schema cdc_sync to {owner}")
    source.connection.execute(f"set role {owner}")
    source.connection.execute(
        f"create function cdc_sync.touched_tables() returns oid[] language plpgsql as $$ {evil(owner)} $$"
    )
    source.connection.execute("reset role")

    apply(source.dsn, install_sql())
    source.run("create table public.t (id int)", "alter table public.t rename id to key")

    owners = "select distinct proowner::regrole::text, has_function_privilege(%s, oid, 'execute') from pg_proc"
    found = source.connection.execute(owners + " where pronamespace = 'cdc_sync'::regnamespace", (owner,)).fetchall()
    assert [mine for _, mine in found] == [False]
    assert owner not in {name for name, _ in found}
    assert not is_superuser(source, owner)
    assert source.compare()[0] == 2


def test_nothing_that_a_user_defined_runs_with_the_rights_of_who_installed(source: Source) -> None:
    owner = f"owner_{source.name}"
    body = f"{evil(owner)}; return '1'; end"
    owned(
        source,
        "create schema mine; create type mine.pair as (a int)",
        f"create function mine.shown(mine.pair) returns json language plpgsql as $$ begin {body} $$",
        "create cast (mine.pair as json) with function mine.shown(mine.pair)",
        "create domain mine.named as mine.pair; create type mine.mood as enum ('a b', 'c')",
        "create table mine.t (id int); insert into mine.t values (1)",
        "alter table mine.t add p mine.pair default row(1)::mine.pair, add n mine.named default row(2)::mine.pair",
        "alter table mine.t add m mine.mood default 'a b', add ms mine.mood[] default '{c}'",
    )
    apply(source.dsn, install_sql())
    source.run("alter table mine.t rename id to key")
    source.read()

    assert not is_superuser(source, owner)
    told = {column["name"]: column["missing"] for column in source.received[-1]["columns"]}
    assert told == {"key": None, "p": '"(1)"', "n": '"(2)"', "m": '"a b"', "ms": '"{c}"'}


def test_nobody_else_can_write_such_messages_once_that_right_is_taken(source: Source) -> None:
    owner = owned(source)
    source.connection.execute(f"grant create on schema public to {owner}")
    (warning,) = install_ddl_capture("postgresql", dsn=source.dsn).warnings
    assert warning == may_be_forged(["PUBLIC"])
    assert install_ddl_capture("postgresql", dsn=source.dsn, revoke_emit=True).warnings == ()

    source.connection.execute(f"set role {owner}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        source.connection.execute("select pg_logical_emit_message(true, 'cdc_sync', '{}')")
    for name in ("touched_tables()", "write_command(1, null, '', '', '')", "missing_value(1, 1::smallint)"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            source.connection.execute(f"select cdc_sync.{name}")
    source.run("create table public.theirs (id int)", "alter table public.theirs rename id to key")
    source.connection.execute("reset role")
    assert source.compare()[0] == 2

    source.connection.execute(f"grant execute on function pg_logical_emit_message(boolean, text, bytea) to {owner}")
    assert look_at(source.connection).writers == (owner,)


def test_the_job_and_validate_look_after_it(source: Source, tmp_path: Path) -> None:
    state = StateStore(str(tmp_path), create=True)
    settings = Settings(dsn=source.dsn, every=timedelta(0))
    asked, not_asked = SourceCatalogue(settings, state, captured=True), SourceCatalogue(settings, state)
    apply(source.dsn, install_sql(revoke_emit=True))
    asked.refresh()
    assert asked.untold is None
    assert advice_on(source.dsn, captured=True) == ()

    apply(source.dsn, uninstall_sql())
    for catalogue in (asked, not_asked):
        catalogue.refresh()
        catalogue.close()
    assert advice_on(source.dsn, captured=True) == (f"evidence.messages: {asked.untold}",)
    assert advice_on(source.dsn, captured=False) == ()
    assert not_asked.untold is None
    (problem,) = advice_on("host=127.0.0.1 port=1", captured=True)
    assert problem.startswith("Cannot look at the source: ")


def test_tables_whose_updates_a_publication_stops_are_told_before_and_behind(source: Source) -> None:
    run = source.connection.execute
    run("drop publication everything")
    run("create table keyed (id int primary key); create table whole (a int); alter table whole replica identity full")
    run("create table indexed (a int not null); create unique index by_a on indexed (a)")
    run("alter table indexed replica identity using index by_a; create table bare (a int)")
    run("create table none (id int primary key); alter table none replica identity nothing")
    run("create temp table passing (a int)")

    (before,) = advice_on(source.dsn, captured=False)
    assert before.startswith(
        "public.bare, public.none: without a primary key or replica identity, so the application's"
    )

    run("insert into bare values (1); create publication mine for table bare, keyed, whole, indexed")
    with pytest.raises(psycopg.Error, match="replica identity"):
        run("update bare set a = 2")
    published, other = advice_on(source.dsn, captured=False)
    assert published.startswith("public.bare: in a publication without")
    assert other.startswith("public.none: without")

    run("alter table bare replica identity full; alter table none replica identity full")
    assert advice_on(source.dsn, captured=False) == ()


def test_it_is_seen_that_the_triggers_are_not_there_any_more(source: Source) -> None:
    def problem() -> str | None:
        return look_at(source.connection).problem

    assert problem() is not None
    apply(source.dsn, install_sql())
    assert problem() is None
    source.connection.execute("alter event trigger cdc_sync_sql_drop disable")
    assert problem() == "the event triggers are disabled"
    source.connection.execute("alter event trigger cdc_sync_sql_drop enable")
    source.connection.execute("alter function cdc_sync.capture_ddl() security invoker")
    assert "of an earlier version" in str(problem())
    source.connection.execute("drop event trigger cdc_sync_sql_drop")
    assert "or lost one" in str(problem())
    apply(source.dsn, install_sql())
    assert problem() is None
