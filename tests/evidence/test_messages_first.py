"""What a first message proves about the columns before it, against a table that really had a history."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cdc_sync.core.lineage.column_log import LoggedColumn, Structure, Token
from cdc_sync.core.lineage.message_first import before_first
from cdc_sync.core.lineage.message_query import Alteration, alterations
from cdc_sync.core.lineage.stated import NULL
from cdc_sync.core.model.positions import SourcePosition, TableId

ERA = ("pg", "shop")


def structure(columns: dict[int, str]) -> Structure:
    return Structure(
        table=TableId(database="shop", schema="inv", table="t"),
        position=SourcePosition(kind="postgresql", parts=(1, 2)),
        columns=tuple(
            LoggedColumn(name=name, token=Token(era=ERA, number=(7, number)))
            for number, name in sorted(columns.items())
        ),
        statement="",
    )


def told(
    columns: dict[int, str], query: str, *names: str, column: str | None = None, complete: bool = False
) -> dict[str, int] | None:
    found = before_first(structure(columns), query, names, column=column, complete=complete)
    if found is None:
        return None
    # 0: it is gone, and which number it had is not certain
    return {name: token.number[1] if token.number[0] == 7 else 0 for name, token in found.items()}  # type: ignore[index]


SWAP = "begin; alter table inv.t rename a to tmp; alter table inv.t rename b to a; alter table inv.t rename tmp to b"


@pytest.mark.parametrize(
    ("after", "query", "names", "column", "expected"),
    [
        ({1: "id", 2: "b"}, "alter table inv.t rename a to b", "id a", "b", {"id": 1, "a": 2}),
        ({1: "id", 2: "tmp", 3: "b"}, SWAP, "id a b", "tmp", {"id": 1, "a": 2, "b": 3}),
        ({1: "id", 2: "tmp", 3: "b"}, "call swap()", "id a b", "tmp", {"id": 1, "a": 2, "b": 3}),
        ({1: "id", 2: "a", 3: "tmp"}, "call p()", "id a b", "tmp", {"id": 1, "a": 2}),
        ({1: "id", 3: "z", 4: "b"}, "alter table t drop a, add b int", "id a z", None, {"id": 1, "a": 2, "z": 3}),
        ({1: "id", 3: "z", 4: "a"}, "alter table t drop a, add a int", "id a z", None, {"id": 1, "a": 2, "z": 3}),
        ({1: "id", 2: "z", 4: "b"}, "alter table t drop a, add b int", "id z a", None, {"id": 1, "z": 2, "a": 3}),
        ({1: "id", 2: "z"}, "alter table t drop a", "id z a", None, {"id": 1, "z": 2, "a": 0}),
        ({1: "id", 4: "z", 5: "b"}, "alter table t drop a, add b int", "id a z", None, {"id": 1, "a": 0, "z": 4}),
        # two statements concern the table, and only one of them can have led here
        (
            {1: "id", 2: "a"},
            "alter table t alter a drop not null; alter table t add c int",
            "id a",
            None,
            {"id": 1, "a": 2},
        ),
        # nothing shows what was done, or more may have been done than shows
        ({1: "id", 2: "b"}, "", "id a", None, None),
        ({1: "id", 2: "b"}, "call p()", "id b", None, None),
        ({1: "id", 2: "b"}, "select p(); alter table inv.t alter b type int", "id b", None, None),
        ({1: "id", 2: "b"}, "insert into x values (p()); alter table inv.t alter b type int", "id b", None, None),
        ({1: "id", 2: "b"}, "do $$ begin end $$; alter table inv.t alter b type int", "id b", None, None),
        ({1: "id", 2: "b"}, "alter table inv.other rename a to b", "id a", None, None),
        ({1: "id", 2: "b"}, "alter table other.t alter b type int", "id b", None, None),
        # another table took the name
        ({1: "id", 2: "b"}, "drop table inv.t; alter table inv.u rename to t", "id b", None, None),
        ({1: "id", 2: "b"}, "alter table other.t set schema inv", "id b", None, None),
        # what was seen does not fit
        ({1: "id", 2: "b"}, "alter table inv.t rename a to b", "id b", "b", None),
        ({1: "id", 2: "b"}, "alter table inv.t add b int", "id b", None, None),
        ({1: "id", 2: "b", 3: "c"}, "alter table inv.t alter b type int", "id c b", None, None),
    ],
)
def test_what_one_command_proves(
    after: dict[int, str], query: str, names: str, column: str | None, expected: dict[str, int] | None
) -> None:
    assert told(after, query, *names.split(), column=column) == expected


def test_a_comment_leaves_the_columns_as_they_were() -> None:
    found = before_first(structure({1: "id", 3: "b"}), "", ("id", "b"), tag="COMMENT")
    assert found == {"id": Token(era=ERA, number=(7, 1)), "b": Token(era=ERA, number=(7, 3))}
    assert before_first(structure({1: "id"}), "", ("id",), tag="SELECT INTO") is None


def test_names_that_are_known_to_be_complete_prove_more() -> None:
    assert told({1: "id", 2: "z", 3: "b"}, "call p()", "id", "z", "a", column="b") == {"id": 1, "z": 2}
    assert told({1: "id", 2: "z", 3: "b"}, "call p()", "id", "z", "a", column="b", complete=True) == {
        "id": 1,
        "z": 2,
        "a": 3,
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('ALTER TABLE IF EXISTS ONLY Inv."T.x" * RENAME COLUMN "A b" TO C;', [("inv", "T.x", ("A b", "c"))]),
        ("alter table t rename constraint a to b", [(None, "t", None)]),
        ("alter table t add primary key (a), add constraint x check (a > 0), add unique (b), drop constraint y", 1),
        ("alter table t add exclude using gist (a with =), owner to me, set (fillfactor = 70)", 1),
        ("alter table t alter a set default 'x; alter table t rename b to c'", 1),
        ("/* ; */ alter table t alter a type text -- rename\n using a || ','", 1),
        ("alter table t alter a set default $x$ , drop column b; $x$", 1),
        ("create table x (a int default 1); insert into inv.x (a, b) values (1, 2); comment on table x is 'y'", 0),
        ("alter table a.b.c add d int", None),
        ("alter table all in tablespace x set tablespace y", None),
        ("alter table t frobnicate", None),
        ("alter table t rename a", None),
        ("alter table t rename a to b, add c int", None),
        ("create table x as select f()", None),
        ("alter table t add 'x' int", None),
        ("alter table t add", None),
        ("vacuum; alter table t add c int", None),
        ("alter table t add c int; 'unterminated", None),
    ],
)
def test_alterations_are_read_from_a_clients_text(query: str, expected: object) -> None:
    found = alterations(query)
    if isinstance(expected, list):
        assert [(one.schema, one.table, one.renamed) for one in found or ()] == expected
    else:
        assert (None if found is None else len(found)) == expected
        assert not any(one.added or one.perhaps_added or one.renamed or one.moved for one in found or ())


def test_added_names_are_told_apart_by_how_sure_they_are() -> None:
    query = 'alter table t add a int, add column "B" numeric(1, 2), add if not exists c int, drop if exists d'
    (found,) = alterations(query) or ()
    stated = tuple((name, NULL) for name in ("a", "B", "c"))
    assert found == Alteration(
        schema=None, table="t", added=frozenset(("a", "B")), perhaps_added=frozenset("c"), stated=stated
    )


# ---- random histories


@dataclass
class Table:
    columns: dict[int, str] = field(default_factory=lambda: {1: "a", 2: "b", 3: "c"})
    highest: int = 3

    def add(self, name: str) -> None:
        self.highest += 1
        self.columns[self.highest] = name

    def drop(self, name: str) -> None:
        self.columns = {number: one for number, one in self.columns.items() if one != name}

    def rename(self, old: str, new: str) -> None:
        self.columns = {number: new if one == old else one for number, one in self.columns.items()}

    @property
    def names(self) -> list[str]:
        return [self.columns[number] for number in sorted(self.columns)]

    def free(self) -> list[str]:
        return sorted(set("abcdefghijklmnop") - set(self.names))

    def command(self, data: st.DataObject) -> tuple[str, str | None]:
        """Do one random command; return its text and the column it was about."""
        if data.draw(st.booleans()):
            old, new = data.draw(st.sampled_from(self.names)), data.draw(st.sampled_from(self.free()))
            self.rename(old, new)
            return f"alter table {data.draw(st.sampled_from(['t', 'inv.t', 'INV.t']))} rename {old} to {new}", new
        dropped = data.draw(st.lists(st.sampled_from(self.names), max_size=2, unique=True))
        if len(dropped) == len(self.names):
            dropped = []
        clauses = [f"drop {name}" for name in dropped]
        for name in dropped:
            self.drop(name)
        for name in data.draw(st.lists(st.sampled_from(self.free()), max_size=2, unique=True)):
            perhaps = data.draw(st.sampled_from(["", "if not exists "]))
            self.add(name)
            clauses.append(f"add column {perhaps}{name} int")
        if data.draw(st.booleans()):
            clauses.append(f"add column if not exists {self.names[0]} int")
        if not clauses:
            clauses = ["owner to me"]
        return f"alter table inv.t {', '.join(data.draw(st.permutations(clauses)))}", None


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_nothing_told_of_a_random_history_is_wrong(data: st.DataObject) -> None:
    table = Table()
    for _ in range(data.draw(st.integers(0, 3))):
        table.command(data)
    hidden = data.draw(st.frozensets(st.sampled_from(sorted(table.columns)), max_size=2))
    truth = {name: number for number, name in sorted(table.columns.items()) if number not in hidden}
    silent = data.draw(st.booleans()) and len(table.columns) > 1
    if silent:
        table.drop(data.draw(st.sampled_from(table.names)))
    query, column = table.command(data)
    after = dict(table.columns)
    for _ in range(data.draw(st.integers(0, 2))):
        query += "; " + table.command(data)[0]
    shown = data.draw(st.booleans())
    complete = not hidden and not silent and data.draw(st.booleans())
    found = told(after, query if shown else "call p()", *truth, column=column, complete=complete) or {}
    for name, number in found.items():
        assert truth[name] == number or (not number and truth[name] not in after), (name, number, truth, after, query)
    event(f"text {shown}, complete {complete}, told: {'all' if len(found) == len(truth) else bool(found)}")


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_nothing_is_told_where_another_table_took_the_name(data: st.DataObject) -> None:
    table = Table()
    for _ in range(data.draw(st.integers(0, 3))):
        table.command(data)
    names = data.draw(st.permutations(table.names))
    query = data.draw(
        st.sampled_from(
            ["alter table inv.u rename to t", "drop table t; alter table u rename to t", "select swap()", "call p()"]
        )
    )
    assert told(dict(table.columns), query, *names) is None
