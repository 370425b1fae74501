"""What a revision makes of a table's columns, and by which commits; a chain that is killed anywhere ends the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.migration import AlterTable, CreateTable, Migration, Repartition, RewriteTable
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.planning.explain import explain_properties
from cdc_sync.core.revisions.actions import (
    Action,
    AddColumn,
    Adopt,
    CastColumn,
    CommentColumn,
    DropColumn,
    FillColumn,
    MoveColumn,
    NewColumn,
    PartitionBy,
    Place,
    RenameColumn,
    SetProperties,
)
from cdc_sync.core.revisions.actions import CreateTable as Create
from cdc_sync.core.revisions.applied import Entry, Log, differences, from_json, to_json
from cdc_sync.core.revisions.compile import Compiled, Unfit, compiled
from cdc_sync.core.revisions.fills import Converted, Fill
from cdc_sync.core.revisions.revision import Revision
from cdc_sync.core.revisions.steps import (
    Held,
    Work,
    drift,
    finish_entry,
    may_lose,
    needs_rows,
    next_entry,
    pending,
    undo_entry,
    unfinished,
    work,
)
from cdc_sync.core.schema.evolve import apply_all
from cdc_sync.core.schema.expressions import Expression
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.schema.types import (
    DATE,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    DataType,
    DecimalType,
    Field,
    ListType,
    MapType,
    StructType,
)
from cdc_sync.errors import HistoryError, RefusedError

T = TargetName(namespace="s", name="t")
CREATE = Create(columns=tuple(NewColumn(name=name, type=INT32) for name in "abc"))
TYPES: Sequence[DataType] = (INT16, INT32, INT64, STRING, DecimalType(precision=12, scale=2))


def revision(*actions: Action, id_: str = "r", **said: object) -> Revision:
    return Revision(id=id_, table=T, parents=(), actions=actions, **said)  # type: ignore[arg-type]


def schema_of(**types: DataType) -> InternalSchema:
    columns = tuple(Column(id=number, name=name, type=type_) for number, (name, type_) in enumerate(types.items(), 1))
    return InternalSchema(columns=columns, primary_key=(), last_column_id=100)


def shape(schema: InternalSchema) -> list[tuple[str, DataType]]:
    return [(column.name, column.type) for column in schema.columns]


# One action.


@pytest.mark.parametrize(
    ("action", "names"),
    [
        (AddColumn(column=NewColumn(name="d", type=STRING)), "abcd"),
        (AddColumn(column=NewColumn(name="d", type=STRING), place=Place(first=True)), "dabc"),
        (AddColumn(column=NewColumn(name="d", type=STRING), place=Place(after="a")), "adbc"),
        (DropColumn(name="b"), "ac"),
        (RenameColumn(old="b", new="B"), "aBc"),
        (CastColumn(name="b", type=STRING), "abc"),
        (MoveColumn(name="a", place=Place(after="c")), "bca"),
        (MoveColumn(name="c", place=Place(first=True)), "cab"),
        (CommentColumn(name="a", comment="x"), "abc"),
    ],
)
def test_an_action_changes_the_columns(action: Action, names: str) -> None:
    before = schema_of(a=INT32, b=INT32, c=INT32)

    after, changes, *_ = compiled((action,), before)

    assert [column.name for column in after.columns] == list(names)
    assert apply_all(before, changes) == after
    assert {column.id for column in after.columns} <= {1, 2, 3, 101}


def test_members_of_a_new_type_keep_the_ids_of_their_names() -> None:
    point = StructType(fields=(Field(id=7, name="x", type=INT32), Field(id=8, name="y", type=INT32)))
    wanted = StructType(fields=(Field(id=0, name="y", type=INT64), Field(id=0, name="z", type=INT32)))

    found = compiled((CastColumn(name="p", type=wanted),), schema_of(p=point)).schema.columns[0].type
    assert isinstance(found, StructType)
    assert [(member.id, member.name, member.type) for member in found.fields] == [(8, "y", INT64), (101, "z", INT32)]


@pytest.mark.parametrize(
    ("actions", "index", "said"),
    [
        ((DropColumn(name="x"),), 0, "names column 'x', which the table does not have by then; it has a, b"),
        ((RenameColumn(old="a", new="x"), DropColumn(name="a")), 1, "names column 'a'"),
        ((AddColumn(column=NewColumn(name="A", type=INT32)),), 0, "gives the name 'A', and the table has 'a'"),
        ((RenameColumn(old="a", new="B"),), 0, "gives the name 'B', and the table has 'b'"),
        ((DropColumn(name="a"), DropColumn(name="b")), 1, "drops 'b', the only column"),
        ((CastColumn(name="a", type=DATE),), 0, "casts 'a' from INT to DATE, between which there is no cast"),
        ((MoveColumn(name="a", place=Place(after="a")),), 0, "names column 'a'"),
        ((CREATE,), 0, "has a table already"),
        (
            (AddColumn(column=NewColumn(name="c", type=INT32), fill_sql="a + b"), DropColumn(name="b")),
            0,
            "fills from column 'b', which the revision drops; drop it in the next one",
        ),
        (
            (AddColumn(column=NewColumn(name="c", type=INT32), fill_sql="a"), CastColumn(name="a", type=STRING)),
            0,
            "fills from a column whose type the revision changes",
        ),
        ((AddColumn(column=NewColumn(name="c", type=INT32), fill_sql="c + 1"),), 0, "reads column 'c'"),
        ((DropColumn(name="a"), Adopt()), 1, "has a table already"),
    ],
)
def test_what_the_columns_do_not_allow_is_refused(actions: tuple[Action, ...], index: int, said: str) -> None:
    with pytest.raises(Unfit) as found:
        compiled(actions, schema_of(a=INT32, b=INT32))

    assert said in str(found.value)
    assert found.value.index == index


@pytest.mark.parametrize(
    ("divided", "said"),
    [
        ("day(x)", "is partitioned by day(x), and there is no column 'x'"),
        ("day(a)", "is partitioned by day(a), which a column of type INT cannot be"),
    ],
)
def test_a_table_is_divided_by_columns_that_it_has(divided: str, said: str) -> None:
    with pytest.raises(Unfit) as found:
        compiled((replace(CREATE, partitioning=Partitioning.parse([divided])),), None)

    assert str(found.value) == said


def test_a_table_is_adopted_with_the_ids_that_it_has() -> None:
    found = schema_of(a=INT32, b=STRING)

    assert compiled((Adopt(columns=(NewColumn(name="b", type=STRING),)),), None, found) == Compiled(found)
    for action, there, said in (
        (Adopt(), None, "names a table that the lake does not have"),
        (Adopt(columns=(NewColumn(name="x", type=INT32),)), found, "expects a column 'x'; the table has a, b"),
        (Adopt(columns=(NewColumn(name="a", type=INT64),)), found, "expects 'a' to be BIGINT; it is INT"),
        (DropColumn(name="a"), found, "is the first of its table"),
    ):
        with pytest.raises(Unfit, match=said):
            compiled((action,), None, there)


# A chain, and a lake in which only stamps, columns and fills are real.


@dataclass
class Lake:
    """One table as a format keeps it: each commit is whole, or was never made; all may be repeated."""

    held: Held | None = None
    filled: set[int] = field(default_factory=set)
    entries: list[Entry] = field(default_factory=list)

    @property
    def log(self) -> Log:
        return Log(table=T, entries=tuple(self.entries)).upto(self.held.version if self.held else None)

    def begin(self, entry: Entry) -> None:
        self.entries[entry.number - 1 :] = [entry]

    def commit(self, step: Migration) -> None:
        if self.held is not None and (self.held.version, self.held.rows) == (step.version, step.rows):
            return
        for item in step.steps:
            match item:
                case CreateTable():
                    assert self.held is None
                case AlterTable(steps=changes):
                    assert self.held is not None
                    made = apply_all(self.held.columns, [change for _, change in changes])
                    assert made.columns == step.schema.columns
                case RewriteTable():
                    self.filled |= {column.id for column in item.filled}
                case _:
                    raise AssertionError(item)
        self.held = Held(columns=step.schema, version=step.version, rows=step.rows)

    def carry_out(self, entry: Entry, chance: Random, *, kills: bool = True) -> bool:
        """Do it, or be killed on the way; return whether it came to the end."""
        log, rows = self.log, self.held.rows if self.held else None
        self.begin(entry)
        return all(
            not (kills and chance.random() < 0.3) and step() is None and not (kills and chance.random() < 0.3)
            for step in self.steps(work(entry, log, rows, ICEBERG), entry)
        )

    def steps(self, todo: Work, entry: Entry) -> list[Callable[[], None]]:
        """Return the commits of a migrator: the columns, the rows, and the stamp that says that those are there."""
        found: list[Callable[[], None]] = [] if todo.columns is None else [partial(self.commit, todo.columns)]
        if todo.fill is not None:
            found += [partial(self.fill, todo.fill)]
        if todo.columns is None or todo.fill is not None:
            found += [partial(self.complete, entry.number)]
        return found

    def fill(self, fill: Fill) -> None:
        assert self.held is not None
        assert (self.held.columns, self.held.version) == (fill.schema, fill.number)
        there = {column.id for column in fill.schema.columns}
        assert all(there >= expression.ids for _, expression in fill.values if expression is not None)
        self.filled |= {id_ for id_, _ in fill.values}

    def complete(self, number: int) -> None:
        assert self.held is not None
        assert self.held.version == number
        self.held = replace(self.held, rows=number)

    def finish(self, chance: Random) -> Log:
        """As every start does: first what is left of the newest entry."""
        while self.held is not None and self.held.version is not None and self.held.rows != self.held.version:
            log = self.log
            entry = log.entries[-1]
            for step in self.steps(work(entry, log, self.held.rows, ICEBERG), entry):
                if chance.random() < 0.3:
                    break
                step()
        return self.log


def actions_for(schema: InternalSchema, chance: Random, number: int) -> Action:
    names = [column.name for column in schema.columns if not column.name.startswith("__cdc_sync")]
    name = chance.choice(names)
    fill = chance.choice((None, 5))
    new = AddColumn(
        column=NewColumn(name=f"n{number}", type=INT32),
        place=chance.choice((Place(), Place(first=True), Place(after=name))),
        fill=fill,
        fill_sql=None if fill or chance.random() < 0.5 else f"{name} || 'x'",
    )
    kind = chance.randrange(6)
    if kind == 0 and len(names) > 1:
        return DropColumn(name=name)
    if kind == 1:
        return RenameColumn(old=name, new=f"m{number}")
    if kind == 2:
        return CastColumn(name=name, type=chance.choice(TYPES), lost="null", way=chance.choice(("exchange", "expand")))
    if kind == 3 and len(names) > 1:
        return MoveColumn(name=name, place=Place(first=True))
    return CommentColumn(name=name, comment=str(number)) if kind == 4 else new


def chain(chance: Random) -> list[Revision]:
    revisions = [revision(CREATE, id_="0")]
    schema = compiled((CREATE,), None).schema
    for number in range(1, chance.randint(2, 7)):
        actions: list[Action] = []
        revisions_end = schema
        for part in range(chance.randint(1, 3)):
            action = actions_for(schema, chance, number * 10 + part)
            try:
                compiled((*actions, action), revisions_end)
            except Unfit:
                continue  # it takes away what an earlier one fills from
            schema = compiled((action,), schema).schema
            actions.append(action)
        revisions.append(
            revision(*(actions or [CommentColumn(name=schema.columns[0].name, comment="")]), id_=str(number))
        )
    return revisions


@settings(max_examples=300)
@given(st.integers(min_value=0))
def test_a_chain_that_is_killed_anywhere_ends_as_one_that_is_not(seed: int) -> None:
    chance = Random(seed)
    revisions = chain(chance)
    calm, broken = Lake(), Lake()
    for item in revisions:
        assert calm.carry_out(next_entry(item, calm.log, calm.held), chance, kills=False)
    while left := pending(revisions, broken.finish(chance)):
        item = left[0]
        broken.carry_out(next_entry(item, broken.log, broken.held), chance)

    assert broken.entries == calm.entries
    assert broken.held == calm.held
    assert broken.held is not None
    assert broken.held.rows == broken.held.version == len(revisions)
    last = calm.entries[-1].schema
    created = {column.id for column in calm.entries[0].schema.columns}
    due = {column.id for column in last.columns if column.initial is not None} - created
    due |= {id_ for entry in calm.entries for id_, _ in entry.computed} & {column.id for column in last.columns}
    assert due <= broken.filled
    assert due <= calm.filled
    assert [from_json(to_json(entry), "x") for entry in calm.entries] == calm.entries


@settings(max_examples=300)
@given(st.integers(min_value=0))
def test_what_is_taken_back_and_applied_again_is_as_it_was(seed: int) -> None:
    chance = Random(seed)
    revisions, lake = chain(chance), Lake()
    for item in revisions:
        lake.carry_out(next_entry(item, lake.log, lake.held), chance, kills=False)
    assert lake.held is not None
    before = lake.held
    try:
        undone = undo_entry(lake.log, revisions[-1])
    except RefusedError:
        return
    lake.carry_out(undone, chance, kills=False)

    assert [item.revision for item in lake.log.in_effect] == [item.id for item in revisions[:-1]]
    assert shape(lake.held.columns) == shape(lake.entries[len(revisions) - 2].schema)
    assert pending(revisions, lake.log) == (revisions[-1],)
    lake.carry_out(next_entry(revisions[-1], lake.log, lake.held), chance, kills=False)
    assert shape(lake.held.columns) == shape(before.columns)
    ids = [column.id for entry in lake.entries for column in entry.schema.columns]
    assert lake.held.columns.last_column_id >= max(ids)


def _applied(*revisions: Revision, found: InternalSchema | None = None) -> Log:
    lake = Lake(held=None if found is None else Held(columns=found))
    for item in revisions:
        lake.carry_out(next_entry(item, lake.log, lake.held), Random(1), kills=False)
    return lake.log


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (DropColumn(name="a"), "it dropped column a, whose values are gone"),
        (CastColumn(name="a", type=DecimalType(precision=3, scale=0)), None),
        (CastColumn(name="a", type=INT64), None),
        (CastColumn(name="a", type=INT8), None),
        (CastColumn(name="a", type=STRING), None),
    ],
)
def test_what_lost_nothing_can_be_taken_back(action: Action, said: str | None) -> None:
    last = revision(action, id_="2")
    log = _applied(revision(CREATE, id_="1"), last)

    if said is None:
        assert undo_entry(log, last).undoes
    else:
        with pytest.raises(RefusedError, match=said):
            undo_entry(log, last)


def test_a_cast_by_which_two_values_may_have_become_one_is_not_taken_back() -> None:
    day = revision(CastColumn(name="d", type=DATE), id_="2")
    log = _applied(revision(Adopt(), id_="1"), day, found=schema_of(d=STRING))

    with pytest.raises(RefusedError, match="values of d may not be what they were before it"):
        undo_entry(log, day)


def test_the_first_revision_and_an_irreversible_one_stay() -> None:
    first, last = revision(CREATE, id_="1"), revision(CommentColumn(name="a", comment="x"), id_="2", irreversible="no")

    with pytest.raises(RefusedError, match=r"it made s\.t, which stays as it is"):
        undo_entry(_applied(first), first)
    with pytest.raises(RefusedError, match="it is irreversible: no"):
        undo_entry(_applied(first, last), last)
    adopted = revision(Adopt(), id_="1")
    with pytest.raises(RefusedError, match="it adopted"):
        undo_entry(_applied(adopted, found=schema_of(a=INT32)), adopted)


def test_each_way_takes_the_commits_that_it_needs() -> None:
    log = _applied(revision(CREATE, id_="1"))

    def kinds(action: Action) -> list[str]:
        todo = work(next_entry(revision(action), log, None), log, 1, ICEBERG)
        columns = () if todo.columns is None else todo.columns.steps
        fills = () if todo.fill is None else (value for _, value in todo.fill.values)
        return [type(step).__name__ for step in columns] + [type(value).__name__ for value in fills]

    new = NewColumn(name="d", type=INT32)
    assert kinds(AddColumn(column=new)) == ["AlterTable"]
    assert kinds(AddColumn(column=new, fill=5)) == ["AlterTable", "NoneType"]
    assert kinds(AddColumn(column=new, fill_sql="a + 1")) == ["AlterTable", "Expression"]
    assert kinds(CastColumn(name="a", type=INT64)) == ["AlterTable"]
    assert kinds(CastColumn(name="a", type=STRING)) == ["RewriteTable"]
    filled = work(next_entry(revision(AddColumn(column=new, fill=5)), log, None), log, 1, ICEBERG)
    assert filled.columns is not None
    assert (filled.columns.version, filled.columns.rows) == (2, 1)
    created = next_entry(revision(replace(CREATE, partitioning=Partitioning.parse(["a"]))), Log(table=T), None)
    made = work(created, Log(table=T), None, ICEBERG)
    assert made.columns is not None
    assert made.fill is None
    assert [type(step).__name__ for step in made.columns.steps] == ["CreateTable"]


def test_only_casts_that_may_lose_a_value_are_looked_at() -> None:
    log = _applied(revision(Adopt(), id_="1"), found=schema_of(a=STRING, b=INT32))

    def looked_at(*actions: Action) -> list[str]:
        return [column.name for column, _ in may_lose(next_entry(revision(*actions), log, None), log)]

    assert looked_at(CastColumn(name="a", type=INT32), CastColumn(name="b", type=INT64)) == ["a"]
    assert looked_at(CastColumn(name="b", type=STRING)) == []
    assert looked_at(CastColumn(name="a", type=INT32, lost="null")) == []
    assert may_lose(next_entry(revision(CREATE), Log(table=T), None), Log(table=T)) == ()


@pytest.mark.parametrize(("lost", "refuses"), [("refuse", True), ("null", False)])
def test_rows_are_written_anew_without_a_loss_unless_the_revision_says_so(
    lost: Literal["refuse", "null"], refuses: bool
) -> None:
    log = _applied(revision(Adopt(), id_="1"), found=schema_of(a=STRING))
    entry = next_entry(revision(CastColumn(name="a", type=INT32, lost=lost)), log, None)

    todo = work(entry, log, 1, ICEBERG)

    assert todo.columns is not None
    assert todo.fill is None
    (step,) = todo.columns.steps
    assert isinstance(step, RewriteTable)
    assert step.refuses_lost is refuses


def test_what_rows_are_still_to_be_filled_from_is_kept_until_they_are() -> None:
    new = AddColumn(column=NewColumn(name="d", type=INT32), fill_sql="a")
    log = _applied(revision(CREATE, id_="1"))
    entry = next_entry(revision(new, RenameColumn(old="a", new="e"), id_="2"), log, None)
    log = Log(table=T, entries=(*log.entries, entry))

    def waits(action: Action) -> bool:
        return needs_rows(next_entry(revision(action), log, None))

    assert [waits(action) for action in (DropColumn(name="e"), CastColumn(name="e", type=STRING))] == [True, True]
    assert not waits(RenameColumn(old="e", new="f"))
    later = next_entry(revision(RenameColumn(old="e", new="f"), id_="3"), log, None)
    fill = work(later, log, 1, ICEBERG).fill
    assert fill is not None
    ((id_, value),) = fill.values
    assert isinstance(value, Expression)
    assert (id_, value.sql(fill.schema)) == (4, "(`f`)")


# A column in the place of another one.


def expand(name: str, type_: DataType, lost: Literal["refuse", "null"] = "refuse") -> CastColumn:
    return CastColumn(name=name, type=type_, lost=lost, way="expand")


def test_a_column_of_another_type_takes_the_place_of_the_old_one_until_that_is_finished() -> None:
    lake, chance = Lake(held=Held(columns=schema_of(a=STRING, b=INT32, c=INT32))), Random(1)
    revisions = [
        revision(Adopt(), id_="0"),
        revision(expand("a", INT64), id_="1"),
        revision(RenameColumn(old="b", new="d"), id_="2"),
    ]
    for item in revisions[:2]:
        lake.carry_out(next_entry(item, lake.log, lake.held), chance, kills=False)

    assert lake.held is not None
    assert [(column.name, column.id) for column in lake.held.columns.columns] == [
        ("a", 101),
        ("b", 2),
        ("c", 3),
        ("__cdc_sync_was_1", 1),
    ]
    assert lake.log.entries[-1].computed == ((101, Converted(id=1)),)
    assert may_lose(lake.log.entries[-1], Log(table=T, entries=lake.log.entries[:1])) == (
        (schema_of(a=STRING).columns[0], INT64),
    )
    with pytest.raises(RefusedError, match="rows written since have their values in the new a only"):
        undo_entry(lake.log, revisions[1])
    lake.carry_out(next_entry(revisions[2], lake.log, lake.held), chance, kills=False)
    assert [column.name for column in unfinished(lake.log)] == ["__cdc_sync_was_1"]
    finish = finish_entry(lake.log)
    assert finish is not None
    assert from_json(to_json(finish), "x") == finish
    lake.carry_out(finish, chance, kills=False)

    assert [(column.name, column.id) for column in lake.held.columns.columns] == [("a", 101), ("d", 2), ("c", 3)]
    assert finish_entry(lake.log) is None
    assert [entry.revision for entry in lake.log.in_effect] == ["0", "1", "2"]
    lake.carry_out(undo_entry(lake.log, revisions[2]), chance, kills=False)
    assert [column.name for column in lake.held.columns.columns] == ["a", "b", "c"]
    with pytest.raises(RefusedError):
        undo_entry(lake.log, revisions[1])


def test_what_is_expanded_is_no_list_and_can_be_cast() -> None:
    before = schema_of(a=STRING, b=ListType(element_id=9, element=INT32), d=DATE)

    def said(action: Action) -> str:
        with pytest.raises(Unfit) as found:
            compiled((action,), before)
        return str(found.value)

    assert (
        said(expand("b", ListType(element_id=0, element=STRING)))
        == "expands 'b', which is a list, map or struct; say way: exchange"
    )
    assert said(expand("d", INT32)).startswith("casts 'd' from DATE to INT, between which there is no cast")
    for name in ("__cdc_sync_was_1", "`__cdc_sync_was_1`"):
        with pytest.raises(Unfit, match="names '__cdc_sync_was_1', which cdc_sync keeps; `cdc-sync migrate finish`"):
            compiled((expand("a", INT32), DropColumn(name=name)), before)
    exchange = revision(CastColumn(name="a", type=INT32))
    assert '"way"' not in exchange.text, "what was applied before there were ways is not edited by that"
    assert exchange.digest != revision(expand("a", INT32)).digest


# What a table is divided by.


def test_a_table_is_divided_in_another_way_before_the_stamp_and_back_again() -> None:
    by_a, by_b = (Partitioning.parse([text]) for text in ("bucket(4, a)", "b"))
    first, last = revision(CREATE, id_="1"), revision(PartitionBy(partitioning=by_b), id_="2")
    log = _applied(first)
    entry = next_entry(last, log, Held(columns=log.entries[0].schema, version=1, rows=1, partitioning=by_a))

    todo = work(entry, log, 1, ICEBERG)
    assert todo.columns is not None
    assert todo.columns.steps[0] == Repartition(before=by_a, after=by_b)
    assert [type(step).__name__ for step in todo.columns.steps] == ["Repartition", "AlterTable"]
    assert todo.columns.rows == 2
    assert from_json(to_json(entry), "x") == entry
    log = Log(table=T, entries=(*log.entries, entry))
    back = work(undo_entry(log, last), log, 2, ICEBERG).columns
    assert back is not None
    assert back.steps[0] == Repartition(before=by_b, after=by_a)
    for actions, said in (
        ((PartitionBy(partitioning=by_a), DropColumn(name="b")), "stands beside other actions"),
        ((DropColumn(name="b"), PartitionBy(partitioning=by_a)), "stands beside other actions"),
        ((PartitionBy(partitioning=Partitioning.parse(["x"])),), "is partitioned by x, and there is no column 'x'"),
    ):
        with pytest.raises(Unfit, match=said):
            compiled(actions, log.entries[0].schema)


# Old columns that are filled.


def test_an_old_column_is_filled_where_it_is_null_and_that_is_not_taken_back() -> None:
    first = revision(CREATE, id_="1")
    last = revision(FillColumn(name="b", sql="a"), FillColumn(name="a", sql="b + 1"), id_="2")
    log = _applied(first)
    entry = next_entry(last, log, Held(columns=log.entries[0].schema, version=1, rows=1))

    todo = work(entry, log, 1, ICEBERG)
    assert todo.columns is not None
    assert [type(step).__name__ for step in todo.columns.steps] == ["AlterTable"]
    assert (todo.columns.version, todo.columns.rows) == (2, 1)
    assert todo.fill is not None
    assert [id_ for id_, _ in todo.fill.values] == [2, 1], "in the order of the file"
    assert from_json(to_json(entry), "x") == entry
    assert needs_rows(entry)
    with pytest.raises(RefusedError, match="it filled b, and what was NULL is not known"):
        undo_entry(Log(table=T, entries=(*log.entries, entry)), last)
    for action, said in (
        (FillColumn(name="x", sql="a"), "names column 'x'"),
        (FillColumn(name="a", sql="x"), "reads column 'x'"),
    ):
        with pytest.raises(Unfit, match=said):
            compiled((action,), log.entries[0].schema)


# What a table has as properties.


def test_properties_are_set_with_the_stamp_and_go_back_to_what_they_were() -> None:
    first = revision(CREATE, id_="1")
    last = revision(SetProperties(values=(("comment", "sales"), ("old", None))), id_="2")
    log = _applied(first)
    before = (("comment", None), ("old", "x"))
    entry = next_entry(last, log, Held(columns=log.entries[0].schema, version=1, rows=1, properties=before))

    assert from_json(to_json(entry), "x") == entry
    todo = work(entry, log, 1, ICEBERG).columns
    assert todo is not None
    assert (todo.properties, todo.rows) == ((("comment", "sales"), ("old", None)), 2)
    assert explain_properties(todo.properties, T) == (
        "ALTER TABLE s.t SET TBLPROPERTIES ('comment' = 'sales')",
        "ALTER TABLE s.t UNSET TBLPROPERTIES ('old')",
    )
    back = work(undo_entry(Log(table=T, entries=(*log.entries, entry)), last), log, 1, ICEBERG).columns
    assert back is not None
    assert back.properties == before
    with pytest.raises(Unfit, match="stands beside other actions"):
        compiled((DropColumn(name="a"), *last.actions), log.entries[0].schema)


# What does not fit together.


def test_an_edited_file_is_told_with_the_difference_and_a_missing_one_too() -> None:
    first, last = revision(CREATE, id_="1"), revision(CommentColumn(name="a", comment="x"), id_="2")
    log = _applied(first, last)
    edited = replace(last, actions=(CommentColumn(name="a", comment="y"),), file="f.yaml")

    assert differences(log, {"1": first, "2": last}) == ()
    (said,) = differences(log, {"1": first, "2": edited})
    assert said.startswith("2 does something else than when it was applied:\n--- applied\n+++ f.yaml\n")
    assert '-    "comment": "x",' in said
    assert '+    "comment": "y",' in said
    assert differences(log, {"1": first}) == ("2 was applied to s.t, and its file is gone",)


def test_a_log_of_before_and_a_damaged_one_are_refused() -> None:
    log = _applied(revision(CREATE, id_="1"))

    with pytest.raises(HistoryError, match="it is stamped with 2, and its log ends with 1"):
        log.upto(2)
    with pytest.raises(HistoryError, match=r"entry 1 of s\.t is at place 2"):
        Log(table=T, entries=(*log.entries, *log.entries))
    with pytest.raises(HistoryError, match="Cannot read here"):
        from_json({"table": ["s", "t"]}, "here")


def test_columns_that_somebody_else_changed_are_told() -> None:
    inner = StructType(fields=(Field(id=50, name="x", type=INT8),))
    wide = StructType(fields=(Field(id=51, name="x", type=INT32),))
    lists = ListType(element_id=60, element=INT16), ListType(element_id=61, element=INT32)
    maps = (
        MapType(key_id=70, key=STRING, value_id=71, value=INT16),
        MapType(key_id=72, key=STRING, value_id=73, value=INT32),
    )

    assert (
        drift(schema_of(a=INT8, p=inner, l=lists[0], m=maps[0]), schema_of(l=lists[1], m=maps[1], a=INT32, p=wide))
        is None
    )
    assert drift(schema_of(a=INT32, b=INT32), schema_of(b=STRING, c=INT32)) == (
        "a is gone, c was added, b has another type"
    )
    assert drift(schema_of(p=inner), schema_of(p=StructType(fields=()))) == "p has another type"
