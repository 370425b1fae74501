"""Revisions on Iceberg tables that others made and write: the rows, whoever is killed or comes between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc_sync.core.migration.migration import Migration
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.revisions.actions import (
    Action,
    AddColumn,
    Adopt,
    CastColumn,
    CreateTable,
    DropColumn,
    FillColumn,
    MoveColumn,
    NewColumn,
    PartitionBy,
    Place,
    RenameColumn,
    SetProperties,
)
from cdc_sync.core.revisions.fills import Fill
from cdc_sync.core.revisions.revision import Revision
from cdc_sync.core.schema.internal import Column
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.schema.types import DATE, INT32, INT64, STRING, DecimalType
from cdc_sync.errors import RefusedError, TargetError
from cdc_sync.operations.migrate.filler import Filler, Pace
from cdc_sync.operations.migrate.migrator import Migrator
from cdc_sync.storage.fill_plans import FillPlans, Rates
from cdc_sync.storage.revision_logs import RevisionLogs
from cdc_sync.targets.iceberg.target import IcebergTarget
from cdc_sync.targets.protocol import Filling, Revisable, Target
from tests.targets.conftest import Lake, fresh_name, schema_of

NEW = NewColumn(name="price", type=DecimalType(precision=8, scale=2), comment="per piece")


class Killed(Exception):
    """Stands for the end of the process."""


class Watched:
    """A target that does something at the calls that change a table."""

    def __init__(self, target: Revisable) -> None:
        self._target = target
        self.calls = 0
        self.dies_before = self.dies_after = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def migrate(
        self, name: TargetName, migration: Migration, progress: Progress, said: Mapping[int, DataFrame] | None = None
    ) -> None:
        self.watch(lambda: self._target.migrate(name, migration, progress, said))

    def complete(self, name: TargetName, number: int) -> None:
        self.watch(lambda: self._target.complete(name, number))

    def filling(self, name: TargetName, fill: Fill) -> Filling:
        return WatchedFilling(self, self._target.filling(name, fill))

    def watch(self, change: Callable[[], None]) -> None:
        self.calls += 1
        if self.calls == self.dies_before:
            raise Killed
        change()
        if self.calls == self.dies_after:
            raise Killed


class WatchedFilling:
    def __init__(self, target: Watched, filling: Filling) -> None:
        self._target = target
        self._filling = filling
        self.files = filling.files

    def run(self, paths: Sequence[str]) -> None:
        self._target.watch(lambda: self._filling.run(paths))


@pytest.fixture
def target(iceberg: Target) -> Watched:
    assert isinstance(iceberg, Revisable)
    return Watched(iceberg)


@pytest.fixture
def lake(iceberg: Target, session: SparkSession) -> Lake:
    lake = Lake(target=iceberg, session=session, name=fresh_name())
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.`{lake.name.namespace}`")
    return lake


def chain(name: TargetName, *revisions: tuple[Action, ...]) -> list[Revision]:
    return [
        Revision(
            id=str(number),
            table=name,
            parents=(str(number - 1),) if number else (),
            actions=actions,
            file=f"{number}.yaml",
        )
        for number, actions in enumerate(revisions)
    ]


def migrator(target: Watched, folder: Path, revisions: list[Revision], unit_size: int = 1 << 30) -> Migrator:
    pace = Pace(unit_size=unit_size)
    filler = Filler(target, partial(FillPlans, str(folder)), Rates(str(folder)), pace, threading.Event())
    return Migrator("tests", revisions, target, RevisionLogs(str(folder), create=True), filler)


def rows(lake: Lake) -> tuple[list[str], set[tuple[Any, ...]]]:
    lake.session.sql(f"REFRESH TABLE {lake.sql_name}")
    found = lake.session.table(lake.sql_name)
    return found.columns, {tuple(map(_plain, row)) for row in found.collect()}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, list) else value


ADOPTED = (
    (Adopt(columns=(NewColumn(name="id", type=INT64),)),),
    (AddColumn(column=NEW, place=Place(after="id"), fill="1.50"), RenameColumn(old="qty", new="quantity")),
    (CastColumn(name="quantity", type=INT32), MoveColumn(name="day", place=Place(first=True))),
    (DropColumn(name="note"), AddColumn(column=NewColumn(name="note", type=INT32))),
)


def _made_by_others(lake: Lake) -> None:
    lake.session.sql(
        f"CREATE TABLE {lake.sql_name} (id BIGINT NOT NULL, qty STRING, note STRING, day DATE, "
        "lines ARRAY<STRUCT<sku: STRING, n: INT>>) USING iceberg PARTITIONED BY (days(day))"
    )
    lake.session.sql(
        f"INSERT INTO {lake.sql_name} VALUES (1, '5', 'a', DATE'2024-01-01', array(named_struct('sku', 'x', 'n', 1))), "
        "(2, '7', NULL, DATE'2024-01-02', NULL)"
    )


def test_a_table_that_others_made_is_adopted_and_changed_with_its_rows(
    lake: Lake, target: Watched, tmp_path: Path
) -> None:
    _made_by_others(lake)
    revisions = chain(lake.name, *ADOPTED)
    found = migrator(target, tmp_path, revisions)

    planned = found.plan()
    assert [step.way for step in planned.steps] == ["adopt", "fill", "exchange", "in_place"]
    assert (planned.exit_code, planned.problems) == (2, ())
    assert rows(lake)[0] == ["id", "qty", "note", "day", "lines"], "a plan changes nothing"
    done = found.up()

    assert [step.statements for step in done.steps] == [step.statements for step in planned.steps]
    assert [step.rewrites > 0 for step in planned.steps] == [False, True, True, False]
    day, price = "2024-01-0{}", Decimal("1.50")
    names, there = rows(lake)
    assert names == ["day", "id", "price", "quantity", "lines", "note"]
    assert {(str(row[0]), *row[1:4], row[5]) for row in there} == {
        (day.format(1), 1, price, 5, None),
        (day.format(2), 2, price, 7, None),
    }
    assert found.plan().exit_code == 0
    assert found.up().steps == ()
    (standing,) = found.status().tables
    assert (standing.number, standing.revision, standing.pending, standing.fill) == (4, "3", (), False)

    lake.session.sql(f"UPDATE {lake.sql_name} SET note = 3 WHERE id = 1")
    with pytest.raises(RefusedError, match="it dropped column note, whose values are gone"):
        found.down(lake.name)
    edited = [*revisions[:3], Revision(id="3", table=lake.name, parents=("2",), actions=(DropColumn(name="note"),))]
    (problem,) = migrator(target, tmp_path, edited).plan().problems
    assert "3 does something else than when it was applied" in problem
    lake.session.sql(f"ALTER TABLE {lake.sql_name} RENAME COLUMN price TO cost")
    with pytest.raises(RefusedError, match=r"somebody has changed it since its last revision: price is gone, cost was"):
        found.up()


@pytest.mark.parametrize("reply_lost", [False, True])
def test_whoever_is_killed_at_any_commit_the_next_one_goes_on(
    lake: Lake, target: Watched, tmp_path: Path, reply_lost: bool
) -> None:
    _made_by_others(lake)
    revisions = chain(lake.name, *ADOPTED)
    kills = 0
    while True:
        target.calls = 0
        target.dies_before, target.dies_after = (0, 1) if reply_lost else (2, 0)
        try:
            migrator(target, tmp_path, revisions, unit_size=1).up()
        except Killed:
            kills += 1
            continue
        break

    names, there = rows(lake)
    assert names == ["day", "id", "price", "quantity", "lines", "note"]
    assert {row[1:4] for row in there} == {(1, Decimal("1.50"), 5), (2, Decimal("1.50"), 7)}
    assert kills == 7 - (not reply_lost), (
        "adopt, columns, two units of one file each, their stamp, the rewrite, columns"
    )
    commits = _fills(lake)
    assert len(commits) == 2, "no file was written twice"
    assert not list((tmp_path / "fills").rglob("*.json"))


def _fills(lake: Lake) -> list[Any]:
    return lake.session.sql(
        f"SELECT * FROM {lake.sql_name}.snapshots WHERE summary['cdc_sync.filled-for'] IS NOT NULL"
    ).collect()


def test_rows_that_others_write_meanwhile_are_converted_too(lake: Lake, target: Watched, tmp_path: Path) -> None:
    columns = (NewColumn(name="id", type=INT64), NewColumn(name="qty", type=STRING), NewColumn(name="day", type=DATE))
    revisions = chain(
        lake.name,
        (CreateTable(columns=columns, partitioning=Partitioning.parse(["day(day)"])),),
        (CastColumn(name="qty", type=INT32), AddColumn(column=NEW, fill="2.00")),
        (CastColumn(name="qty", type=STRING),),
    )
    migrator(target, tmp_path, revisions[:1]).up()
    lake.session.sql(f"INSERT INTO {lake.sql_name} VALUES (1, '5', DATE'2024-01-01'), (2, 'x', DATE'2024-01-01')")
    with pytest.raises(
        RefusedError, match="1 values of qty have no place in the new type; mend them, or say lost: null"
    ):
        migrator(target, tmp_path, revisions[:2]).up()
    lake.session.sql(f"DELETE FROM {lake.sql_name} WHERE id = 2")
    came: list[int] = []
    real = target.migrate

    def others_come_first(name: TargetName, step: Migration, progress: Progress, said: Any = None) -> None:
        if not came:
            came.append(1)
            read = IcebergTarget._load

            def loaded(this: IcebergTarget, table: TargetName) -> Any:
                found = read(this, table)
                if len(came) == 1:
                    came.append(2)
                    lake.session.sql(f"INSERT INTO {lake.sql_name} VALUES (3, '9', DATE'2024-01-02')")
                return found

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(IcebergTarget, "_load", loaded)
                return real(name, step, progress)
        return real(name, step, progress)

    target.migrate = others_come_first  # type: ignore[assignment,method-assign]
    found = migrator(target, tmp_path, revisions)
    found.up()
    assert len(came) == 2

    assert {row[:2] + row[3:] for row in rows(lake)[1]} == {(1, "5", Decimal("2.00")), (3, "9", Decimal("2.00"))}
    assert found.down(lake.name).exit_code == 0
    assert {row[1] for row in rows(lake)[1]} == {5, 9}
    assert found.plan().exit_code == 2


@pytest.mark.parametrize("lost", ["refuse", "null"])
def test_a_value_that_comes_behind_the_look_at_all_values_is_not_lost(
    lake: Lake, target: Watched, tmp_path: Path, lost: Literal["refuse", "null"]
) -> None:
    _made_by_others(lake)
    real = target.migrate

    def behind_the_look(name: TargetName, step: Migration, progress: Progress, said: Any = None) -> None:
        if step.version == 2:
            lake.session.sql(f"INSERT INTO {lake.sql_name} VALUES (3, 'x', NULL, DATE'2024-01-03', NULL)")
        real(name, step, progress, said)

    target.migrate = behind_the_look  # type: ignore[assignment,method-assign]
    found = migrator(target, tmp_path, chain(lake.name, (Adopt(),), (CastColumn(name="qty", type=INT32, lost=lost),)))
    if lost == "null":
        found.up()
        assert {row[:2] for row in rows(lake)[1]} == {(1, 5), (2, 7), (3, None)}
        return
    with pytest.raises(TargetError, match="a value of qty has no place in its new type"):
        found.up()
    assert {row[:2] for row in rows(lake)[1]} == {(1, "5"), (2, "7"), (3, "x")}


def test_columns_first_and_rows_later(lake: Lake, target: Watched, tmp_path: Path) -> None:
    _made_by_others(lake)
    found = migrator(target, tmp_path, chain(lake.name, *ADOPTED))

    done = found.up(fill=False)

    assert [step.way for step in done.steps] == ["adopt", "fill"], "what writes all rows anew waits for them"
    assert (done.left, done.exit_code) == ((lake.name,), 4)
    assert {row[:2] for row in rows(lake)[1]} == {(1, None), (2, None)}
    assert found.plan().fills == (lake.name,)
    assert found.status().tables[0].fill
    assert found.backfill().filled == (lake.name,)
    assert found.backfill().filled == ()
    assert {row[:2] for row in rows(lake)[1]} == {(1, Decimal("1.50")), (2, Decimal("1.50"))}
    assert found.up(fill=False).exit_code == 0


def test_rows_are_computed_and_what_cannot_be_computed_is_no_null(lake: Lake, target: Watched, tmp_path: Path) -> None:
    _made_by_others(lake)

    def added(sql: str) -> tuple[Action, ...]:
        total = NewColumn(name="total", type=DecimalType(precision=4, scale=2))
        return AddColumn(column=total, fill_sql=sql), RenameColumn(old="qty", new="quantity")

    def found_by_plan(sql: str) -> str:
        (problem,) = migrator(target, tmp_path, chain(lake.name, (Adopt(),), added(sql))).plan().problems
        return problem

    for sql, said in (
        ("no_such_function(qty)", "cannot be computed: .*no_such_function"),
        ("array(qty)", "cannot be computed: "),
        ("current_catalog_of(qty)", "cannot be computed: "),
    ):
        with pytest.raises(RefusedError, match=f"the sql of total {said}"):
            migrator(target, tmp_path, chain(lake.name, (Adopt(),), added(sql))).up()
        assert f"the sql of total {said.split(':')[0]}" in found_by_plan(sql)
    assert rows(lake)[0][1] == "qty", "nothing was changed"
    wrong = chain(lake.name, (Adopt(),), added("id * 100"))
    with pytest.raises(TargetError, match="NUMERIC_VALUE_OUT_OF_RANGE"):
        migrator(target, tmp_path, wrong).up()
    assert rows(lake)[0][1:] == ["quantity", "note", "day", "lines", "total"]
    migrator(target, tmp_path, wrong).down(lake.name)
    assert rows(lake)[0][1:] == ["qty", "note", "day", "lines"]

    found = migrator(
        target, tmp_path, chain(lake.name, (Adopt(),), added("id * coalesce(lines[0].n, 2) * cast(qty as int)"))
    )
    assert found.plan().steps[0].statements == (
        f"ALTER TABLE {lake.name} RENAME COLUMN qty TO quantity",
        f"ALTER TABLE {lake.name} ADD COLUMN total DECIMAL(4, 2) AFTER lines",
        f"UPDATE {lake.name} SET total = (`id` * coalesce(`lines`[0].n, 2) * cast(`quantity` as int)) "
        "WHERE total IS NULL",
    )
    found.up()

    assert {(row[0], row[-1]) for row in rows(lake)[1]} == {(1, Decimal("5.00")), (2, Decimal("28.00"))}
    assert lake.session.conf.get("spark.sql.ansi.enabled") == "false"


def test_a_table_of_a_pipeline_is_left_alone(lake: Lake, target: Watched, tmp_path: Path) -> None:
    lake.create(schema_of(Column(id=1, name="id", type=INT64)))
    lake.write(schema_of(Column(id=1, name="id", type=INT64)), [{"id": 1}], progress=Progress(version=1))

    with pytest.raises(RefusedError, match="a pipeline writes it, and its columns follow the source"):
        migrator(target, tmp_path, chain(lake.name, (Adopt(),))).up()


FILLED = (
    (Adopt(),),
    (
        AddColumn(column=NewColumn(name="twice", type=INT64), fill_sql="n * 2"),
        AddColumn(column=NewColumn(name="more", type=INT64), fill_sql="twice + 1"),
        AddColumn(column=NewColumn(name="kind", type=STRING), fill="old"),
    ),
)


def _many_files(lake: Lake, version: int = 2) -> None:
    mode = "merge-on-read" if version == 2 else "copy-on-write"
    lake.session.sql(
        f"CREATE TABLE {lake.sql_name} (id INT, n INT, day DATE) USING iceberg PARTITIONED BY (day) "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='{mode}', 'write.update.mode'='{mode}')"
    )
    for id_ in range(1, 7):
        lake.session.sql(
            f"INSERT INTO {lake.sql_name} VALUES ({id_}, {id_}, DATE'2024-01-0{1 + id_ % 2}'), "
            f"({id_ + 10}, NULL, DATE'2024-01-01')"
        )


def _expected(ids: Sequence[int]) -> set[tuple[Any, ...]]:
    return {(id_, 2 * id_, 2 * id_ + 1, "old") if id_ < 10 else (id_, None, None, "old") for id_ in ids}


def _found(lake: Lake) -> set[tuple[Any, ...]]:
    names, there = rows(lake)
    assert names == ["id", "n", "day", "twice", "more", "kind"]
    return {(row[0], *row[3:]) for row in there}


@pytest.mark.parametrize("version", [1, 2])
def test_what_others_do_to_rows_while_they_are_filled_stays(
    lake: Lake, target: Watched, tmp_path: Path, version: int
) -> None:
    _many_files(lake, version)
    found = migrator(target, tmp_path, chain(lake.name, *FILLED), unit_size=1)
    found.up(fill=False)
    before = len(_fills(lake))
    meddling = iter(
        (
            "UPDATE {0} SET n = 50 WHERE id = 5",
            "DELETE FROM {0} WHERE id = 4",
            "INSERT INTO {0} VALUES (20, 20, DATE'2024-01-01', NULL, 7, 'new')",
            "CALL lake.system.rewrite_data_files(table => '{1}', options => map('rewrite-all', 'true'))",
            "INSERT INTO {0} VALUES (21, 21, DATE'2024-01-01', NULL, 7, 'new')",
            "DELETE FROM {0} WHERE id = 6",
        )
    )

    class Meddled(WatchedFilling):
        def run(self, paths: Sequence[str]) -> None:
            statement = next(meddling, None)
            if statement is not None:
                lake.session.sql(statement.format(lake.sql_name, f"{lake.name.namespace}.{lake.name.name}"))
            super().run(paths)

    real = target.filling
    target.filling = lambda name, fill: Meddled(target, real(name, fill))  # type: ignore[method-assign]
    assert found.backfill().filled == (lake.name,)

    assert next(meddling, None) is None
    assert found.backfill().filled == ()
    assert len(_fills(lake)) > before
    five = (5, 100, 101, "old")
    compacted, appended = (20, 40, 7, "new"), (21, None, 7, "new")
    there = _expected([1, 2, 3, *range(11, 17)]) | {five, compacted, appended}
    assert _found(lake) == there


def test_partitions_that_changed_and_a_table_without_rows_are_filled_too(
    lake: Lake, target: Watched, tmp_path: Path
) -> None:
    _many_files(lake)
    lake.session.sql(f"ALTER TABLE {lake.sql_name} REPLACE PARTITION FIELD day WITH bucket(3, id)")
    lake.session.sql(f"INSERT INTO {lake.sql_name} VALUES (7, 7, DATE'2024-01-03'), (8, 8, NULL)")
    lake.session.sql(f"DELETE FROM {lake.sql_name} WHERE id = 1")
    migrator(target, tmp_path, chain(lake.name, *FILLED)).up()

    assert _found(lake) == _expected([*range(2, 9), *range(11, 17)])
    specs = lake.session.sql(f"SELECT DISTINCT spec_id FROM {lake.sql_name}.files").collect()
    assert len(specs) == 2, "files stay divided as they were"
    lake.session.sql(f"DELETE FROM {lake.sql_name}")
    empty = (AddColumn(column=NewColumn(name="last", type=INT32), fill="1"),)
    migrator(target, tmp_path, chain(lake.name, *FILLED, empty)).up()
    assert rows(lake)[1] == set()


def test_a_column_of_another_type_is_filled_beside_its_writers_and_finished(
    lake: Lake, target: Watched, tmp_path: Path
) -> None:
    _made_by_others(lake)
    lake.session.sql(f"INSERT INTO {lake.sql_name} VALUES (3, 'x', NULL, DATE'2024-01-03', NULL)")
    cast = CastColumn(name="qty", type=INT32, way="expand")
    found = migrator(target, tmp_path, chain(lake.name, (Adopt(),), (cast,)), unit_size=1)
    with pytest.raises(RefusedError, match="1 values of qty have no place in the new type"):
        found.up()
    lake.session.sql(f"UPDATE {lake.sql_name} SET qty = NULL WHERE id = 3")
    (_, planned) = found.plan().steps if len(found.plan().steps) == 2 else (None, found.plan().steps[0])

    assert planned.way == "expand"
    assert planned.statements[-1] == (f"UPDATE {lake.name} SET qty = CAST(__cdc_sync_was_2 AS INT) WHERE qty IS NULL")
    assert found.up(fill=False).exit_code == 4
    lake.session.sql(
        f"INSERT INTO {lake.sql_name} VALUES (4, 9, NULL, DATE'2024-01-01', NULL, NULL), "
        "(5, NULL, NULL, DATE'2024-01-01', NULL, NULL)"
    )
    names, there = rows(lake)
    assert names == ["id", "qty", "note", "day", "lines", "__cdc_sync_was_2"]
    assert {row[:2] for row in there} == {(1, None), (2, None), (3, None), (4, 9), (5, None)}
    with pytest.raises(RefusedError, match="rows are still to be filled"):
        found.finish()
    assert found.backfill().exit_code == 0
    assert {row[:2] for row in rows(lake)[1]} == {(1, 5), (2, 7), (3, None), (4, 9), (5, None)}
    (standing,) = found.status().tables
    assert standing.unfinished == ("__cdc_sync_was_2",)
    with pytest.raises(RefusedError, match="rows written since have their values in the new qty only"):
        found.down(lake.name)
    (step,) = found.finish(dry_run=True).steps
    assert step.statements == (f"ALTER TABLE {lake.name} DROP COLUMN __cdc_sync_was_2",)
    found.finish()
    assert found.finish().steps == ()
    assert rows(lake)[0] == ["id", "qty", "note", "day", "lines"]
    assert found.plan().exit_code == 0


def test_a_value_without_a_place_that_comes_behind_the_look_fails_the_fill(
    lake: Lake, target: Watched, tmp_path: Path
) -> None:
    _made_by_others(lake)
    real = target.migrate

    def behind_the_look(name: TargetName, step: Migration, progress: Progress, said: Any = None) -> None:
        if step.version == 2:
            lake.session.sql(f"INSERT INTO {lake.sql_name} VALUES (3, 'x', NULL, DATE'2024-01-03', NULL)")
        real(name, step, progress, said)

    target.migrate = behind_the_look  # type: ignore[assignment,method-assign]
    cast = CastColumn(name="qty", type=INT32, way="expand")
    found = migrator(target, tmp_path, chain(lake.name, (Adopt(),), (cast,)))
    with pytest.raises(TargetError, match="a value of qty has no place in its new type"):
        found.up()
    lake.session.sql(f"UPDATE {lake.sql_name} SET __cdc_sync_was_2 = '3' WHERE id = 3")
    assert found.up().exit_code == 0
    assert {row[:2] for row in rows(lake)[1]} == {(1, 5), (2, 7), (3, 3)}


def test_members_of_structs_and_partitions_change_with_the_rows(lake: Lake, target: Watched, tmp_path: Path) -> None:
    _made_by_others(lake)
    actions: list[tuple[Action, ...]] = [
        (Adopt(),),
        (
            AddColumn(column=NewColumn(name="lines.element.unit", type=STRING), place=Place(first=True)),
            RenameColumn(old="lines.element.n", new="count"),
            CastColumn(name="lines.element.count", type=INT64),
        ),
        (PartitionBy(partitioning=Partitioning.parse(["month(day)", "bucket(2, id)"])),),
        (DropColumn(name="lines.element.sku"),),
    ]
    found = migrator(target, tmp_path, chain(lake.name, *actions))
    found.up()
    lake.session.sql(
        f"INSERT INTO {lake.sql_name} VALUES "
        "(3, '9', NULL, DATE'2024-02-03', array(named_struct('unit', 'kg', 'count', 4)))"
    )

    lines = {row[0]: row[4] for row in rows(lake)[1]}
    assert lines == {1: "[Row(unit=None, count=1)]", 2: None, 3: "[Row(unit='kg', count=4)]"}
    files = lake.session.sql(f"SELECT partition.* FROM {lake.sql_name}.files").collect()
    months = {value for row in files for name, value in row.asDict().items() if name.endswith("month_4")}
    assert months == {648, 649}, "months since 1970: what is written from then on is divided by them"
    with pytest.raises(RefusedError, match="values of lines may not be what they were"):
        found.down(lake.name)


def test_properties_are_set_taken_away_and_put_back(lake: Lake, target: Watched, tmp_path: Path) -> None:
    _made_by_others(lake)
    lake.session.sql(f"ALTER TABLE {lake.sql_name} SET TBLPROPERTIES ('old' = 'x')")
    values = (("team", "it's sold"), ("old", None))
    found = migrator(target, tmp_path, chain(lake.name, (Adopt(),), (SetProperties(values=values),)))

    def held() -> dict[str, str]:
        rows = lake.session.sql(f"SHOW TBLPROPERTIES {lake.sql_name}").collect()
        return {row.key: row.value for row in rows if row.key in ("team", "old")}

    (_, planned) = found.plan().steps
    assert planned.statements == (
        f"ALTER TABLE {lake.name} SET TBLPROPERTIES ('team' = 'it''s sold')",
        f"ALTER TABLE {lake.name} UNSET TBLPROPERTIES ('old')",
    )
    found.up()
    assert held() == {"team": "it's sold"}
    found.down(lake.name)
    assert held() == {"old": "x"}


def test_an_old_column_is_filled_where_it_is_null(lake: Lake, target: Watched, tmp_path: Path) -> None:
    _made_by_others(lake)
    lake.session.sql(f"UPDATE {lake.sql_name} SET qty = NULL WHERE id = 1")
    fill = FillColumn(name="qty", sql="cast(id * 100 as string)")
    migrator(target, tmp_path, chain(lake.name, (Adopt(),), (fill,))).up()
    lake.session.sql(f"INSERT INTO {lake.sql_name} VALUES (3, NULL, NULL, NULL, NULL)")

    assert {row[:2] for row in rows(lake)[1]} == {(1, "100"), (2, "7"), (3, None)}
    assert migrator(target, tmp_path, chain(lake.name, (Adopt(),), (fill,))).up().steps == ()
