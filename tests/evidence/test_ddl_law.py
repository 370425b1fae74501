"""Whatever statements run, and whatever goes wrong with their records, no two columns are ever mistaken."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdc_sync.core.lineage.column_log import ColumnLog
from cdc_sync.core.lineage.ddl_log import DdlLog
from cdc_sync.core.lineage.records import SchemaChangeRecord, TableEntry
from tests.evidence.ddl_schema_changes import at, change, table

NAMES = ("a", "b", "c", "d", "E f", "g`h")
TABLES = ("t", "u", "_t_new", "_t_gho", "_old")


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


Ids = tuple[int, int]
"""A column's own number, and that of the column it goes on as since its table took the place of the original."""


@dataclass
class Col:
    name: str
    own: int
    id: int


@dataclass
class Tab:
    """A table of the model.

    `lineage` holds, for each id of a copied column, the id it is a copy of.
    """

    cols: list[Col]
    lineage: dict[int, int] = field(default_factory=dict)
    original: list[tuple[str, Ids]] | None = None

    @property
    def ids(self) -> list[tuple[str, Ids]]:
        return sorted((col.name, (col.own, col.id)) for col in self.cols)


def goes_on_as(ids: list[tuple[str, Ids]]) -> list[tuple[str, int]]:
    return [(name, id_) for name, (_, id_) in ids]


