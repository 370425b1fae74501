"""A name stays as it is where it can be held; else one rule says what becomes of it, whatever stands beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdc_sync.core.migration.capabilities import HUDI, ICEBERG, MEMORY, PARQUET
from cdc_sync.core.migration.migration import AlterTable, Backfill, CreateTable, Migration
from cdc_sync.core.migration.namerules import NameRules
from cdc_sync.core.migration.names import NameClash, held_migration, held_name, held_schema, target_names
from cdc_sync.core.schema.changes import AddColumn, DropColumn, RenameColumn, RetireColumn
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT32, INT64, STRING, Field, ListType, StructType
from cdc_sync.errors import SchemaError

HIVE = NameRules(forbidden=frozenset(" ,;:`.\n"), reserved=frozenset(("date",)), max_bytes=30, folds_case=True)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60) | st.text(
    st.sampled_from(" ,;`.aAxX_0é漢😀\u202e"), min_size=1, max_size=40
)


def table(*names: str) -> InternalSchema:
    columns = tuple(Column(id=id_, name=name, type=STRING) for id_, name in enumerate(names, start=1))
    return InternalSchema(columns=columns, primary_key=(1,), last_column_id=len(names))


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("plain", "plain"),
        ("a b", "a_x0020_b"),
        ("a.b`c", "a_x002E_b_x0060_c"),
        ("date", "_x0064_ate"),
        ("Date", "Date"),
        ("é漢😀", "é漢😀"),
        ("_x0020_", "_x0020_"),
    ],
)
def test_what_cannot_be_held_is_written_as_its_code_point(name: str, held: str) -> None:
    assert held_name(name, HIVE) == held


def test_characters_beyond_the_basic_plane_take_more_digits() -> None:
    assert held_name("a😀", NameRules(forbidden=frozenset("😀"))) == "a_x1F600_"


def test_a_long_name_keeps_its_beginning_and_is_told_apart_by_its_digest() -> None:
    one, other = "ä" * 40 + "1", "ä" * 40 + "2"
    assert held_name(one, HIVE).startswith("ä" * 10 + "_")
    assert held_name(one, HIVE) != held_name(other, HIVE)


@given(NAMES)
@example("date" * 20)
@example("." * 30)
def test_what_comes_out_can_be_held_and_stays(name: str) -> None:
    held = held_name(name, HIVE)
    assert held
    assert len(held.encode()) <= 30
    assert not HIVE.forbidden & set(held)
    assert held not in HIVE.reserved
    assert held_name(held, HIVE) == held


@given(NAMES)
def test_a_format_without_rules_changes_nothing(name: str) -> None:
    assert held_name(name, MEMORY.columns) == held_name(name, MEMORY.tables) == name


@given(NAMES)
def test_iceberg_holds_every_column_but_its_own_metadata(name: str) -> None:
    assert held_name(name, ICEBERG.columns) == name
    assert held_name("_deleted", ICEBERG.columns) == "_x005F_deleted"


@pytest.mark.parametrize("rules", [HUDI.columns, PARQUET.columns], ids=["hudi", "parquet"])
def test_a_reserved_name_is_plain_afterwards(rules: NameRules) -> None:
    for name in rules.reserved:
        assert held_name(name, rules) == f"_x{ord(name[0]):04X}_{name[1:]}"


@given(NAMES | st.sampled_from(["..", ".", "a/b", "../../x", "..\\x", "a?b", "a#b", "a\0b"]))
def test_a_tables_name_is_one_folder_of_its_own(name: str) -> None:
    held = held_name(name, ICEBERG.tables)
    assert not set("/\\?#\0") & set(held)
    assert held not in (".", "..")
    assert len(held.encode()) <= 255


@given(st.lists(NAMES, min_size=1, max_size=5, unique=True))
def test_a_name_does_not_depend_on_those_beside_it(names: list[str]) -> None:
    found = target_names(table(*names), HIVE)
    if not isinstance(found, NameClash):
        assert found == {name: held_name(name, HIVE) for name in names}


@given(st.lists(NAMES, min_size=1, max_size=5, unique=True))
def test_names_either_stay_apart_or_clash(names: list[str]) -> None:
    found = target_names(table(*names), HIVE)
    apart = len({held_name(name, HIVE).casefold() for name in names}) == len(names)
    assert isinstance(found, NameClash) is not apart


def test_names_that_fall_together_are_named() -> None:
    clash = target_names(table("id", "a b", "a_x0020_b"), HIVE)
    assert isinstance(clash, NameClash)
    assert clash.reason == "the names 'a b' and 'a_x0020_b' are both 'a_x0020_b' in the target"
    assert clash.remedy == "rename one of them at the source"


def test_names_that_differ_in_case_clash_only_where_case_is_folded() -> None:
    schema = table("id", "Name", "name")
    assert isinstance(target_names(schema, HIVE), NameClash)
    assert not isinstance(target_names(schema, ICEBERG.columns), NameClash)


def test_an_empty_name_is_refused() -> None:
    clash = target_names(table("id", ""), MEMORY.columns)
    assert isinstance(clash, NameClash)
    assert clash.reason == "the name '' cannot be used in a target"


@pytest.mark.parametrize(
    ("nested", "name"),
    [
        (ListType(element_id=3, element=STRING), "a.element"),
        (StructType(fields=(Field(id=3, name="b", type=STRING),)), "a.b"),
    ],
)
def test_iceberg_takes_a_dotted_name_for_a_nested_field(nested: ListType | StructType, name: str) -> None:
    columns = (Column(id=1, name="a", type=nested), Column(id=2, name=name, type=STRING))
    schema = InternalSchema(columns=columns, primary_key=(2,), last_column_id=3)
    assert isinstance(target_names(schema, ICEBERG.columns), NameClash)
    assert target_names(schema, MEMORY.columns) == {"a": "a", name: name}


def test_a_schema_whose_names_are_held_is_the_same_object() -> None:
    schema = table("id", "a b")
    assert held_schema(schema, ICEBERG.columns) is schema


def test_a_schema_with_names_that_fall_together_is_never_made() -> None:
    with pytest.raises(SchemaError, match="a column name is used twice"):
        held_schema(table("_file", "_x005F_file"), ICEBERG.columns)


def test_every_step_of_a_migration_speaks_in_held_names() -> None:
    before, after = table("id", "_file"), table("id", "_pos")
    column = Column(id=9, name="_deleted", type=INT64)
    steps = (
        CreateTable(schema=before),
        AlterTable(
            steps=(
                (before, RenameColumn(id=2, old="_file", new="_pos")),
                (after, AddColumn(column=column, after=2)),
                (after, DropColumn(column=column, after=2)),
                (after, RetireColumn(id=2, name="_pos")),
            )
        ),
        Backfill(columns=(column,)),
    )
    held = held_migration(Migration(version=2, schema=after, steps=steps), ICEBERG.columns)
    told = replace(column, name="_x005F_deleted")
    first, second = table("id", "_x005F_file"), table("id", "_x005F_pos")
    assert held == Migration(
        version=2,
        schema=second,
        steps=(
            CreateTable(schema=first),
            AlterTable(
                steps=(
                    (first, RenameColumn(id=2, old="_x005F_file", new="_x005F_pos")),
                    (second, AddColumn(column=told, after=2)),
                    (second, DropColumn(column=told, after=2)),
                    (second, RetireColumn(id=2, name="_x005F_pos")),
                )
            ),
            Backfill(columns=(told,)),
        ),
    )


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("plain_1", "plain_1"),
        ("a b", "a_x0020_b"),
        ("1st", "_x0031_st"),
        ("é", "_x00E9_"),
        ("😀", "_x1F600_"),
        ("٣", "_x0663_"),
    ],
)
def test_a_plain_name_has_ascii_letters_digits_and_underscores(name: str, held: str) -> None:
    assert held_name(name, HUDI.columns) == held


def test_the_parts_of_a_column_have_plain_names_too() -> None:
    part = Field(id=3, name="a b", type=StructType(fields=(Field(id=4, name="1", type=INT32),)))
    column = Column(id=1, name="c", type=ListType(element_id=2, element=StructType(fields=(part,))))
    schema = InternalSchema(columns=(column,), primary_key=(), last_column_id=4)
    (held,) = held_schema(schema, HUDI.columns).columns
    assert isinstance(held.type, ListType)
    inner = held.type.element
    assert isinstance(inner, StructType)
    assert [field.name for field in inner.fields] == ["a_x0020_b"]
    assert isinstance(inner.fields[0].type, StructType)
    assert inner.fields[0].type.fields[0].name == "_x0031_"
