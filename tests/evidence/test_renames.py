"""Which statements and messages say that a table got another name, and which only look like it."""

from __future__ import annotations

import json

import pytest

from cdc_sync.core.lineage.column_log import ColumnLog
from cdc_sync.core.lineage.messages import MessageLog
from cdc_sync.core.lineage.records import LogicalMessage, SchemaChangeRecord
from cdc_sync.core.lineage.renames import ToldRename, renames
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition
from tests.evidence.ddl_schema_changes import at, change, replayed, table

CREATED = change(10, "create table a (x int, y int)", {"a": "x y"})
OTHER = change(11, "create table b (x int, y int)", {"b": "x y"})


def told(*records: SchemaChangeRecord) -> list[str]:
    """Return what follows from statements, in short; `?` where it may still be an exchange."""
    return [_short(item) for item in renames((replayed(CREATED, *records).log(),))]


def _short(item: ToldRename) -> str:
    return f"{item.old.table}>{item.new.table}@{item.position.parts[-2]}{'' if item.settled else '?'}"


def test_a_rename_is_told_with_its_statement_place_and_record() -> None:
    log = replayed(CREATED, change(20, "RENAME TABLE `a` TO `b` /* generated */", {"b": "x y"})).log()
    (found,) = renames((log,))
    assert found == ToldRename(
        kind="ddl",
        old=table("a"),
        new=table("b"),
        position=at(20),
        kafka=KafkaPosition(topic="x", partition=0, offset=20),
        statement="RENAME TABLE `a` TO `b`",
        settled=False,
    )


@pytest.mark.parametrize(
    ("ddl", "entries"),
    [
        ("rename table a to b", {"b": "x y"}),
        ("alter table a rename to b", {"b": "x y"}),
        ("alter table a add z int, rename b", {"b": "x y z"}),
    ],
)
def test_in_whatever_words(ddl: str, entries: dict[str, str]) -> None:
    assert told(change(20, ddl, entries)) == ["a>b@20?"]


def test_a_name_that_is_created_again_settles_it() -> None:
    away = change(20, "rename table a to b", {"b": "x y"})
    assert told(away, change(30, "create table a (k int)", {"a": "k"})) == ["a>b@20"]


def test_several_steps_of_one_statement_are_one() -> None:
    steps = (
        change(20, "RENAME TABLE a TO b", {"b": "x y"}),
        change(20, "RENAME TABLE b TO c", {"c": "x y"}),
    )
    assert told(*steps) == ["a>c@20?"]
    assert told(*steps, change(20, "RENAME TABLE c TO a", {"a": "x y"})) == []


def test_a_chain_is_one_rename_after_the_other() -> None:
    chain = change(20, "rename table a to b", {"b": "x y"}), change(30, "rename table b to c", {"c": "x y"})
    assert told(*chain) == ["a>b@20?", "b>c@30?"]


def test_away_and_back_are_two() -> None:
    both = change(20, "rename table a to b", {"b": "x y"}), change(30, "rename table b to a", {"a": "x y"})
    assert told(*both) == ["a>b@20", "b>a@30?"]
    assert told(*both, change(40, "rename table a to b", {"b": "x y"})) == ["a>b@20", "b>a@30", "a>b@40?"]


GHOST = change(15, "create table _a_gho like a", {"_a_gho": "x y"})
ALTERED = change(16, "alter table _a_gho add z int", {"_a_gho": "x y z"})


@pytest.mark.parametrize(
    "records",
    [
        [
            GHOST,
            ALTERED,
            change(20, "RENAME TABLE a TO _a_del", {"_a_del": "x y"}),
            change(20, "RENAME TABLE _a_gho TO a", {"a": "x y z"}),
        ],
        [
            GHOST,
            ALTERED,
            change(20, "rename table a to _a_del", {"_a_del": "x y"}),
            change(30, "rename table _a_gho to a", {"a": "x y z"}),
        ],
        [
            change(15, "create table other (x int, y int)", {"other": "x y"}),
            change(20, "rename table a to a_old, other to a", {"a_old": "x y", "a": "x y"}),
        ],
        [
            change(20, "rename table a to a_old", {"a_old": "x y"}),
            change(30, "rename table never_seen to a", {"a": "x y"}),
        ],
        [OTHER, change(20, "rename table a to s, b to a, s to b", {"a": "x y", "b": "x y"})],
        [OTHER, change(20, "drop table a", {"a": None}), change(30, "rename table b to a", {"a": "x y"})],
        [change(20, "rename table a to b", {"b": "x other"})],
        [change(20, "rename table a to b garbage (", {"b": "x y"})],
        [change(20, "rename table never_seen to b", {"b": "x y"})],
        [change(20, "rename table a to a", {"a": "x y"})],
        [change(20, "create or replace view b as select 1", {})],
    ],
    ids=lambda records: "; ".join(record.ddl for record in records),
)
def test_an_exchange_or_something_unclear_is_none(records: list[SchemaChangeRecord]) -> None:
    assert told(*records) == []


