"""Postgres tables that never rest: random rows, random keys, random ALTERs, from a seed."""

from __future__ import annotations

import random
import string
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TypeAlias
from uuid import UUID

import psycopg
from psycopg import sql

_MOST_ROWS = 400
_MOST_COLUMNS = 14
_PATIENCE = 90.0
_DEFAULTS = {
    "integer": "7",
    "bigint": "-9000000000",
    "text": "'new'",
    "boolean": "true",
    "numeric(10,2)": "1.50",
    "date": "'2020-02-29'",
    "double precision": "2.5",
    "timestamp": "'2021-01-01 00:00:01.5'",
}
_WIDER = {
    "smallint": "integer",
    "integer": "bigint",
    "real": "double precision",
    "numeric(10,2)": "numeric(14,2)",
    "numeric(14,2)": "numeric(38,2)",
    "varchar(20)": "varchar(40)",
    "varchar(40)": "text",
}
_PLAIN = ("Upper", "select", "again", "x", "y", "z", "_a", "value")
_ODD = ("a b", 'quo"te', "back`tick", "'; drop table x --", "ünï", "🚀", "Upper", "a.b", "select", "\u202eltr")


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the writer believes it to be."""

    name: str
    type: str
    optional: bool = True


_VALUES: dict[str, Callable[[random.Random], object]] = {
    "smallint": lambda r: r.randint(-32768, 32767),
    "integer": lambda r: r.randint(-(2**31), 2**31 - 1),
    "bigint": lambda r: r.randint(-(2**63), 2**63 - 1),
    "real": lambda r: r.choice([0.1, -1.5e20, 3.25, r.random()]),
    "double precision": lambda r: r.choice([0.1, 1e-300, -0.5, r.random() * 1e9]),
    "numeric(10,2)": lambda r: Decimal(r.randint(-(10**9), 10**9)).scaleb(-2),
    "numeric(14,2)": lambda r: Decimal(r.randint(-(10**13), 10**13)).scaleb(-2),
    "numeric(38,2)": lambda r: Decimal(r.randint(-(10**27), 10**27)).scaleb(-2),
    "text": lambda r: r.choice(["", "plain", 'it\'s "odd" \\ \n', "Zoë 🚀", "x" * r.randint(1, 200)]),
    "varchar(20)": lambda r: "".join(r.choices(string.ascii_letters + "äß'\"", k=r.randint(0, 20))),
    "varchar(40)": lambda r: "v" * r.randint(0, 40),
    "boolean": lambda r: r.random() < 0.5,
    "date": lambda r: date(1900, 1, 1) + timedelta(days=r.randint(0, 90_000)),
    "timestamp": lambda r: datetime(1950, 1, 1) + timedelta(microseconds=r.randint(0, 4 * 10**15)),
    "timestamptz": lambda r: datetime(2000, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=r.randint(0, 10**9)),
    "bytea": lambda r: r.randbytes(r.randint(0, 30)),
    "uuid": lambda r: UUID(int=r.getrandbits(128)),
    "jsonb": lambda r: f'{{"a": [1, null, "{r.randint(0, 99)}"]}}',
    "integer[]": lambda r: [r.randint(0, 9) for _ in range(r.randint(0, 4))],
}


_Alter: TypeAlias = "tuple[str, list[Column], sql.Composable]"
"""What kind of ALTER, the columns after it, and its text behind the table's name."""


