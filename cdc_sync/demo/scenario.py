"""What happens at the source while the job runs, as data."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA = "inv"
ORDERS = f"{SCHEMA}.orders"
PRODUCTS = f"{SCHEMA}.products"
SHIPMENTS = f"{SCHEMA}.shipments"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The row that shows a step in the lake: the one its first row statement writes.

    Attributes:
        table: `schema.table`.
        key: the values of its primary key.
    """

    table: str
    key: tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happens at the source.

    Attributes:
        title: what it is, as one would say it.
        ddl: statements of one transaction, run first.
        rows: statements after it, each committed alone; a schema change is seen with the first row after it.
        proof: what to wait for in the lake before the next step; None goes on at once.
        is_alter: the step changes the columns of a table, so the time until it is seen is measured.
    """

    title: str
    ddl: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    proof: Proof | None = None
    is_alter: bool = False


def _alter(title: str, *ddl: str, rows: tuple[str, ...], table: str, key: tuple[object, ...]) -> Step:
    return Step(title=title, ddl=ddl, rows=rows, proof=Proof(table=table, key=key), is_alter=True)


BEFORE = (
    f"create schema {SCHEMA}",
    f"""create table {ORDERS} (
        id        int primary key,
        customer  text not null,
        note      varchar(40),
        quantity  int not null,
        price     numeric(8,2),
        paid      boolean not null default false,
        placed_at timestamptz not null
    )""",
    f"""create table {PRODUCTS} (
        sku        uuid primary key,
        name       text not null,
        attributes jsonb,
        tags       text[],
        sizes      int[],
        released   date,
        opens      time,
        changed    timestamp,
        image      bytea,
        stars      smallint,
        weight     real,
        score      double precision
    )""",
    f"""insert into {ORDERS} values
        (1, 'Ada',    'leave at the door', 3, 19.90,     true,  '2024-01-05 09:30:00+01'),
        (2, 'Grace',  null,                1, null,      false, '2024-01-06 23:59:59.123456Z'),
        (3, 'Edsger', 'goto the gate',     7, 999999.99, true,  '1969-07-20 20:17:40Z')""",
    f"""insert into {PRODUCTS} values
        ('00000000-0000-0000-0000-00000000000a', 'Lamp ☀', '{{"watts": 4.5, "colours": ["red", null]}}',
         '{{light,"two words",null}}', '{{1,2,null}}', '2019-02-28', '08:30', '2024-02-29 12:00:00.000001',
         '\\xdeadbeef', 5, 0.1, 0.1),
        ('00000000-0000-0000-0000-00000000000b', 'Chair', null, '{{}}', null, '1582-10-15', '23:59:59.5',
         '0001-01-01 00:00:00', '\\x', -32768, -1.5e-7, 1e300),
        ('00000000-0000-0000-0000-00000000000c', 'Nothing', null, null, null, null, null, null, null, null, null, null)
        """,
)
"""The source as the job finds it; Debezium's snapshot reads it."""

SNAPSHOT = (
    Proof(table=ORDERS, key=(3,)),
    Proof(table=PRODUCTS, key=("00000000-0000-0000-0000-00000000000c",)),
)

