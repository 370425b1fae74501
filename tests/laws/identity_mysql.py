"""Random lives of a MySQL or MariaDB table, with the schema-change topic that Debezium writes beside it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from cdc_sync.core.lineage.records import ColumnEntry, SchemaChangeRecord, TableEntry
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from tests.laws.identity_course import DATABASE, NAME, Course, Row, shown
from tests.laws.identity_model import KINDS, Col, Database, Drawer, Relation
from tests.laws.identity_mysql_server import Impossible, altered
from tests.laws.identity_mysql_text import Clause, Writer


class Server:
    """A server's binlog and what Debezium makes of it; statements are carried out and logged one by one."""

    def __init__(self, random: Random, *, reveal: bool = False) -> None:
        self.random = random
        self.draw = Drawer(random, reveal)
        self.connector = random.choice(("mysql", "mariadb"))
        self.write = Writer(random, self.connector == "mariadb", DATABASE)
        self.database = Database()
        self.file, self.at = random.randrange(1, 12), 4
        self.rows: list[Row] = []
        self.changes: list[SchemaChangeRecord] = []
        self.themes: list[str] = []
        self.statements: list[str] = []
        self.partitions = 2 if self.draw.chance(0.3) else 1
        self.offsets = [0] * self.partitions

    @property
    def table(self) -> Relation:
        return self.database.tables[NAME]

    def step(self) -> SourcePosition:
        """Go on in the binlog, now and then to its next file."""
        self.at += self.random.randrange(40, 900)
        if self.draw.chance(0.04):
            self.file, self.at = self.file + 1, self.random.randrange(4, 400)
        return SourcePosition(kind="binlog", parts=(self.file, self.at, 0))

    # rows

    def row(self) -> None:
        if NAME in self.database.tables:
            self.row_at(self.step(), row=self.random.choice((0, 0, 1)))

    def row_at(self, position: SourcePosition, *, row: int = 0, snapshot: bool = False) -> None:
        file, at, _ = position.parts
        partition = self.random.randrange(self.partitions)
        kafka = KafkaPosition(topic=NAME, partition=partition, offset=self.offsets[partition])
        self.offsets[partition] += 1
        columns = shown(self.table.columns, snapshot=snapshot, connector=self.connector)
        here = SourcePosition(kind="binlog", parts=(file, at, row))
        self.rows.append(Row(position=here, kafka=kafka, snapshot=snapshot, columns=columns))

    # the schema-change topic

    def record(
        self,
        ddl: str,
        entries: Sequence[TableEntry] = (),
        *,
        position: SourcePosition | None = None,
        snapshot: bool = False,
        database: str | None = DATABASE,
    ) -> None:
        self.changes.append(
            SchemaChangeRecord(
                position=position or self.step(),
                kafka=KafkaPosition(topic="server", partition=0, offset=len(self.changes)),
                connector=self.connector,
                database=database,
                schema=None,
                ddl=ddl,
                snapshot=snapshot,
                tables=tuple(entries),
            )
        )

    def run(self, ddl: str, *entries: TableEntry) -> None:
        self.statements.append(ddl)
        self.record(ddl, entries)

    def entry(self, name: str, action: str = "ALTER") -> TableEntry:
        return entry_of(name, tuple(self.database.tables[name].columns), action)

    # statements

    def alter(self, *clauses: Clause, name: str = NAME, extra: Sequence[str] = ()) -> bool:
        """Carry out one ALTER TABLE; `extra` clauses change no column. Returns whether the server took it."""
        if not clauses and not extra:
            return False
        relation = self.database.tables[name]
        keys, names = {column.name for column in relation.columns if column.key}, relation.names()
        try:
            written = altered(self.database, relation, list(clauses), self.random)
        except Impossible:
            return False
        texts = [
            self.write.clause(
                clause, key=clause.old in keys, unless=clause.do != "add" or clause.old.casefold() not in names
            )
            for clause in written
        ]
        for text in extra:
            texts.insert(self.random.randrange(len(texts) + 1), text)
        self.run(self.write.alter(name, texts), self.entry(name))
        return True

    def create(self, name: str, columns: list[Col], *, head: str = "CREATE TABLE") -> None:
        relation = self.database.create(name, columns)
        self.run(self.write.create(name, tuple(relation.columns), head=head), self.entry(name, "CREATE"))

    def create_like(self, name: str, model: str, *, tool: str = "") -> None:
        self.database.create(name, list(self.database.tables[model].columns))
        text = f"create {tool}table {self.write.table(name)} like {self.write.table(model)}"
        self.run(text, self.entry(name, "CREATE"))

    def drop_table(self, name: str, *, unless: str = "") -> None:
        self.database.tables.pop(name, None)
        self.statements.append(f"DROP TABLE {unless}`{DATABASE}`.`{name}`")
        self.record(f"DROP TABLE {unless}`{DATABASE}`.`{name}`", [dropped(name)])

    def rename_tables(self, *pairs: tuple[str, str], tool: str = "") -> None:
        """Rename tables one after the other in one statement; Debezium writes a record for each pair, or one."""
        position, entries = self.step(), []
        verb = self.write.word("RENAME") + f" {tool}" + self.write.word("TABLE") + " "
        texts = []
        for old, new in pairs:
            self.database.tables[new] = self.database.tables.pop(old)
            entries.append(self.entry(new))
            texts.append(f"{self.write.table(old)} {self.write.word('TO')} {self.write.table(new)}")
        self.statements.append(verb + ", ".join(texts))
        if self.draw.chance(0.7):
            for text, entry in zip(texts, entries, strict=True):
                self.record(verb + text, [entry], position=position)
        else:
            self.record(self.statements[-1], entries, position=position)

    def snapshot(self) -> None:
        """Read the table: the topic then tells what is there, and the rows stand at the same position."""
        position = self.step()
        self.record("SET character_set_server=utf8mb4, collation_server=utf8mb4_general_ci", position=position,
                    snapshot=True, database="")  # fmt: skip
        names = sorted(self.database.tables)
        for name in names:
            text = f"DROP TABLE IF EXISTS `{DATABASE}`.`{name}`"
            self.record(text, [dropped(name)], position=position, snapshot=True)
        for text in (f"DROP DATABASE IF EXISTS `{DATABASE}`", f"CREATE DATABASE `{DATABASE}`", f"USE `{DATABASE}`"):
            self.record(text, position=position, snapshot=True)
        for name in names:
            lines = ",\n  ".join(self.write.definition(column) for column in self.database.tables[name].columns)
            text = f"CREATE TABLE `{name}` (\n  {lines}\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
            self.record(text, [self.entry(name, "CREATE")], position=position, snapshot=True)
        for _ in range(self.random.randint(1, 2)):
            self.row_at(position, snapshot=True)

    def course(self) -> Course:
        return Course(
            connector=self.connector,
            rows=tuple(self.rows),
            changes=tuple(self.changes),
            themes=tuple(self.themes),
            statements=tuple(self.statements),
            final=tuple((name, tuple(relation.columns)) for name, relation in sorted(self.database.tables.items())),
            partitions=self.partitions,
            pick=self.random.randrange(2**30),
        )


def entry_of(name: str, columns: tuple[Col, ...], action: str, *, database: str = DATABASE) -> TableEntry:
    return TableEntry(
        action=action,
        table=TableId(database=database, schema="", table=name),
        columns=tuple(ColumnEntry(name=column.name, type=KINDS[column.kind].entry) for column in columns),
    )


def dropped(name: str) -> TableEntry:
    return TableEntry(action="DROP", table=TableId(database=DATABASE, schema="", table=name), columns=None)
