"""Branches that meet: what lakes end with that got them in different orders."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.core.migration.wording import type_text
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
from cdc_sync.core.revisions.branches import disagreement
from cdc_sync.core.revisions.compile import Unfit, compiled
from cdc_sync.core.revisions.order import problems
from cdc_sync.core.revisions.revision import Revision
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.schema.types import INT32, INT64, STRING
from tests.revisions.test_steps import CREATE, revision, schema_of

BASE = schema_of(a=INT32, b=STRING, c=INT32)
PARTITION_BY_A = PartitionBy(partitioning=Partitioning.parse(["a"]))
NAMES = ("a", "b", "c", "d", "e")


def properties(value: str | None) -> SetProperties:
    return SetProperties(values=(("p", value),))


def add(name: str, sql: str | None = None) -> AddColumn:
    return AddColumn(column=NewColumn(name=name, type=STRING), fill_sql=sql)


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ((add("d"),), (add("e"), CommentColumn(name="a", comment="x")), None),
        ((RenameColumn(old="a", new="d"),), (DropColumn(name="b"),), None),
        ((MoveColumn(name="a", place=Place(after="c")),), (add("d"),), None),
        (
            (RenameColumn(old="a", new="d"),),
            (RenameColumn(old="a", new="e"),),
            "2 cannot come behind 1: it names column 'a'",
        ),
        ((add("d"),), (add("d"),), "2 cannot come behind 1: it gives the name 'd'"),
        ((DropColumn(name="a"),), (add("d", "a || 'x'"),), "2 cannot come behind 1: it reads column 'a'"),
        ((PARTITION_BY_A,), (add("d"),), None),
        ((PARTITION_BY_A,), (PARTITION_BY_A,), None),
        (
            (PARTITION_BY_A,),
            (PartitionBy(partitioning=Partitioning.parse(["b"])),),
            "1 and 2 both say what the table is partitioned by",
        ),
        ((FillColumn(name="a", sql="b"),), (FillColumn(name="c", sql="b"),), None),
        (
            (FillColumn(name="a", sql="c"),),
            (FillColumn(name="c", sql="1"),),
            "1 fills from 'c', whose values 2 changes",
        ),
        ((FillColumn(name="a", sql="c"),), (FillColumn(name="a", sql="1"),), "1 and 2 both fill 'a'"),
        ((properties("x"),), (properties("x"),), None),
        ((properties("x"),), (properties(None),), "1 and 2 both say what property 'p' is"),
        ((PARTITION_BY_A,), (RenameColumn(old="a", new="d"),), "1 cannot come behind 2: it is partitioned by a"),
        ((CastColumn(name="a", type=INT64),), (add("d", "a + 1"),), "2 fills from 'a', whose values 1 changes"),
        (
            (DropColumn(name="a"), AddColumn(column=NewColumn(name="a", type=INT32))),
            (CommentColumn(name="a", comment="x"),),
            "column 'a' depends on which of 1 and 2 comes first",
        ),
    ],
)
def test_branches_that_do_not_go_together_are_told(one: tuple[Action], other: tuple[Action], said: str | None) -> None:
    found = disagreement(BASE, [revision(*one, id_="1")], [revision(*other, id_="2")])

    assert (found is None) if said is None else (found is not None and found.startswith(said))


def test_what_meets_on_the_way_is_found_too() -> None:
    there_and_back = [
        revision(RenameColumn(old="a", new="d"), id_="1"),
        revision(RenameColumn(old="d", new="a"), id_="2"),
    ]
    for_a_while = [revision(add("d"), id_="3"), revision(DropColumn(name="d"), id_="4")]

    assert disagreement(BASE, there_and_back, for_a_while) == (
        "3 cannot come behind 1: it gives the name 'd', and the table has 'd'"
    )


def branch(chance: Random, first: int) -> list[Revision]:
    schema, made = BASE, list[Revision]()
    for number in range(first, first + chance.randint(1, 3)):
        name, new = chance.choice(NAMES), chance.choice(NAMES)
        action = chance.choice(
            (
                add(name, chance.choice((None, f"{new} || 'x'"))),
                DropColumn(name=name),
                RenameColumn(old=name, new=new),
                CastColumn(name=name, type=chance.choice((INT64, STRING)), lost="null"),
                MoveColumn(name=name, place=Place(first=True)),
                CommentColumn(name=name, comment=str(number)),
            )
        )
        try:
            schema = compiled((action,), schema).schema
        except Unfit:
            continue
        made.append(revision(action, id_=str(number)))
    return made


def told(schema: InternalSchema) -> set[tuple[str, str, str | None]]:
    return {(column.name, type_text(column.type), column.comment) for column in schema.columns}


@settings(max_examples=500)
@given(st.integers(min_value=0))
def test_branches_that_go_together_end_the_same_in_every_order(seed: int) -> None:
    chance = Random(seed)
    one, other = branch(chance, 10), branch(chance, 20)
    if disagreement(BASE, one, other) is not None:
        assert disagreement(BASE, other, one) is not None
        return
    ends = list[set[tuple[str, str, str | None]]]()
    for _ in range(6):
        left, right, schema = list(one), list(other), BASE
        while left or right:
            item = (left if left and (not right or chance.random() < 0.5) else right).pop(0)
            schema = compiled(item.actions, schema).schema
        ends.append(told(schema))
    assert all(end == ends[0] for end in ends)


def test_two_heads_and_a_merge_say_what_stands_between_them() -> None:
    first = revision(CREATE, id_="0")
    one = replace(revision(RenameColumn(old="a", new="d"), id_="1"), parents=("0",))
    other = replace(revision(RenameColumn(old="a", new="e"), id_="2"), parents=("0",))
    merge = replace(revision(CommentColumn(name="b", comment="x"), id_="3"), parents=("1", "2"))
    why = "2 cannot come behind 1: it names column 'a'"

    (heads,) = problems([first, one, other])
    assert heads.text.startswith(
        f"s.t has 2 heads, 1 and 2: write a revision whose parents they are; before that, {why}"
    )
    (joined,) = problems([first, one, other, merge])
    assert (joined.id, joined.text.startswith(f"its parents cannot be joined: {why}")) == ("3", True)
    fine = replace(other, actions=(add("e"),))
    assert problems([first, one, fine, merge]) == ()
    assert problems([replace(first, actions=(Adopt(),)), one, other, merge]) == ()
