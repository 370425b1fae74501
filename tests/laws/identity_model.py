"""Tables whose columns have identities of their own, as nobody but their source knows them.

Nothing here knows how identities are proven: the model plays DDL and remembers the truth, like a database's catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from cdc_sync.core.debezium.wire import WireBoolean, WireDate, WireDecimal, WireFloat, WireInteger, WireText, WireType


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A type as each side writes it; `wider` names one that it can become in place."""

    wire: WireType
    mysql: tuple[str, ...]
    entry: str
    postgres: str
    wider: str | None = None


KINDS = {
    "small": Kind(
        wire=WireInteger(bits=16), mysql=("smallint", "SMALLINT(6)"), entry="SMALLINT", postgres="smallint", wider="int"
    ),
    "int": Kind(
        wire=WireInteger(bits=32), mysql=("int", "INT(11)", "INTEGER"), entry="INT", postgres="integer", wider="big"
    ),
    "big": Kind(wire=WireInteger(bits=64), mysql=("bigint", "BIGINT(20)"), entry="BIGINT", postgres="bigint"),
    "float": Kind(wire=WireFloat(bits=32), mysql=("float",), entry="FLOAT", postgres="real", wider="double"),
    "double": Kind(
        wire=WireFloat(bits=64), mysql=("double", "DOUBLE PRECISION"), entry="DOUBLE", postgres="double precision"
    ),
    "price": Kind(
        wire=WireDecimal(precision=10, scale=2),
        mysql=("decimal(10,2)", "NUMERIC(10, 2)"),
        entry="DECIMAL(10,2)",
        postgres="numeric(10,2)",
        wider="amount",
    ),
    "amount": Kind(
        wire=WireDecimal(precision=14, scale=2),
        mysql=("decimal(14,2)",),
        entry="DECIMAL(14,2)",
        postgres="numeric(14,2)",
    ),
    "word": Kind(
        wire=WireText(),
        mysql=("varchar(20)", "VARCHAR(20) CHARACTER SET utf8mb4"),
        entry="VARCHAR(20)",
        postgres="character varying(20)",
        wider="phrase",
    ),
    "phrase": Kind(
        wire=WireText(), mysql=("varchar(60)",), entry="VARCHAR(60)", postgres="character varying(60)", wider="text"
    ),
    "text": Kind(wire=WireText(), mysql=("text", "TEXT"), entry="TEXT", postgres="text"),
    "flag": Kind(wire=WireBoolean(), mysql=("boolean", "BOOL"), entry="TINYINT(1)", postgres="boolean"),
    "day": Kind(wire=WireDate(), mysql=("date",), entry="DATE", postgres="date"),
}
COMMON = ("int", "int", "int", "word", "word", "text", "small", "big", "float", "price", "flag", "day")

