"""The captured messages, replayed, give every column the number it has in the database's own catalogue."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import fastavro
import pytest

from cdc_sync.core.lineage.column_log import ColumnLog, Structure, Token
from cdc_sync.core.lineage.messages import MessageLog, logical_message
from cdc_sync.core.model.positions import KafkaPosition, TableId
from tests.corpus.reader import PREFIXES, Message, history, schemas, topics

CAPTURES = ("postgres-json", "postgres-avro")
IDENTITY = ("swap", "rename3", "rename_last", "dropadd", "dropadd_last", "dropadd_same", "burst", "recreated", "raced")


def payloads(capture: str) -> Iterator[tuple[KafkaPosition, Mapping[str, object]]]:
    topic = f"{PREFIXES[capture]}.message"
    for record in topics(capture)[topic]:
        yield KafkaPosition(topic=topic, partition=record.partition, offset=record.offset), decoded(capture, record)


def decoded(capture: str, record: Message) -> Mapping[str, object]:
    value = record.value or b""
    if capture == "postgres-json":
        payload: dict[str, object] = json.loads(value)["payload"]
        return payload
    (schema,) = struct.unpack(">I", value[1:5])
    read: Any = fastavro.schemaless_reader(io.BytesIO(value[5:]), parsed(capture, schema), None)
    return dict(read)


@cache
def parsed(capture: str, schema: int) -> Any:
    return fastavro.parse_schema(json.loads(schemas(capture)[schema]))


@cache
def gathered(capture: str) -> MessageLog:
    log = MessageLog()
    for kafka, payload in payloads(capture):
        log.add(logical_message(payload, kafka))
    return log


def table_id(name: str) -> TableId:
    schema, _, table = name.partition(".")
    return TableId(database="postgres", schema=schema, table=table)


def lsn(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def in_effect(log: ColumnLog, step: Mapping[str, Any]) -> Structure | None:
    """The catalogue was read at an LSN, so LSNs are what is compared; there were no concurrent transactions."""
    found = [s for s in log.of(table_id(step["table"])) if s.position.parts[-1] <= lsn(step["pos_after"])]
    return found[-1] if found else None


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_step_of_every_table_has_the_tokens_of_the_catalogue(capture: str) -> None:
    log = gathered(capture).log()
    tables, steps, columns = set(), 0, 0
    for step in history(capture):
        structure = in_effect(log, step)
        if structure is None:
            continue
        assert [(c.name, c.type, c.token.number[1]) for c in structure.columns] == [  # type: ignore[index]
            (name, type_, attnum) for name, type_, _, _, attnum in step["columns"]
        ], f"{step['table']} behind step {step['step']}"
        tables.add(step["table"])
        steps += 1
        columns += len(structure.columns)

    assert log.unread == ()
    assert len(topics(capture)[f"{PREFIXES[capture]}.message"]) == 116
    assert (len(tables), steps, columns) == (23, 178, 3713)


@pytest.mark.parametrize("capture", CAPTURES)
def test_what_is_told_of_the_time_before_the_first_message_is_right(capture: str) -> None:
    gathered_log = gathered(capture)
    log = gathered_log.log()
    proven: dict[str, bool] = {}
    columns = 0
    for step in history(capture):
        table = table_id(step["table"])
        if in_effect(log, step) is not None or not log.of(table):
            continue
        truth = {name: attnum for name, _, _, _, attnum in step["columns"]}
        told = gathered_log.before_first(table, tuple(truth)) or {}
        recreated = step["table"] == "inv.recreated"
        for name, token in told.items():
            assert recreated or token.number[1] == truth[name], (step["table"], name)  # type: ignore[index]
            assert not recreated or token not in {c.token for c in log.of(table)[0].columns}
        proven[step["table"]] = proven.get(step["table"], True) and set(told) == set(truth)
        columns += len(told)

    assert sorted(table for table, complete in proven.items() if not complete) == []
    assert {f"inv.{table}" for table in IDENTITY} <= proven.keys()
    assert (len(proven), columns) == (22, 224)


def test_json_and_avro_captures_say_the_same() -> None:
    for (_, one), (_, other) in zip(*(payloads(capture) for capture in CAPTURES), strict=True):
        kafka = KafkaPosition(topic="t", partition=0, offset=0)
        left, right = logical_message(one, kafka), logical_message(other, kafka)
        assert (left.position.parts[-1], left.content) == (right.position.parts[-1], right.content)


@pytest.mark.parametrize("repeated_from", [0, 7, 50, 115])
def test_a_connector_that_sends_again_changes_nothing(repeated_from: int) -> None:
    records = [logical_message(payload, kafka) for kafka, payload in payloads("postgres-json")]
    again = MessageLog()
    for record in (*records[: repeated_from + 20], *records[repeated_from:]):
        again.add(record)
    once = gathered("postgres-json").log()
    assert {table: again.log().of(table) for table in again.log().tables} == {t: once.of(t) for t in once.tables}


def test_a_table_whose_first_message_is_a_rename_is_followed_by_its_text() -> None:
    log = gathered("postgres-json").log()
    token = Token(era=("pg", "postgres"), number=(16573, 1))
    old, new = table_id("inv.oldname"), table_id("inv.newname")
    assert [structure.columns for structure in log.of(old)] == [()]
    assert (log.before(old, ("id", "v"))["id"], log.before(new, ("id", "v"))) == (token, {})
    assert [(change.old, change.new) for change in log.name_changes] == [(old, new)]
    assert [structure.token("id") for structure in log.of(table_id("inv.newname"))] == [token]
    assert gathered("postgres-json").before_first(table_id("inv.newname"), ("id", "v")) is None


def test_odd_names_are_read_from_quoted_identities() -> None:
    log = gathered("postgres-json").log()
    assert [
        s.columns[1].name for s in log.of(TableId(database="postgres", schema="Odd Schema", table="Odd.Table é"))
    ] == ["A B", "A B"]
