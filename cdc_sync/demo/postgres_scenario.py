"""What happens at the demo's Postgres."""

from __future__ import annotations

from cdc_sync.demo.scenario import SCHEMA, Proof, Scenario, Step, alter

_ORDERS = f"{SCHEMA}.orders"
_PRODUCTS = f"{SCHEMA}.products"
_SHIPMENTS = f"{SCHEMA}.shipments"

_BEFORE = (
    f"create schema {SCHEMA}",
    f"""create table {_ORDERS} (
        id        int primary key,
        customer  text not null,
        note      varchar(40),
        quantity  int not null,
        price     numeric(8,2),
        paid      boolean not null default false,
        placed_at timestamptz not null
    )""",
    f"""create table {_PRODUCTS} (
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
    f"""insert into {_ORDERS} values
        (1, 'Ada',    'leave at the door', 3, 19.90,     true,  '2024-01-05 09:30:00+01'),
        (2, 'Grace',  null,                1, null,      false, '2024-01-06 23:59:59.123456Z'),
        (3, 'Edsger', 'goto the gate',     7, 999999.99, true,  '1969-07-20 20:17:40Z')""",
    f"""insert into {_PRODUCTS} values
        ('00000000-0000-0000-0000-00000000000a', 'Lamp ☀', '{{"watts": 4.5, "colours": ["red", null]}}',
         '{{light,"two words",null}}', '{{1,2,null}}', '2019-02-28', '08:30', '2024-02-29 12:00:00.000001',
         '\\xdeadbeef', 5, 0.1, 0.1),
        ('00000000-0000-0000-0000-00000000000b', 'Chair', null, '{{}}', null, '1582-10-15', '23:59:59.5',
         '0001-01-01 00:00:00', '\\x', -32768, -1.5e-7, 1e300),
        ('00000000-0000-0000-0000-00000000000c', 'Nothing', null, null, null, null, null, null, null, null, null, null)
        """,
)

_SNAPSHOT = (
    Proof(table=_ORDERS, key=(3,)),
    Proof(table=_PRODUCTS, key=("00000000-0000-0000-0000-00000000000c",)),
)

_STEPS = (
    Step(
        title="insert, update and delete rows",
        rows=(
            f"insert into {_ORDERS} values (4, 'Barbara', null, 2, 45.00, false, '2024-02-01 00:00:00Z')",
            f"update {_ORDERS} set price = 20.00, note = 'ring twice' where id = 1",
            f"delete from {_ORDERS} where id = 3",
            f"""insert into {_PRODUCTS} (sku, name, tags, stars)
                values ('00000000-0000-0000-0000-00000000000d', 'Rug', '{{soft}}', 3)""",
            f"update {_PRODUCTS} set score = 'NaN', attributes = '[]' where name = 'Chair'",
        ),
        proof=Proof(table=_ORDERS, key=(4,)),
    ),
    alter(
        "add a column",
        f"alter table {_ORDERS} add column discount numeric(5,2)",
        rows=(
            f"insert into {_ORDERS} values (5, 'Alan', null, 1, 10.00, true, '2024-02-02 00:00:00Z', 2.50)",
            f"update {_ORDERS} set discount = 1.00 where id = 1",
        ),
        table=_ORDERS,
        key=(5,),
    ),
    alter(
        "add a column that is 7 in the rows there are",
        f"alter table {_ORDERS} add column priority int not null default 7",
        rows=(
            f"""insert into {_ORDERS} (id, customer, quantity, placed_at, priority)
                values (6, 'Donald', 4, '2024-02-03 00:00:00Z', 1)""",
            f"""insert into {_ORDERS} (id, customer, quantity, placed_at)
                values (7, 'Tony', 5, '2024-02-04 00:00:00Z')""",
        ),
        table=_ORDERS,
        key=(6,),
    ),
    alter(
        "drop a column",
        f"alter table {_ORDERS} drop column note",
        rows=(
            f"insert into {_ORDERS} values (8, 'Leslie', 2, 12.34, true, '2024-02-05 00:00:00Z', null, 3)",
            f"delete from {_ORDERS} where id = 2",
        ),
        table=_ORDERS,
        key=(8,),
    ),
    alter(
        "rename a column in the middle",
        f"alter table {_ORDERS} rename column customer to buyer",
        rows=(
            f"insert into {_ORDERS} values (9, 'Niklaus', 6, 0.01, false, '2024-02-06 00:00:00Z', 0.01, 7)",
            f"update {_ORDERS} set buyer = 'Ada L.' where id = 1",
        ),
        table=_ORDERS,
        key=(9,),
    ),
    alter(
        "widen int to bigint and numeric(8,2) to numeric(12,2)",
        f"alter table {_ORDERS} alter column quantity type bigint, alter column price type numeric(12,2)",
        rows=(
            f"""insert into {_ORDERS} values
                (11, 'John', 9000000000000000000, 9999999999.99, true, '2024-02-08Z', null, 2)""",
            f"update {_ORDERS} set priority = priority + 1 where id in (4, 5)",
        ),
        table=_ORDERS,
        key=(11,),
    ),
    alter(
        "rename one column and add another in one transaction",
        f"alter table {_ORDERS} rename column paid to settled",
        f"alter table {_ORDERS} add column currency text not null default 'EUR'",
        rows=(
            f"insert into {_ORDERS} values (12, 'Jean', 3, 7.70, true, '2024-02-09Z', null, 2, 'CHF')",
            f"delete from {_ORDERS} where id = 11",
        ),
        table=_ORDERS,
        key=(12,),
    ),
    Step(
        title="create a second table on the way",
        ddl=(
            f"""create table {_SHIPMENTS} (
                order_id int,
                parcel   smallint,
                carrier  text,
                leaves   date,
                arrives  date,
                primary key (order_id, parcel)
            )""",
        ),
        rows=(
            f"insert into {_SHIPMENTS} values (1, 1, 'Pigeon', '2024-03-01', '2024-03-05')",
            f"""insert into {_SHIPMENTS}
                select 100 + n, 1, 'Van ' || n % 3, date '2024-03-02' + n, null from generate_series(1, 40) n""",
            f"update {_SHIPMENTS} set arrives = leaves + 7 where order_id % 10 = 0",
            f"delete from {_SHIPMENTS} where order_id > 130",
        ),
        proof=Proof(table=_SHIPMENTS, key=(1, 1)),
    ),
    alter(
        "drop a column whose name comes back later",
        f"alter table {_ORDERS} drop column discount",
        rows=(
            f"insert into {_ORDERS} values (13, 'Ken', 1, 5.00, false, '2024-02-10Z', 2, 'USD')",
            f"update {_ORDERS} set currency = 'GBP' where id = 9",
        ),
        table=_ORDERS,
        key=(13,),
    ),
    alter(
        "add a column of that name again, with another type",
        f"alter table {_ORDERS} add column discount text",
        rows=(
            f"insert into {_ORDERS} values (14, 'Dennis', 1, 5.00, true, '2024-02-11Z', 2, 'USD', 'ten percent')",
            f"update {_ORDERS} set discount = 'none' where id = 1",
        ),
        table=_ORDERS,
        key=(14,),
    ),
    alter(
        "rename the last column",
        f"alter table {_ORDERS} rename column discount to reduction",
        rows=(f"insert into {_ORDERS} values (15, 'Brian', 1, 5.00, true, '2024-02-12Z', 2, 'USD', 'a third')",),
        table=_ORDERS,
        key=(15,),
    ),
    alter(
        "drop a column and add one of its name and type",
        f"alter table {_ORDERS} drop column reduction",
        f"alter table {_ORDERS} add column reduction text",
        rows=(f"insert into {_ORDERS} values (16, 'Bjarne', 1, 5.00, true, '2024-02-13Z', 2, 'DKK', 'none')",),
        table=_ORDERS,
        key=(16,),
    ),
    alter(
        "swap the names of two columns of one type",
        f"alter table {_SHIPMENTS} rename column leaves to other",
        f"alter table {_SHIPMENTS} rename column arrives to leaves",
        f"alter table {_SHIPMENTS} rename column other to arrives",
        rows=(
            f"insert into {_SHIPMENTS} (order_id, parcel, leaves, arrives) values (2, 1, '2024-04-01', '2024-04-02')",
        ),
        table=_SHIPMENTS,
        key=(2, 1),
    ),
    Step(
        title="update and delete what was there before all this",
        rows=(
            f"update {_ORDERS} set buyer = upper(buyer), quantity = quantity - 1 where id <= 10",
            f"delete from {_PRODUCTS} where name = 'Nothing'",
            f"update {_PRODUCTS} set changed = timestamp '2024-05-05 05:05:05.5', image = null where name = 'Lamp ☀'",
            f"update {_SHIPMENTS} set parcel = 2 where order_id = 2",
        ),
    ),
)

POSTGRES_SCENARIO = Scenario(before=_BEFORE, snapshot=_SNAPSHOT, steps=_STEPS)
"""What happens at the Postgres of the demo."""