HIDDEN = "secret_"
"""Columns whose names begin so are excluded in the connector."""
_WORDS = (
    *("a", "b", "c", "d", "e", "qty", "Total", "note", "userId", "created_at", "Order", "select", "first", "after"),
    *("key", "to", "column", "naïve", "a b", "c.d", "1st", "x;y", "state", "amount", "index", "rename", "it's", "q`q"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Col:
    """A column at one time.

    Attributes:
        identity: never another column's.
        number: Postgres' attnum; never another column's in one relation.
        generated: Postgres' connector shows it in snapshots only.
    """

    identity: int
    name: str
    kind: str
    number: int = 0
    key: bool = False
    generated: bool = False

    @property
    def is_excluded(self) -> bool:
        return self.name.startswith(HIDDEN)


@dataclass(slots=True)
class Relation:
    """A table without a name."""

    oid: int
    columns: list[Col]
    last_number: int = 0
    is_toasted: bool = False

    def copy(self) -> Relation:
        return Relation(self.oid, list(self.columns), self.last_number, self.is_toasted)

    def place(self, name: str) -> int:
        return next(place for place, column in enumerate(self.columns) if column.name == name)

    def named(self, name: str) -> Col:
        return self.columns[self.place(name)]

    def names(self) -> set[str]:
        return {column.name.casefold() for column in self.columns}

    def change(self, old: str, **changes: object) -> None:
        place = self.place(old)
        self.columns[place] = replace(self.columns[place], **changes)  # type: ignore[arg-type]

    def drop(self, name: str) -> None:
        del self.columns[self.place(name)]


@dataclass(slots=True)
class Database:
    """Named relations, and the counters that never go back."""

    tables: dict[str, Relation] = field(default_factory=dict)
    last_identity: int = 0
    last_oid: int = 16_384

    def new_column(self, name: str, kind: str, *, key: bool = False, generated: bool = False) -> Col:
        self.last_identity += 1
        return Col(identity=self.last_identity, name=name, kind=kind, key=key, generated=generated)

    def append(self, relation: Relation, column: Col) -> None:
        relation.last_number += 1
        relation.columns.append(replace(column, number=relation.last_number))

    def create(self, name: str, columns: list[Col]) -> Relation:
        self.last_oid += 7
        relation = Relation(self.last_oid, [])
        for column in columns:
            self.append(relation, column)
        self.tables[name] = relation
        return relation

    def saved(self) -> dict[str, Relation]:
        return {name: relation.copy() for name, relation in self.tables.items()}


@dataclass(slots=True)
class Drawer:
    """Draws names and columns; a name once used comes back now and then.

    Attributes:
        reveal: excluded columns may get names that are not excluded.
    """

    random: Random
    reveal: bool = False
    used: list[str] = field(default_factory=list)
    count: int = 0

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def hides(self) -> bool:
        """Whether the next column is excluded."""
        return self.chance(0.2 if self.reveal else 0.04)

    def name(self, relation: Relation | None = None, *, hidden: bool = False, reuse: float = 0.12) -> str:
        """Draw a name that no column of the relation has, not even in another case."""
        taken = relation.names() if relation is not None else set()
        if not hidden and self.used and self.chance(reuse):
            old = self.random.choice(self.used)
            if old.casefold() not in taken and not old.startswith(HIDDEN):
                return old
        while True:
            self.count += 1
            word = self.random.choice(_WORDS)
            name = word if self.count < 6 and self.chance(0.5) else f"{word}{self.count}"
            name = f"{HIDDEN}{name}" if hidden else name
            if name.casefold() not in taken and name not in self.used:
                self.used.append(name)
                return name

    def kind(self) -> str:
        return self.random.choice(COMMON)

    def columns(self, database: Database) -> list[Col]:
        """Draw what a new table has: a key first, or not first, then some others."""
        relation = Relation(0, [])
        for _ in range(self.random.randint(2, 6)):
            hidden = self.hides()
            column = database.new_column(
                self.name(relation, hidden=hidden), self.kind(), generated=not hidden and self.chance(0.05)
            )
            relation.columns.append(column)
        key = database.new_column(
            "id" if "id" not in relation.names() else self.name(relation), self.random.choice(("int", "big", "word")),
            key=True,
        )  # fmt: skip
        relation.columns.insert(0 if self.chance(0.8) else 1, key)
        return relation.columns

    def pick(self, relation: Relation, count: int = 1, *, keys: bool = False, same_kind: bool = False) -> list[Col]:
        """Draw columns that DDL may touch; an empty list if there are not so many."""
        free = [column for column in relation.columns if not column.generated and (keys or not column.key)]
        if not (self.chance(0.1) and (count == 1 or self.reveal)):
            free = [column for column in free if not column.is_excluded]
        if same_kind:
            kind = self.random.choice(free).kind if free else ""
            free = [column for column in free if column.kind == kind]
        return self.random.sample(free, count) if len(free) >= count else []

    def other_case(self, name: str) -> str:
        return name.swapcase() if name.swapcase().casefold() == name.casefold() else name

    def renamed(self, relation: Relation, column: Col) -> str:
        """Draw another name for a column: excluded ones stay excluded, unless they may be revealed."""
        return self.name(relation, hidden=column.is_excluded and not (self.reveal and self.chance(0.5)))
