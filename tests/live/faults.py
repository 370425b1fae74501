"""Statements that once went wrong without a word: what is played before the job's first run, and between its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["postgres", "mariadb"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One table and what is done to it.

    Attributes:
        table: `schema.table`, on MariaDB `database.table`.
        source: the connector that captures it: a key of `SOURCES`.
        before, between: statements, each a transaction of its own unless it holds several, separated by `;`.
    """

    table: str
    source: str = "pg"
    before: Sequence[str]
    between: Sequence[str]

    @property
    def name(self) -> str:
        """Return what the table of cells calls it."""
        return f"{self.source} {self.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """A connector with what is special about it; each on Postgres has a database of its own.

    Attributes:
        capture: when DDL capture is installed on Postgres: before the connector has a slot, or behind that.
        extra: settings.
        later: settings that take their place between the job's runs.
        anew: between the runs it loses its slot and its offsets before the statements are played, and is made again.
        moved: between the runs its database goes on on another server, whose log is shorter (a restored dump, a
            failover, an upgrade), without another snapshot.
    """

    kind: Kind = "postgres"
    capture: Literal["before", "behind"] = "behind"
    extra: dict[str, str] = field(default_factory=dict)
    later: dict[str, str] = field(default_factory=dict)
    anew: bool = False
    moved: bool = False


SOURCES = {
    "pg": Connector(),
    "early": Connector(capture="before"),
    "switched": Connector(
        later={
            "binary.handling.mode": "base64",
            "interval.handling.mode": "string",
            "time.precision.mode": "isostring",
        }
    ),
    "numeric": Connector(extra={"value.converter.decimal.format": "NUMERIC"}),
    "again": Connector(anew=True),
    "moved": Connector(moved=True),
    "maria": Connector(kind="mariadb"),
}

_LISTS = (
    "insert into inv.arr select 1, 'a', (select array_agg(i::numeric(12,2)) from generate_series(1,2500) i),"
    " (select array_agg(i%2=0) from generate_series(1,4500) i),"
    " (select array_agg('2024-01-01Z'::timestamptz+i*interval '1 s') from generate_series(1,1500) i),"
    " (select array_agg(i) from generate_series(1,1500) i)"
)

FAULTS = (
    Fault(
        table="inv.d1",
        before=("create table inv.d1(id int primary key, a text)", "insert into inv.d1 values (1,'x')"),
        between=(
            "alter table inv.d1 add column c int",
            "alter table inv.d1 alter column c set default 5",
            "insert into inv.d1(id,a) values (2,'y')",
        ),
    ),
    Fault(
        table="inv.d2",
        before=("create table inv.d2(id int primary key, a text)", "insert into inv.d2 values (1,'x')"),
        between=(
            "alter table inv.d2 add column c int default 1",
            "alter table inv.d2 alter column c set default 2",
            "insert into inv.d2(id,a) values (2,'y')",
        ),
    ),
    Fault(
        table="inv.d3",
        before=("create table inv.d3(id int primary key, a text)", "insert into inv.d3 values (1,'x')"),
        between=(
            "alter table inv.d3 add column c int default 7",
            "alter table inv.d3 alter column c drop default",
            "insert into inv.d3(id,a) values (2,'y')",
        ),
    ),
    Fault(
        table="inv.comp",
        before=(
            "create type inv.addr as (street text, zip text)",
            "create table inv.comp(id int primary key, a inv.addr, b text)",
            "insert into inv.comp values (1,row('Elm','10'),'p'),(2,row('Oak','20'),'q')",
        ),
        between=(
            "alter table inv.comp alter a type text using (a).street",
            "update inv.comp set b='pp' where id=1",
        ),
    ),
    Fault(
        table="inv.arr",
        before=(
            "create table inv.arr(id int primary key, note text, nums numeric(12,2)[], flags bool[], at timestamptz[],"
            " ints int[])",
            *(f"alter table inv.arr alter {name} set storage external" for name in ("nums", "flags", "at", "ints")),
            _LISTS,
        ),
        between=("update inv.arr set note='b' where id=1",),
    ),
    Fault(
        table="inv.ri",
        before=(
            "create table inv.ri(tenant int not null, id int not null unique, v text, primary key(tenant,id))",
            "alter table inv.ri replica identity using index ri_id_key",
            "insert into inv.ri values (7,1,'1'),(7,2,'2'),(8,3,'3')",
        ),
        between=("delete from inv.ri where id=2",),
    ),
    Fault(
        table="inv.tx",
        before=(
            "create table inv.tx(id int primary key, tenant int not null, v text)",
            "insert into inv.tx values (1,7,'1'),(2,7,'2'),(3,8,'3')",
        ),
        between=(
            "delete from inv.tx where id=2; alter table inv.tx drop constraint tx_pkey, add primary key(tenant,id)",
            "insert into inv.tx values (5,9,'5')",
        ),
    ),
    Fault(
        table="inv.na",
        before=(
            "create table inv.na(id int primary key, s varchar(10), t timestamp(6))",
            "insert into inv.na values (1,'abcdefgh','2024-03-10 02:30:00.123456')",
        ),
        between=(
            "alter table inv.na alter s type varchar(3) using left(s,3)",
            "alter table inv.na alter t type timestamp(3)",
            "insert into inv.na values (2,'xyz','2024-03-10 02:30:00.5')",
        ),
    ),
    Fault(
        table="inv.rt",
        before=(
            "create table inv.rt(id int primary key, ch char(5), ts timestamp(6), tm time(6), js json, vc varchar(20),"
            " tz timestamptz)",
            "insert into inv.rt values (1,'ab','2024-01-01 10:00:00.654321','10:00:00.654321',"
            "'{\"b\":1, \"a\":2,\"a\":3}','long text','2024-01-01 10:00:00.999999+00')",
        ),
        between=(
            "alter table inv.rt alter ch type text",
            "alter table inv.rt alter ts type timestamp(0)",
            "alter table inv.rt alter tm type time(0)",
            "alter table inv.rt alter js type jsonb using js::jsonb",
            "alter table inv.rt alter vc type char(12)",
            "alter table inv.rt alter tz type timestamptz(0)",
            "insert into inv.rt values (2,'ef','2024-01-01 10:00:00','10:00:00','{\"z\":1}','y',"
            "'2024-01-01 10:00:00+00')",
        ),
    ),
    Fault(
        table="inv.an",
        before=(
            "create table inv.an(id int primary key, v text, s text[], n numeric(9,1)[], g int[], e int[][])",
            "alter table inv.an alter s set storage external, alter n set storage external",
            "insert into inv.an select 1, 'a', (select array_agg(i::text) from generate_series(1,2500) i),"
            " (select array_agg(i::numeric(9,1)) from generate_series(1,2500) i), '{1}', '{{1,2},{3,4}}'",
        ),
        between=(
            "update inv.an set v='b' where id=1",
            "insert into inv.an values (2, 'c', '{x}', '{1}', '{2}', '{{5}}')",
        ),
    ),
    Fault(
        table="inv.nm",
        before=("create table inv.nm(id int primary key, n name, v text)", "insert into inv.nm values (1,'one','a')"),
        between=("insert into inv.nm values (2,'two','b')", "update inv.nm set v='c' where id=1"),
    ),
    Fault(
        table="aa.t",
        source="early",
        before=("create table aa.t(id int primary key, x text)", "insert into aa.t values (1,'one')"),
        between=(
            "alter table aa.t add column zz int default 7",
            "alter table aa.t rename column x to x_r",
            "update aa.t set zz=8",
            "alter table aa.t rename column x_r to x2",
            "update aa.t set zz=zz+1",
        ),
    ),
    Fault(
        table="sw.t",
        source="switched",
        before=(
            "create table sw.t(id int primary key, b bytea, iv interval, tm time)",
            "insert into sw.t values (1,'hello','1 day','10:15:00')",
        ),
        between=("insert into sw.t values (2,'hello','1 day','10:15:00')",),
    ),
    Fault(
        table="dn.t",
        source="numeric",
        before=("create table dn.t(id int primary key, a numeric(10,2), b numeric(38,2))",),
        between=("insert into dn.t values (1, 12.30, 123456789012345678901234567890.12)",),
    ),
    Fault(
        table="rs.t",
        source="again",
        before=("create table rs.t(id int primary key, v text)", "insert into rs.t values (1,'a'),(2,'b'),(3,'c')"),
        between=(
            "delete from rs.t where id=2",
            "update rs.t set v='c2' where id=3",
            "insert into rs.t values (4,'d')",
        ),
    ),
    Fault(
        table="fo.acc",
        source="moved",
        before=(
            "create table fo.acc(id int primary key, v text, n int)",
            "insert into fo.acc values (1,'a',1),(3,'c',3)",
        ),
        between=(
            "alter table fo.acc rename column n to num",
            "update fo.acc set num=33 where id=3",
            "alter table fo.acc add column x int default 4",
            "insert into fo.acc values (6,'f',6,6)",
        ),
    ),
    Fault(
        table="shop.mv",
        source="maria",
        before=("create table shop.mv(id int primary key)", "insert into shop.mv values (1)"),
        between=(
            "alter table shop.mv add column x int default (1+1)",
            "alter table shop.mv add column u bigint unsigned default 18446744073709551615",
            "insert into shop.mv(id) values (2)",
        ),
    ),
    Fault(
        table="shop.ub",
        source="maria",
        before=(
            "create table shop.ub(id bigint unsigned primary key, u bigint unsigned, v text)",
            "insert into shop.ub values (1, 18446744073709551615, 'a')",
        ),
        between=("insert into shop.ub values (9223372036854775809, 2, 'b')",),
    ),
    Fault(
        table="shop.nr",
        source="maria",
        before=(
            "create table shop.nr(id int primary key, t datetime(6))",
            "insert into shop.nr values (1,'2024-03-10 02:30:00.123456')",
        ),
        between=(
            "alter table shop.nr modify t datetime(3)",
            "insert into shop.nr values (2,'2024-03-10 02:30:00.5')",
        ),
    ),
    Fault(
        table="shop.cor",
        source="maria",
        before=(
            "create table shop.cor(id int primary key, a int, b text)",
            "insert into shop.cor values (1,1,'old'),(2,2,'old')",
        ),
        between=(
            "create or replace table shop.cor(id int primary key, b text, extra int default 9)",
            "insert into shop.cor(id,b) values (2,'new'),(3,'new')",
        ),
    ),
    Fault(
        table="shop.pt",
        source="maria",
        before=(
            "create table shop.pt(id int not null, d int not null, v text, primary key(id,d))"
            " partition by range(d) (partition p0 values less than(10), partition p1 values less than(20),"
            " partition p2 values less than(30))",
            "insert into shop.pt values (1,5,'p0'),(2,15,'p1'),(3,25,'p2')",
        ),
        between=(
            "alter table shop.pt drop partition p0",
            "alter table shop.pt truncate partition p1",
            "insert into shop.pt values (4,26,'p2b')",
        ),
    ),
)
