"""Tables without a key hold what the source holds, each row as often as the source does."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from cdc_sync.core.migration.migration import migration
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column
from cdc_sync.core.schema.types import BOOLEAN, DATE, FLOAT32, INT8, INT64, STRING, TIMESTAMP, TIMESTAMP_TZ
from cdc_sync.errors import TargetError
from cdc_sync.targets.common.keyless import merge_whole_rows_statement
from cdc_sync.targets.memory.target import MemoryTarget
from cdc_sync.targets.protocol import MISSING_ROW, Target
from cdc_sync.testing.targets import version
from tests.targets.conftest import Lake, fresh_name, schema_of
from tests.targets.keyless import (
    NOTHING,
    SCHEMA,
    Event,
    Row,
    apply,
    counted,
    created,
    deleted,
    expected,
    updated,
)

GOLDEN = Path(__file__).parent / "golden"
NAN = float("nan")
ROW: Row = (1.5, "x", [1.0, None], (1, 0.5), bytearray(b"\x00\xff"), Decimal("1.50"))
ODD: Row = (NAN, None, [NAN, -0.0], (None, NAN), bytearray(b""), None)
PROGRESS = Progress(version=1, offsets={"t": {0: 5}})

numbers = st.sampled_from([None, NAN, 0.0, -0.0, 1.5])
rows = st.tuples(
    numbers,
    st.sampled_from([None, "", "x"]),
    st.sampled_from([None, [], [None], [NAN, 0.0], [NAN, -0.0]]),
    st.sampled_from([None, (None, None), (1, NAN), (1, -0.0)]),
    st.sampled_from([None, bytearray(b"a")]),
    st.sampled_from([None, Decimal("1.50")]),
) | st.sampled_from([NOTHING, ROW])


@st.composite
def batches(draw: st.DrawFn, most: int) -> list[list[Event]]:
    """Events that a source could send, split into batches anywhere."""
    held: list[Row] = []
    events: list[Event] = []
    for _ in range(draw(st.integers(1, most))):
        place = draw(st.integers(0, len(held) + 1))
        if place >= len(held):
            event = created(draw(rows))
        else:
            before = held.pop(place)
            event = draw(st.just(deleted(before)) | st.builds(updated, st.just(before), rows))
        if event.after is not None:
            held.append(event.after)
        events.append(event)
    cuts = sorted(draw(st.sets(st.integers(1, len(events)), max_size=4)))
    return [events[start:end] for start, end in zip([0, *cuts], [*cuts, len(events)], strict=True)]


def new_table(target: Target, session: SparkSession) -> Lake:
    lake = Lake(target=target, session=session, name=fresh_name())
    lake.create(SCHEMA)
    return lake


slow = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.spark
class TestModel:
    @settings(slow, max_examples=12)
    @given(split=batches(24))
    def test_any_events_in_any_batches_lead_to_the_sources_rows(
        self, session: SparkSession, split: list[list[Event]]
    ) -> None:
        lake = new_table(MemoryTarget(), session)
        for batch in split:
            apply(lake, batch)
        assert counted(lake.rows()) == expected([event for batch in split for event in batch])

    @pytest.mark.iceberg
    @settings(slow, max_examples=3)
    @given(split=batches(16))
    def test_another_reader_sees_them_too(
        self, session: SparkSession, iceberg: Target, split: list[list[Event]]
    ) -> None:
        lake = new_table(iceberg, session)
        for batch in split:
            apply(lake, batch)
        assert counted(read(lake)) == expected([event for batch in split for event in batch])


def read(lake: Lake) -> list[dict[str, Any]]:
    """What pyiceberg sees."""
    warehouse = lake.session.conf.get("spark.sql.catalog.lake.warehouse")
    catalog = SqlCatalog("lake", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}")
    table = catalog.load_table((lake.name.namespace, lake.name.name))
    found: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return found


def test_the_statement() -> None:
    statement = merge_whole_rows_statement("`lake`.`a.b`.`t`", "view", SCHEMA)
    text = statement.replace(" WHEN", "\nWHEN") + "\n"
    assert text == (GOLDEN / "merge_whole_rows.sql").read_text()


@pytest.fixture
def table(lake: Lake) -> Lake:
    lake.create(SCHEMA)
    return lake


@pytest.mark.spark
class TestRows:
    @pytest.mark.parametrize("row", [NOTHING, ROW, ODD], ids=["all NULL", "plain", "NaN"])
    def test_one_of_several_copies_is_deleted(self, table: Lake, row: Row) -> None:
        apply(table, [created(row)] * 3 + [created((2.0, *row[1:]))])
        apply(table, [deleted(row)])
        assert counted(table.rows()) == expected([created(row)] * 2 + [created((2.0, *row[1:]))])
        apply(table, [deleted(row)] * 2)
        assert counted(table.rows()) == expected([created((2.0, *row[1:]))])

    def test_the_order_within_a_batch_does_not_matter(self, table: Lake) -> None:
        apply(table, [deleted(ROW), updated(ODD, ROW), created(ODD)])
        assert table.rows() == []

    def test_zero_and_minus_zero_are_one_row(self, table: Lake) -> None:
        apply(table, [created((0.0, *NOTHING[1:])), created((-0.0, *NOTHING[1:]))])
        apply(table, [deleted((-0.0, *NOTHING[1:]))])
        apply(table, [deleted((-0.0, *NOTHING[1:]))])
        assert table.rows() == []

    def test_a_row_that_is_not_there_fails_and_nothing_is_written(self, table: Lake) -> None:
        apply(table, [created(ROW)], progress=PROGRESS)
        for events in ([deleted(ROW)] * 2, [created(NOTHING), deleted(ODD)], [deleted(ROW), updated(ODD, ROW)]):
            with pytest.raises(TargetError, match=MISSING_ROW):
                apply(table, events)
            state = table.target.state(table.name)
            assert state is not None
            assert (counted(table.rows()), state.progress) == (expected([created(ROW)]), PROGRESS)

    def test_rows_that_are_not_there_may_be_passed_over(self, table: Lake, capsys: pytest.CaptureFixture[str]) -> None:
        apply(table, [created(ROW)])
        apply(table, [deleted(ROW)] * 3 + [updated(ODD, NOTHING)], require_rows=False)
        assert counted(table.rows()) == expected([created(NOTHING)])
        apply(table, [updated(ODD, NOTHING)], require_rows=False)
        assert counted(table.rows()) == expected([created(NOTHING)] * 2)

    def test_the_marker_goes_with_the_rows_also_when_there_are_none(self, table: Lake) -> None:
        for number, events in enumerate(([created(ROW)], [updated(ROW, ODD)], [deleted(ODD)], [], [created(ROW)]), 1):
            progress = replace(PROGRESS, offsets={"t": {0: number}})
            apply(table, events, progress=progress)
            state = table.target.state(table.name)
            assert state is not None
            assert (state.progress, state.mode) == (progress, "upsert")

    def test_a_marker_tells_that_a_batch_was_applied_although_the_reply_was_lost(self, table: Lake) -> None:
        events, applied = [created(ROW)] * 2, 0
        for _ in range(2):
            state = table.target.state(table.name)
            assert state is not None
            if state.progress != PROGRESS:
                apply(table, events, progress=PROGRESS)
                applied += 1
        assert (counted(table.rows()), applied) == (expected(events), 1)

    def test_columns_come_and_go(self, table: Lake) -> None:
        apply(table, [created(ROW)] * 2 + [created(NOTHING)])
        columns = (*SCHEMA.columns[:1], Column(id=10, name="new", type=INT64, initial=7), *SCHEMA.columns[2:])
        after = replace(SCHEMA, columns=columns, last_column_id=10)
        table.change(SCHEMA, after)
        old: Row = (ROW[0], 7, *ROW[2:])
        apply(table, [deleted(old), created((None, 8, *NOTHING[2:]))], after)
        assert counted(table.rows()) == expected(
            [created(old), created((None, 7, *NOTHING[2:])), created((None, 8, *NOTHING[2:]))]
        )

    def test_copies_that_stay_keep_what_a_retired_column_holds(self, table: Lake) -> None:
        apply(table, [created(ROW)] * 3)
        columns = (replace(SCHEMA.columns[0], retired=True), *SCHEMA.columns[1:])
        after = replace(SCHEMA, columns=columns)
        table.change(SCHEMA, after)
        row: Row = (None, *ROW[1:])
        apply(table, [created(row)], after)
        apply(table, [deleted(row)] * 2, after)
        assert counted(table.rows()) == expected([created(ROW)] * 2)


EVERY_TYPE = schema_of(
    Column(id=1, name="boolean", type=BOOLEAN),
    Column(id=2, name="small", type=INT8),
    Column(id=3, name="float", type=FLOAT32),
    Column(id=4, name="day", type=DATE),
    Column(id=5, name="local", type=TIMESTAMP),
    Column(id=6, name="instant", type=TIMESTAMP_TZ),
    Column(id=7, name="text", type=STRING),
    key=(),
)


@pytest.mark.spark
def test_rows_of_every_plain_type_are_found(lake: Lake) -> None:
    moment = datetime(2020, 1, 1, 12)
    row: Row = (True, 1, NAN, moment.date(), moment, moment, "é😀")
    lake.create(EVERY_TYPE)
    apply(lake, [created(row)] * 3 + [created((None,) * 7)], EVERY_TYPE)
    apply(lake, [deleted(row), deleted((None,) * 7)], EVERY_TYPE)
    assert counted(lake.rows()) == expected([created(row)] * 2)


@pytest.mark.spark
@pytest.mark.iceberg
class TestCommits:
    def test_a_batch_is_one_commit_and_only_additions_are_an_append(
        self, session: SparkSession, iceberg: Target
    ) -> None:
        table = new_table(iceberg, session)
        apply(table, [created(ROW)] * 3)
        apply(table, [deleted(ROW), created(NOTHING)])
        apply(table, [updated(NOTHING, NOTHING)])
        apply(table, [deleted(ODD)], require_rows=False)
        found = session.sql(f"SELECT operation FROM {table.sql_name}.snapshots ORDER BY committed_at").collect()
        assert [row.operation for row in found] == ["append", "overwrite", "append", "append"]

    def test_nothing_is_left_behind(self, session: SparkSession, iceberg: Target) -> None:
        table = new_table(iceberg, session)
        apply(table, [created(ROW)] * 3)
        with pytest.raises(TargetError):
            apply(table, [deleted(ODD)])
        apply(table, [deleted(ROW)])
        assert [view for view in session.catalog.listTables() if view.isTemporary] == []
        assert session._jsparkSession.sharedState().cacheManager().isEmpty()


def test_a_table_without_a_key_is_migrated_as_any_other() -> None:
    after = replace(SCHEMA, columns=SCHEMA.columns[1:])
    steps = migration(version(1, SCHEMA), version(1, SCHEMA), version(2, after)).steps
    assert len(steps) == 1
    assert Counter(type(step).__name__ for step in steps) == {"AlterTable": 1}
