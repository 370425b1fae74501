"""Random tables, their histories, and what really happened to every column.

A law wants thousands of schemas in a few seconds, so each step is one drawn integer, taken apart by arithmetic; that
still shrinks well. The model knows columns by an identity of its own (like Postgres' attnum), never by name or id.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from cdc_sync.core.schema.alignment import Alignment, Unproven
from cdc_sync.core.schema.derive import derive
from cdc_sync.core.schema.internal import EMPTY_SCHEMA, Column, InternalSchema
from cdc_sync.core.schema.observed import ObservedColumn, ObservedSchema
from cdc_sync.core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    DataType,
    DecimalType,
    Default,
    Field,
    ListType,
    MapType,
    StructType,
)

SCALARS: tuple[DataType, ...] = (
    BOOLEAN,
    INT8,
    INT16,
    INT32,
    INT64,
    FLOAT32,
    FLOAT64,
    DecimalType(precision=5, scale=2),
    DecimalType(precision=12, scale=2),
    DecimalType(precision=38, scale=0),
    STRING,
    BINARY,
    DATE,
    TIMESTAMP,
    TIMESTAMP_TZ,
)
_POINT = StructType(fields=(Field(id=0, name="x", type=INT32), Field(id=0, name="y", type=INT32, optional=False)))
NESTED: tuple[DataType, ...] = (
    _POINT,
    StructType(fields=(Field(id=0, name="y", type=INT64), Field(id=0, name="z", type=STRING, comment="up"))),
    ListType(element_id=0, element=INT32),
    ListType(element_id=0, element=_POINT, element_optional=False),
    MapType(key_id=0, key=STRING, value_id=0, value=INT32),
    MapType(key_id=0, key=STRING, value_id=0, value=ListType(element_id=0, element=_POINT), value_optional=False),
)
TYPES = SCALARS + NESTED
NAMES = ("a", "b", "c", "d", "e", "A", "naïve é", "select", "a.b", "`")
DEFAULTS: tuple[Default, ...] = (
    None,
    False,
    0,
    1,
    0.5,
    "",
    "1.50",
    "2020-01-01",
    "2020-01-01T00:00:00Z",
    "00ff",
    "é\n",
)
COMMENTS = (None, "", "what it is", 'quo"ted\n')


@dataclass
class World:
    """A source table: columns by identity, in order, and those the target keeps although the source lost them."""

    columns: list[tuple[int, ObservedColumn]] = field(default_factory=list)
    key: list[int] = field(default_factory=list)
    born: int = 0
    unproven: set[int] = field(default_factory=set)
    initials: dict[str, Default] = field(default_factory=dict)

    def observed(self) -> ObservedSchema:
        names = {identity: column.name for identity, column in self.columns}
        return ObservedSchema(
            columns=tuple(column for _, column in self.columns), key=tuple(names[identity] for identity in self.key)
        )

    def step(self, number: int) -> None:
        """Do what an integer says; what does not fit is left undone."""
        number, kind = divmod(number, len(_STEPS))
        _STEPS[kind](self, number)

    def _pick(self, number: int) -> tuple[int, int]:
        return divmod(number, len(self.columns))

    def _set(self, place: int, column: ObservedColumn) -> None:
        self.columns[place] = (self.columns[place][0], column)

    def _free(self, name: str) -> bool:
        return all(column.name != name for _, column in self.columns)

    def add(self, number: int) -> None:
        number, name = divmod(number, len(NAMES))
        number, type_ = divmod(number, len(TYPES))
        number, default = divmod(number, len(DEFAULTS))
        if not self._free(NAMES[name]):
            return
        column = ObservedColumn(
            name=NAMES[name], type=TYPES[type_], default=DEFAULTS[default], suspect_default=number % 5 == 0
        )
        self.born += 1
        # Half of the time last, as every source does it; else anywhere, as MySQL may.
        place = len(self.columns) if number % 2 else number // 2 % (len(self.columns) + 1)
        self.columns.insert(place, (self.born, column))
        self.initials[NAMES[name]] = DEFAULTS[number % len(DEFAULTS)]

    def drop(self, number: int) -> None:
        if len(self.columns) < 2:
            return
        number, place = self._pick(number)
        identity, _ = self.columns.pop(place)
        self.key = [known for known in self.key if known != identity]
        if number % 3 == 0:
            self.unproven.add(identity)

    def rename(self, number: int) -> None:
        number, place = self._pick(number)
        name = NAMES[number % len(NAMES)]
        if self._free(name):
            self._set(place, replace(self.columns[place][1], name=name))

    def rotate_names(self, number: int) -> None:
        number, place = self._pick(number)
        places = [(place + i) % len(self.columns) for i in range(min(2 + number % 3, len(self.columns)))]
        names = [self.columns[i][1].name for i in places]
        for i, name in zip(places, [*names[1:], names[0]], strict=True):
            self._set(i, replace(self.columns[i][1], name=name))

    def retype(self, number: int) -> None:
        number, place = self._pick(number)
        self._set(place, replace(self.columns[place][1], type=TYPES[number % len(TYPES)]))

    def describe(self, number: int) -> None:
        number, place = self._pick(number)
        number, comment = divmod(number, len(COMMENTS))
        number, default = divmod(number, len(DEFAULTS))
        column = self.columns[place][1]
        self._set(
            place,
            replace(column, optional=number % 2 == 0, comment=COMMENTS[comment], default=DEFAULTS[default]),
        )

    def move(self, number: int) -> None:
        number, place = self._pick(number)
        moved = self.columns.pop(place)
        self.columns.insert(number % (len(self.columns) + 1), moved)

    def rekey(self, number: int) -> None:
        number, place = self._pick(number)
        identity = self.columns[place][0]
        self.key = [known for known in self.key if known != identity] if identity in self.key else [*self.key, identity]


_STEPS = (
    World.add,
    World.add,
    World.drop,
    World.rename,
    World.rotate_names,
    World.retype,
    World.describe,
    World.move,
    World.rekey,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One version, the event it was derived from, and the id that each identity of the model has in it."""

    observed: ObservedSchema
    schema: InternalSchema
    ids: dict[int, int]


