"""Actions on members of structs, by their paths."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.core.migration.wording import type_text
from cdc_sync.core.revisions.actions import (
    LAST,
    Action,
    AddColumn,
    CastColumn,
    CommentColumn,
    DropColumn,
    MoveColumn,
    NewColumn,
    Place,
    RenameColumn,
)
from cdc_sync.core.revisions.compile import Unfit, compiled
from cdc_sync.core.revisions.inside import parse_path
from cdc_sync.core.schema.changes import UpdateColumnType
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.members import member_changes
from cdc_sync.core.schema.type_words import parse_type
from cdc_sync.core.schema.types import INT32, INT64, STRING, StructType, nested_ids
from cdc_sync.errors import SchemaError


def table(**types: str) -> InternalSchema:
    actions = tuple(
        AddColumn(column=NewColumn(name=f"`{name}`", type=parse_type(text))) for name, text in types.items()
    )
    first = Column(id=1, name="id", type=INT64)
    return compiled(actions, InternalSchema(columns=(first,), primary_key=(), last_column_id=1)).schema


BASE = table(
    address="struct<city: string, zip: int>",
    lines="array<struct<sku: string, of: struct<n: int>>>",
    tags="map<string, struct<x: int>>",
)


def add(name: str, place: Place = LAST) -> AddColumn:
    return AddColumn(column=NewColumn(name=name, type=STRING), place=place)


@pytest.mark.parametrize(
    ("action", "column", "said"),
    [
        (add("address.street"), "address", "STRUCT<city: STRING, zip: INT, street: STRING>"),
        (add("address.street", Place(first=True)), "address", "STRUCT<street: STRING, city: STRING, zip: INT>"),
        (add("address.street", Place(after="city")), "address", "STRUCT<city: STRING, street: STRING, zip: INT>"),
        (add("lines.element.of.`a.b`"), "lines", "ARRAY<STRUCT<sku: STRING, of: STRUCT<n: INT, a.b: STRING>>>"),
        (add("tags.value.y"), "tags", "MAP<STRING, STRUCT<x: INT, y: STRING>>"),
        (DropColumn(name="address.zip"), "address", "STRUCT<city: STRING>"),
        (RenameColumn(old="address.zip", new="code"), "address", "STRUCT<city: STRING, code: INT>"),
        (RenameColumn(old="address.zip", new="ZIP"), "address", "STRUCT<city: STRING, ZIP: INT>"),
        (MoveColumn(name="address.zip", place=Place(first=True)), "address", "STRUCT<zip: INT, city: STRING>"),
        (MoveColumn(name="tags.value.x", place=Place(first=True)), "tags", "MAP<STRING, STRUCT<x: INT>>"),
        (CastColumn(name="address.zip", type=INT64), "address", "STRUCT<city: STRING, zip: BIGINT>"),
        (CastColumn(name="tags.value.x", type=STRING), "tags", "MAP<STRING, STRUCT<x: STRING>>"),
    ],
)
def test_a_part_is_found_by_its_path_and_all_others_keep_their_ids(action: Action, column: str, said: str) -> None:
    before, made = BASE.find(column), compiled((action,), BASE)
    after = made.schema.find(column)

    assert before is not None
    assert after is not None
    assert type_text(after.type) == said
    (change,) = made.changes
    assert isinstance(change, UpdateColumnType)
    new = set(nested_ids(after.type)) - set(nested_ids(before.type))
    assert len(new) == isinstance(action, AddColumn)
    assert all(id_ > BASE.last_column_id for id_ in new)
    assert len(member_changes(before.type, after.type)) == (said != type_text(before.type))


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (add("city.street"), "names 'city.street', and the table has no column 'city' by then; it has id, address"),
        (add("id.x"), "names a member of id, which is BIGINT"),
        (add("address.city.x"), "names a member of address.city, which is STRING"),
        (add("lines.sku"), "names a member of lines, which is ARRAY"),
        (add("address.CITY"), "gives the name 'CITY', and the struct has 'city'"),
        (add("tags.key.x"), "names 'tags.key'; tags is MAP"),
        (DropColumn(name="address.x"), "names member 'x', which the struct does not have by then; it has city, zip"),
        (DropColumn(name="tags.value.x"), "takes 'x' away, the only member"),
        (
            RenameColumn(old="address.zip", new="address.code"),
            "renames a member to 'address.code'; say its new name alone",
        ),
        (RenameColumn(old="id", new="a.b"), "names a column 'a.b'; a name with a dot is quoted by `"),
        (RenameColumn(old="address.zip", new="City"), "gives the name 'City', and the struct has 'city'"),
        (
            CastColumn(name="address.zip", type=parse_type("date")),
            "casts 'address' from STRUCT<city: STRING, zip: INT>",
        ),
        (CastColumn(name="address.zip", type=STRING, way="expand"), "expands 'zip' of 'address'; say way: exchange"),
        (CommentColumn(name="address.zip", comment="x"), "comments on a part of 'address'; comments stand at columns"),
        (AddColumn(column=NewColumn(name="address.x", type=INT32), fill=1), "fills a part of 'address'"),
        (AddColumn(column=NewColumn(name="address.x", type=INT32), fill_sql="id"), "fills a part of 'address'"),
        (DropColumn(name="address..zip"), "names 'address..zip'; a part of a column is column.member"),
        (DropColumn(name="`address"), "names '`address'; a part of a column is column.member"),
    ],
)
def test_what_is_no_part_is_said(action: Action, said: str) -> None:
    with pytest.raises(Unfit) as found:
        compiled((action,), BASE)

    assert str(found.value).startswith(said)


def test_names_with_dots_are_quoted_or_found_as_they_are() -> None:
    schema = table(**{"a.b": "struct<c: int>"})

    assert schema.find("a.b") is not None
    for name in ("a.b", "`a.b`"):
        assert compiled((RenameColumn(old=name, new="d"),), schema).schema.find("d") is not None
    assert compiled((DropColumn(name="`a.b`"),), schema).schema.find("a.b") is None
    found = compiled((add("`a.b`.d"),), schema).schema.find("a.b")
    assert found is not None
    assert type_text(found.type) == "STRUCT<c: INT, d: STRING>"
    assert parse_path("`a``b`.c d.e") == ("a`b", "c d", "e")
    for wrong in ("", ".", "a.", ".a", "a`b", "``"):
        with pytest.raises(SchemaError):
            parse_path(wrong)


@settings(max_examples=200)
@given(st.integers(min_value=0))
def test_any_steps_inside_lead_back_by_their_inverse_and_hand_out_no_id_twice(seed: int) -> None:
    chance, schema, given_ids = Random(seed), BASE, list(nested_ids(BASE.columns[1].type))
    for number in range(8):
        address = schema.columns[1].type
        assert isinstance(address, StructType)
        names = [field.name for field in address.fields]
        name = chance.choice(names)
        action: Action = chance.choice(
            (
                add(f"address.n{number}", chance.choice((LAST, Place(first=True), Place(after=name)))),
                DropColumn(name=f"address.{name}"),
                RenameColumn(old=f"address.{name}", new=f"m{number}"),
                MoveColumn(name=f"address.{name}", place=Place(first=True)),
            )
        )
        try:
            made = compiled((action,), schema)
        except Unfit:
            continue  # the last member stays
        new = [id_ for id_ in nested_ids(made.schema.columns[1].type) if id_ not in nested_ids(address)]
        assert not set(new) & set(given_ids)
        given_ids += new
        schema = made.schema
    assert schema.last_column_id >= max(given_ids)
