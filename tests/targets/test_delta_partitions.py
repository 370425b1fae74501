"""Partitions of Delta tables: rows are those of a plain model, each in its partition, whatever becomes of columns."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc_sync.core.migration.capabilities import DELTA
from cdc_sync.core.migration.derived import derived_columns
from cdc_sync.core.migration.migration import JoinValues, Migration, Repartition, migration
from cdc_sync.core.migration.namerules import DERIVED_PREFIX
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning
from cdc_sync.core.schema.types import DATE, INT32, INT64, STRING, TIMESTAMP
from cdc_sync.errors import TargetError
from cdc_sync.spark.columns import value_column
from cdc_sync.targets.delta.log import DeltaTable
from cdc_sync.targets.delta.target import DeltaTarget
from cdc_sync.targets.protocol import Target
from cdc_sync.testing.targets import version
from tests.lakes.delta import DeltaLake
from tests.targets.conftest import fresh_name, schema_of
from tests.targets.derived import expected
from tests.targets.divided import DividedLake, rows_of
from tests.targets.keyless import apply, created, deleted, updated

pytestmark = [pytest.mark.spark, pytest.mark.delta]

ID = Column(id=1, name="id", type=INT32)
REGION = Column(id=2, name="region", type=STRING)
AT = Column(id=3, name="at", type=TIMESTAMP)
SCHEMA = schema_of(ID, REGION, AT)
NOON = datetime(2024, 2, 29, 12, 0)
BY_ALL = "region, bucket(2, id), truncate(2, region), hour(at)"
REGIONS = (None, "", " ", "a", "ab", "abc", "a/b=c", "é😀" * 30, "__HIVE_DEFAULT_PARTITION__", "null", "it's\n\"%25\\")


class Divided(DividedLake):
    """A lake whose table is partitioned."""

    def by(self, schema: InternalSchema, text: str | None) -> None:
        """Partition in another way; None is not at all."""
        after = UNPARTITIONED if text is None else Partitioning.parse([text])
        step = Repartition(before=self.state.partitioning, after=after, partitions="derived")
        self.migrate(Migration(version=self.state.version or 1, schema=schema, steps=(step,)))

    @property
    def folder(self) -> Path:
        assert isinstance(self.target, DeltaTarget)
        return Path(self.target.path(self.name))

    @property
    def version(self) -> int:
        """How many commits there are."""
        return len(list((self.folder / "_delta_log").glob("*.json")))

    def actions(self, kind: str) -> Iterator[dict[str, Any]]:
        """What the newest commit says of one kind."""
        newest = max((self.folder / "_delta_log").glob("*.json"))
        found = (json.loads(line) for line in newest.read_text().splitlines())
        return (action[kind] for action in found if kind in action)

    def columns(self, *, derived: bool) -> list[str]:
        return [name for name in self.frame().columns if name.startswith(DERIVED_PREFIX) == derived]

    def values(self) -> list[tuple[Any, ...]]:
        """The rows without derived columns, ordered as text; as delta-rs reads them too."""
        names = self.columns(derived=False)
        found = sorted((tuple(row) for row in self.frame().select(*map(quoted, names)).collect()), key=repr)
        place = (self.folder.parent.name, self.folder.name)
        table = DeltaLake.at(self.folder.parents[1]).table(place)
        assert table is not None
        assert [name for name, _ in table.columns] == names
        assert sorted((tuple(row.values()) for row in table.rows), key=repr) == found
        return found

    def assert_divided(self, schema: InternalSchema, *, left: int = 0) -> None:
        """Every row is in the partitions that the model says."""
        mode = self.state.mode
        derived = derived_columns(self.state.partitioning, schema, mode, DELTA.columns)
        names = [column.name for column in derived]
        held = self.columns(derived=True)
        assert [name for name in held if "_by_dropped_" not in name] == names
        assert len(held) == len(names) + left
        detail = self.session.sql(f"DESCRIBE DETAIL delta.`{self.folder}`").collect()[0]
        assert sorted(detail["partitionColumns"]) == sorted(held)
        for row in self.frame().collect():
            for column in derived:
                value = row[column.field.column]
                # Delta takes the text for NULL, which is the partition it lies in then.
                lost = row[column.name] is None and value == "__HIVE_DEFAULT_PARTITION__"
                assert lost or row[column.name] == expected(column.field, value, column.source), (column, value)


@pytest.fixture
def lake(delta: Target, session: SparkSession) -> Divided:
    return Divided(target=delta, session=session, name=fresh_name())


def test_rows_are_those_of_a_plain_model_and_move_between_partitions(lake: Divided) -> None:
    """Appends, merges, deletes and values that stay, of texts that are no names of folders."""
    chance, model = random.Random(7), dict[int, tuple[int, str | None, datetime | None]]()
    lake.create_by(SCHEMA, BY_ALL)
    assert (str(lake.state.partitioning), lake.state.partition_by) == (BY_ALL, BY_ALL)

    def row(id_: int) -> tuple[int, str | None, datetime | None]:
        at = chance.choice((None, NOON, NOON + timedelta(hours=chance.randrange(-5, 5), microseconds=1)))
        return id_, chance.choice(REGIONS), at

    first = [(id_, region, NOON) for id_, region in enumerate(REGIONS)]
    lake.write(SCHEMA, rows_of(*first), append=True)
    model |= {values[0]: values for values in first}
    for number in range(3):
        changed = {id_: row(id_) for id_ in chance.sample(range(-5, 20), 8)}
        gone = [id_ for id_ in chance.sample(sorted(model), 2) if id_ not in changed]
        lake.write(SCHEMA, [*rows_of(*changed.values()), *({"id": id_, "deleted": True} for id_ in gone)])
        model |= changed
        for id_ in gone:
            del model[id_]
        stay = chance.sample(sorted(model), 3)
        kept, known = (3, "region") if number % 2 else (2, "at")
        rows: list[dict[str, Any]] = [
            {name: value for name, value in values.items() if name in ("id", known)}
            for values in rows_of(*map(row, stay))
        ]
        lake.write(SCHEMA, rows, unchanged=(kept,))
        for id_, found in zip(stay, rows, strict=True):
            _, region, at = model[id_]
            model[id_] = (id_, found.get("region", region), found.get("at", at))
        assert lake.values() == sorted(model.values(), key=repr)
        lake.assert_divided(SCHEMA)


def test_copies_of_a_row_without_a_key_are_counted_in_their_partition(lake: Divided) -> None:
    keyless = replace(SCHEMA, primary_key=())
    lake.create_by(keyless, "region, bucket(2, id)")
    one, other = (1, "a", None), (1, "", None)
    apply(lake, [*map(created, (one, one, one, other))], keyless)
    apply(lake, [deleted(one), updated(one, other), created(other)], keyless)

    assert lake.values() == [one if n == 3 else other for n in range(4)] or lake.values() == [other] * 3 + [one]
    lake.assert_divided(keyless)


def test_a_query_for_a_partition_reads_its_files_alone(lake: Divided) -> None:
    lake.create_by(SCHEMA, "day(at), region")
    later = NOON + timedelta(days=1)
    lake.write(SCHEMA, rows_of((1, "", NOON), (2, "b", NOON), (3, "b", later), (4, None, later)), append=True)

    def found(condition: str) -> tuple[int, list[int]]:
        rows = lake.frame().where(condition)
        ids = sorted(row["id"] for row in rows.collect())
        plan: Any = rows._jdf.queryExecution().executedPlan()
        return plan.collectLeaves().head().metrics().apply("numFiles").value(), ids

    assert found("cdc_sync_by_day_at >= '2024-03-01'") == (2, [3, 4])
    assert found("cdc_sync_by_value_region = 'b' AND region = 'b'") == (2, [2, 3])
    # The other of that partition has no text at all, which its statistics say.
    assert found("cdc_sync_by_value_region IS NULL AND region = ''") == (1, [1])


class TestRepartitioning:
    def test_all_rows_are_divided_anew_in_one_commit_and_a_second_time_none(self, lake: Divided) -> None:
        progress = Progress(version=1, offsets={"t": {0: 5}})
        lake.create(SCHEMA)
        rows = [(id_, region, NOON) for id_, region in enumerate(REGIONS)]
        lake.write(SCHEMA, rows_of(*rows), progress=progress)
        for text in ("region", "day(at), bucket(2, id)", "bucket(2, id)", None, "truncate(1, region)"):
            before, state = lake.version, lake.state
            lake.by(SCHEMA, text)
            lake.by(SCHEMA, text)
            assert lake.version == before + 1
            assert lake.state.partition_by == (text or "")
            now = lake.state
            assert (
                replace(now, partitioning=state.partitioning, partition_by=state.partition_by, size=state.size) == state
            )
            assert now.progress == progress
            assert lake.values() == sorted(rows, key=repr)
            lake.assert_divided(SCHEMA)
            assert lake.columns(derived=True) == [
                column.name for column in derived_columns(now.partitioning, SCHEMA, "upsert", DELTA.columns)
            ]
        lake.write(SCHEMA, rows_of((1, "moved", None)))
        lake.assert_divided(SCHEMA)

    def test_only_the_text_is_stamped_where_the_table_is_so_already(self, lake: Divided) -> None:
        lake.create_by(SCHEMA, "region, day(at)")
        lake.write(SCHEMA, rows_of((1, "a", NOON)))
        lake.by(SCHEMA, "day(at), region")
        assert lake.state.partition_by == "day(at), region"
        assert not list(lake.actions("add"))
        assert not list(lake.actions("remove"))

    def test_states_of_before_can_be_read_and_restored(self, lake: Divided) -> None:
        lake.create_by(SCHEMA, "region")
        lake.write(SCHEMA, rows_of((1, "a", NOON)), progress=Progress(version=1, offsets={"t": {0: 1}}))
        lake.by(SCHEMA, "day(at)")
        lake.write(SCHEMA, rows_of((2, "b", None)), progress=Progress(version=1, offsets={"t": {0: 2}}))
        lake.target.truncate(lake.name, Progress(version=1, offsets={"t": {0: 3}}), lake.held)
        assert lake.values() == []
        lake.assert_divided(SCHEMA)

        commits = lake.target.commits(lake.name, 10)
        read = [lake.target.read(lake.name, SCHEMA, [1], commit).collect() for commit in commits]
        assert [sorted(row[0] for row in rows) for rows in read] == [[], [1, 2], [1], []]
        lake.session.sql(f"RESTORE TABLE delta.`{lake.folder}` TO VERSION AS OF 1")
        assert (str(lake.state.partitioning), lake.state.partition_by) == ("region", "region")
        lake.write(SCHEMA, rows_of((1, "c", NOON), (3, "c", None)))
        assert lake.values() == [(1, "c", NOON), (3, "c", None)]
        lake.assert_divided(SCHEMA)

    @pytest.mark.parametrize("behind", [False, True])
    def test_a_crash_leaves_the_table_as_it_was_or_as_it_will_be(
        self, lake: Divided, behind: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lake.create_by(SCHEMA, "region")
        rows = [(1, "a", NOON), (2, "", None)]
        lake.write(SCHEMA, rows_of(*rows))
        zone = replace(REGION, name="zone")
        after = schema_of(ID, zone, replace(AT, type=STRING))
        commit = DeltaTable._commit

        def crash(table: DeltaTable, transaction: Any, actions: list[Any]) -> None:
            if behind:
                commit(table, transaction, actions)
            raise TargetError("the process is gone")

        def crashed(step: Any) -> None:
            before = lake.version
            with monkeypatch.context() as patch:
                patch.setattr(DeltaTable, "_commit", crash)
                with pytest.raises(TargetError):
                    step()
            assert lake.version == before + behind
            step()
            assert lake.version == before + 1

        crashed(lambda: lake.by(SCHEMA, "day(at), region"))
        assert lake.values() == rows
        lake.assert_divided(SCHEMA)
        crashed(lambda: lake.change(SCHEMA, after, progress=Progress(version=2)))
        assert lake.values() == [(1, "a", "2024-02-29 12:00:00"), (2, "", None)]
        assert (str(lake.state.partitioning), lake.state.partition_by) == ("zone", "zone")
        lake.assert_divided(after)


class TestColumns:
    def test_renamed_columns_still_divide_and_their_names_are_free_for_others(self, lake: Divided) -> None:
        lake.create_by(SCHEMA, "region, day(at)")
        lake.write(SCHEMA, rows_of((1, "a", NOON), (2, "", None)))
        other = Column(id=9, name="region", type=INT64)
        after = schema_of(ID, replace(REGION, name="z.o`ne"), AT, other)
        lake.change(SCHEMA, after)
        assert lake.state.partition_by == "region, day(at)"
        assert not list(lake.actions("add"))
        assert lake.columns(derived=True) == ["cdc_sync_by_value_z_x002E_o_x0060_ne", "cdc_sync_by_day_at"]
        lake.write(after, [{"id": 1, "z.o`ne": "b", "region": 7}, {"id": 3, "z.o`ne": "b", "region": 8}])

        assert lake.values() == [(1, "b", None, 7), (2, "", None, None), (3, "b", None, 8)]
        lake.assert_divided(after)

    def test_a_dropped_column_takes_its_part_away_and_gets_it_back_when_it_is_there_again(self, lake: Divided) -> None:
        lake.create_by(SCHEMA, "region, bucket(4, id)")
        lake.write(SCHEMA, rows_of((1, "a", NOON), (2, "b", NOON)))
        after = schema_of(ID, AT)
        lake.change(SCHEMA, after)
        assert (str(lake.state.partitioning), lake.state.partition_by) == ("bucket(4, id)", "bucket(4, id)")
        assert not list(lake.actions("add"))
        lake.write(after, [{"id": 2, "at": None}, {"id": 3, "at": NOON}])
        lake.write(after, [{"id": 4, "at": NOON}], append=True)
        lake.write(after, [{"id": 1, "deleted": True}])
        lake.session.sql(f"OPTIMIZE delta.`{lake.folder}`")
        assert lake.values() == [(2, None), (3, NOON), (4, NOON)]
        lake.assert_divided(after, left=1)

        again = schema_of(ID, Column(id=8, name="region", type=STRING), AT)
        first = version(2, after)
        lake.migrate(migration(first, first, version(3, again), capabilities=DELTA))
        lake.write(again, rows_of((3, "n", NOON)))
        lake.by(again, "region, bucket(4, id)")
        lake.write(again, rows_of((2, "n", NOON)))
        assert lake.columns(derived=True) == ["cdc_sync_by_value_region", "cdc_sync_by_bucket4_id"]
        assert lake.values() == [(2, "n", NOON), (3, "n", NOON), (4, None, NOON)]
        lake.assert_divided(again)

    def test_a_rewritten_column_divides_again_where_its_new_type_fits_and_rolls_back(self, lake: Divided) -> None:
        schema = schema_of(ID, REGION, Column(id=3, name="at", type=STRING))
        lake.create_by(schema, "bucket(2, at), truncate(4, at), region")
        rows: list[dict[str, Any]] = [{"id": 1, "region": "", "at": "2024-02-29"}, {"id": 2, "at": "2024-03-01"}]
        lake.write(schema, rows, progress=Progress(version=1))
        after = schema_of(ID, REGION, Column(id=3, name="at", type=DATE))
        lake.change(schema, after, progress=Progress(version=2))
        assert (str(lake.state.partitioning), lake.state.partition_by) == ("bucket(2, at), region",) * 2
        lake.assert_divided(after)
        lake.by(after, "day(at)")
        lake.write(after, [{"id": 2, "at": None}, {"id": 3, "at": None}])
        assert [value[0] for value in lake.values()] == [1, 2, 3]
        lake.assert_divided(after)

        assert lake.target.roll_back(lake.name)
        assert str(lake.state.partitioning) == "bucket(2, at), truncate(4, at), region"
        assert [value[2] for value in lake.values()] == ["2024-02-29", "2024-03-01"]
        lake.write(schema, [{"id": 2, "at": "x"}, {"id": 5, "at": "y"}])
        assert [value[2] for value in lake.values()] == ["2024-02-29", "x", "y"]
        lake.assert_divided(schema)

    def test_values_that_are_filled_in_later_and_joined_move_rows(self, lake: Divided) -> None:
        """A back-fill of a column that divides, and the values of a column that was kept and is one with another."""
        kept = replace(REGION, retired=True)
        schema = schema_of(ID, kept, AT, Column(id=4, name="zone", type=STRING))
        lake.create_by(schema, "region, bucket(2, id)")
        rows: list[dict[str, Any]] = [
            {"id": 1, "region": "old", "zone": None},
            {"id": 2, "region": None, "zone": "new"},
        ]
        lake.write(schema, rows, progress=Progress(version=1))
        said = lake.session.createDataFrame(
            [(1, "said"), (2, "new")], f"{value_column(1)} int, {value_column(2)} string"
        )
        step = JoinValues(schema=schema, into=2, joined=(4,), type=STRING, version=2)
        joins = Migration(version=2, schema=schema, steps=(step,))
        lake.target.migrate(lake.name, joins, Progress(version=1), {2: said})
        assert [value[1] for value in lake.values()] == ["said", "new"]
        lake.assert_divided(schema)

    def test_a_changelog_is_partitioned_by_its_own_columns(self, lake: Divided) -> None:
        lake.create_by(SCHEMA, "day(_cdc_ts), region", mode="append")
        after = schema_of(ID, AT)
        lake.migrate(migration(version(1, SCHEMA), version(1, SCHEMA), version(2, after), mode="append"))
        assert str(lake.state.partitioning) == "day(_cdc_ts)"
        assert lake.columns(derived=True)[0] == "cdc_sync_by_day__cdc_ts"


def test_small_files_of_one_partition_are_joined_and_of_many_not(lake: Divided) -> None:
    from tests.targets.test_maintenance import UPKEEP

    lake.create_by(SCHEMA, "region")
    lake.write(SCHEMA, rows_of(*((n, "abcdefgh"[n], None) for n in range(8))))
    assert lake.target.holdings(lake.name, UPKEEP).files == 8
    assert lake.target.holdings(lake.name, UPKEEP).small_files == 0
    lake.write(SCHEMA, rows_of((9, "a", None)), append=True)
    found = lake.target.holdings(lake.name, UPKEEP)
    assert (found.files, found.small_files) == (9, 2)