class Source:
    """A database that knows which column is which, without looking at any statement's text.

    `kin` leads from a column to one that it goes on as, also where only a part of the records lets one tell.
    """

    def __init__(self, rnd: random.Random, *, moving: bool = False) -> None:
        self.rnd = rnd
        self.moving = moving
        self.tabs: dict[str, Tab] = {}
        self.last: dict[str, list[tuple[str, Ids]]] = {}
        self.ids = 0
        self.kin: dict[int, int] = {}
        self.place = 100
        self.records: list[SchemaChangeRecord] = []
        self.truth: dict[int, dict[str, list[tuple[str, Ids]]]] = {}

    def new(self, name: str) -> Col:
        self.ids += 1
        return Col(name, self.ids, self.ids)

    def step(self) -> None:
        self.place += 1
        verbs: list[Callable[[], tuple[str, list[str]] | None]] = [self.create, self.alter, self.alter, self.alter]
        verbs += [self.alter, self.drop, self.rename, self.like, self.swap, self.noise]
        if self.moving:
            verbs = [self.create, self.alter, self.alter, self.drop, self.drop, self.swap, self.swap]
            verbs += [self.rename, self.like] * 4
        done = self.rnd.choice(verbs)()
        if done is not None:
            ddl, touched = done
            entries = {name: self.names(name) for name in touched}
            self.records.append(change(self.place, self.dressed(ddl), entries))
        self.truth[self.place] = {name: tab.ids for name, tab in self.tabs.items()}

    def names(self, name: str) -> list[str] | None:
        return [col.name for col in self.tabs[name].cols] if name in self.tabs else None

    def dressed(self, ddl: str) -> str:
        return self.rnd.choice(["{}", "/* x; y */ {}", "{} -- drop table t", "{};", "\n{}  # it's"]).format(ddl)

    def create(self) -> tuple[str, list[str]]:
        name, columns = self.rnd.choice(TABLES), self.rnd.sample(NAMES, self.rnd.randint(1, 4))
        if name in ("_t_new", "_t_gho") and "t" in self.tabs and self.rnd.random() < 0.7:
            columns = [col.name for col in self.tabs["t"].cols]
        there = name in self.tabs
        definition = ", ".join(f"{quoted(column)} int" for column in columns)
        if there and self.rnd.random() < 0.5:
            return f"create table if not exists {name} (z int)", [name]
        self.forget(name)
        self.tabs[name] = Tab([self.new(column) for column in columns])
        if name == "_t_new" and "t" in self.tabs and columns == [col.name for col in self.tabs["t"].cols]:
            self.copy_lineage("t", name)
        return f"create{' or replace' if there else ''} table {name} ({definition}, key k ({quoted(columns[0])}))", [
            name
        ]

    def like(self) -> tuple[str, list[str]] | None:
        free = [name for name in TABLES if name not in self.tabs]
        if not free or not self.tabs:
            return None
        name, original = self.rnd.choice(free), self.rnd.choice(sorted(self.tabs))
        self.tabs[name] = Tab([self.new(col.name) for col in self.tabs[original].cols])
        self.copy_lineage(original, name)
        return f"create table {name} like {original}", [name]

    def copy_lineage(self, original: str, name: str) -> None:
        pairs = zip(self.tabs[name].cols, self.tabs[original].cols, strict=True)
        self.tabs[name].lineage = {own.id: theirs.id for own, theirs in pairs}
        self.tabs[name].original = self.tabs[original].ids

    def drop(self) -> tuple[str, list[str]] | None:
        if not self.tabs:
            return None
        name = self.rnd.choice(sorted(self.tabs))
        self.forget(name)
        return f"drop table if exists {name}", [name]

    def forget(self, name: str) -> None:
        if name in self.tabs:
            self.last[name] = self.tabs.pop(name).ids

    def move(self, old: str, new: str) -> None:
        tab = self.tabs[old]
        self.forget(old)
        last = self.last.get(new)
        if tab.original is not None and last is not None:
            if self.kinds(tab.original) == self.kinds(last):
                for col in tab.cols:
                    self.kin[self.kind(col.own)] = self.kind(tab.lineage.get(col.id, col.id))
            # Not by their own numbers: the original may itself be a copy that goes on as an older one.
            if goes_on_as(tab.original) == goes_on_as(last):
                for col in tab.cols:
                    col.id = tab.lineage.get(col.id, col.id)
                tab.lineage, tab.original = {}, None
        self.tabs[new] = tab

    def kind(self, number: int) -> int:
        while (kin := self.kin.get(number, number)) != number:
            number = kin
        return number

    def kinds(self, ids: list[tuple[str, Ids]]) -> list[tuple[str, int]]:
        return [(name, self.kind(own)) for name, (own, _) in ids]

    def rename(self) -> tuple[str, list[str]] | None:
        free = [name for name in TABLES if name not in self.tabs]
        if not free or not self.tabs:
            return None
        old, new = self.rnd.choice(sorted(self.tabs)), self.rnd.choice(free)
        self.move(old, new)
        return self.rnd.choice([f"rename table {old} to {new}", f"alter table {old} rename to db.{new}"]), [new]

    def swap(self) -> tuple[str, list[str]] | None:
        copies = [name for name in ("_t_new", "_t_gho") if name in self.tabs]
        if not copies or "t" not in self.tabs or "_old" in self.tabs:
            return None
        copy = self.rnd.choice(copies)
        self.move("t", "_old")
        self.move(copy, "t")
        return f"rename table t to _old, db.{copy} to t", ["_old", "t"]

    def noise(self) -> tuple[str, list[str]]:
        name = self.rnd.choice(TABLES)
        ddl = self.rnd.choice([f"create index i on {name} (a)", f"truncate table {name}", "set names utf8"])
        return ddl, [name] if name in self.tabs else []

    def alter(self) -> tuple[str, list[str]] | None:
        if not self.tabs:
            return None
        name = self.rnd.choice(sorted(self.tabs))
        cols = self.tabs[name].cols
        clauses: list[str] = []
        untouched = [col.name for col in cols]
        free = [column for column in NAMES if column not in untouched]
        self.rnd.shuffle(untouched)
        kinds = [
            self.rnd.choice(["swap", "drop", "add", "rename", "change", "modify", "readd", "order"]) for _ in range(3)
        ]
        for kind in kinds[: self.rnd.randint(1, 3)]:
            if kind == "swap" and len(untouched) > 1:
                one, two = untouched.pop(), untouched.pop()
                form = self.rnd.choice(["rename column {} to {}", "change {} {} int"])
                clauses += [form.format(quoted(one), quoted(two)), form.format(quoted(two), quoted(one))]
                first, second = self.col(cols, one), self.col(cols, two)
                first.name, second.name = two, one
            elif kind in ("drop", "readd") and len(untouched) > 1 and len(cols) > 1:
                one = untouched.pop()
                cols.remove(self.col(cols, one))
                clauses.append(f"drop column {quoted(one)}")
                if kind == "readd":
                    clauses.append(f"add column {quoted(one)} text")
                    cols.append(self.new(one))
            elif kind == "add" and free:
                one = free.pop()
                cols.append(self.new(one))
                clauses.append(f"add column if not exists {quoted(one)} int default (1 + 2)")
            elif kind in ("rename", "change") and free and untouched:
                one, two = untouched.pop(), free.pop()
                self.col(cols, one).name = two
                form = "rename column {} to {}" if kind == "rename" else "change column {} {} decimal(10,2)"
                clauses.append(form.format(quoted(one), quoted(two)))
            elif kind == "modify" and untouched:
                one = untouched.pop()
                col = self.col(cols, one)
                cols.remove(col)
                cols.insert(0, col)
                clauses.append(f"modify {quoted(one)} int first")
        return f"alter table {name} {', '.join([*clauses, 'algorithm=copy'])}", [name]

    @staticmethod
    def col(cols: list[Col], name: str) -> Col:
        # The newest one: an old column of this name may have got another one in the same statement.
        return next(col for col in cols if col.name == name)


@dataclass
class Count:
    """How many pairs of columns were compared, and of how many the log said nothing."""

    told: int = 0
    unknown: int = 0