class ChangingTable:
    """One table and a thread that changes it until `stop` is set.

    Every ALTER shares its transaction with a new row, and the next one waits until the connector has seen that row:
    only then are the connector's defaults those of the time (it asks the catalogue late, see tests/corpus/README.md).

    Attributes:
        name: `schema.table`.
        counts: what was done, by kind.
        failure: what ended the thread too early.
    """

    def __init__(
        self,
        dsn: str,
        name: str,
        columns: Sequence[Column],
        *,
        key: int,
        seed: int,
        stop: threading.Event,
        seen: Callable[[int], bool],
        avro: bool = False,
    ) -> None:
        """Create the table with some rows.

        Args:
            dsn: the database.
            name: `schema.table`.
            columns: the first `key` of them are the primary key: integers and then text.
            key: how many.
            seed: of everything random here.
            stop: set it to end the thread.
            seen: tells whether the connector has passed a place in the log.
            avro: events show no names that Avro has not, nor a NULL in a column with a default (Apicurio's converter).
        """
        self.name = name
        self.counts: Counter[str] = Counter()
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name)
        self._chance = random.Random(seed)
        self._columns = list(columns)
        self._key = key
        self._names = _PLAIN if avro else _ODD
        self._null_has_default = not avro
        self._stop_asked = stop
        self._seen = seen
        self._altered_at = 0
        self._next_alter = time.monotonic() + 4
        self._keys: list[tuple[object, ...]] = []
        self._next_id = 1
        self._next_name = 1
        self._dsn = dsn
        self._before: list[Column] = []
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._id = sql.Identifier(*name.split("."))
        definition = sql.SQL(", ").join(
            sql.SQL("{} {}{}").format(
                sql.Identifier(c.name), sql.SQL(c.type), sql.SQL("" if c.optional else " not null")
            )
            for c in columns
        )
        keys = sql.SQL(", ").join(sql.Identifier(column.name) for column in columns[:key])
        self._connection.execute(sql.SQL("create table {} ({}, primary key ({}))").format(self._id, definition, keys))
        for _ in range(20):
            self._insert()

    def start(self) -> None:
        """Change rows about 25 times a second, the table every few seconds."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of the change that is under way."""
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop_asked.wait(self._chance.uniform(0.01, 0.07)):
                try:
                    self._step()
                except psycopg.OperationalError:
                    self._begin_again()
        except Exception as error:
            self.failure = error
        finally:
            self._connection.close()

    def _begin_again(self) -> None:
        """The database was away, and nobody knows whether it carried out the last statement: look what there is."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self._connection.close()
                self._connection = psycopg.connect(self._dsn, autocommit=True)
                break
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
        there = self._connection.execute(
            "select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = %s::regclass "
            "and attnum > 0 and not attisdropped order by attnum",
            [self._id.as_string(self._connection)],
        ).fetchall()
        if [tuple(row) for row in there] != [(column.name, _long(column.type)) for column in self._columns]:
            self._columns = self._before
        names = sql.SQL(", ").join(sql.Identifier(column.name) for column in self._columns[: self._key])
        self._keys = self._connection.execute(sql.SQL("select {} from {}").format(names, self._id)).fetchall()

    def _step(self) -> None:
        if time.monotonic() > self._next_alter and self._seen(self._altered_at):
            self._alter()
            return
        insert = self._insert if len(self._keys) < _MOST_ROWS else self._delete
        actions = [insert, self._update, self._update_many, self._delete, self._change_key, self._several]
        self._chance.choices(actions, weights=[45, 30, 2, 8, 6, 6])[0]()

    def _several(self) -> None:
        """One transaction that touches keys again and again, and another that never happened."""
        with self._connection.transaction():
            for _ in range(self._chance.randint(2, 6)):
                self._chance.choice([self._insert, self._update, self._delete, self._change_key])()
        kept = list(self._keys)
        with self._connection.transaction(force_rollback=True):
            self._insert()
        self._keys = kept

    def _insert(self) -> None:
        key = self._new_key()
        others = self._columns[self._key :]
        names = sql.SQL(", ").join(sql.Identifier(column.name) for column in self._columns)
        holes = sql.SQL(", ").join(sql.SQL("%s::" + column.type) for column in self._columns)
        statement = sql.SQL("insert into {} ({}) values ({})").format(self._id, names, holes)
        self._connection.execute(statement, [*key, *map(self._value, others)])
        self._keys.append(key)
        self.counts["insert"] += 1

    def _update(self) -> None:
        if self._keys:
            others = self._columns[self._key :]
            changed = self._chance.sample(others, k=min(len(others), self._chance.randint(1, 3)))
            self._set(changed, [self._value(column) for column in changed], where=self._chance.choice(self._keys))
            self.counts["update"] += 1

    def _update_many(self) -> None:
        column = self._chance.choice(self._columns[self._key :])
        statement = sql.SQL("update {} set {} = {} where mod({}, 5) = 0").format(
            self._id, sql.Identifier(column.name), sql.SQL("%s::" + column.type), sql.Identifier(self._columns[0].name)
        )
        self._connection.execute(statement, [self._value(column)])
        self.counts["update of many"] += 1

    def _delete(self) -> None:
        if len(self._keys) > 5:
            key = self._keys.pop(self._chance.randrange(len(self._keys)))
            self._connection.execute(
                sql.SQL("delete from {} where {}").format(self._id, _equal(self._columns[: self._key], " and ")), key
            )
            self.counts["delete"] += 1

    def _change_key(self) -> None:
        if self._keys:
            old = self._keys.pop(self._chance.randrange(len(self._keys)))
            new = self._new_key()
            self._set(self._columns[: self._key], new, where=old)
            self._keys.append(new)
            self.counts["key update"] += 1

    def _set(self, columns: Sequence[Column], values: Sequence[object], *, where: tuple[object, ...]) -> None:
        statement = sql.SQL("update {} set {} where {}").format(
            self._id, _equal(columns, ", "), _equal(self._columns[: self._key], " and ")
        )
        self._connection.execute(statement, [*values, *where])

    def _new_key(self) -> tuple[object, ...]:
        self._next_id += 1
        return (self._next_id, *(self._chance.choice(("k", "ö", "'")) for _ in range(self._key - 1)))

    def _value(self, column: Column) -> object:
        if column.optional and self._chance.random() < 0.2:
            return None
        return _VALUES[column.type](self._chance)

    def _alter(self) -> None:
        """Make one ALTER that events can prove, together with a row that shows it."""
        alters = [self._add, self._add, self._rename, self._widen]
        if len(self._columns) > self._key + 3:
            alters.append(self._drop)
        if len(self._columns) >= _MOST_COLUMNS:
            alters = [self._drop]
        kind, columns, statement = self._chance.choice(alters)()
        self._before = self._columns
        with self._connection.transaction():
            self._connection.execute(sql.SQL("alter table {} ").format(self._id) + statement)
            self._columns = columns
            self._insert()
        row = self._connection.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
        assert row is not None
        self._altered_at = int(row[0])
        self._next_alter = time.monotonic() + self._chance.uniform(3, 12)
        self.counts[kind] += 1

    def _add(self) -> _Alter:
        type_ = self._chance.choice(list(_DEFAULTS))
        column = Column(self._fresh_name(), type_, self._chance.random() < 0.5)
        parts: list[sql.Composable] = [sql.SQL("add column {} {}").format(sql.Identifier(column.name), sql.SQL(type_))]
        if not column.optional or (self._null_has_default and self._chance.random() < 0.5):
            parts.append(sql.SQL(" default " + _DEFAULTS[type_]))
        if not column.optional:
            parts.append(sql.SQL(" not null"))
        return "add", [*self._columns, column], sql.Composed(parts)

    def _drop(self) -> _Alter:
        gone = self._chance.choice(self._columns[self._key :])
        left = [column for column in self._columns if column is not gone]
        return "drop", left, sql.SQL("drop column {}").format(sql.Identifier(gone.name))

    def _rename(self) -> _Alter:
        """Rename a column that has another behind it: only there does its place prove what happened."""
        place = self._chance.randrange(self._key, len(self._columns) - 1)
        old, new = self._columns[place].name, self._fresh_name()
        columns = list(self._columns)
        columns[place] = replace(columns[place], name=new)
        statement = sql.SQL("rename column {} to {}").format(sql.Identifier(old), sql.Identifier(new))
        return "rename", columns, statement

    def _widen(self) -> _Alter:
        places = [place for place, column in enumerate(self._columns) if place and column.type in _WIDER]
        if not places:
            return self._add()
        place = self._chance.choice(places)
        columns = list(self._columns)
        columns[place] = replace(columns[place], type=_WIDER[columns[place].type])
        name = sql.Identifier(columns[place].name)
        return "widen", columns, sql.SQL("alter column {} type {}").format(name, sql.SQL(columns[place].type))

    def _fresh_name(self) -> str:
        """Make up a name; now and then one that a dropped column had."""
        taken = {column.name for column in self._columns}
        free = [name for name in self._names if name not in taken]
        if free and self._chance.random() < 0.4:
            return self._chance.choice(free)
        self._next_name += 1
        return f"c{self._next_name}"


def _long(type_: str) -> str:
    """Write a type as the catalogue does."""
    whole = {"timestamp": "timestamp without time zone", "timestamptz": "timestamp with time zone"}
    return whole.get(type_, type_.replace("varchar", "character varying"))


def _equal(columns: Sequence[Column], between: str) -> sql.Composed:
    """Write `"a" = %s::type` for each column."""
    return sql.SQL(between).join(
        sql.SQL("{} = {}").format(sql.Identifier(column.name), sql.SQL("%s::" + column.type)) for column in columns
    )
