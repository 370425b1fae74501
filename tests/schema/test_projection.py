"""Rows of any version as rows of the head."""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.projection import Constant, FromColumn, Projection, Untold, project, without_initials
from cdc_sync.core.schema.types import INT32, INT64, STRING, DataType, Field, StructType
from tests.schema.tables import known

BEFORE = known("id a z")


def test_a_version_projects_onto_itself() -> None:
    assert project(BEFORE, BEFORE) == Projection(
        columns=tuple(
            FromColumn(name=column.name, id=column.id, source=INT32, target=INT32) for column in BEFORE.columns
        )
    )


def test_columns_are_found_by_id_and_read_by_the_name_they_had() -> None:
    id_, _, z = BEFORE.columns
    head = replace(BEFORE, columns=(replace(z, name="a", type=INT64), id_))
    assert project(BEFORE, head).columns == (
        FromColumn(name="z", id=3, source=INT32, target=INT64),
        FromColumn(name="id", id=1, source=INT32, target=INT32),
    )


def test_a_column_added_later_reads_its_initial_value() -> None:
    new = replace(BEFORE.columns[1], id=4, name="n", type=STRING, initial="x", default="y")
    head = replace(BEFORE, columns=(*BEFORE.columns, new), last_column_id=4)
    assert project(BEFORE, head).columns[3] == Constant(id=4, value="x", target=STRING)


def test_a_dropped_column_whose_name_came_back_is_not_read() -> None:
    again = replace(BEFORE.columns[1], id=4)
    head = replace(BEFORE, columns=(BEFORE.columns[0], BEFORE.columns[2], again), last_column_id=4)
    assert project(BEFORE, head).columns[2] == Constant(id=4, value=None, target=INT32)


def test_a_retired_column_is_null_for_new_events_and_still_read_from_late_ones() -> None:
    column = replace(BEFORE.columns[1], retired=True, initial=7)
    head = replace(BEFORE, columns=(BEFORE.columns[0], column, BEFORE.columns[2]))
    assert project(head, head).columns[1] == Constant(id=2, value=None, target=INT32)
    assert project(BEFORE, head).columns[1] == FromColumn(name="a", id=2, source=INT32, target=INT32)


def test_a_column_that_is_back_is_left_as_it_is_by_events_that_do_not_show_it() -> None:
    hidden = replace(BEFORE, columns=tuple(replace(item, retired=item.name == "a") for item in BEFORE.columns))
    back = replace(BEFORE, columns=tuple(replace(item, initial=7) for item in BEFORE.columns))
    assert project(hidden, back).columns[1] == Untold(id=2, target=INT32)


def test_a_changelog_has_no_values_for_columns_that_came_after_an_event() -> None:
    new = replace(BEFORE.columns[1], id=4, name="n", type=STRING, initial="x")
    projection = without_initials(project(BEFORE, replace(BEFORE, columns=(*BEFORE.columns, new), last_column_id=4)))
    assert projection.columns == (*project(BEFORE, BEFORE).columns, Constant(id=4, value=None, target=STRING))


def test_a_late_row_takes_the_casts_of_all_versions_since() -> None:
    a = BEFORE.columns[1]
    text, number = (replace(BEFORE, columns=(BEFORE.columns[0], replace(a, type=type_))) for type_ in (STRING, INT64))
    (_, entry) = project(BEFORE, number, [BEFORE, text, text]).columns
    assert isinstance(entry, FromColumn)
    assert entry.casts == (INT32, STRING, INT64)
    (_, entry) = project(BEFORE, number).columns
    assert isinstance(entry, FromColumn)
    assert entry.casts == ()


def test_members_of_late_rows_take_the_casts_and_one_step_for_whatever_else_changed() -> None:
    def version(**members: tuple[int, DataType]) -> InternalSchema:
        fields = (Field(id=id_, name=name, type=type_) for name, (id_, type_) in members.items())
        column = replace(BEFORE.columns[1], type=StructType(fields=tuple(fields)))
        return replace(BEFORE, columns=(BEFORE.columns[0], column), last_column_id=9)

    def casts(*versions: InternalSchema) -> tuple[DataType, ...]:
        entry = project(versions[0], versions[-1], versions[1:-1]).columns[1]
        assert isinstance(entry, FromColumn)
        return entry.casts

    first, more = version(x=(4, INT32)), version(x=(4, INT32), y=(5, STRING))
    wider = version(y=(5, STRING), x=(4, INT64))
    text, number = version(x=(4, STRING)), version(x=(4, INT32), z=(6, STRING))

    assert casts(first, more, first) == ()
    assert casts(first, more, wider) == (first.columns[1].type, wider.columns[1].type)
    types = (item.columns[1].type for item in (first, wider, text, number))
    assert casts(first, more, wider, text, number) == tuple(types)
