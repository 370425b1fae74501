"""Laws of diff, apply, derive and projection along random histories."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc_sync.core.schema.align import align
from cdc_sync.core.schema.alignment import Facts
from cdc_sync.core.schema.changes import (
    AddColumn,
    ChangePrimaryKey,
    DropColumn,
    JoinColumn,
    MoveColumn,
    RenameColumn,
    RetireColumn,
    ReviveColumn,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
)
from cdc_sync.core.schema.derive import derive
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.evolve import apply_all
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.projection import Constant, FromColumn, project
from cdc_sync.core.schema.serde import (
    change_from_json,
    change_to_json,
    from_text,
    schema_from_json,
    schema_to_json,
    to_text,
)
from cdc_sync.core.schema.types import nested_ids, without_ids
from tests.laws.strategies import Recorded, histories

law = settings(max_examples=100, deadline=None, derandomize=False, suppress_health_check=[HealthCheck.too_slow])
ORDER = (
    DropColumn,
    RenameColumn,
    UpdateColumnType,
    UpdateColumnNullability,
    UpdateColumnDefault,
    UpdateColumnComment,
    RetireColumn | ReviveColumn,
    AddColumn,
    MoveColumn,
    ChangePrimaryKey,
)


def all_ids(schema: InternalSchema) -> set[int]:
    return {id_ for column in schema.columns for id_ in (column.id, *nested_ids(column.type))}


def but_for_last_id(schema: InternalSchema) -> InternalSchema:
    """Ids that came and went between two versions leave no other trace than `last_column_id`."""
    return replace(schema, last_column_id=10_000)


@law
@given(histories)
def test_the_difference_between_consecutive_versions_leads_from_one_to_the_other(history: list[Recorded]) -> None:
    for before, after in pairwise(history):
        assert apply_all(before.schema, diff(before.schema, after.schema)) == after.schema


@law
@given(histories)
def test_the_difference_between_any_two_versions_leads_from_one_to_the_other(history: list[Recorded]) -> None:
    for before, after in permutations(history, 2):
        result = apply_all(before.schema, diff(before.schema, after.schema))
        assert but_for_last_id(result) == but_for_last_id(after.schema)


@law
@given(histories)
def test_a_schema_does_not_differ_from_itself(history: list[Recorded]) -> None:
    assert all(diff(version.schema, version.schema) == () for version in history)


@law
@given(histories)
def test_changes_come_in_the_canonical_order(history: list[Recorded]) -> None:
    for before, after in pairwise(history):
        changes = list(diff(before.schema, after.schema))
        if changes and isinstance(changes[0], ChangePrimaryKey):
            changes.pop(0)  # only to free a key column that is dropped
        places = [next(i for i, kinds in enumerate(ORDER) if isinstance(change, kinds)) for change in changes]
        assert places == sorted(places)


@law
@given(histories)
def test_no_id_is_ever_handed_out_twice(history: list[Recorded]) -> None:
    for before, after in pairwise(history):
        assert after.schema.last_column_id >= before.schema.last_column_id
        new = all_ids(after.schema) - all_ids(before.schema)
        assert all(id_ > before.schema.last_column_id for id_ in new)


@law
@given(histories)
def test_an_id_belongs_to_one_column_for_as_long_as_it_lives(history: list[Recorded]) -> None:
    owners: dict[int, int] = {}
    for version in history:
        for identity, id_ in version.ids.items():
            assert owners.setdefault(id_, identity) == identity
            initial = version.schema.column(id_).initial
            assert all(initial == other.schema.column(id_).initial for other in history if identity in other.ids)


@law
@given(histories, st.booleans())
def test_the_same_event_seen_again_changes_nothing(history: list[Recorded], append_only: bool) -> None:
    for version in history:
        alignment = align(version.schema, version.observed, Facts(append_only=append_only))
        again = derive(version.schema, version.observed, alignment, retire=False, initials={})
        assert again == version.schema
        assert diff(version.schema, again) == ()


@law
@given(histories)
def test_a_version_has_the_columns_of_its_event(history: list[Recorded]) -> None:
    for version in history:
        recorded = [(column.name, without_ids(column.type), column.optional) for column in version.schema.live]
        assert recorded == [(column.name, column.type, column.optional) for column in version.observed.columns]


@law
@given(histories)
def test_a_projection_fills_every_head_column_exactly_once_and_from_the_same_column(history: list[Recorded]) -> None:
    head = history[-1]
    for version in history:
        projection = project(version.schema, head.schema)
        assert [entry.id for entry in projection.columns] == [column.id for column in head.schema.columns]
        live = {column.id: column for column in version.schema.live}
        for entry in projection.columns:
            assert entry.target == head.schema.column(entry.id).type
            match entry:
                case FromColumn():
                    assert (entry.name, entry.source) == (live[entry.id].name, live[entry.id].type)
                case Constant():
                    assert entry.id not in live


@law
@given(histories)
def test_schemas_and_changes_survive_being_written_and_read(history: list[Recorded]) -> None:
    for before, after in pairwise(history):
        text = to_text(schema_to_json(after.schema))
        assert schema_from_json(from_text(text)) == after.schema
        assert to_text(schema_to_json(schema_from_json(from_text(text)))) == text
        for change in diff(before.schema, after.schema):
            assert change_from_json(from_text(to_text({"change": change_to_json(change)}))["change"]) == change


@law
@given(histories, st.data())
def test_columns_that_did_not_change_are_not_touched(history: list[Recorded], data: st.DataObject) -> None:
    before = data.draw(st.sampled_from(history)).schema
    after = data.draw(st.sampled_from(history)).schema
    same = {column.id for column in before.columns if column in after.columns}
    for change in diff(before, after):
        if not isinstance(change, ChangePrimaryKey | MoveColumn | AddColumn | DropColumn | JoinColumn):
            assert change.id not in same
