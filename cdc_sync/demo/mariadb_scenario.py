"""What happens at the demo's MariaDB.

No ALTER here uses in one clause a name that another of its clauses gives away: Debezium 3.5 loses such columns and its
connector fails (a swap by two clauses of one ALTER, for one). So the swap below takes two statements.
"""

from __future__ import annotations

from cdc_sync.demo.scenario import SCHEMA, Proof, Scenario, Step, alter

_ORDERS = f"{SCHEMA}.orders"
_PRODUCTS = f"{SCHEMA}.products"
_SHIPMENTS = f"{SCHEMA}.shipments"

_BEFORE = (
    f"create database {SCHEMA}",
    f"""create table {_ORDERS} (
        id        int primary key,
        customer  varchar(100) not null,
        note      varchar(40),
        quantity  int not null,
        price     decimal(8,2),
        paid      boolean not null default false,
        placed_at timestamp(6) not null default '2000-01-01 00:00:00'
    )""",
    f"""create table {_PRODUCTS} (
        sku        char(4) primary key,
        name       varchar(100) not null,
        attributes json,
        size       enum('small','large'),
        extras     set('box','bag','bow'),
        released   date,
        opens      time(1),
        changed    datetime(6),
        image      blob,
        stars      smallint,
        sold       int unsigned,
        made_in    year,
        weight     float,
        score      double
    )""",
    f"""insert into {_ORDERS} values
        (1, 'Ada',    'leave at the door', 3, 19.90,     true,  '2024-01-05 08:30:00'),
        (2, 'Grace',  null,                1, null,      false, '2024-01-06 23:59:59.123456'),
        (3, 'Edsger', 'goto the gate',     7, 999999.99, true,  '1971-07-20 20:17:40')""",
    f"""insert into {_PRODUCTS} values
        ('lamp', 'Lamp ☀', '{{"watts": 4.5, "colours": ["red", null]}}', 'small', 'box,bow', '2019-02-28', '08:30',
         '2024-02-29 12:00:00.000001', x'deadbeef', 5, 4294967295, 2019, 0.1, 0.1),
        ('seat', 'Chair', null, 'large', '', '1582-10-15', '-23:59:59.5', '1000-01-01 00:00:00', '', -32768, 0, 1901,
         -1.5e-7, 1e300),
        ('none', 'Nothing', null, null, null, null, null, null, null, null, null, null, null, null)""",
)

_SNAPSHOT = (
    Proof(table=_ORDERS, key=(3,)),
    Proof(table=_PRODUCTS, key=("none",)),
)

