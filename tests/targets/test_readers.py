"""A reader that polls a table while its columns change never sees half of a change.

The reader is pyiceberg, in a thread of its own. CDC_SYNC_READERS=50 asks for that many rewrites, swaps and rollbacks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from cdc_sync.migrate.migration import migration
from cdc_sync.progress import Progress
from cdc_sync.schema.internal import Column, InternalSchema
from cdc_sync.schema.types import INT64, STRING
from cdc_sync.targets.base import Target
from cdc_sync.testing.history import version
from tests.targets.conftest import Lake, fresh_name, schema_of

pytestmark = [pytest.mark.spark, pytest.mark.iceberg]

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


def test_a_polling_reader_sees_whole_states_only(iceberg: Target, session: SparkSession) -> None:
    lake = Lake(target=iceberg, session=session, name=fresh_name())
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
            steps = migration(version(number, now), version(number, now), version(number + 1, after))
            lake.migrate(steps, Progress(version=number + 1, offsets={"t": {0: _ROWS}}))
            before, now, number = now, after, number + 1

    assert set(seen) <= allowed, set(seen) - allowed
    assert len(set(seen)) > 1, "the reader saw it change"
    assert seen[-1] == _state(now)


@contextmanager
def _reader(lake: Lake) -> Iterator[list[Seen]]:
    """Poll the table meanwhile, and once more at the end."""
    uri = (
        str(lake.session.conf.get("spark.sql.catalog.lake.uri")).removeprefix("jdbc:").replace("sqlite:", "sqlite:///")
    )
    catalog = SqlCatalog("lake", uri=uri, init_catalog_tables="false", schema_version="v1")
    seen: list[Seen] = []
    problems: list[Exception] = []
    stop = threading.Event()

    def poll() -> None:
        try:
            while not stop.is_set():
                seen.append(_look(catalog, lake))
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
    seen.append(_look(catalog, lake))


def _look(catalog: SqlCatalog, lake: Lake) -> Seen:
    table = catalog.load_table((lake.name.namespace, lake.name.name))
    rows: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    ids = sorted(row.pop("id") for row in rows)
    assert ids == list(range(_ROWS)), f"{len(ids)} rows"
    return tuple(f"{field.name} {field.field_type}" for field in table.schema().fields), frozenset(map(repr, rows))
