"""Random lives of a Postgres table: transactions with DDL in them, and what each side sees of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

from cdc_sync.core.lineage.catalogue import Attribute, Stamp
from cdc_sync.core.model.positions import Commit, KafkaPosition, SourcePosition
from tests.laws.identity_course import NAME, Course, Row, State, Told, shown
from tests.laws.identity_model import KINDS, Col, Database, Drawer, Relation

Op: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Written:
    """Something in the transaction that is open."""

    lsn: int
    tag: str | None
    """None for a row."""
    object: str = ""
    table: str = ""
    relid: int = 0
    columns: tuple[Col, ...] | None = ()
    statement: str = ""


_NOBODY = Stamp(xid=3)
_Key: TypeAlias = tuple[int, int]
"""relid and attnum of a row of the catalogue."""


class Session:
    """A table's owner at work: transactions, what stands in the log of them, and what the catalogue shows."""

    def __init__(self, random: Random, *, reveal: bool) -> None:
        self.random = random
        self.draw = Drawer(random, reveal)
        self.database = Database()
        self.lsn = random.randrange(10_000, 20_000)
        self.last_commit: int | None = None
        self.open: list[_Written] = []
        self.rows: list[Row] = []
        self.told: list[Told] = []
        self.states: list[State] = []
        self.themes: list[str] = []
        self.statements: list[str] = []
        self.script: list[str] = []
        self.partitions = 2 if self.draw.chance(0.3) else 1
        self.offsets = [0] * self.partitions
        # Times and transaction numbers come from another source of chance: the histories stay as they are.
        self.chance = Random(self.lsn)
        self.now = 1_700_000_000_000_000
        self.rested = False
        self.last_xid = 700
        self.older_xids: list[int] = []
        self.to_the_millisecond = self.chance.random() < 0.3
        self.command = 0
        """The number of the open transaction's next command."""
        self.touched: list[tuple[_Key, int | None]] = []
        """Every row of the catalogue that the open transaction wrote, and by which command; attnum 0 is the name's."""
        self.stamps: dict[_Key, Stamp] = {}

    # what stands in the log

    def step(self) -> int:
        self.lsn += self.random.randrange(8, 900, 8)
        return self.lsn

    def commit(self) -> None:
        if self.draw.chance(0.15):  # another transaction, begun later, is committed before this one
            self.last_commit = self.step()
        commit = self.step()
        xid = self.pass_time()
        at = self.now - self.now % 1000 if self.to_the_millisecond else self.now
        for item in self.open:
            position = self.position(item.lsn)
            if item.tag is None:
                written_by = Commit(at=at, xid=xid)
                self.row_at(position, item.columns or (), known_at=commit, commit=written_by)
            else:
                self.told.append(
                    Told(
                        position=position,
                        tag=item.tag,
                        object=item.object,
                        table=item.table,
                        relid=item.relid,
                        columns=item.columns,
                        statement=item.statement,
                    )
                )
        self.open.clear()
        self.stamps.update((key, Stamp(xid=xid, at=self.now, command=command)) for key, command in self.touched)
        self.touched.clear()
        self.command = 0
        self.script.append("commit")
        self.last_commit = commit
        self.state()

    def pass_time(self) -> int:
        """Let some time pass until the next commit, and return the transaction's number.

        A round begins minutes to days after the one before. Within it half of the commits come within a second of the
        one before, one in twenty within two milliseconds. Now and then the number is a small one, of a transaction that
        wrote something else long before.
        """
        if self.rested:
            self.now += self.chance.randrange(60_000_000, 600_000_000_000)
            self.rested = False
        else:
            drawn = self.chance.random()
            self.now += self.chance.randrange(2_000 if drawn < 0.05 else 1_000_000 if drawn < 0.5 else 600_000_000)
        if self.older_xids and self.chance.random() < 0.03:
            return self.older_xids.pop(self.chance.randrange(len(self.older_xids)))
        skipped = self.chance.randrange(3)
        self.older_xids += range(self.last_xid + 1, self.last_xid + 1 + skipped)
        self.last_xid += 1 + skipped
        return self.last_xid

    def position(self, lsn: int) -> SourcePosition:
        return SourcePosition(kind="postgresql", parts=(lsn if self.last_commit is None else self.last_commit, lsn))

    def row_at(
        self,
        position: SourcePosition,
        columns: tuple[Col, ...],
        *,
        known_at: int,
        commit: Commit,
        snapshot: bool = False,
    ) -> None:
        partition = self.random.randrange(self.partitions)
        kafka = KafkaPosition(topic=NAME, partition=partition, offset=self.offsets[partition])
        self.offsets[partition] += 1
        self.rows.append(
            Row(
                position=position, kafka=kafka, snapshot=snapshot, columns=columns, known_at=known_at, commit=commit
            )
        )  # fmt: skip

    def state(self) -> None:
        relation = self.database.tables.get(NAME)
        relid = relation.oid if relation else 0
        state = State(
            position=SourcePosition(kind="postgresql", parts=(self.lsn, self.lsn)),
            at=self.now,
            relid=relid,
            attributes=None if relation is None else tuple(self.attributes(relation)),
            named=self.stamps.get((relid, 0), _NOBODY),
        )
        last = self.states[-1] if self.states else None
        if last is None or (last.relid, last.attributes, last.named) != (state.relid, state.attributes, state.named):
            self.states.append(state)

    def attributes(self, relation: Relation) -> Iterator[Attribute]:
        live = {column.number: column for column in relation.columns}
        for number in range(1, relation.last_number + 1):
            column, stamp = live.get(number), self.stamps.get((relation.oid, number), _NOBODY)
            if column is None:
                yield Attribute(number=number, stamp=stamp)
            else:
                type_, generated = KINDS[column.kind].postgres, column.generated
                yield Attribute(number=number, name=column.name, type=type_, stamp=stamp, generated=generated)

    def touch(self, number: int, relation: Relation | None = None, *, ahead: int = 0) -> None:
        """Write a row of the catalogue, by the next command or one that it leads to."""
        self.touched.append((((relation or self.table).oid, number), self.command + ahead))

    # statements

    @property
    def table(self) -> Relation:
        return self.database.tables[NAME]

    def told_of(self, tag: str, name: str, statement: str, *, member: str = "", commands: int = 1) -> None:
        self.command += commands
        relation = self.database.tables[name]
        object_ = f"public.{quoted(name)}" + (f".{quoted(member)}" if member else "")
        self.open.append(
            _Written(self.step(), tag, object_, name, relation.oid, tuple(relation.columns), statement)
        )  # fmt: skip
        self.said(statement)

    def said(self, statement: str) -> None:
        self.statements.append(statement)
        self.script.append(statement)

    def row(self) -> None:
        if NAME in self.database.tables:
            visible = shown(self.table.columns, snapshot=False, connector="postgresql")
            self.open.append(_Written(self.step(), None, columns=visible))
            self.command += 1
            self.script.append(f"delete from {NAME}")

    def add(self, name: str, kind: str, *, generated: bool = False) -> None:
        self.database.append(self.table, self.database.new_column(name, kind, generated=generated))
        commands = self.toasted(self.table) + (self.rewriting(self.table) if generated else 1)
        self.touch(self.table.last_number, ahead=1 if generated else 0)
        what = " generated always as (null) stored" if generated else ""
        statement = f"alter table t add {quoted(name)} {KINDS[kind].postgres}{what}"
        self.told_of("ALTER TABLE", NAME, statement, commands=commands)

    def drop(self, name: str) -> None:
        column = self.table.named(name)
        self.touch(column.number, ahead=1 if column.generated else 0)
        self.table.drop(name)
        commands = 2 if column.generated else 1
        self.told_of("ALTER TABLE", NAME, f"alter table t drop column {quoted(name)}", commands=commands)

    def rename(self, old: str, new: str) -> None:
        self.table.change(old, name=new)
        self.touch(self.table.named(new).number)
        self.told_of("ALTER TABLE", NAME, f"alter table t rename {quoted(old)} to {quoted(new)}", member=new)

    def retype(self, name: str) -> None:
        wider = KINDS[self.table.named(name).kind].wider
        if wider is not None:
            rewrites = KINDS[wider].postgres in ("integer", "bigint", "double precision")
            self.table.change(name, kind=wider)
            self.touch(self.table.named(name).number)
            commands = self.toasted(self.table) + (self.rewriting(self.table) if rewrites else 1)
            statement = f"alter table t alter {quoted(name)} type {KINDS[wider].postgres}"
            self.told_of("ALTER TABLE", NAME, statement, commands=commands)

    def create(self, name: str, columns: list[Col]) -> None:
        relation = self.database.create(name, columns)
        generated = {column.number for column in relation.columns if column.generated}
        for number in range(relation.last_number + 1):
            self.touch(number, relation, ahead=1 if number in generated else 0)
        commands = 3 + self.toasted(relation) + bool(generated)
        statement = f"create table {name} ({', '.join(map(_definition, columns))})"
        self.told_of("CREATE TABLE", name, statement, commands=commands)

    def toasted(self, relation: Relation) -> int:
        """Give a relation a place for long values if it needs one now, and return how many commands that takes."""
        needs = not relation.is_toasted and any(column.kind == "text" for column in relation.columns)
        relation.is_toasted = relation.is_toasted or needs
        return 4 if needs else 0

    def rewriting(self, relation: Relation) -> int:
        """Return how many commands it takes to write all rows of a relation anew."""
        return 16 if relation.is_toasted else 8

    def drop_table(self, name: str) -> None:
        relation = self.database.tables.pop(name)
        for number in range(relation.last_number + 1):
            self.touch(number, relation)
        generated = sum(column.generated for column in relation.columns)
        self.command += 5 + generated + (2 if relation.is_toasted else 0)
        statement = f"drop table {name}"
        self.open.append(_Written(self.step(), "DROP TABLE", f"public.{name}", name, relation.oid, None, statement))
        self.said(statement)

    def rename_table(self, old: str, new: str) -> None:
        self.database.tables[new] = self.database.tables.pop(old)
        self.touch(0, self.database.tables[new])
        self.told_of("ALTER TABLE", new, f"alter table {old} rename to {new}")

    # what is done

    def course(self) -> Course:
        return Course(
            connector="postgresql",
            rows=tuple(self.rows),
            told=tuple(self.told),
            states=tuple(self.states),
            themes=tuple(self.themes),
            statements=tuple(self.statements),
            script=tuple(self.script),
            final=tuple((name, tuple(relation.columns)) for name, relation in sorted(self.database.tables.items())),
            partitions=self.partitions,
            pick=self.random.randrange(2**30),
        )

    def begin(self) -> None:
        """Create the table; the connector streams from then on, or takes a snapshot later."""
        self.create(NAME, self.draw.columns(self.database))
        self.commit()
        if self.draw.chance(0.4):
            self.themes.append("created in the stream")
        else:
            self.themes.append("snapshot")
            for _ in range(self.random.choice((0, 0, 1, 3))):
                self.simple()()
            self.commit()
            self.told.clear()
            self.rows.clear()
            self.offsets = [0] * self.partitions
            self.last_commit = None
            at = self.position(self.step())
            columns = shown(self.table.columns, snapshot=True, connector="postgresql")
            # Most tables are old when a connector reads them first.
            self.now += self.chance.randrange(100_000_000_000 if self.chance.random() < 0.98 else 60_000_000)
            for _ in range(self.random.randint(1, 2)):
                self.row_at(at, columns, known_at=self.lsn, commit=Commit(at=self.now), snapshot=True)
            if self.draw.chance(0.5):
                self.row()
                self.commit()
            self.open.append(
                _Written(self.step(), "", f"public.{NAME}", NAME, self.table.oid, tuple(self.table.columns))
            )
            self.commit()
        if self.draw.chance(0.8):
            self.row()
            self.commit()

    def round(self, ops: list[Op]) -> None:
        """Carry statements out, in one transaction or one after the other; then write rows, or not."""
        self.rested = True
        rolled_back = self.draw.chance(0.08)
        together = rolled_back or self.draw.chance(0.4)
        saved, said, touched = self.database.saved(), len(self.statements), len(self.touched)
        for op in ops:
            op()
            if self.draw.chance(0.12):
                self.row()
            if not together:
                self.commit()
        if rolled_back:
            self.themes.append("rolled back")
            self.undo(saved, 0, said, touched)
            self.command = 0
            self.script.append("rollback")
        elif together:
            self.undone_part()
            self.commit()
        for _ in range(self.random.choice((0, 1, 1, 1, 2))):
            self.row()
            self.commit()

    def undone_part(self) -> None:
        """Do something behind a savepoint and take it back."""
        if self.draw.chance(0.1):
            saved, written, said = self.database.saved(), len(self.open), len(self.statements)
            touched = len(self.touched)
            self.script.append("savepoint undone")
            for _ in range(self.random.randint(1, 2)):
                self.simple()()
            self.row()
            self.undo(saved, written, said, touched)
            self.script.append("rollback to undone")
            self.themes.append("rolled back to a savepoint")

    def undo(self, saved: dict[str, Relation], written: int, said: int, touched: int) -> None:
        """Take back what was done; rows of the catalogue keep a trace of it, and no longer tell their command."""
        spoiled = {key for key, _ in self.touched[touched:]}
        self.database.tables = saved
        del self.open[written:], self.statements[said:], self.touched[touched:]
        self.touched = [(key, None if key in spoiled else command) for key, command in self.touched]
        for key in spoiled & self.stamps.keys():
            self.stamps[key] = replace(self.stamps[key], command=None)
        # From the last commit on already, so that readings tell less than they might.
        self.states[-1] = self.states[-1].without_commands(spoiled)

    def simple(self) -> Op:
        """Draw one statement; it chooses its column when it runs."""
        return self.random.choice((self.some_add, self.some_drop, self.some_rename, self.some_rename, self.some_retype))

    def some_add(self) -> None:
        hidden = self.draw.hides()
        name = self.draw.name(self.table, hidden=hidden)
        self.add(name, self.draw.kind(), generated=not hidden and self.draw.chance(0.04))

    def some_drop(self) -> None:
        for column in self.draw.pick(self.table):
            self.drop(column.name)

    def some_rename(self) -> None:
        for column in self.draw.pick(self.table):
            self.rename(column.name, self.draw.renamed(self.table, column))

    def some_retype(self) -> None:
        for column in self.draw.pick(self.table):
            self.retype(column.name)


def quoted(name: str) -> str:
    plain = name.isascii() and name.isidentifier() and name == name.lower() and name not in _RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


_RESERVED = frozenset(("order", "select", "to", "column"))


def _definition(column: Col) -> str:
    what = " primary key" if column.key else ""
    what = " generated always as (null) stored" if column.generated else what
    return f"{quoted(column.name)} {KINDS[column.kind].postgres}{what}"