def test_what_came_under_a_name_again_is_another_table_and_goes_nowhere() -> None:
    """`b` was dropped and made anew meanwhile, so what gets the name `a` is not the table that left it."""
    found = told(
        change(20, "rename table a to b", {"b": "x y"}),
        change(25, "drop table b", {"b": None}),
        change(26, "create table b (x int, y int)", {"b": "x y"}),
        change(30, "rename table b to a", {"a": "x y"}),
    )
    assert found == []


def test_each_of_several_is_told() -> None:
    log = replayed(
        CREATED,
        change(20, "rename table a to b", {"b": "x y"}),
        change(30, "rename table b to a", {"a": "x y"}),
        change(40, "rename table a to c", {"c": "x y"}),
    ).log()

    assert [item.position for item in renames((log,)) if item.old == table("a")] == [at(20), at(40)]


def test_a_rename_is_told_once_however_often_it_is_sent() -> None:
    away = change(20, "rename table a to b", {"b": "x y"})
    assert told(away, away) == ["a>b@20?"]


def test_nothing_is_told_of_places_that_begin_again() -> None:
    away = change(20, "rename table a to b", {"b": "x y"})
    assert told(away, change(5, "create table s (x int)", {"s": "x"})) == []


def messages(*contents: dict[str, object]) -> ColumnLog:
    log = MessageLog()
    for place, content in enumerate(contents, 1):
        body = {"v": 1, "cluster": None, "schema": "inv", "tag": "ALTER TABLE", "query": "q", **content}
        log.add(
            LogicalMessage(
                position=SourcePosition(kind="postgresql", parts=(place, place)),
                kafka=KafkaPosition(topic="m", partition=0, offset=place),
                database="shop",
                prefix="cdc_sync",
                content=json.dumps({"kind": "command", "columns": COLUMNS, **body}).encode(),
            )
        )
    return log.log()


COLUMNS: object = [{"attnum": 1, "name": "id", "type": "integer"}]


def said(*contents: dict[str, object]) -> list[tuple[str, str, int]]:
    found = renames((messages(*contents),))
    return [(str(item.old), str(item.new), item.kafka.offset) for item in found if item.settled]


def test_a_message_with_the_number_of_another_name_tells_it() -> None:
    assert said({"table": "a", "relid": 7}, {"table": "b", "relid": 7}) == [("shop.inv.a", "shop.inv.b", 2)]
    assert said({"table": "a", "relid": 7}, {"table": "b", "relid": 8}) == []
    moved: dict[str, object] = {"table": "a", "relid": 7, "schema": "old"}
    assert said({"table": "a", "relid": 7}, moved) == [("shop.inv.a", "shop.old.a", 2)]


def test_numbers_prove_an_exchange_too() -> None:
    found = said(
        {"table": "a", "relid": 7},
        {"table": "b", "relid": 8},
        {"table": "a_old", "relid": 7},
        {"table": "a", "relid": 8},
    )
    assert found == [("shop.inv.a", "shop.inv.a_old", 3), ("shop.inv.b", "shop.inv.a", 4)]


@pytest.mark.parametrize(
    "between",
    [
        {"kind": "failed", "table": "a", "relids": [7], "reason": "r"},
        {"table": "a", "relid": 7, "cluster": "another"},
        {"table": "b", "relid": 7, "kind": "baseline"},
    ],
    ids=["a gap", "another server", "only a look"],
)
def test_what_is_not_told_by_the_command_itself_is_not_followed(between: dict[str, object]) -> None:
    assert said({"table": "a", "relid": 7}, between, {"table": "b", "relid": 7}) == []
