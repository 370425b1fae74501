"""Everything that is written can be read again and is the same, byte for byte."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.core.schema.alignment import Evidence
from cdc_sync.core.schema.changes import (
    AddColumn,
    ChangePrimaryKey,
    DropColumn,
    JoinColumn,
    MoveColumn,
    RenameColumn,
    RetireColumn,
    ReviveColumn,
    SchemaChange,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
)
from cdc_sync.core.schema.internal import Column
from cdc_sync.core.schema.serde import (
    change_from_json,
    change_to_json,
    column_from_json,
    column_to_json,
    evidence_from_json,
    evidence_to_json,
    from_text,
    to_text,
    type_from_json,
    type_to_json,
)
from cdc_sync.core.schema.types import DataType
from tests.laws.strategies import COMMENTS, DEFAULTS, NAMES, columns, text, types

law = settings(max_examples=120, deadline=None, derandomize=False)
_id = st.integers(1, 10**6)
_after = st.none() | _id
_name = st.sampled_from(NAMES) | text
_comment, _default = st.sampled_from(COMMENTS), st.sampled_from(DEFAULTS)
_key = st.lists(_id, max_size=3).map(tuple)
changes: st.SearchStrategy[SchemaChange] = st.one_of(
    st.builds(AddColumn, column=columns, after=_after),
    st.builds(DropColumn, column=columns, after=_after),
    st.builds(JoinColumn, column=columns, after=_after, into=_id, into_name=_name),
    st.builds(RenameColumn, id=_id, old=_name, new=_name),
    st.builds(UpdateColumnType, id=_id, old=types, new=types),
    st.builds(UpdateColumnNullability, id=_id, old=st.booleans(), new=st.booleans()),
    st.builds(UpdateColumnComment, id=_id, old=_comment, new=_comment),
    st.builds(UpdateColumnDefault, id=_id, old=_default, new=_default),
    st.builds(MoveColumn, id=_id, old_after=_after, new_after=_after),
    st.builds(RetireColumn, id=_id, name=_name),
    st.builds(ReviveColumn, id=_id, name=_name),
    st.builds(ChangePrimaryKey, old=_key, new=_key),
)


@law
@given(types)
def test_types_survive(type_: DataType) -> None:
    assert type_from_json(json.loads(json.dumps(type_to_json(type_)))) == type_


@law
@given(columns)
def test_columns_survive_and_values_keep_their_python_type(column: Column) -> None:
    read = column_from_json(from_text(to_text(column_to_json(column))))
    assert read == column
    assert [type(value) for value in (read.default, read.initial)] == [
        type(value) for value in (column.default, column.initial)
    ]


@settings(law, max_examples=250)
@given(changes)
def test_changes_survive(change: SchemaChange) -> None:
    written = to_text({"change": change_to_json(change)})
    read = change_from_json(from_text(written)["change"])
    assert read == change
    assert to_text({"change": change_to_json(read)}) == written


@law
@given(text, text, text)
def test_evidence_survives(subject: str, kind: str, words: str) -> None:
    evidence = Evidence(subject=subject, kind=kind, text=words)
    assert evidence_from_json(from_text(to_text(evidence_to_json(evidence)))) == evidence