def compared(source: Source, log: ColumnLog, *, damaged: bool = False) -> Count:
    """Compare every two columns of one table at any two times; a wrong claim fails.

    A damaged log may not have seen that a copy goes on as an older table. It may take the copy for the beginning of
    what was copied from it later, which are kin; and two copies of one table, one dropped before the other was made,
    for two tables, which they are but for the original that was not seen.
    """
    count = Count()
    for name in TABLES:
        seen = []
        for place, tabs in source.truth.items():
            structure = log.at(table(name), at(place))
            if structure is not None and name in tabs:
                seen.append(({column.name: column.token for column in structure.columns}, dict(tabs[name])))
        for index, (tokens, ids) in enumerate(seen):
            for later_tokens, later_ids in seen[index : index + 4] + seen[-1:]:
                for column, token in tokens.items():
                    for later, later_token in later_tokens.items():
                        if column not in ids or later not in later_ids or token.era != later_token.era:
                            count.unknown += 1
                            continue
                        own, goes_on_as = ids[column]
                        later_own, later_goes_on_as = later_ids[later]
                        same = own == later_own or goes_on_as == later_goes_on_as
                        if damaged:
                            kin = source.kind(own) == source.kind(later_own)
                            same = own == later_own or (kin and token == later_token)
                        assert (token == later_token) == same, (
                            name,
                            column,
                            ids[column],
                            token,
                            later,
                            later_ids[later],
                            later_token,
                        )
                        count.told += 1
    return count


def history_of(seed: int, steps: int, *, moving: bool = False) -> Source:
    source = Source(random.Random(seed), moving=moving)
    for _ in range(steps):
        source.step()
    return source


def replay(records: list[SchemaChangeRecord]) -> DdlLog:
    log = DdlLog()
    for record in records:
        log.add(record)
    return log


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
@example(seed=1225, moving=False)
@example(seed=104, moving=True)
@example(seed=947, moving=True)
def test_a_whole_topic_tells_which_column_is_which(seed: int, moving: bool) -> None:
    source = history_of(seed, 40 if moving else 25, moving=moving)
    log = replay(source.records).log()
    compared(source, log)
    assert log.unread == ()
    for place, tabs in source.truth.items():
        for name, ids in tabs.items():
            structure = log.at(table(name), at(place))
            assert structure is not None
            assert {column.name for column in structure.columns} == {column for column, _ in ids}


def test_alterations_of_a_whole_topic_are_always_told() -> None:
    total = Count()
    for seed in range(200):
        source = history_of(seed, 25)
        count = compared(source, replay(source.records).log())
        total.told, total.unknown = total.told + count.told, total.unknown + count.unknown
    # Unknown are tables that came under another table's name.
    assert total.told > 100_000
    assert total.unknown < 0.25 * total.told


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_damaged_topics_tell_less_and_nothing_wrong(seed: int, moving: bool) -> None:
    source = history_of(seed, 40 if moving else 25, moving=moving)
    rnd = random.Random(seed)
    log = DdlLog()
    taken: list[SchemaChangeRecord] = []
    for record in source.records:
        match rnd.choice(["", "", "", "", "lost", "again", "unreadable", "misread", "unlisted", "run"]):
            case "lost":
                log.gap()
                continue
            case "again" if taken:
                log.add(rnd.choice(taken))
            case "run":
                for old in taken[-4:]:
                    log.add(old)
            case "unreadable":
                record = replace(record, ddl=f"frobnicate; {record.ddl}")
            case "misread":
                record = replace(record, tables=tuple(misread(entry, rnd) for entry in record.tables))
            case "unlisted":
                record = replace(record, tables=())
        log.add(record)
        taken.append(record)
    compared(source, log.log(), damaged=True)


def misread(entry: TableEntry, rnd: random.Random) -> TableEntry:
    """Let Debezium have missed a column or a rename."""
    if not entry.columns:
        return entry
    columns = list(entry.columns)
    place = rnd.randrange(len(columns))
    columns[place : place + 1] = [] if rnd.random() < 0.5 else [replace(columns[place], name="misread")]
    return replace(entry, columns=tuple(columns))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 24))
def test_a_source_that_begins_again_is_not_compared_with_itself_before(seed: int, back: int) -> None:
    """A server after a failover has other positions: those of the first one say nothing about its columns."""
    source = history_of(seed, 25)
    cut = len(source.records) // 2
    if not 0 < cut < len(source.records):
        return
    shift = source.records[cut].position.parts[1] - source.records[cut - 1].position.parts[1] + back
    moved = []
    for record in source.records[cut:]:
        place = record.position.parts[1] - shift
        moved.append(replace(record, position=at(place), ddl=record.ddl + " "))
    log = replay([*source.records[:cut], *moved]).log()
    highest = source.records[cut - 1].position.parts[1]
    for name in TABLES:
        for place in range(moved[0].position.parts[1], highest + 1):
            structure = log.at(table(name), at(place))
            assert structure is None or not structure.columns
