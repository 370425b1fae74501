"""Names as hostile as a database allows: held as they are by both targets, and never more than a name to SQL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import urlparse

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.migration import Migration
from cdc_sync.core.migration.names import held_name
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT64, STRING
from cdc_sync.targets.memory.target import MemoryTarget
from cdc_sync.targets.protocol import Target
from tests.targets.conftest import Lake, fresh_name, schema_of

pytestmark = [pytest.mark.spark, pytest.mark.iceberg]

HOSTILE = st.text(
    st.sampled_from([*"`'\";-/*\\.%#?:$ \n\t", "\0", "\u202e", "\u200f", "é", "漢", "😀", "a", "A"])
    | st.characters(exclude_categories=["Cs"]),
    min_size=1,
    max_size=63,
)
FEW = settings(
    max_examples=4,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def read_by_pyiceberg(lake: Lake) -> list[dict[str, object]]:
    """What a reader that has nothing of Spark in it finds."""
    from pyiceberg.table import StaticTable

    target = lake.target
    table = target._load(lake.name)  # type: ignore[attr-defined]
    where = table.operations().current().metadataFileLocation()
    rows: list[dict[str, object]] = StaticTable.from_metadata(str(where)).scan().to_arrow().to_pylist()
    return rows


def live(lake: Lake, names: list[str]) -> list[dict[str, object]]:
    """Create with a third of the names, add the second, rename all in a circle, drop one and add the last third.

    Rows are written all along; the first name is the key. Returns the rows there should be, by name.
    """
    first, second, third = (names[index::3] for index in range(3))
    key = first[0]
    schema = schema_of(Column(id=1, name=key, type=INT64), *texts(2, first[1:]))
    lake.create(schema)
    lake.write(schema, [{key: 1, **dict.fromkeys(first[1:], "x")}], append=True)
    lake.write(schema, [{key: 1, **{name: f"y{name}" for name in first[1:]}}, {key: 2}])
    added = with_columns(schema, *schema.columns, *texts(schema.last_column_id + 1, second, initial="i"))
    change(lake, schema, added, 2)
    texts_now = [column.name for column in added.columns[1:]]
    circle = dict(zip(texts_now, [*texts_now[1:], texts_now[0]], strict=True))
    renamed = with_columns(added, *(replace(c, name=circle.get(c.name, c.name)) for c in added.columns))
    change(lake, added, renamed, 3)
    lake.write(renamed, [{key: 2, **{name: f"z{name}" for name in texts_now}}, {key: 3}])
    kept = (renamed.columns[0], *renamed.columns[2:])
    last = with_columns(renamed, *texts(renamed.last_column_id + 1, third), *kept)
    change(lake, renamed, last, 4)
    lake.write(last, [{key: 3, **{name: f"w{name}" for name in third}}])
    old = {circle[name]: f"y{name}" for name in first[1:]} | {circle[name]: "i" for name in second}
    columns = [column.name for column in last.columns]
    rows: list[dict[str, object]] = [
        {key: 1, **old},
        {key: 2, **{name: f"z{name}" for name in texts_now}},
        {key: 3, **{name: f"w{name}" for name in third}},
    ]
    return [{name: row.get(name) for name in columns} for row in rows]


def texts(start: int, names: list[str], *, initial: str | None = None) -> tuple[Column, ...]:
    return tuple(Column(id=id_, name=name, type=STRING, initial=initial) for id_, name in enumerate(names, start=start))


def with_columns(schema: InternalSchema, *columns: Column) -> InternalSchema:
    return replace(schema, columns=columns, last_column_id=max(schema.last_column_id, *(c.id for c in columns)))


def change(lake: Lake, before: InternalSchema, after: InternalSchema, number: int) -> Migration:
    from cdc_sync.core.migration.migration import migration
    from cdc_sync.testing.targets import version

    steps = migration(version(number - 1, before), version(number - 1, before), version(number, after))
    lake.migrate(steps)
    return steps


NASTY = [
    *(
        "id",
        "a",
        "A",
        "à",
        "`",
        "``",
        "`; DROP TABLE x; --",
        "' OR 1=1",
        "a.b",
        "a.b.c",
        ".",
        "op",
        "created",
        "t",
        "s",
    ),
    *("ä" * 31 + "x", "漢" * 21, "x" * 63, "\u202eabc", "c1", "*", "\0", "\\", "$"),
]


def by_key(rows: list[dict[str, object]], key: str) -> list[dict[str, object]]:
    return sorted(rows, key=lambda row: str(row[key]))


@given(names=st.lists(HOSTILE, min_size=12, max_size=12, unique=True))
@example(names=NASTY)
@settings(FEW, max_examples=2)
def test_every_name_lives_through_create_add_rename_and_merge(
    iceberg: Target, session: SparkSession, names: list[str]
) -> None:
    lakes = [
        Lake(target=MemoryTarget(), session=session, name=fresh_name()),
        Lake(target=iceberg, session=session, name=fresh_name()),
    ]
    for lake in lakes:
        expected = live(lake, names)
        assert by_key(lake.rows(), names[0]) == expected
        assert [list(row) for row in lake.rows()] == [list(row) for row in expected]
    assert by_key(read_by_pyiceberg(lakes[1]), names[0]) == expected


def test_names_that_iceberg_keeps_for_itself_are_mapped(iceberg: Target, session: SparkSession) -> None:
    names = sorted(ICEBERG.columns.reserved)
    held = {name: held_name(name, ICEBERG.columns) for name in names}
    lake = Lake(target=iceberg, session=session, name=fresh_name())
    expected = live(lake, names)
    assert by_key(lake.rows(), names[0]) == expected, "`Lake` gives them the source's names again"
    mapped = [{held[name]: value for name, value in row.items()} for row in expected]
    assert by_key(read_by_pyiceberg(lake), held[names[0]]) == mapped
    assert set(held.values()).isdisjoint(names)


@given(name=HOSTILE)
@example(name="..")
@example(name="../../../outside")
@example(name="a/metadata")
@example(name="a?b")
@example(name="`; DROP TABLE x; --")
@example(name="漢" * 63)
@FEW
def test_a_table_of_any_name_stays_in_its_own_folder(iceberg: Target, session: SparkSession, name: str) -> None:
    warehouse = Path(urlparse(session.conf.get("spark.sql.catalog.lake.warehouse") or "").path).resolve()
    held = held_name(name, ICEBERG.tables)
    target = TargetName(namespace=name, name=name)
    lake = Lake(target=iceberg, session=session, name=target)
    schema = schema_of(Column(id=1, name="id", type=INT64))
    lake.create(schema)
    lake.write(schema, [{"id": 1}])
    lake.write(schema, [{"id": 1}, {"id": 2}])
    location = Path(iceberg._load(target).location().removeprefix("file:"))  # type: ignore[attr-defined]
    assert location.resolve() == warehouse / held / held
    assert by_key(read_by_pyiceberg(lake), "id") == [{"id": 1}, {"id": 2}]
