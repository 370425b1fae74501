"""Revisions on Delta tables that others made and write: the same words, the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc_sync.core.revisions.actions import (
    AddColumn,
    Adopt,
    CastColumn,
    CommentColumn,
    CreateTable,
    DropColumn,
    MoveColumn,
    NewColumn,
    Place,
    RenameColumn,
    SetProperties,
)
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.schema.types import (
    BINARY,
    DATE,
    INT16,
    INT32,
    INT64,
    STRING,
    DecimalType,
    ListType,
    MapType,
    StructType,
)
from cdc_sync.errors import RefusedError, TargetError
from cdc_sync.targets.delta.adopted import tracked
from cdc_sync.targets.delta.fill import done_files, may_have_nulls
from cdc_sync.targets.delta.target import DeltaTarget
from cdc_sync.targets.protocol import Revisable, Target
from tests.targets.conftest import Lake, fresh_name
from tests.targets.test_revisions import FILLED, Killed, Watched, WatchedFilling, chain, migrator

NEW = NewColumn(name="price", type=DecimalType(precision=8, scale=2), comment="per piece")


def test_columns_of_any_type_are_tracked_and_others_are_refused() -> None:
    def field(name: str, type_: Any, **metadata: str) -> dict[str, Any]:
        return {"name": name, "type": type_, "nullable": True, "metadata": metadata}

    member = {"type": "struct", "fields": [field("n", "short"), field("x", "binary")]}
    found = tracked(
        [
            field("id", "long", comment="the key"),
            field("price", "decimal(8,2)"),
            field("lines", {"type": "array", "elementType": member, "containsNull": True}),
            field("tags", {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True}),
        ]
    )

    assert [(column.id, column.name, column.comment) for column in found.columns] == [
        (1, "id", "the key"),
        (2, "price", None),
        (3, "lines", None),
        (7, "tags", None),
    ]
    _, price, lines, tags = (column.type for column in found.columns)
    assert price == DecimalType(precision=8, scale=2)
    assert isinstance(lines, ListType)
    assert isinstance(lines.element, StructType)
    assert [it.type for it in lines.element.fields] == [INT16, BINARY]
    assert isinstance(tags, MapType)
    assert (tags.key, tags.value, found.last_column_id) == (STRING, DATE, 9)
    with pytest.raises(TargetError, match="Cannot track column a: cdc_sync keeps no columns of type void"):
        tracked([field("a", "void")])
    with pytest.raises(TargetError, match="of type udt"):
        tracked([field("a", {"type": "udt"})])


def test_the_log_tells_which_files_are_as_they_are_to_be() -> None:
    def commit(*paths: str, **more: Any) -> list[dict[str, Any]]:
        return [
            {"commitInfo": {"isBlindAppend": more.pop("append", False)}},
            *({"add": {"path": it}} for it in paths),
            more,
        ]

    columns = commit(metaData={"configuration": {"cdc_sync.schema-version": "2"}}, txn={"appId": "cdc_sync"})
    by_others = commit(metaData={"configuration": {"cdc_sync.schema-version": "2"}})
    filled = commit("filled", txn={"appId": "cdc_sync.filled-for.2"})
    before = [commit("old", append=True), commit(metaData={"configuration": {}})]
    since = [commit("new", append=True), by_others, filled, commit("updated"), commit("newer", append=True)]

    assert done_files([*since, columns, *before], 2) == {"new", "newer", "filled"}
    assert done_files(since, 2) == {"filled"}, "the log does not go back to the columns"
    assert done_files([filled, columns], 3) == set()
    assert may_have_nulls(None, ["a"])
    assert may_have_nulls('{"nullCount": {"a": 0}}', ["a", "b"])
    assert may_have_nulls('{"nullCount": {"a": 0, "b": 1}}', ["a", "b"])
    assert not may_have_nulls('{"nullCount": {"a": 0, "b": 0}}', ["a", "b"])


@pytest.fixture
def target(delta: Target) -> Watched:
    assert isinstance(delta, Revisable)
    return Watched(delta)


@pytest.fixture
def lake(delta: Target, session: SparkSession) -> Lake:
    return Lake(target=delta, session=session, name=fresh_name())


def place(lake: Lake) -> str:
    assert isinstance(lake.target, DeltaTarget)
    return f"delta.{quoted(lake.target.path(lake.name))}"


def found(lake: Lake, *names: str) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in lake.frame().select(*names).collect()}


@pytest.mark.delta
@pytest.mark.parametrize("reply_lost", [False, True])
def test_a_table_that_others_made_is_changed_whoever_is_killed(
    lake: Lake, target: Watched, tmp_path: Path, reply_lost: bool
) -> None:
    lake.session.sql(
        f"CREATE TABLE {place(lake)} (id BIGINT, qty STRING, note STRING, day DATE, "
        "lines ARRAY<STRUCT<sku: STRING, n: INT>>) USING delta PARTITIONED BY (day)"
    )
    lake.session.sql(
        f"INSERT INTO {place(lake)} VALUES (1, '5', 'a', DATE'2024-01-01', array(named_struct('sku', 'x', 'n', 1))), "
        "(2, '7', NULL, DATE'2024-01-02', NULL)"
    )
    revisions = chain(
        lake.name,
        (Adopt(columns=(NewColumn(name="id", type=INT64),)),),
        (AddColumn(column=NEW, place=Place(after="id"), fill="1.50"), RenameColumn(old="qty", new="quantity")),
        (CastColumn(name="quantity", type=INT32), RenameColumn(old="day", new="date")),
        (DropColumn(name="note"), AddColumn(column=NewColumn(name="note", type=INT32))),
        (MoveColumn(name="note", place=Place(first=True)), CommentColumn(name="id", comment="the key")),
    )
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

    assert kills == 8 - (not reply_lost)
    assert lake.frame().columns == ["note", "id", "price", "quantity", "date", "lines"]
    price = Decimal("1.50")
    assert found(lake, "id", "price", "quantity", "note") == {(1, price, 5, None), (2, price, 7, None)}
    lake.session.sql(f"INSERT INTO {place(lake)} VALUES (1, 3, 2.5, 9, DATE'2024-01-01', NULL)")
    assert found(lake, "id", "note", "date") >= {(3, 1, date(2024, 1, 1))}
    target.dies_before = target.dies_after = 0
    with pytest.raises(TargetError, match="Cannot drop column date: the table is partitioned by it"):
        migrator(target, tmp_path, chain(lake.name, *(it.actions for it in revisions), (DropColumn(name="date"),))).up()


@pytest.mark.delta
def test_what_others_do_to_rows_while_they_are_filled_stays(lake: Lake, target: Watched, tmp_path: Path) -> None:
    lake.session.sql(
        f"CREATE TABLE {place(lake)} (id INT, n INT, day DATE) USING delta PARTITIONED BY (day) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    for id_ in range(1, 7):
        lake.session.sql(
            f"INSERT INTO {place(lake)} VALUES ({id_}, {id_}, DATE'2024-01-0{1 + id_ % 2}'), "
            f"({id_ + 10}, NULL, DATE'2024-01-01')"
        )
    migrated = migrator(target, tmp_path, chain(lake.name, *FILLED), unit_size=1)
    migrated.up(fill=False)
    meddling = iter(
        (
            "UPDATE {0} SET n = 50 WHERE id = 5",
            "DELETE FROM {0} WHERE id = 4",
            "INSERT INTO {0} VALUES (20, 20, DATE'2024-01-01', NULL, 7, 'new')",
            "OPTIMIZE {0}",
            "INSERT INTO {0} VALUES (21, 21, DATE'2024-01-01', NULL, 7, 'new')",
            "DELETE FROM {0} WHERE id = 6",
        )
    )

    class Meddled(WatchedFilling):
        def run(self, paths: Sequence[str]) -> None:
            statement = next(meddling, None)
            if statement is not None:
                lake.session.sql(statement.format(place(lake)))
            super().run(paths)

    real = target.filling
    target.filling = lambda name, fill: Meddled(target, real(name, fill))  # type: ignore[method-assign]
    assert migrated.backfill().filled == (lake.name,)

    assert next(meddling, None) is None
    old = {(id_, 2 * id_, 2 * id_ + 1, "old") for id_ in (1, 2, 3)} | {(it, None, None, "old") for it in range(11, 17)}
    assert found(lake, "id", "twice", "more", "kind") == old | {
        (5, 100, 101, "old"),
        (20, 40, 7, "new"),
        (21, None, 7, "new"),
    }


@pytest.mark.delta
def test_a_table_of_ours_is_divided_filled_and_its_column_takes_the_place_of_another(
    lake: Lake, target: Watched, tmp_path: Path
) -> None:
    columns = (NewColumn(name="id", type=INT64), NewColumn(name="qty", type=STRING), NewColumn(name="day", type=DATE))
    actions = (
        (CreateTable(columns=columns, partitioning=Partitioning.parse(["month(day)"])),),
        (CastColumn(name="qty", type=INT32, way="expand"),),
        (CastColumn(name="qty", type=DecimalType(precision=6, scale=1)),),
    )
    migrator(target, tmp_path, chain(lake.name, actions[0])).up()
    insert = f"INSERT INTO {place(lake)} (id, qty, day, cdc_sync_by_month_day) VALUES"
    lake.session.sql(f"{insert} (1, '5', DATE'2024-01-01', '2024-01'), (2, 'x', DATE'2024-02-01', '2024-02')")
    with pytest.raises(RefusedError, match="1 values of qty have no place in the new type"):
        migrator(target, tmp_path, chain(lake.name, *actions[:2])).up()
    lake.session.sql(f"UPDATE {place(lake)} SET qty = '7' WHERE id = 2")
    migrated = migrator(target, tmp_path, chain(lake.name, *actions[:2]))
    migrated.up()

    assert found(lake, "id", "qty") == {(1, 5), (2, 7)}
    assert lake.frame().columns == ["id", "qty", "day", "__cdc_sync_was_2", "cdc_sync_by_month_day"]
    migrated.finish()
    properties = (SetProperties(values=(("delta.appendOnly", "false"), ("team", "sales"))),)
    migrator(target, tmp_path, chain(lake.name, *actions[:2], properties, actions[2])).up()
    assert lake.frame().columns == ["id", "qty", "day", "cdc_sync_by_month_day"]
    assert found(lake, "id", "qty") == {(1, Decimal("5.0")), (2, Decimal("7.0"))}
    shown = {row.key: row.value for row in lake.session.sql(f"SHOW TBLPROPERTIES {place(lake)}").collect()}
    assert (shown["team"], shown["delta.appendOnly"]) == ("sales", "false")
    partitions = {row[0] for row in lake.frame().select("cdc_sync_by_month_day").distinct().collect()}
    assert len(partitions) == 2
