"""One table that is altered and written to at random, and what is known of its columns at every moment."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass

from cdc_sync.core.model.positions import TableId
from tests.live.changes import CHANGES, Change, Table, rename_the_key
from tests.live.databases import SCHEMA, Database, Place
from tests.live.dialects import value
from tests.live.model import IDENTITIES, KEY, KEYS, Model
from tests.live.rewrites import REWRITES, add_to_the_key, make_anew, widen_the_key

_OF_A_LIFE = 10_000
"""More than the columns that a table has before it is made anew, which begins the catalogue's numbers again."""
_BETWEEN = 1.5
"""Seconds at most between two groups of changes."""
_FIRST = ("int", "text", "money", "float", "text", "int")
_CHANGES = CHANGES | REWRITES
_LONELY: tuple[Change, ...] = (rename_the_key, widen_the_key, add_to_the_key, make_anew)
"""What the connector asks the catalogue for must not change before it has asked."""


@dataclass(slots=True)
class State:
    """The columns from a place in the log on.

    Attributes:
        columns: names in order, each with the column's number for life.
        seen: rows were written while it was so.
        statement: what led to it.
    """

    place: Place
    columns: tuple[tuple[str, int], ...]
    statement: str
    seen: bool = False


class History:
    """Writes one table; everything random follows from the seed.

    Attributes:
        states: all states so far, those that were rolled back left out.
        statements: every DDL statement that was committed, to show when something is wrong.
        counts: what was done, by kind.
    """

    def __init__(self, database: Database, number: int, seed: int) -> None:
        """Create the table, with some rows."""
        self.database = database
        self.name = f"h{number}"
        self.seed = seed
        self.states: list[State] = []
        self.statements: list[str] = []
        self.counts: Counter[str] = Counter()
        self._chance = random.Random(seed)
        self._session = database.session()
        self._model = Model(table=self.name)
        self._keys: list[int] = []
        self._last_key = 0
        dialect = database.dialect(self._chance)
        self._table = Table(self._model, f"{SCHEMA}.{self.name}", dialect, self._chance)
        kinds = [KEY, *self._chance.sample(_FIRST, self._chance.randint(3, 6))]
        for place, kind in enumerate(kinds):
            self._model.add("id" if kind == KEY else f"c{place}", kind)
        self._execute(dialect.create(self._table.name, self._model.columns))
        self._note("create")
        for _ in range(self._chance.randint(2, 5)):
            self._insert()
        self._session.commit()

    def play(self, groups: int, *, connected: bool) -> None:
        """Alter the table some times, several changes at a time, with and without rows between.

        Args:
            groups: how many times.
            connected: the connector runs meanwhile.
        """
        for _ in range(groups):
            time.sleep(self._chance.uniform(0, _BETWEEN))
            self._group(connected)
        self._rows(1)
        self._session.commit()

    @property
    def table_id(self) -> TableId:
        """The table as events name it."""
        return self.database.table_id(self.name)

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _group(self, connected: bool) -> None:
        changes = self._chance.choices(
            list(_CHANGES), weights=list(_CHANGES.values()), k=self._chance.choice((1, 1, 2, 3))
        )
        alone = [change for change in changes if change in _LONELY and self.database.late_defaults]
        lonely = bool(alone) and connected
        changes = alone[:1] if lonely else [change for change in changes if change not in alone]
        self._table.defaults = not self.database.late_defaults or (connected and len(changes) == 1)
        if lonely:
            self.database.wait_seen(self._session.place())
        kept, states, keys = self._model.copy(), len(self.states), list(self._keys)
        statements = [text for change in changes for text in self._change(change)]
        self._rows(self._chance.choice((0, 1, 2, 4)) if not lonely else 1)
        if self.database.late_defaults and not lonely and self._chance.random() < 0.12:
            self._session.rollback()
            self._model = self._table.model = kept
            del self.states[states:]
            self._keys = keys
            self.counts["rolled back"] += 1
            return
        self._session.commit()
        self.statements += statements
        if self.database.late_defaults and (lonely or any(" default " in text for text in statements)):
            self._rows(1)
            self._session.commit()
            self.database.wait_seen(self._session.place())
        if self._chance.random() < 0.4:
            for _ in range(self._chance.randint(1, 3)):
                self._rows(self._chance.randint(1, 4))
                self._session.commit()

    def _change(self, change: Change) -> list[str]:
        statements = change(self._table)
        if statements is None:
            return []
        for statement in statements:
            self._execute(statement)
        if self._table.emptied:
            self._keys.clear()
            self._table.emptied = False
        self._note("; ".join(statements))
        self.counts[change.__name__.replace("_", " ")] += 1
        if self._chance.random() < 0.3:
            self._rows(1)
        return statements

    def _note(self, statement: str) -> None:
        """Remember the columns as they are now, and make sure that the database agrees."""
        catalogue = self._session.columns(self._table.name)
        ours = [column.name for column in self._model.columns]
        assert [name for name, _ in catalogue] == ours, f"seed {self.seed}: {statement}: {catalogue} {ours}"
        numbers = [
            column.number if attnum is None else _OF_A_LIFE * self._table.lives + attnum
            for column, (_, attnum) in zip(self._model.columns, catalogue, strict=True)
        ]
        columns = tuple(zip(ours, numbers, strict=True))
        self.states.append(State(place=self._session.place(), columns=columns, statement=statement))

    def _rows(self, count: int) -> None:
        for _ in range(count):
            action = self._chance.choices((self._update, self._delete, self._insert), weights=(4, 1, 6))[0]
            action()

    def _insert(self) -> None:
        self._last_key += 1
        given = [column for column in self._model.columns if column.kind in IDENTITIES or self._chance.random() < 0.8]
        names = ", ".join(self._table.dialect.quoted(column.name) for column in given)
        values = ", ".join(str(self._last_key) if c.kind in IDENTITIES else self._value(c.kind) for c in given)
        self._execute(f"insert into {self._table.name} ({names}) values ({values})")
        self._keys.append(self._last_key)
        self._written()

    def _update(self) -> None:
        if not self._keys:
            return self._insert()
        changed = self._chance.sample(self._model.others, self._chance.randint(1, 2))
        # MariaDB writes nothing for a row that stays as it was.
        self._execute(
            f"update {self._table.name} set "
            + ", ".join(f"{self._table.dialect.quoted(c.name)} = {self._value(c.kind)}" for c in changed)
            + f" where {self._key()} = {self._chance.choice(self._keys)}"
        )
        return None

    def _delete(self) -> None:
        if len(self._keys) <= 3:
            return self._insert()  # some event has to show what was altered before
        key = self._keys.pop(self._chance.randrange(len(self._keys)))
        self._execute(f"delete from {self._table.name} where {self._key()} = {key}")
        self._written()
        return None

    def _key(self) -> str:
        return self._table.dialect.quoted(next(c.name for c in self._model.columns if c.kind in IDENTITIES))

    def _value(self, kind: str) -> str:
        return "null" if kind not in KEYS and self._chance.random() < 0.2 else value(kind, self._chance)

    def _written(self) -> None:
        if self.states:
            self.states[-1].seen = True

    def _execute(self, statement: str) -> None:
        try:
            self._session.execute(statement)
        except Exception as error:
            raise AssertionError(f"seed {self.seed}: {statement}: {error}") from error
