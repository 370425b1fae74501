"""The next version: ids live on, new ones are never used before, nothing that is not proven is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.schema.align import align
from cdc_sync.core.schema.alignment import Alignment, Facts
from cdc_sync.core.schema.derive import derive
from cdc_sync.core.schema.internal import EMPTY_SCHEMA, Column, InternalSchema
from cdc_sync.core.schema.observed import ObservedColumn, ObservedSchema
from cdc_sync.core.schema.types import INT32, INT64, STRING, DataType, Default, Field, ListType, MapType, StructType
from cdc_sync.errors import SchemaError
from tests.schema.tables import MYSQL, POSTGRES, known, seen


def following(
    before: InternalSchema,
    observed: ObservedSchema,
    facts: Facts = POSTGRES,
    *,
    retire: bool = True,
    initials: dict[str, Default] | None = None,
) -> InternalSchema:
    return derive(before, observed, align(before, observed, facts), retire=retire, initials=initials or {})


def columns(schema: InternalSchema) -> str:
    """Like "id:1 a:2 (z:3)", retired ones in brackets."""
    said = (f"{column.name}:{column.id}" for column in schema.columns)
    return " ".join(f"({text})" if column.retired else text for text, column in zip(said, schema.columns, strict=True))


def test_the_first_version_counts_from_one() -> None:
    schema = following(EMPTY_SCHEMA, seen("id a"))
    assert columns(schema) == "id:1 a:2"
    assert (schema.primary_key, schema.last_column_id) == ((1,), 2)


def test_a_renamed_column_keeps_its_id_and_a_dropped_id_is_not_used_again() -> None:
    renamed = following(known("id a z"), seen("id b z"))
    assert columns(renamed) == "id:1 b:2 z:3"
    dropped = following(renamed, seen("id b"))
    again = following(dropped, seen("id b z"))
    assert columns(again) == "id:1 b:2 z:4"


def test_columns_stand_in_the_order_of_the_source() -> None:
    assert columns(following(known("id a z"), seen("z n id a"), MYSQL)) == "z:3 n:4 id:1 a:2"


def test_what_the_event_says_of_a_column_replaces_what_was_known_but_not_its_initial_value() -> None:
    before = known("id")
    before = replace(before, columns=(replace(before.columns[0], initial=5, comment="old", default=1),))
    observed = ObservedSchema(
        columns=(ObservedColumn(name="id", type=STRING, optional=False, comment="new", default="x"),), key=("id",)
    )
    (column,) = following(before, observed).columns
    assert column == Column(id=1, name="id", type=STRING, optional=False, comment="new", default="x", initial=5)


def test_a_suspect_default_is_not_recorded() -> None:
    observed = ObservedSchema(columns=(ObservedColumn(name="id", type=INT32, default=0, suspect_default=True),), key=())
    assert following(EMPTY_SCHEMA, observed).columns[0].default is None
    assert following(known("id"), observed).columns[0].default is None


def test_new_columns_get_their_initial_value() -> None:
    schema = following(known("id"), seen("id a b"), initials={"a": 7, "id": 8})
    assert [column.initial for column in schema.columns] == [None, 7, None]


def test_the_key_is_named_in_its_own_order() -> None:
    observed = replace(seen("id a z"), key=("z", "id"))
    assert following(known("id a z"), observed).primary_key == (3, 1)
    assert following(known("id a z"), replace(observed, key=())).primary_key == ()


def test_a_key_column_the_row_does_not_have_is_refused() -> None:
    with pytest.raises(SchemaError, match="key column 'x' is not a column of the row"):
        following(known("id"), replace(seen("id"), key=("x",)))


class TestWhatIsNotProven:
    def test_an_unproven_column_is_kept_behind_its_neighbour_and_the_new_one_is_added(self) -> None:
        assert columns(following(known("id z a"), seen("id z b"))) == "id:1 z:2 (a:3) b:4"

    def test_kept_columns_stay_kept_and_where_they_are(self) -> None:
        before = known("p id q r z", retired="p q r")
        before = replace(before, primary_key=(2,))
        assert columns(following(before, seen("id z n"))) == "(p:1) id:2 (q:3) (r:4) z:5 n:6"

    def test_a_kept_column_whose_neighbour_is_dropped_moves_to_the_next_one_on_the_left(self) -> None:
        assert columns(following(known("id a g z", retired="g"), seen("id z"))) == "id:1 (g:3) z:4"

    def test_a_new_column_takes_the_name_and_the_kept_one_gets_another(self) -> None:
        assert columns(following(known("id a z"), seen("id z a"))) == ("id:1 (a__retired_2:2) (z__retired_3:3) z:4 a:5")
        assert columns(following(known("id Name"), seen("id name"))) == "id:1 (Name__retired_2:2) name:3"

    def test_even_if_the_other_name_is_taken_too(self) -> None:
        schema = following(known("id a"), seen("id n a__retired_2 a"), replace(MYSQL, renames={}))
        assert columns(schema) == "id:1 n:3 a__retired_2:4 a:2"
        retired = replace(schema, columns=tuple(replace(c, retired=c.name == "a") for c in schema.columns))
        again = following(retired, seen("id n a__retired_2 a"), MYSQL)
        assert columns(again) == "id:1 n:3 a__retired_2:4 (a__retired_2__retired_2:2) a:5"

    def test_without_leave_to_keep_it_is_refused(self) -> None:
        with pytest.raises(SchemaError, match="not proven what became of 'a'"):
            following(known("id z a"), seen("id z b"), retire=False)

    def test_a_kept_column_can_be_dropped(self) -> None:
        facts = replace(POSTGRES, drops=frozenset({"a"}))
        assert columns(following(known("id a z", retired="a"), seen("id z"), facts)) == "id:1 z:3"


@pytest.mark.parametrize(
    "alignment",
    [
        Alignment(same=((1, 0),), added=(), dropped=(), unproven=(), evidence=()),
        Alignment(same=((1, 0), (2, 1)), added=(1,), dropped=(), unproven=(), evidence=()),
        Alignment(same=((1, 0), (2, 1)), added=(), dropped=(2,), unproven=(), evidence=()),
        Alignment(same=((1, 0), (9, 1)), added=(), dropped=(), unproven=(), evidence=()),
    ],
)
def test_an_alignment_of_other_columns_is_refused(alignment: Alignment) -> None:
    with pytest.raises(SchemaError, match="alignment is about other columns"):
        derive(known("id a"), seen("id a"), alignment, retire=True, initials={})


class TestNestedTypes:
    POINT = StructType(fields=(Field(id=0, name="x", type=INT32), Field(id=0, name="y", type=INT32)))

    def test_a_columns_own_id_comes_before_its_members(self) -> None:
        schema = following(EMPTY_SCHEMA, seen("p q", types={"p": self.POINT, "q": list_of(0, self.POINT)}))
        p, q = schema.columns
        assert (p.id, p.type) == (1, point(2, 3))
        assert (q.id, q.type) == (4, list_of(5, point(6, 7)))
        assert schema.last_column_id == 7

    def test_members_keep_their_ids_by_name(self) -> None:
        before = schema_of(point(2, 3))
        reordered = StructType(
            fields=(
                Field(id=0, name="z", type=INT32),
                Field(id=0, name="y", type=INT64),
                Field(id=0, name="x", type=INT32),
            )
        )
        (column,) = following(before, seen("p", types={"p": reordered})).columns
        assert isinstance(column.type, StructType)
        assert [(field.name, field.id) for field in column.type.fields] == [("z", 4), ("y", 3), ("x", 2)]

    def test_elements_keys_and_values_keep_their_ids(self) -> None:
        type_ = MapType(key_id=2, key=STRING, value_id=3, value=list_of(4, INT32))
        after = MapType(key_id=0, key=STRING, value_id=0, value=list_of(0, INT64))
        (column,) = following(schema_of(type_), seen("p", types={"p": after})).columns
        assert column.type == replace(type_, value=list_of(4, INT64))

    def test_another_kind_of_type_begins_anew(self) -> None:
        before = schema_of(list_of(2, INT32))
        (column,) = following(before, seen("p", types={"p": self.POINT})).columns
        assert column.type == point(3, 4)
        map_ = MapType(key_id=0, key=STRING, value_id=0, value=INT32)
        schema = following(before, seen("p", types={"p": map_}))
        assert schema.columns[0].type == replace(map_, key_id=3, value_id=4)
        assert schema.last_column_id == 4


def list_of(id_: int, element: DataType) -> ListType:
    return ListType(element_id=id_, element=element)


def point(x: int, y: int) -> StructType:
    return StructType(fields=(Field(id=x, name="x", type=INT32), Field(id=y, name="y", type=INT32)))


def schema_of(type_: DataType) -> InternalSchema:
    from cdc_sync.core.schema.types import nested_ids

    return InternalSchema(
        columns=(Column(id=1, name="p", type=type_),), primary_key=(1,), last_column_id=max(nested_ids(type_))
    )
