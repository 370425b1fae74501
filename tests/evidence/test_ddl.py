"""DDL texts become values, or are said not to be understood; nothing is read in a way the server does not read it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.core.lineage.ddl import MAX_LENGTH, parse
from cdc_sync.core.lineage.ddl_pieces import MAX_TEXT
from cdc_sync.core.lineage.ddl_statements import (
    Add,
    AlterTable,
    Clause,
    CreateTable,
    Drop,
    DropDatabase,
    DropTables,
    Modify,
    Noise,
    NotParsed,
    Rename,
    RenameTables,
    Statement,
)
from cdc_sync.core.model.positions import TableId


def t(table: str, database: str = "db") -> TableId:
    return TableId(database=database, schema="", table=table)


def alter(*clauses: Clause, table: str = "t", to: str | None = None) -> AlterTable:
    return AlterTable(table=t(table), clauses=clauses, rename_to=None if to is None else t(to))


def create(table: str, *columns: str, if_not_exists: bool = False, or_replace: bool = False) -> CreateTable:
    return CreateTable(table=t(table), columns=columns, if_not_exists=if_not_exists, or_replace=or_replace)


def like(table: str, original: str, if_not_exists: bool = False) -> CreateTable:
    return CreateTable(table=t(table), columns=None, like=t(original), if_not_exists=if_not_exists)


def select(table: str) -> CreateTable:
    return CreateTable(table=t(table), columns=None, as_select=True)


def drop(*tables: str, if_exists: bool = False) -> DropTables:
    return DropTables(tables=tuple(map(t, tables)), if_exists=if_exists)


def rename(*pairs: tuple[str, str]) -> RenameTables:
    return RenameTables(pairs=tuple((t(old), t(new)) for old, new in pairs))


def mysql(text: str, connector: str = "mysql") -> tuple[Statement, ...]:
    return parse(text, connector, "db", None)


a, b, x = Add(name="a"), Add(name="b"), Add(name="x")
noise, program = Noise(), Noise(is_program=True)

COLUMNS = [
    ("add a int", [a]),
    ("add column a int", [a]),
    ("ADD COLUMN A INT", [Add(name="A")]),
    ("add column a varchar(20) character set utf8mb4 not null default 'x, drop b' comment 'y'", [a]),
    ("add a int, add b int", [a, b]),
    ("add (a int, b decimal(10,2))", [a, b]),
    ("add column (a enum('x','y)'), index i (a), constraint c check (a > 0), b int)", [a, b]),
    ("add column if not exists a int", [Add(name="a", if_not_exists=True)]),
    ("add if not exists (a int, b int)", [Add(name="a", if_not_exists=True), Add(name="b", if_not_exists=True)]),
    ("add a int first", [a]),
    ("add a int after `drop`", [a]),
    ("add a int after modify", [a]),
    ("add a int generated always as (b * 2) stored", [a]),
    ("add if not exists a int as (b) virtual after c", [Add(name="a", if_not_exists=True)]),
    ("add `as` int default ('as') comment 'as (1)' after `as`", [Add(name="as")]),
    ("add a int default (1 + (2 * 3))", [a]),
    ("add a int auto_increment unique", [a]),
    ("add (b int default null, a int default (5))", [b, a]),
    ("add a int default 5--1", [a]),
    ("add a int references o (id) on delete cascade on update no action", [a]),
    ("add `add` int", [Add(name="add")]),
    ("add period int", [Add(name="period")]),
    ("add system int", [Add(name="system")]),
    ("add column first int first", [Add(name="first")]),
    ("add 1st int", [Add(name="1st")]),
    ("add $x int", [Add(name="$x")]),
    ("add naïve int", [Add(name="naïve")]),
    ("add 列 int", [Add(name="列")]),
    ("add `x;y` int", [Add(name="x;y")]),
    ("add `b``tick` int", [Add(name="b`tick")]),
    ("add `-- no comment` int", [Add(name="-- no comment")]),
    ("add `/* no` int, add `*/` int", [Add(name="/* no"), Add(name="*/")]),
    ('add `q"uote` int', [Add(name='q"uote')]),
    ('add "a" int', [a]),
    ('rename column "a" to "b""c"', [Rename(old="a", new='b"c')]),
    (f"add `{'n' * 64}` int", [Add(name="n" * 64)]),
    (f"add `{'漢' * 64}` int", [Add(name="漢" * 64)]),
    ("drop a", [Drop(name="a")]),
    ("drop column a", [Drop(name="a")]),
    ("drop column a restrict, drop b cascade", [Drop(name="a"), Drop(name="b")]),
    ("drop column if exists a", [Drop(name="a", if_exists=True)]),
    ("drop `index`", [Drop(name="index")]),
    ("drop period", [Drop(name="period")]),
    ("drop column a, add column a int", [Drop(name="a"), a]),
    ("rename column a to b", [Rename(old="a", new="b")]),
    ("rename column if exists a to b", [Rename(old="a", new="b", if_exists=True)]),
    ("rename column a to b, rename column b to a", [Rename(old="a", new="b"), Rename(old="b", new="a")]),
    ("rename column `a b` to `A B`", [Rename(old="a b", new="A B")]),
    ("change a b int", [Rename(old="a", new="b")]),
    ("change column a b int after c", [Rename(old="a", new="b", moved=True)]),
    ("change column if exists a b int", [Rename(old="a", new="b", if_exists=True)]),
    ("change a a int, change b c int", [Rename(old="a", new="a"), Rename(old="b", new="c")]),
    ("change a b int, change b a int", [Rename(old="a", new="b"), Rename(old="b", new="a")]),
    ("modify a int", [Modify(name="a")]),
    ("modify column a int first", [Modify(name="a", moved=True)]),
    ("modify column if exists a int", [Modify(name="a", if_exists=True)]),
    ("modify c int first, modify a int after b", [Modify(name="c", moved=True), Modify(name="a", moved=True)]),
    ("add a int, algorithm=instant, lock=none", [a]),
    ("engine=InnoDB, drop a", [Drop(name="a")]),
    ("order by b, c desc, drop a", [Drop(name="a")]),
    ("order by b, t.c", []),
    ("comment = 'drop a', add a int", [a]),
    ("add a int partition by hash (id) partitions 4", [a]),
    ("drop a partition by range (id) (partition p values less than (5), partition q values less than maxvalue)", None),
    ("rename column a to b remove partitioning", [Rename(old="a", new="b")]),
    ("alter a set default 5, alter column b drop default, alter index i invisible", []),
    ("add index i (a), add key k (a, b), add unique u (a), add fulltext index f (a), add spatial key s (a)", []),
    ("add constraint c foreign key (a) references o (id), add primary key (a), add check (a > 0)", []),
    ("drop index i, drop key k, drop primary key, drop foreign key f, drop constraint c, drop check d", []),
    ("rename index i to j, rename key k to l", []),
    ("convert to character set utf8mb4 collate utf8mb4_bin", []),
    ("default character set = utf8, collate utf8_bin", []),
    ("enable keys, disable keys, force", []),
    ("discard tablespace", []),
    ("add partition (partition p values less than (5))", []),
    ("drop partition p, q", []),
    ("truncate partition p, q", []),
    ("reorganize partition p, q into (partition r values less than (9))", []),
    ("exchange partition p with table o without validation", []),
    ("remove partitioning", []),
    ("add system versioning", []),
    ("drop system versioning", []),
    ("add period for system_time (s, e)", []),
    ("page_compressed=1", []),
    ("some_engine_option=yes", []),
    ("", []),
]


@pytest.mark.parametrize(("clauses", "expected"), COLUMNS)
@pytest.mark.parametrize("connector", ["mysql", "mariadb"])
def test_clauses_of_alter_table(clauses: str, expected: list[Clause] | None, connector: str) -> None:
    expected = [Drop(name="a")] if expected is None else expected
    assert mysql(f"alter table t {clauses}", connector) == (alter(*expected),)


NOT_UNDERSTOOD = [
    "alter table t add",
    "alter table t add a",
    "alter table t add a int drop b",
    "alter table t add a int,",
    "alter table t , add a int",
    "alter table t drop column a b",
    "alter table t drop column t.a",
    "alter table t rename column a b",
    "alter table t rename column a to b c",
    "alter table t change a int",
    "alter table t comment 'x' add a int",
    "alter table t engine=InnoDB rename column a to b",
    "alter table t add index i (a) drop b",
    "alter table t order by a add b int",
    "alter table t frobnicate a",
    "alter table t rebuild partition p, drop column a",
    "alter table t add (a int",
    "alter table t add a int)",
    "alter table t wait drop a",
    "alter table .t add a int",
    "alter table a.b.c add a int",
    "alter table t add `` int",
    "alter table t add 'a' int",
    "alter table t add a int default 'unterminated",
    "alter table t add `unterminated",
    "alter table t /* unterminated",
    "alter table t add a\u00a0int",
    "rename table a",
    "rename table a to b c to d",
    "rename a to b",
    "create table t",
    "create table t ()",
    "create table t (a int, )",
    "create table t like u engine=x",
    "drop table",
    "drop table a b",
    "execute immediate 'alter table t drop a'",
    "prepare s from 'alter table t drop a'",
    "call p()",
    "garbage",
    "(((",
    "😀",
    "\x00",
    "alter",
    "create",
    "set statement max_statement_time=1 for",
    "/*!80000 alter table t drop a */",
    "alter table t drop a /*!80023 , drop b */",
]


@pytest.mark.parametrize("text", NOT_UNDERSTOOD)
def test_what_is_not_understood_is_said_with_its_text_and_a_reason(text: str) -> None:
    (found,) = mysql(text)
    assert isinstance(found, NotParsed)
    assert found.reason
    assert found.text or not text.strip()


@pytest.mark.parametrize(
    ("clause", "moved"),
    [
        ("drop partition p0, p1", "t"),
        ("drop partition if exists p0", "t"),
        ("truncate partition all", "t"),
        ("exchange partition p with table other without validation", "t other"),
        ("convert partition p to table other", "t other"),
        ("convert table other to partition p values less than (9)", "t other"),
        ("discard partition p tablespace", "t"),
        ("import tablespace", "t"),
        ("add a int, drop partition p0", "t"),
        ("drop partition", ""),
        ("drop column partition", ""),
        ("reorganize partition p into (partition p values less than (9))", ""),
        ("add partition (partition p values less than (9))", ""),
        ("convert to character set utf8mb4", ""),
        ("coalesce partition 2", ""),
        ("remove partitioning", ""),
    ],
)
def test_clauses_tell_whether_rows_go_or_come_without_events(clause: str, moved: str) -> None:
    (found,) = mysql(f"alter table t {clause}")
    assert isinstance(found, AlterTable), found
    assert found.moves_rows == tuple(map(t, moved.split()))


STATEMENTS = [
    ("", []),
    (" \n\t ", []),
    ("/* nothing */", []),
    ("-- nothing", []),
    (";;;", []),
    ("/* leading */ ALTER  TABLE t /* mid */ ADD COLUMN a INT -- trailing", [alter(a)]),
    ("alter /* gh-ost */ table `db`.`t` add a int", [alter(a)]),
    ("# hash\nalter table t add a int # end", [alter(a)]),
    ("--\nalter table t add a int --", [alter(a)]),
    ("alter table t -- drop x\n add a int", [alter(a)]),
    ("alter table t /* ; drop table t; */ add a int default ';'", [alter(a)]),
    ("alter table t add a int; alter table u drop b;", [alter(a), alter(Drop(name="b"), table="u")]),
    ("alter table t add a int comment 'it''s; \\'quoted\\''; drop table u", [alter(a), drop("u")]),
    ("use db2; alter table t add a int", [noise, AlterTable(table=t("t", "db2"), clauses=(a,))]),
    ("alter table `Odd db`.`Odd.Table é` add a int", [AlterTable(table=t("Odd.Table é", "Odd db"), clauses=(a,))]),
    ("alter table db . t add a int", [alter(a)]),
    ("alter table db.1st add a int", [alter(a, table="1st")]),
    ("alter online table t add a int", [alter(a)]),
    ("alter ignore table t add a int", [alter(a)]),
    ("alter online ignore table if exists t wait 5 add a int", [alter(a)]),
    ("alter table t nowait add a int", [alter(a)]),
    ("alter table t rename to u", [alter(to="u")]),
    ("alter table t rename u, add a int", [alter(a, to="u")]),
    ("alter table t rename as u", [alter(to="u")]),
    ("alter table t rename = u", [alter(to="u")]),
    ("/*!40101 alter table t add a int */", [alter(a)]),
    ("alter table t /*!50100 add a int, */ add b int", [alter(a, b)]),
    ("alter table t add a int /*!80023 INVISIBLE */", [alter(a)]),
    ("alter table t add a int /*! not null */", [alter(a)]),
    ("set statement max_statement_time=60, lock_wait_timeout=5 for alter table t add a int", [alter(a)]),
    ("rename table a to b", [rename(("a", "b"))]),
    ("rename tables a to b, c to a", [rename(("a", "b"), ("c", "a"))]),
    ("rename table if exists a to b", [rename(("a", "b"))]),
    ("rename table a wait 5 to b, c nowait to d", [rename(("a", "b"), ("c", "d"))]),
    ("rename table db.t to db._t_del, db._t_gho to db.t", [rename(("t", "_t_del"), ("_t_gho", "t"))]),
    ("create table t (a int primary key, b text)", [create("t", "a", "b")]),
    ("create table t (id int, key k (id), primary key (id), `key` int)", [create("t", "id", "key")]),
    ("create table if not exists t (a int)", [create("t", "a", if_not_exists=True)]),
    ("create or replace table t (a int)", [create("t", "a", or_replace=True)]),
    ("create table t (a int) engine=InnoDB comment='as select' partition by hash (a)", [create("t", "a")]),
    ("create table t (a int) start transaction", [create("t", "a")]),
    ("create table t (a int, period for system_time (s, e), s timestamp(6)) with system versioning", None),
    ("create table t like u", [like("t", "u")]),
    ("create table t (like u)", [like("t", "u")]),
    ("create table if not exists t like db.u", [like("t", "u", if_not_exists=True)]),
    ("create table t as select 1 as a", [select("t")]),
    ("create table t (a int) select a from u", [select("t")]),
    ("create table t (select a from u)", [select("t")]),
    ("create table t engine=InnoDB ignore as (select 1)", [select("t")]),
    ("create table t table u", [select("t")]),
    ("create temporary table t (a int)", [noise]),
    ("create or replace temporary table t (a int)", [noise]),
    ("drop table t", [drop("t")]),
    ("drop tables if exists t, u cascade", [drop("t", "u", if_exists=True)]),
    ("DROP TABLE IF EXISTS `t` /* generated by server */", [drop("t", if_exists=True)]),
    ("drop temporary table if exists t", [noise]),
    ("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`", [noise]),
    ("drop database db", [DropDatabase(database="db")]),
    ("drop schema if exists `Odd db`", [DropDatabase(database="Odd db")]),
    ("create index i on t (a)", [noise]),
    ("create or replace unique index i on t (a)", [noise]),
    ("drop index i on t", [noise]),
    ("create or replace algorithm=merge definer=`r`@`%` sql security invoker view v as select 1; drop table t", None),
    ("create database db2 character set utf8mb4", [noise]),
    ("alter database db collate utf8mb4_bin", [noise]),
    ("create sequence s", [noise]),
    ("truncate table t", [noise]),
    ("grant all on *.* to u", [noise]),
    ("rename user u to v", [noise]),
    ("set names utf8mb4", [noise]),
    ("analyze table t", [noise]),
    ("flush tables", [noise]),
    ("begin", [noise]),
    ("begin; alter table t add a int; commit", [noise, alter(a), noise]),
    ("create procedure p() begin alter table t drop a; drop table t; end", [program]),
    ("create definer=`r`@`%` trigger g before insert on t for each row begin set @a = 1; end", [program]),
    ("create event e on schedule every 1 day do alter table t drop a", [program]),
    ("create or replace function f() returns int begin return 1; end", [program]),
    ("begin not atomic alter table t drop a; end", [program]),
]
_LATER: dict[str, list[Statement]] = {
    "create table t (a int, period": [create("t", "a", "s")],
    "create or replace algorithm": [noise, drop("t")],
}


@pytest.mark.parametrize(("text", "expected"), STATEMENTS)
def test_statements(text: str, expected: list[Statement] | None) -> None:
    if expected is None:
        expected = next(found for begin, found in _LATER.items() if text.startswith(begin))
    assert mysql(text, "mariadb") == tuple(expected)


ORACLE = [
    ("alter table s.t add (a number, b varchar2(10 char) default 'x, y')", [Add(name="A"), Add(name="B")]),
    ("alter table s.t add a number", [Add(name="A")]),
    ('alter table "S"."T" add "a b" number', [Add(name="a b")]),
    ("alter table t drop column a", [Drop(name="A")]),
    ("alter table t drop (a, b) cascade constraints", [Drop(name="A"), Drop(name="B")]),
    ("alter table t set unused (a, b) online", [Drop(name="A"), Drop(name="B")]),
    ("alter table t set unused column a", [Drop(name="A")]),
    ("alter table t drop unused columns checkpoint 250", []),
    ("alter table t rename column a to b", [Rename(old="A", new="B")]),
    ('alter table t rename column a to "b"', [Rename(old="A", new="b")]),
    ("alter table t modify (a number(10), b not null)", [Modify(name="A", moved=True), Modify(name="B", moved=True)]),
    ("alter table t modify a varchar2(5)", [Modify(name="A", moved=True)]),
    ("alter table t add (a number) drop (b)", [Add(name="A"), Drop(name="B")]),
    ("alter table t add constraint c check (a > 0) enable", []),
    ("alter table t add supplemental log data (all) columns", []),
    ("alter table t drop constraint c", []),
    ("alter table t rename constraint c to d", []),
    ("alter table t enable row movement", []),
    ("alter table t add a varchar2(9) default q'[it's, drop]' -- x", [Add(name="A")]),
    ("alter table t set interval (numtoyminterval(1, 'month'))", []),
    ("alter table t drop partition p1 update indexes, p2", []),
    ("alter table t drop columns continue", []),
    ("alter table t drop column a invalidate checkpoint 5", [Drop(name="A")]),
    ("alter table t modify partition p rebuild unusable local indexes", []),
    ("alter table t modify constraint c disable", []),
    (
        "alter table t modify (a visible) modify b invisible",
        [Modify(name="A", moved=True), Modify(name="B", moved=True)],
    ),
    ("alter table t rename partition p to q", []),
]


@pytest.mark.parametrize(("text", "expected"), ORACLE)
def test_clauses_of_oracle(text: str, expected: list[Clause]) -> None:
    table = TableId(database="PDB", schema="S", table="T")
    assert parse(text, "oracle", "PDB", "S") == (AlterTable(table=table, clauses=tuple(expected)),)


def test_statements_of_oracle() -> None:
    old, new = (TableId(database="PDB", schema="S", table=name) for name in ("T", "U"))

    def read(text: str) -> tuple[Statement, ...]:
        return parse(text, "oracle", "PDB", "X")

    assert read("alter table s.t rename to u") == (AlterTable(table=old, clauses=(), rename_to=new),)
    assert read("rename s.t to u") == (RenameTables(pairs=((old, new),)),)
    assert read("create table s.t (a number, constraint c primary key (a)) tablespace x") == (
        CreateTable(table=old, columns=("A",)),
    )
    assert read('drop table "S"."T" cascade constraints purge AS "BIN$x=="') == (DropTables(tables=(old,)),)
    assert read("create global temporary table s.t (a number)") == (noise,)
    assert read("comment on column s.t.a is 'x'; truncate table s.t") == (noise, noise)
    assert read("create or replace package p as procedure q; end;") == (program,)
    for text in (
        "drop user s cascade",
        "flashback table t to before drop",
        "alter table t add a number drop b",
        "alter table t set a b",
        "alter table t drop a",
        "alter table t drop (a b)",
        "alter table t rename a to b",
    ):
        assert isinstance(read(text)[0], NotParsed)


def test_other_connectors_are_not_read() -> None:
    (found,) = parse("alter table t add a int", "sqlserver", "db", "dbo")
    assert found == NotParsed(text="alter table t add a int", reason="statements of connector 'sqlserver' are not read")


def test_an_unqualified_name_without_a_database_is_not_read() -> None:
    (found,) = parse("alter table t add a int", "mysql", "", None)
    assert isinstance(found, NotParsed)
    assert parse("alter table d.t add a int", "mysql", None, None) == (AlterTable(table=t("t", "d"), clauses=(a,)),)


def test_the_text_of_a_statement_has_no_comments_and_is_short() -> None:
    (found,) = mysql("/* who */ alter\n  table t -- why\n add a int /*!50100 not null */")
    assert isinstance(found, AlterTable)
    assert found.text == "alter table t add a int not null"
    (found,) = mysql(f"alter table t add a int comment '{'x' * 1000}'")
    assert isinstance(found, AlterTable)
    assert len(found.text) == MAX_TEXT


def test_huge_texts_are_read_up_to_a_limit() -> None:
    columns = ", ".join(f"c{number} int" for number in range(4000))
    (found,) = mysql(f"create table t ({columns})")
    assert isinstance(found, CreateTable)
    assert found.columns is not None
    assert len(found.columns) == 4000
    (found,) = mysql(f"alter table t add a int comment '{'x' * MAX_LENGTH}'")
    assert isinstance(found, NotParsed)
    (found,) = mysql("(" * 50_000)
    assert isinstance(found, NotParsed)


def test_a_text_that_depends_on_where_strings_end_is_not_read() -> None:
    r"""With NO_BACKSLASH_ESCAPES, `'\'` is a whole string, and the swap is outside of it."""
    swap = r"alter table t add a varchar(9) default '\', rename column b to c, add d varchar(9) default '\'"
    (found,) = mysql(swap)
    assert isinstance(found, NotParsed)
    (found,) = mysql(r"alter table t add a varchar(9) default 'it\'s' comment 'she\'s'")
    assert found == alter(a)


def test_version_comments_that_only_some_servers_execute_are_not_guessed() -> None:
    assert mysql("alter table t add a int /*M!100100 , drop b */", "mysql") == (alter(a),)
    (found,) = mysql("alter table t add a int /*M!100100 , drop b */", "mariadb")
    assert isinstance(found, NotParsed)
    assert mysql("alter table t add a int /*!80000 , drop b */", "mariadb") == (alter(a),)


HOSTILE = [
    *"`'\"\\;,.()#-/*! \n",
    *("/*", "*/", "--", "é", "0x", "alter table t ", "add a int", "drop b", "rename column a to b"),
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(HOSTILE), max_size=14), st.sampled_from(["mysql", "mariadb", "oracle"]))
def test_no_text_makes_reading_fail(parts: list[str], connector: str) -> None:
    for statement in parse("".join(parts), connector, "db", "s"):
        assert len(statement.text) <= MAX_TEXT


names = st.text(min_size=1, max_size=70).filter(lambda name: "\x00" not in name)


@settings(max_examples=200, deadline=None)
@given(names, names, names)
def test_any_quoted_name_is_read_as_it_is(table: str, old: str, new: str) -> None:
    def quoted(name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    text = f"alter table {quoted(table)} rename column {quoted(old)} to {quoted(new)} -- end"
    assert mysql(text) == (alter(Rename(old=old, new=new), table=table),)
