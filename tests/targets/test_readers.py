"""A reader that polls a table while its columns change never sees half of a change.

The reader is pyiceberg, hudi-rs or Arrow, in a thread of its own. CDC_SYNC_READERS=50 asks for that many rewrites,
swaps and rollbacks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from cdc_sync.core.migration.migration import migration
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT64, STRING
from cdc_sync.targets.hudi.target import HudiTarget
from cdc_sync.targets.parquet.target import ParquetTarget
from cdc_sync.targets.protocol import Target
from cdc_sync.testing.targets import version
from tests.targets.conftest import Lake, fresh_name, schema_of

pytestmark = pytest.mark.spark

_CHANGES = int(os.environ.get("CDC_SYNC_READERS", "6"))
_ROWS = 500

Seen: TypeAlias = tuple[tuple[str, ...], frozenset[str]]
"""Names and types of the columns, and the different rows but for their ids, which are checked apart."""


def _schema(first: str, second: str, *, text: bool) -> InternalSchema:
    """Return a table with the columns 2 and 3 under these names; the first of them may be text."""
    return schema_of(
        Column(id=1, name="id", type=INT64),
        Column(id=2, name=first, type=STRING if text else INT64),
        Column(id=3, name=second, type=STRING),
    )


def _state(schema: InternalSchema) -> Seen:
    names = tuple(f"{column.name} {'long' if column.type == INT64 else 'string'}" for column in schema.columns)
    first = schema.columns[1]
    return names, frozenset({repr({first.name: 7 if first.type == INT64 else "7", schema.columns[2].name: "same"})})


@pytest.fixture(
    params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("iceberg", "hudi", "parquet")]
)
def target(request: pytest.FixtureRequest) -> Target:
    found: Target = request.getfixturevalue(request.param)
    return found


def test_a_polling_reader_sees_whole_states_only(target: Target, session: SparkSession) -> None:
    lake = Lake(target=target, session=session, name=fresh_name())
    before = now = _schema("a", "b", text=True)
    number = 1
    lake.create(now)
    rows = [{"id": key, "a": "7", "b": "same"} for key in range(_ROWS)]
    lake.write(now, rows, progress=Progress(version=1, offsets={"t": {0: _ROWS}}))
    allowed = {_state(now)}

    with _reader(lake) as seen:
        for change in range(_CHANGES):
            first, second = now.columns[1].name, now.columns[2].name
            if change % 3 == 2:
                assert lake.target.roll_back(lake.name)
                now, number = before, number - 1
                continue
            if change % 3 == 0:
                after = _schema(first, second, text=now.columns[1].type == INT64)
            else:
                after = _schema(second, first, text=now.columns[1].type == INT64)  # a swap and a rewrite at once
            allowed.add(_state(after))
            head = version(number + 1, after)
            steps = migration(version(number, now), version(number, now), head, capabilities=target.capabilities)
            lake.migrate(steps, Progress(version=number + 1, offsets={"t": {0: _ROWS}}))
            before, now, number = now, after, number + 1

    assert set(seen) <= allowed, set(seen) - allowed
    assert len(set(seen)) > 1, "the reader saw it change"
    assert seen[-1] == _state(now)


@contextmanager
def _reader(lake: Lake) -> Iterator[list[Seen]]:
    """Poll the table meanwhile, and once more at the end."""
    match lake.target:
        case HudiTarget():
            look: Callable[[Lake], Seen] = _look_by_hudi_rs
        case ParquetTarget():
            look = _look_by_arrow
        case _:
            look = _looking_by_pyiceberg(lake)
    seen: list[Seen] = []
    problems: list[Exception] = []
    stop = threading.Event()

    def poll() -> None:
        try:
            while not stop.is_set():
                seen.append(look(lake))
        except Exception as error:
            problems.append(error)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()
    assert problems == []
    seen.append(look(lake))


def _looking_by_pyiceberg(lake: Lake) -> Callable[[Lake], Seen]:
    uri = (
        str(lake.session.conf.get("spark.sql.catalog.lake.uri")).removeprefix("jdbc:").replace("sqlite:", "sqlite:///")
    )
    catalog = SqlCatalog("lake", uri=uri, init_catalog_tables="false", schema_version="v1")

    def look(lake: Lake) -> Seen:
        table = catalog.load_table((lake.name.namespace, lake.name.name))
        return _seen(table.scan().to_arrow(), [f"{field.name} {field.field_type}" for field in table.schema().fields])

    return look


def _look_by_hudi_rs(lake: Lake) -> Seen:
    assert isinstance(lake.target, HudiTarget)
    found = pa.Table.from_batches(HudiTableBuilder.from_base_uri(lake.target.path(lake.name)).build().read())
    data = found.select([name for name in found.column_names if not name.startswith("_hoodie_")])
    return _seen(data, _typed(data))


def _look_by_arrow(lake: Lake) -> Seen:
    """Ask the metastore where the table is, then read that folder."""
    assert isinstance(lake.target, ParquetTarget)
    entry = lake.target.table(lake.name).entry()
    assert entry is not None
    data = pq.read_table(entry.location.removeprefix("file:"))
    assert [column.name for column in entry.columns] == data.column_names
    return _seen(data, _typed(data))


def _typed(data: Any) -> list[str]:
    types = {pa.int64(): "long", pa.string(): "string"}
    return [f"{field.name} {types[field.type]}" for field in data.schema]


def _seen(data: Any, columns: list[str]) -> Seen:
    rows: list[dict[str, Any]] = data.to_pylist()
    ids = sorted(row.pop("id") for row in rows)
    assert ids == list(range(_ROWS)), f"{len(ids)} rows"
    return tuple(columns), frozenset(map(repr, rows))