STEPS = (
    Step(
        title="insert, update and delete rows",
        rows=(
            f"insert into {ORDERS} values (4, 'Barbara', null, 2, 45.00, false, '2024-02-01 00:00:00Z')",
            f"update {ORDERS} set price = 20.00, note = 'ring twice' where id = 1",
            f"delete from {ORDERS} where id = 3",
            f"""insert into {PRODUCTS} (sku, name, tags, stars)
                values ('00000000-0000-0000-0000-00000000000d', 'Rug', '{{soft}}', 3)""",
            f"update {PRODUCTS} set score = 'NaN', attributes = '[]' where name = 'Chair'",
        ),
        proof=Proof(table=ORDERS, key=(4,)),
    ),
    _alter(
        "add a column",
        f"alter table {ORDERS} add column discount numeric(5,2)",
        rows=(
            f"insert into {ORDERS} values (5, 'Alan', null, 1, 10.00, true, '2024-02-02 00:00:00Z', 2.50)",
            f"update {ORDERS} set discount = 1.00 where id = 1",
        ),
        table=ORDERS,
        key=(5,),
    ),
    _alter(
        "add a column that is 7 in the rows there are",
        f"alter table {ORDERS} add column priority int not null default 7",
        rows=(
            f"""insert into {ORDERS} (id, customer, quantity, placed_at, priority)
                values (6, 'Donald', 4, '2024-02-03 00:00:00Z', 1)""",
            f"""insert into {ORDERS} (id, customer, quantity, placed_at)
                values (7, 'Tony', 5, '2024-02-04 00:00:00Z')""",
        ),
        table=ORDERS,
        key=(6,),
    ),
    _alter(
        "drop a column",
        f"alter table {ORDERS} drop column note",
        rows=(
            f"insert into {ORDERS} values (8, 'Leslie', 2, 12.34, true, '2024-02-05 00:00:00Z', null, 3)",
            f"delete from {ORDERS} where id = 2",
        ),
        table=ORDERS,
        key=(8,),
    ),
    _alter(
        "rename a column in the middle",
        f"alter table {ORDERS} rename column customer to buyer",
        rows=(
            f"insert into {ORDERS} values (9, 'Niklaus', 6, 0.01, false, '2024-02-06 00:00:00Z', 0.01, 7)",
            f"update {ORDERS} set buyer = 'Ada L.' where id = 1",
        ),
        table=ORDERS,
        key=(9,),
    ),
    _alter(
        "widen int to bigint",
        f"alter table {ORDERS} alter column quantity type bigint",
        rows=(f"insert into {ORDERS} values (10, 'John', 9000000000000000000, 1.00, true, '2024-02-07Z', null, 2)",),
        table=ORDERS,
        key=(10,),
    ),
    _alter(
        "widen numeric(8,2) to numeric(12,2)",
        f"alter table {ORDERS} alter column price type numeric(12,2)",
        rows=(
            f"insert into {ORDERS} values (11, 'Frances', 1, 9999999999.99, true, '2024-02-08Z', null, 2)",
            f"update {ORDERS} set priority = priority + 1 where id in (4, 5)",
        ),
        table=ORDERS,
        key=(11,),
    ),
    _alter(
        "rename one column and add another in one transaction",
        f"alter table {ORDERS} rename column paid to settled",
        f"alter table {ORDERS} add column currency text not null default 'EUR'",
        rows=(
            f"insert into {ORDERS} values (12, 'Jean', 3, 7.70, true, '2024-02-09Z', null, 2, 'CHF')",
            f"delete from {ORDERS} where id = 11",
        ),
        table=ORDERS,
        key=(12,),
    ),
    Step(
        title="create a second table on the way",
        ddl=(
            f"""create table {SHIPMENTS} (
                order_id int,
                parcel   smallint,
                carrier  text,
                arrives  date,
                primary key (order_id, parcel)
            )""",
        ),
        rows=(
            f"insert into {SHIPMENTS} values (1, 1, 'Pigeon', '2024-03-01')",
            f"""insert into {SHIPMENTS}
                select 100 + n, 1, 'Van ' || n % 3, date '2024-03-02' + n from generate_series(1, 40) n""",
            f"update {SHIPMENTS} set arrives = arrives + 7 where order_id % 10 = 0",
            f"delete from {SHIPMENTS} where order_id > 130",
        ),
        proof=Proof(table=SHIPMENTS, key=(1, 1)),
    ),
    _alter(
        "drop a column whose name comes back later",
        f"alter table {ORDERS} drop column discount",
        rows=(
            f"insert into {ORDERS} values (13, 'Ken', 1, 5.00, false, '2024-02-10Z', 2, 'USD')",
            f"update {ORDERS} set currency = 'GBP' where id = 9",
        ),
        table=ORDERS,
        key=(13,),
    ),
    _alter(
        "add a column of that name again, with another type",
        f"alter table {ORDERS} add column discount text",
        rows=(
            f"insert into {ORDERS} values (14, 'Dennis', 1, 5.00, true, '2024-02-11Z', 2, 'USD', 'ten percent')",
            f"update {ORDERS} set discount = 'none' where id = 1",
        ),
        table=ORDERS,
        key=(14,),
    ),
    _alter(
        "rename a column of the new table",
        f"alter table {SHIPMENTS} rename column carrier to shipped_by",
        rows=(f"insert into {SHIPMENTS} values (2, 1, 'Drone', '2024-04-01')",),
        table=SHIPMENTS,
        key=(2, 1),
    ),
    Step(
        title="update and delete what was there before all this",
        rows=(
            f"update {ORDERS} set buyer = upper(buyer), quantity = quantity - 1 where id <= 10",
            f"delete from {PRODUCTS} where name = 'Nothing'",
            f"update {PRODUCTS} set changed = timestamp '2024-05-05 05:05:05.5', image = null where name = 'Lamp ☀'",
            f"update {SHIPMENTS} set parcel = 2 where order_id = 2",
        ),
    ),
)
"""What happens while the job runs."""