def recorded_history(numbers: list[list[int]]) -> list[Recorded]:
    """Play each inner list as the changes between two events, and derive what must be recorded."""
    world = World()
    for name in (0, 1, 2):
        world.add(name + len(NAMES) * 3)
    world.key = [1]
    versions: list[Recorded] = []
    for steps in numbers:
        for number in steps:
            world.step(number)
        before = versions[-1] if versions else Recorded(observed=world.observed(), schema=EMPTY_SCHEMA, ids={})
        versions.append(_record(world, before))
        world.unproven.clear()
        world.initials.clear()
    return versions


def _record(world: World, before: Recorded) -> Recorded:
    present = {identity: index for index, (identity, _) in enumerate(world.columns)}
    live = {identity: id_ for identity, id_ in before.ids.items() if not before.schema.column(id_).retired}
    gone = [identity for identity in live if identity not in present]
    kept = [live[identity] for identity in gone if identity in world.unproven]
    alignment = Alignment(
        same=tuple((live[identity], index) for identity, index in present.items() if identity in live),
        added=tuple(index for identity, index in present.items() if identity not in live),
        dropped=tuple(live[identity] for identity in gone if identity not in world.unproven),
        unproven=(Unproven(vanished=tuple(kept), appeared=(), explanations=(), reason="said so"),) if kept else (),
        evidence=(),
    )
    observed = world.observed()
    schema = derive(before.schema, observed, alignment, retire=True, initials=world.initials)
    by_name = {column.name: column.id for column in schema.live}
    ids = {identity: by_name[column.name] for identity, column in world.columns}
    retired = {
        identity: id_
        for identity, id_ in before.ids.items()
        if identity not in present and any(column.id == id_ for column in schema.columns)
    }
    return Recorded(observed=observed, schema=schema, ids={**ids, **retired})


text = st.text(alphabet='a"\\\n é\u2028😀', max_size=4)
"""What breaks careless writers."""

_number = st.integers(min_value=0, max_value=2**24)
histories = st.lists(st.lists(_number, min_size=1, max_size=4), min_size=2, max_size=9).map(recorded_history)
"""Consecutive versions of one table, two to nine, up to four changes apart."""

types: st.SearchStrategy[DataType] = st.recursive(
    st.sampled_from(SCALARS)
    | st.builds(
        lambda precision, scale: DecimalType(precision=precision, scale=min(precision, scale)),
        st.integers(1, 38),
        st.integers(0, 38),
    ),
    lambda inner: (
        st.builds(ListType, element_id=st.integers(1, 3), element=inner, element_optional=st.booleans())
        | st.builds(
            MapType,
            key_id=st.integers(1, 3),
            key=inner,
            value_id=st.integers(4, 6),
            value=inner,
            value_optional=st.booleans(),
        )
        | st.lists(
            st.builds(
                Field,
                id=st.integers(1, 3),
                name=st.sampled_from(NAMES[:3]),
                type=inner,
                optional=st.booleans(),
                comment=st.sampled_from(COMMENTS),
            ),
            max_size=2,
        ).map(lambda fields: StructType(fields=tuple(fields)))
    ),
    max_leaves=4,
)
"""Any type, nested too; ids mean nothing and may repeat."""

columns = st.builds(
    Column,
    id=st.integers(1, 9),
    name=st.sampled_from(NAMES),
    type=types,
    optional=st.booleans(),
    comment=st.sampled_from(COMMENTS),
    default=st.sampled_from(DEFAULTS) | st.floats(allow_nan=False, allow_infinity=False),
    initial=st.sampled_from(DEFAULTS) | text,
    retired=st.booleans(),
)