_STEPS = (
    Step(
        title="insert, update and delete rows",
        rows=(
            f"insert into {_ORDERS} values (4, 'Barbara', null, 2, 45.00, false, '2024-02-01 00:00:00')",
            f"update {_ORDERS} set price = 20.00, note = 'ring twice' where id = 1",
            f"delete from {_ORDERS} where id = 3",
            f"insert into {_PRODUCTS} (sku, name, extras, stars) values ('rug', 'Rug', 'bag', 3)",
            f"update {_PRODUCTS} set score = -0.5, attributes = '[]' where name = 'Chair'",
        ),
        proof=Proof(table=_ORDERS, key=(4,)),
    ),
    alter(
        "add a column",
        f"alter table {_ORDERS} add column discount decimal(5,2)",
        rows=(
            f"insert into {_ORDERS} values (5, 'Alan', null, 1, 10.00, true, '2024-02-02 00:00:00', 2.50)",
            f"update {_ORDERS} set discount = 1.00 where id = 1",
        ),
        table=_ORDERS,
        key=(5,),
    ),
    alter(
        "add a column in the middle that is 7 in the rows there are",
        f"alter table {_ORDERS} add column priority int not null default 7 after quantity",
        rows=(
            f"insert into {_ORDERS} (id, customer, quantity, priority) values (6, 'Donald', 4, 1)",
            f"insert into {_ORDERS} (id, customer, quantity) values (7, 'Tony', 5)",
        ),
        table=_ORDERS,
        key=(6,),
    ),
    alter(
        "drop a column",
        f"alter table {_ORDERS} drop column note",
        rows=(
            f"insert into {_ORDERS} (id, customer, quantity, price) values (8, 'Leslie', 2, 12.34)",
            f"delete from {_ORDERS} where id = 2",
        ),
        table=_ORDERS,
        key=(8,),
    ),
    alter(
        "rename a column with CHANGE",
        f"alter table {_ORDERS} change column customer buyer varchar(100) not null",
        rows=(
            f"insert into {_ORDERS} (id, buyer, quantity, price) values (9, 'Niklaus', 6, 0.01)",
            f"update {_ORDERS} set buyer = 'Ada L.' where id = 1",
        ),
        table=_ORDERS,
        key=(9,),
    ),
    alter(
        "rename one column and add another before it in one statement",
        f"""alter table {_ORDERS} rename column paid to settled,
            add column currency char(3) not null default 'EUR' after price""",
        rows=(
            f"insert into {_ORDERS} (id, buyer, quantity, settled, currency) values (10, 'Jean', 3, true, 'CHF')",
            f"delete from {_ORDERS} where id = 8",
        ),
        table=_ORDERS,
        key=(10,),
    ),
    alter(
        "widen int to bigint and decimal(8,2) to decimal(12,2)",
        f"alter table {_ORDERS} modify column quantity bigint not null, modify column price decimal(12,2)",
        rows=(
            f"insert into {_ORDERS} (id, buyer, quantity, price) values (11, 'John', 9000000000000000000, 99999999.99)",
            f"update {_ORDERS} set priority = priority + 1 where id in (4, 5)",
        ),
        table=_ORDERS,
        key=(11,),
    ),
    alter(
        "move two columns",
        f"alter table {_ORDERS} modify column placed_at timestamp(6) not null default '2000-01-01' after id,"
        " modify column priority int not null default 7 first",
        rows=(f"insert into {_ORDERS} (id, buyer, quantity) values (12, 'Frances', 1)",),
        table=_ORDERS,
        key=(12,),
    ),
    Step(
        title="create a second table on the way",
        ddl=(
            f"""create table {_SHIPMENTS} (
                order_id int,
                parcel   smallint,
                leaves   date,
                arrives  date,
                carrier  varchar(40),
                primary key (order_id, parcel)
            )""",
        ),
        rows=(
            f"insert into {_SHIPMENTS} values (1, 1, '2024-03-01', '2024-03-05', 'Pigeon')",
            f"""insert into {_SHIPMENTS}
                select 100 + seq, 1, date '2024-03-02' + interval seq day, null, concat('Van ', seq % 3)
                from {SCHEMA}.seq_1_to_40""",
            f"update {_SHIPMENTS} set arrives = leaves + interval 7 day where order_id % 10 = 0",
            f"delete from {_SHIPMENTS} where order_id > 130",
        ),
        proof=Proof(table=_SHIPMENTS, key=(1, 1)),
    ),
    alter(
        "swap the names of two columns of one type",
        f"alter table {_SHIPMENTS} rename column leaves to other, rename column arrives to leaves",
        f"alter table {_SHIPMENTS} rename column other to arrives",
        rows=(
            f"insert into {_SHIPMENTS} (order_id, parcel, leaves, arrives) values (2, 1, '2024-04-01', '2024-04-02')",
        ),
        table=_SHIPMENTS,
        key=(2, 1),
    ),
    alter(
        "drop a column and add one of its name and type",
        f"alter table {_ORDERS} drop column discount",
        f"alter table {_ORDERS} add column discount decimal(5,2)",
        rows=(
            f"insert into {_ORDERS} (id, buyer, quantity, discount) values (13, 'Ken', 1, 0.50)",
            f"update {_ORDERS} set currency = 'GBP' where id = 9",
        ),
        table=_ORDERS,
        key=(13,),
    ),
    alter(
        "rename and add through a shadow table, as gh-ost does",
        f"create table {SCHEMA}._orders_gho like {_ORDERS}",
        f"alter table {SCHEMA}._orders_gho change column buyer client varchar(100) not null,"
        " add column region varchar(10) default 'north' after id",
        f"""insert into {SCHEMA}._orders_gho
                (id, priority, placed_at, client, quantity, price, currency, settled, discount)
            select id, priority, placed_at, buyer, quantity, price, currency, settled, discount from {_ORDERS}""",
        f"rename table {_ORDERS} to {SCHEMA}._orders_del, {SCHEMA}._orders_gho to {_ORDERS}",
        f"drop table {SCHEMA}._orders_del",
        rows=(f"insert into {_ORDERS} (id, client, quantity) values (14, 'Dennis', 1)",),
        table=_ORDERS,
        key=(14,),
    ),
    Step(
        title="update and delete what was there before all this",
        rows=(
            f"update {_ORDERS} set client = upper(client), quantity = quantity - 1 where id <= 10",
            f"delete from {_PRODUCTS} where name = 'Nothing'",
            f"update {_PRODUCTS} set changed = '2024-05-05 05:05:05.5', image = null where name = 'Lamp ☀'",
            f"update {_SHIPMENTS} set parcel = 2 where order_id = 2",
        ),
    ),
)

MARIADB_SCENARIO = Scenario(before=_BEFORE, snapshot=_SNAPSHOT, steps=_STEPS)
"""What happens at the MariaDB of the demo."""
