"""Members of structs that come, go, move and change: in a struct, in a list's elements, in a map's values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pytest

from cdc_sync.core.migration.capabilities import DELTA, HUDI, HUDI_ON_READ, PARQUET
from cdc_sync.core.migration.migration import AlterTable, RewriteTable
from cdc_sync.core.migration.typechange import rewrites
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import (
    FLOAT32,
    FLOAT64,
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
from tests.targets.conftest import Lake
from tests.targets.test_behaviour import commits

pytestmark = pytest.mark.spark

Members: TypeAlias = Mapping[str, tuple[int, DataType]]
"""Name -> id, within the struct, and type."""
MONEY, MORE_MONEY = DecimalType(precision=5, scale=2), DecimalType(precision=9, scale=2)
A, B, C, D = (1, INT32), (2, STRING), (3, FLOAT32), (4, MONEY)
HELD: Members = {"a": A, "b": B, "c": C, "d": D}
VALUE = {"a": 1, "b": "x", "c": 0.5, "d": Decimal("1.50")}


@dataclass(frozen=True)
class Change:
    """What becomes of the members, and of the value that is there."""

    after: Members
    value: Mapping[str, Any]


IN_PLACE = {
    "all": Change(
        {"n": (7, INT32), "d": D, "b": (8, STRING), "a": A, "o": (9, INT64)},
        {"n": None, "d": Decimal("1.50"), "b": None, "a": 1, "o": None},
    )
}
"""Two are added, one goes, one goes and another of its name comes, and two change places."""
WIDER = {
    "wider": Change(
        {"a": (1, INT64), "b": B, "c": (3, FLOAT64), "d": (4, MORE_MONEY), "n": (7, STRING)}, {**VALUE, "n": None}
    )
}
REWRITTEN = {
    "oldest": Change({"b": (2, INT32), "d": (4, INT32), "n": (7, STRING)}, {"b": None, "d": None, "n": None}),
    "others": Change({"n": (7, INT32)}, {"n": None}),
}
"""The oldest member goes, and others have no place for their values; no member stays."""
PLACES = ("struct", "list", "map")
ID = Column(id=1, name="id", type=INT64, optional=False)
PROGRESS = Progress(version=1, offsets={"t": {0: 5}})


def struct_of(members: Members, base: int) -> StructType:
    fields = (Field(id=base + id_, name=name, type=type_) for name, (id_, type_) in members.items())
    return StructType(fields=tuple(fields))


def placed(place: str, members: Members, base: int) -> DataType:
    """A column's type with the struct somewhere in it; ids of the struct's members begin behind `base`."""
    struct = struct_of(members, base)
    listed = ListType(element_id=base + 20, element=struct)
    keyed = MapType(key_id=base + 21, key=STRING, value_id=base + 22, value=struct)
    types: dict[str, DataType] = {"struct": struct, "list": listed, "map": keyed}
    return types[place]


def lying(place: str, value: Mapping[str, Any]) -> Any:
    """A value of that type, with the struct more than once where that is possible, and a NULL."""
    found: dict[str, Any] = {
        "struct": value,
        "list": [value, None, value],
        "map": {"k": value},
    }
    return found[place]


def schema(changes: Mapping[str, Change], *, after: bool) -> InternalSchema:
    """A column for each change at each place."""
    columns = [ID]
    for change_number, (name, change) in enumerate(changes.items()):
        for place_number, place in enumerate(PLACES):
            base = 100 * (1 + change_number * len(PLACES) + place_number)
            type_ = placed(place, change.after if after else HELD, base)
            columns.append(Column(id=base, name=f"{name}_{place}", type=type_))
    return InternalSchema(columns=tuple(columns), primary_key=(1,), last_column_id=10_000)


def row(id_: int, changes: Mapping[str, Change], *, after: bool) -> dict[str, Any]:
    values = {
        f"{name}_{place}": lying(place, change.value if after else VALUE)
        for name, change in changes.items()
        for place in PLACES
    }
    return {"id": id_, **values}


def as_text(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Values as text, in which the order of members counts."""
    return [{name: repr(value) for name, value in found.items()} for found in rows]


@pytest.mark.parametrize("changes", [IN_PLACE, WIDER, REWRITTEN], ids=["in place", "wider", "rewritten"])
def test_members_keep_their_values_wherever_the_struct_is_and_it_takes_one_commit(
    lake: Lake, changes: Mapping[str, Change]
) -> None:
    before, after = schema(changes, after=False), schema(changes, after=True)
    lake.create(before)
    nothing = {"id": 2}
    lake.write(before, [row(1, changes, after=False), nothing, row(3, changes, after=False)], progress=PROGRESS)
    made = commits(lake)

    (step,) = lake.change(before, after, progress=PROGRESS).steps

    is_rewritten = rewrites(diff(before, after), lake.target.capabilities, after)
    assert isinstance(step, RewriteTable if is_rewritten else AlterTable)
    assert commits(lake) == made + 1
    empty = dict.fromkeys(row(2, changes, after=True)) | nothing
    kept = [row(1, changes, after=True), empty, row(3, changes, after=True)]
    assert as_text(lake.rows()) == as_text(kept)

    lake.write(after, [row(4, changes, after=True)], append=True)
    assert as_text(lake.rows()) == as_text([*kept, row(4, changes, after=True)])


def test_what_is_in_place_is_rewritten_nowhere_but_in_formats_whose_readers_get_it_wrong(lake: Lake) -> None:
    before, after = schema(IN_PLACE, after=False), schema(IN_PLACE, after=True)
    misread = lake.target.capabilities in (DELTA, HUDI, HUDI_ON_READ, PARQUET)
    assert rewrites(diff(before, after), lake.target.capabilities, after) is misread


_BY_ID = {"iceberg": "iceberg", "delta": "delta", "hudi_on_read": "hudi"}
IN_PLACE_FORMATS = ["memory", *(pytest.param(name, marks=getattr(pytest.mark, mark)) for name, mark in _BY_ID.items())]


@pytest.mark.parametrize("lake", IN_PLACE_FORMATS, indirect=True)
def test_states_of_before_are_read_with_the_members_of_today(lake: Lake) -> None:
    before, after = schema(IN_PLACE, after=False), schema(IN_PLACE, after=True)
    lake.create(before)
    for number in (1, 2):
        progress = Progress(version=1, offsets={"t": {0: number}})
        lake.write(before, [row(number, IN_PLACE, after=False)], progress=progress, append=True)
    lake.change(before, after, progress=progress)

    first = lake.target.commits(lake.name, 9)[1]

    (found,) = lake.target.read(lake.name, after, [column.id for column in after.columns], first).collect()
    names = [column.name for column in after.columns]
    assert as_text([dict(zip(names, found.asDict(recursive=True).values(), strict=True))]) == as_text(
        [row(1, IN_PLACE, after=True)]
    )
