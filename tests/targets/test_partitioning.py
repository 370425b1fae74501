"""Partitions of Iceberg tables: rows lie where they belong, and no change of a column makes a table unreadable."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc_sync.config import Catalog
from cdc_sync.config import Target as TargetConfig
from cdc_sync.core.migration.maintenance import Upkeep, chores
from cdc_sync.core.migration.migration import Migration, Repartition, migration
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning
from cdc_sync.core.schema.types import DATE, INT32, INT64, STRING, TIMESTAMP_TZ
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.protocol import Target
from cdc_sync.testing.targets import version
from tests.targets.conftest import fresh_name, schema_of
from tests.targets.divided import DividedLake, rows_of
from tests.targets.keyless import apply, created, deleted, updated

pytestmark = [pytest.mark.spark, pytest.mark.iceberg]

ID = Column(id=1, name="id", type=INT32)
REGION = Column(id=2, name="region", type=STRING)
AT = Column(id=3, name="at", type=TIMESTAMP_TZ)
SCHEMA = schema_of(ID, REGION, AT)
NOON = datetime(2024, 2, 29, 12, 0)


class Divided(DividedLake):
    """A lake whose table is partitioned."""

    def by(self, schema: InternalSchema, text: str | None) -> None:
        """Partition in another way; None is not at all."""
        after = UNPARTITIONED if text is None else Partitioning.parse([text])
        step = Repartition(before=self.state.partitioning, after=after)
        self.migrate(Migration(version=1, schema=schema, steps=(step,)))

    def files(self) -> list[dict[str, Any]]:
        """The partitions of all data files, in order, without the fields that a file has no value of."""
        rows = self.session.sql(f"SELECT partition FROM {self.sql_name}.data_files").collect()
        found = [{key: value for key, value in row.partition.asDict().items() if value is not None} for row in rows]
        return sorted(found, key=repr)

    def property(self, key: str) -> str | None:
        found: dict[str, str] = dict(self.session.sql(f"SHOW TBLPROPERTIES {self.sql_name}").collect())
        return found.get(key)

    def columns(self) -> list[str]:
        return [name for name in self.frame().columns if not name.startswith("__cdc_sync")]

    def values(self) -> list[tuple[Any, ...]]:
        """The rows, without columns that only a spec needs, ordered as text."""
        return sorted((tuple(row) for row in self.frame().select(*map(quoted, self.columns())).collect()), key=repr)

    def assert_healthy(self) -> None:
        """What breaks where a spec names a column that is gone, beside MERGE: tables of metadata can be read."""
        for name in ("entries", "partitions", "position_deletes"):
            self.session.sql(f"SELECT * FROM {self.sql_name}.{name}").collect()


@pytest.fixture
def lake(iceberg: Target, session: SparkSession) -> Divided:
    return Divided(target=iceberg, session=session, name=fresh_name())


def test_a_new_table_is_partitioned_and_says_so(lake: Divided) -> None:
    lake.create_by(SCHEMA, "day(at), bucket(4, id), truncate(1, region), region")
    lake.write(SCHEMA, rows_of((1, "north", NOON)), append=True)

    (found,) = lake.files()
    assert sorted(map(str, found.values())) == ["0", "2024-02-29", "n", "north"]
    assert (str(lake.state.partitioning), lake.state.partition_by) == (
        "day(at), bucket(4, id), truncate(1, region), region",
        "day(at), bucket(4, id), truncate(1, region), region",
    )


def test_a_row_whose_partition_changes_moves_and_deletes_find_it_there(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region")
    lake.write(SCHEMA, rows_of((1, "a", NOON), (2, "a", NOON), (3, None, None)))
    lake.write(SCHEMA, rows_of((1, "b", NOON), (3, "b", None)))
    lake.write(SCHEMA, [{"id": 1, "deleted": True}, {"id": 2, "deleted": True}])

    assert lake.values() == [(3, "b", None)]


def test_small_files_are_worth_joining_only_where_one_partition_has_enough(lake: Divided) -> None:
    upkeep = Upkeep(
        keep_for=timedelta(days=1),
        keep_at_least=1,
        target_file_size=64 * 1024 * 1024,
        compact_from_files=2,
        orphans_older_than=timedelta(days=1),
    )
    lake.create_by(SCHEMA, "region")
    lake.write(SCHEMA, rows_of((1, "a", NOON), (2, "b", NOON), (3, None, NOON)), append=True)
    alone = lake.target.holdings(lake.name, upkeep)
    lake.write(SCHEMA, rows_of((4, "a", NOON)), append=True)
    together = lake.target.holdings(lake.name, upkeep)
    lake.by(SCHEMA, None)
    past = lake.target.holdings(lake.name, upkeep)

    assert (alone.files, alone.small_files, chores(alone, upkeep, 0).compact) == (3, 0, False)
    assert (together.files, together.small_files, chores(together, upkeep, 0).compact) == (4, 2, True)
    assert (past.files, past.small_files) == (4, 4), "files of a past spec are joined whatever partition they were of"
    done = lake.target.maintain(lake.name, chores(past, upkeep, 0))
    assert (done.files_rewritten, done.files_written) == (4, 1)


def test_rows_keep_what_events_left_out_wherever_they_move(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region, day(at)")
    lake.write(SCHEMA, rows_of((1, "a", NOON)))
    lake.write(SCHEMA, [{"id": 1, "region": "b"}], unchanged=(3,))

    assert lake.values() == [(1, "b", NOON)]


def test_copies_of_a_row_without_a_key_are_counted_in_their_partition(lake: Divided) -> None:
    keyless = replace(SCHEMA, primary_key=())
    lake.create_by(keyless, "region")
    one, other = (1, "a", None), (1, "b", None)
    apply(lake, [*map(created, (one, one, one, other))], keyless)
    apply(lake, [deleted(one), updated(one, other), created(other)], keyless)

    assert lake.values() == [one, other, other, other]


def test_one_task_writes_one_file_for_each_partition(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region")
    lake.write(SCHEMA, rows_of(*((number, "ab"[number % 2], None) for number in range(40))), append=True)

    assert len(lake.files()) == 2


class TestEvolving:
    def test_what_is_written_later_is_divided_anew_and_older_files_stay(self, lake: Divided) -> None:
        lake.create(SCHEMA)
        lake.write(SCHEMA, rows_of((1, "a", NOON), (2, "b", NOON)), progress=Progress(version=1, offsets={"t": {0: 5}}))
        before = lake.state
        lake.by(SCHEMA, "region")
        assert replace(lake.state, partitioning=before.partitioning, partition_by=None) == before
        lake.write(SCHEMA, rows_of((2, "c", NOON), (3, "c", NOON)))

        assert [list(found.values()) for found in lake.files()] == [["c"], [], []]
        assert lake.values() == [(1, "a", NOON), (2, "c", NOON), (3, "c", NOON)]

    def test_it_takes_one_commit_and_a_second_time_none(self, lake: Divided) -> None:
        lake.create_by(SCHEMA, "region, day(at)")
        lake.by(SCHEMA, "hour(at), bucket(4, id)")
        before = lake.target._load(lake.name).operations().current().metadataFileLocation()  # type: ignore[attr-defined]
        lake.by(SCHEMA, "hour(at), bucket(4, id)")

        table = lake.target._load(lake.name)  # type: ignore[attr-defined]
        assert table.operations().current().metadataFileLocation() == before
        assert table.operations().current().previousFiles().size() == 1
        assert str(lake.state.partitioning) == "hour(at), bucket(4, id)"

    def test_a_field_can_come_back(self, lake: Divided) -> None:
        lake.create_by(SCHEMA, "region")
        lake.write(SCHEMA, rows_of((1, "a", NOON)))
        for text in ("day(at)", "region, day(at)", None, "region"):
            lake.by(SCHEMA, text)
            lake.write(SCHEMA, rows_of((1, "b", NOON), (2, str(text), None)))

        assert [value[:2] for value in lake.values()] == [(1, "b"), (2, "region")]
        assert str(lake.state.partitioning) == "region"

    def test_rows_are_brought_together_only_where_there_are_partitions(self, lake: Divided) -> None:
        key = "write.merge.distribution-mode"
        lake.create(SCHEMA)
        assert (lake.property(key), lake.property("write.spark.fanout.enabled")) == ("none", "true")
        lake.by(SCHEMA, "region")
        assert (lake.property(key), lake.property("write.spark.fanout.enabled")) == ("hash", "false")
        lake.session.sql(f"ALTER TABLE {lake.sql_name} SET TBLPROPERTIES ('{key}' = 'range')")
        lake.by(SCHEMA, None)
        assert (lake.property(key), lake.property("write.spark.fanout.enabled")) == ("range", "true")

    def test_what_the_operator_set_for_tables_stays(self, lake: Divided) -> None:
        warehouse = lake.session.conf.get("spark.sql.catalog.lake.warehouse")
        assert warehouse is not None
        key = "write.distribution-mode"
        config = TargetConfig(catalog=Catalog(warehouse=warehouse), table_properties={key: "none"})
        lake.target = open_target(config, lake.session)
        lake.create(SCHEMA)
        lake.by(SCHEMA, "region")

        assert (lake.property(key), lake.property("write.merge.distribution-mode")) == ("none", "hash")


class TestColumns:
    def test_a_renamed_column_still_divides_and_its_name_is_free_for_another(self, lake: Divided) -> None:
        lake.create_by(SCHEMA, "region, day(at)")
        lake.write(SCHEMA, rows_of((1, "a", NOON)))
        zone, other = replace(REGION, name="zone"), Column(id=9, name="region", type=INT64)
        after = schema_of(ID, zone, AT, other)
        lake.change(SCHEMA, after)
        lake.write(after, [{"id": 1, "zone": "b", "region": 7}, {"id": 2, "zone": "b", "region": 8}])

        assert str(lake.state.partitioning) == "zone, day(at)"
        assert lake.state.partition_by == "region, day(at)"
        assert lake.values() == [(1, "b", None, 7), (2, "b", None, 8)]

    def test_a_type_that_widens_in_place_keeps_the_partitions(self, lake: Divided) -> None:
        lake.create_by(SCHEMA, "id, bucket(4, id), truncate(10, id)")
        lake.write(SCHEMA, rows_of((17, "a", NOON)))
        after = schema_of(replace(ID, type=INT64), REGION, AT)
        lake.change(SCHEMA, after)
        lake.write(after, rows_of((17, "b", NOON), (2**40, "b", NOON)))

        assert str(lake.state.partitioning) == "id, bucket(4, id), truncate(10, id)"
        assert lake.values() == [(2**40, "b", NOON), (17, "b", NOON)]
        assert len(lake.session.sql(f"SELECT * FROM {lake.sql_name}.partitions").collect()) == 2

    def test_a_dropped_column_takes_its_part_away_and_leaves_the_table_readable(self, lake: Divided) -> None:
        lake.create_by(SCHEMA, "region, bucket(4, id)")
        lake.write(SCHEMA, rows_of((1, "a", NOON), (2, "b", NOON)))
        lake.write(SCHEMA, rows_of((2, "c", NOON)))
        after = schema_of(ID, AT)
        lake.change(SCHEMA, after)
        assert (str(lake.state.partitioning), lake.state.partition_by) == ("bucket(4, id)", "bucket(4, id)")
        assert lake.columns() == ["id", "at"]
        lake.write(after, [{"id": 2, "at": None}, {"id": 3, "at": NOON}])
        lake.write(after, [{"id": 4, "at": NOON}], append=True)
        lake.write(after, [{"id": 1, "deleted": True}])

        assert lake.values() == [(2, None), (3, NOON), (4, NOON)]
        lake.assert_healthy()

    def test_a_column_that_only_divided_files_of_before_can_go_and_come_back(self, lake: Divided) -> None:
        lake.create_by(SCHEMA, "region")
        lake.write(SCHEMA, rows_of((1, "a", NOON), (2, "b", NOON)))
        lake.by(SCHEMA, "day(at)")
        again = schema_of(ID, Column(id=8, name="region", type=STRING), AT)
        lake.change(SCHEMA, again)
        assert lake.state.partition_by == "day(at)"
        lake.by(again, "region")
        lake.write(again, rows_of((2, "n", NOON), (3, "n", NOON)))

        assert lake.columns() == ["id", "region", "at"]
        assert lake.values() == [(1, None, NOON), (2, "n", NOON), (3, "n", NOON)]
        lake.assert_healthy()

    def test_a_rewritten_column_divides_again_where_its_new_type_fits(self, lake: Divided) -> None:
        schema = schema_of(ID, REGION, Column(id=3, name="at", type=STRING))
        lake.create_by(schema, "bucket(2, at), truncate(4, at)")
        rows: list[dict[str, Any]] = [{"id": 1, "region": "a", "at": "2024-02-29"}, {"id": 2, "at": "2024-03-01"}]
        lake.write(schema, rows, progress=Progress(version=1))
        after = schema_of(ID, REGION, Column(id=3, name="at", type=DATE))
        lake.change(schema, after)
        assert (str(lake.state.partitioning), lake.state.partition_by) == ("bucket(2, at)", "bucket(2, at)")
        assert all(len(found) == 1 for found in lake.files())
        lake.by(after, "day(at)")
        lake.write(after, [{"id": 2, "at": None}, {"id": 3, "at": None}])
        assert [value[0] for value in lake.values()] == [1, 2, 3]

        assert lake.target.roll_back(lake.name)
        assert str(lake.state.partitioning) == "bucket(2, at), truncate(4, at)"
        assert [value[2] for value in lake.values()] == ["2024-02-29", "2024-03-01"]
        lake.write(schema, [{"id": 2, "at": "x"}, {"id": 5, "at": "y"}])
        assert [value[2] for value in lake.values()] == ["2024-02-29", "x", "y"]
        lake.assert_healthy()


def test_a_truncated_table_and_its_states_of_before_can_be_read(lake: Divided) -> None:
    lake.create_by(SCHEMA, "region")
    lake.write(SCHEMA, rows_of((1, "a", NOON)), progress=Progress(version=1, offsets={"t": {0: 1}}))
    lake.by(SCHEMA, "day(at)")
    lake.change(SCHEMA, schema_of(ID, AT), progress=Progress(version=2, offsets={"t": {0: 1}}))
    lake.write(schema_of(ID, AT), [{"id": 2}], progress=Progress(version=2, offsets={"t": {0: 2}}))
    lake.target.truncate(lake.name, Progress(version=2, offsets={"t": {0: 3}}), lake.held)
    assert lake.values() == []
    lake.write(schema_of(ID, AT), [{"id": 3}], progress=Progress(version=2, offsets={"t": {0: 4}}))

    commits = lake.target.commits(lake.name, 10)
    read = [lake.target.read(lake.name, schema_of(ID, AT), [1], commit).collect() for commit in commits]
    assert [sorted(row[0] for row in rows) for rows in read] == [[3], [], [1, 2], [1], []]


def test_a_changelog_is_partitioned_by_its_own_columns(lake: Divided) -> None:
    lake.create_by(SCHEMA, "day(_cdc_ts), region", mode="append")
    after = schema_of(ID, AT)
    steps = migration(version(1, SCHEMA), version(1, SCHEMA), version(2, after), mode="append")
    lake.migrate(steps)
    assert str(lake.state.partitioning) == "day(_cdc_ts)"


@pytest.mark.parametrize("name", ["na`me", "a.b", "_file", "é /😀"])
def test_a_column_of_any_name_divides_goes_and_comes_back(lake: Divided, name: str) -> None:
    column = Column(id=2, name=name, type=STRING)
    schema = schema_of(ID, column)
    lake.create_by(schema, str(Partitioning.parse([f"`{name.replace('`', '``')}`"])))
    lake.write(schema, [{"id": 1, name: "a/b=c"}, {"id": 2, name: None}])
    again = schema_of(ID, replace(column, id=3))
    lake.change(schema, again)
    lake.write(again, [{"id": 2, name: "d"}, {"id": 3, name: "d"}])

    assert lake.values() == [(1, None), (2, "d"), (3, "d")]
