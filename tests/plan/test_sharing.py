"""What a change of one source table means for a target that several share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_sync.core.migration.capabilities import DELTA, ICEBERG
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.shared_schema import Union, empty_union, parse_union
from cdc_sync.core.planning.shared_table import evolved, settled, without
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.evolve import apply_all
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT32, INT64, STRING, DataType, Field, ListType, StructType

A, B, C = (TableId(database="d", schema="s", table=name) for name in ("a", "b", "c"))


def schema(**types: DataType) -> InternalSchema:
    """Columns with the ids 1, 2, …; the first is the key."""
    columns = tuple(Column(id=number, name=name, type=type_) for number, (name, type_) in enumerate(types.items(), 1))
    return InternalSchema(columns=columns, primary_key=(1,), last_column_id=100)


def taken_up(union: Union, table: TableId, version: int, wanted: InternalSchema) -> Union:
    found = evolved(union, table, version, wanted, ICEBERG)
    assert isinstance(found, Union), found
    return settled(found, table)


def refusal(union: Union, table: TableId, wanted: InternalSchema) -> str:
    found = evolved(union, table, 2, wanted, ICEBERG)
    assert isinstance(found, Refused)
    return found.reason


def names(union: Union) -> list[str]:
    return [column.name for column in union.schema.columns]


def two(**types: DataType) -> Union:
    """Two tables with the same columns in one target."""
    return taken_up(taken_up(empty_union("_t"), A, 1, schema(**types)), B, 1, schema(**types))


def renamed(before: InternalSchema, old: str, new: str) -> InternalSchema:
    columns = (replace(column, name=new) if column.name == old else column for column in before.columns)
    return replace(before, columns=tuple(columns))


def test_columns_of_one_name_are_one_column() -> None:
    union = taken_up(two(id=INT32, z=STRING), C, 1, schema(id=INT32, y=STRING, z=STRING))

    assert names(union) == ["_t", "id", "y", "z"]


def test_a_column_goes_when_the_last_table_has_dropped_it() -> None:
    union = two(id=INT32, z=STRING)
    once = taken_up(union, A, 2, schema(id=INT32))

    assert names(once) == ["_t", "id", "z"]
    assert names(taken_up(once, B, 2, schema(id=INT32))) == ["_t", "id"]


def test_values_of_a_dropped_column_go_from_the_rows_of_that_table_only() -> None:
    found = evolved(two(id=INT32, z=STRING), A, 2, schema(id=INT32), ICEBERG)

    assert isinstance(found, Union)
    share = found.find(A)
    assert share is not None
    assert share.coming is not None
    assert (share.coming.moves.moved, share.coming.moves.emptied) == ((), (3,))
    assert share.version == 1, "rows are of the old version until they are changed"
    assert found.find(B) == two(id=INT32, z=STRING).find(B)


def test_a_column_of_one_table_is_renamed_where_it_is() -> None:
    before = schema(id=INT32, z=STRING)
    union = taken_up(empty_union("_t"), A, 1, before)
    found = evolved(union, A, 2, renamed(before, "z", "y"), ICEBERG)

    assert isinstance(found, Union)
    assert names(found) == ["_t", "id", "y"]
    assert found.find(A) == settled(found, A).find(A), "no row is touched"


def test_tables_that_rename_a_column_one_after_the_other_end_in_one_column() -> None:
    before = schema(id=INT32, z=STRING)
    once = taken_up(two(id=INT32, z=STRING), A, 2, renamed(before, "z", "y"))
    twice = taken_up(once, B, 2, renamed(before, "z", "y"))

    assert names(once) == ["_t", "id", "y", "z"] or names(once) == ["_t", "id", "z", "y"]
    assert names(twice) == ["_t", "id", "y"]


def test_two_names_that_a_table_swaps_are_moved_in_its_rows_at_once() -> None:
    swapped = renamed(renamed(renamed(schema(id=INT32, a=STRING, b=STRING), "a", "x"), "b", "a"), "x", "b")
    found = evolved(two(id=INT32, a=STRING, b=STRING), A, 2, swapped, ICEBERG)

    assert isinstance(found, Union)
    share = found.find(A)
    assert share is not None
    assert share.coming is not None
    assert set(share.coming.moves.moved) == {(3, 4), (4, 3)}


def test_a_name_may_be_used_again_while_its_values_have_yet_to_be_moved_away() -> None:
    union = taken_up(taken_up(empty_union("_t"), A, 1, schema(id=INT32, z=STRING)), B, 1, schema(id=INT32, y=STRING))
    again = renamed(schema(id=INT32, z=STRING), "z", "y")
    again = replace(again, columns=(*again.columns, Column(id=9, name="z", type=INT64)))
    found = evolved(union, A, 2, again, ICEBERG)

    assert isinstance(found, Union)
    assert sorted(names(found)) == ["__cdc_sync_tmp_3", "_t", "id", "y", "z"]
    after = settled(found, A)
    assert sorted(names(after)) == ["_t", "id", "y", "z"]
    assert after.schema.find("z") == Column(id=5, name="z", type=INT64)


def test_a_type_widens_for_all_and_stays_wide() -> None:
    wide = taken_up(two(id=INT32, n=INT32), A, 2, schema(id=INT32, n=INT64))

    assert wide.schema.columns[2].type == INT64
    assert taken_up(wide, C, 1, schema(id=INT32, n=INT32)).schema.columns[2].type == INT64


def test_a_type_that_rows_of_others_do_not_have_is_refused() -> None:
    reason = refusal(two(id=INT32, n=INT32), C, schema(id=INT32, n=STRING))

    assert reason == (
        "column 'n' is STRING, and INT in the target: rows of other tables have that one, and neither can become the "
        "other in place"
    )


def test_structs_are_shared_where_they_are_the_same() -> None:
    def lines(*fields: Field) -> InternalSchema:
        return schema(id=INT32, lines=ListType(element_id=10, element=StructType(fields=fields)))

    one = Field(id=11, name="sku", type=INT32)
    union = taken_up(taken_up(empty_union("_t"), A, 1, lines(one)), B, 1, lines(replace(one, id=21)))

    assert "neither can become the other" in refusal(union, A, lines(one, Field(id=12, name="qty", type=INT32)))
    assert "neither can become the other" in refusal(union, A, lines(replace(one, id=13))), "another member of the name"
    alone = without(union, B)
    more = lines(one, Field(id=12, name="qty", type=INT32))
    assert names(taken_up(alone, A, 2, more)) == ["_t", "id", "lines"]
    assert isinstance(evolved(alone, A, 2, more, DELTA), Refused), "new members of Delta's structs are rewrites"


def test_what_no_row_can_be_found_by_is_refused() -> None:
    union = two(id=INT32)

    assert "no key" in refusal(union, C, replace(schema(id=INT32), primary_key=()))
    assert "'_t' has the name" in refusal(union, C, schema(id=INT32, _t=STRING))
    assert "cannot be told" in refusal(union, TableId(database="d", schema="", table="s.a"), schema(id=INT32))


def test_what_is_stamped_is_read_again() -> None:
    found = evolved(two(id=INT32, z=STRING), A, 2, renamed(schema(id=INT32, z=STRING), "z", "y"), ICEBERG)

    assert isinstance(found, Union)
    assert parse_union(found.to_text()) == found


@dataclass
class Model:
    """Source tables and the target they share, each with one row; a row is what its columns hold, by id."""

    union: Union = field(default_factory=lambda: empty_union("_t"))
    sources: dict[TableId, InternalSchema] = field(default_factory=dict)
    versions: dict[TableId, int] = field(default_factory=dict)
    wanted: dict[TableId, dict[int, int]] = field(default_factory=dict)
    held: dict[TableId, dict[int, int]] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    values: Iterator[int] = field(default_factory=lambda: iter(range(1, 10_000)))

    def take(self, table: TableId, wanted: InternalSchema) -> None:
        before = self.union
        version = self.versions.get(table, 0) + 1
        found = evolved(before, table, version, wanted, ICEBERG)
        if isinstance(found, Refused):
            return
        assert parse_union(found.to_text()) == found
        self._alter(before, found)
        share = found.find(table)
        assert share is not None
        row = self.held.setdefault(table, {})
        if share.coming is not None:
            moves = share.coming.moves
            old = dict(row)
            for id_ in moves.emptied:
                row.pop(id_, None)
            for _, to in moves.moved:
                row.pop(to, None)
            row.update({to: old[from_] for from_, to in moves.moved if from_ in old})
        self.union = settled(found, table)
        self._alter(found, self.union)
        self.sources[table], self.versions[table] = wanted, version
        live = {column.id for column in wanted.columns}
        kept = self.wanted.setdefault(table, {})
        self.wanted[table] = {id_: value for id_, value in kept.items() if id_ in live}

    def write(self, table: TableId) -> None:
        share = self.union.find(table)
        if share is not None:
            row = {column.id: next(self.values) for column in self.sources[table].columns}
            self.wanted[table] = row
            self.held[table].update({share.columns[id_]: value for id_, value in row.items()})

    def leave(self, table: TableId) -> None:
        if self.union.find(table) is not None:
            after = without(self.union, table)
            del self.held[table], self.wanted[table], self.sources[table]
            self._alter(self.union, after)
            self.union = after

    def _alter(self, before: Union, after: Union) -> None:
        """Do what a target does: columns that come are new to every row, and those that go leave every row."""
        ids, old = ({column.id for column in union.schema.columns} for union in (after, before))
        assert not (ids - old) & self.seen, "an id was given out twice"
        self.seen |= ids
        for row in self.held.values():
            for id_ in old - ids:
                row.pop(id_, None)
        changed = apply_all(before.schema, diff(before.schema, after.schema))
        assert changed.columns == after.schema.columns

    def check(self) -> None:
        for table, wanted in self.sources.items():
            share = self.union.find(table)
            assert share is not None
            for column in wanted.columns:
                assert self.union.schema.column(share.columns[column.id]).name == column.name
            shown = {share.columns[id_]: value for id_, value in self.wanted[table].items()}
            assert self.held[table] == shown, "a row holds something else than its table's columns"
        held = {self.union.source.id, *self.union.held()}
        assert {column.id for column in self.union.schema.columns} <= held


NAMES = ("u", "v", "w")
CHANGES = st.lists(
    st.tuples(
        st.sampled_from((A, B, C)),
        st.sampled_from(("add", "drop", "rename", "readd", "replace", "widen", "swap", "write", "leave", "rekey")),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.sampled_from((INT32, INT64, STRING)),
    ),
    max_size=40,
)


@settings(max_examples=400)
@given(CHANGES)
def test_every_table_reads_its_own_values_under_its_own_names_whatever_came_between(
    changes: list[tuple[TableId, str, str, str, DataType]],
) -> None:
    model = Model()
    sources = {table: schema(id=INT32, u=STRING) for table in (A, B, C)}
    ids = iter(range(1000, 10_000))
    for table, kind, name, other, type_ in changes:
        before = sources[table]
        found, held = before.find(name), before.find(other)
        columns = before.columns
        match kind:
            case "add" if found is None:
                columns = (*columns, Column(id=next(ids), name=name, type=type_))
            case "drop" if found is not None:
                columns = tuple(column for column in columns if column.id != found.id)
            case "readd" if found is not None:
                again = replace(found, id=next(ids), type=type_)
                columns = tuple(again if column.id == found.id else column for column in columns)
            case "rename" | "replace" if found is not None and held is None:
                columns = tuple(replace(column, name=other) if column.id == found.id else column for column in columns)
                if kind == "replace":
                    columns = (*columns, Column(id=next(ids), name=name, type=type_))
            case "swap" if found is not None and held is not None:
                names = {found.id: other, held.id: name}
                columns = tuple(replace(column, name=names.get(column.id, column.name)) for column in columns)
            case "widen" if found is not None and found.type == INT32:
                columns = tuple(replace(column, type=INT64) if column.id == found.id else column for column in columns)
            case _:
                pass
        key = before.primary_key
        if kind == "rekey" and found is not None:
            key = (1, found.id) if key == (1,) else (1,)
        key = tuple(id_ for id_ in key if any(column.id == id_ for column in columns))
        wanted = InternalSchema(columns=columns, primary_key=key, last_column_id=10_000)
        if kind == "leave":
            model.leave(table)
        else:
            model.take(table, wanted)
            sources[table] = model.sources.get(table, before)
        if kind == "write":
            model.write(table)
        model.check()
