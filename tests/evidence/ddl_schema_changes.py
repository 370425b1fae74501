"""Schema-change records for tests: made up, and from the captured topics."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import fastavro

from cdc_sync.core.lineage.ddl_log import DdlLog
from cdc_sync.core.lineage.ddl_records import schema_change
from cdc_sync.core.lineage.records import ColumnEntry, SchemaChangeRecord, TableEntry
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from tests.corpus.reader import PREFIXES, schemas, topics

Columns = str | Iterable[str] | None
"""Names of an entry's columns, in one text or several; None for a DROP."""


def table(name: str, database: str = "db") -> TableId:
    return TableId(database=database, schema="", table=name)


def at(place: int, row: int = 0) -> SourcePosition:
    return SourcePosition(kind="binlog", parts=(1, place, row))


def entry(name: str, columns: Columns, action: str | None = None) -> TableEntry:
    names = columns.split() if isinstance(columns, str) else columns
    found = None if names is None else tuple(ColumnEntry(name=column, type="INT") for column in names)
    return TableEntry(action=action or ("DROP" if found is None else "ALTER"), table=table(name), columns=found)


def change(
    place: int,
    ddl: str,
    entries: Mapping[str, Columns] | None = None,
    *,
    snapshot: bool = False,
    position: SourcePosition | None = None,
    connector: str = "mariadb",
) -> SchemaChangeRecord:
    return SchemaChangeRecord(
        position=position or at(place),
        kafka=KafkaPosition(topic="x", partition=0, offset=place),
        connector=connector,
        database="db",
        schema=None,
        ddl=ddl,
        snapshot=snapshot,
        tables=tuple(entry(name, columns) for name, columns in (entries or {}).items()),
    )


def replayed(*records: SchemaChangeRecord) -> DdlLog:
    log = DdlLog()
    for record in records:
        log.add(record)
    return log


@cache
def captured(capture: str) -> tuple[SchemaChangeRecord, ...]:
    """Return the schema-change records of a MariaDB capture."""
    prefix = PREFIXES[capture]
    found = []
    for message in topics(capture)[prefix]:
        assert message.value is not None
        kafka = KafkaPosition(topic=message.topic, partition=message.partition, offset=message.offset)
        payload = json.loads(message.value)["payload"] if prefix == "maj" else _avro(capture, message.value)
        found.append(schema_change(payload, kafka))
    return tuple(found)


def _avro(capture: str, value: bytes) -> dict[str, Any]:
    schema = _parsed(capture, int.from_bytes(value[1:5], "big"))
    decoded = fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)
    assert isinstance(decoded, dict)
    return decoded


@cache
def _parsed(capture: str, id_: int) -> Any:
    return fastavro.parse_schema(json.loads(schemas(capture)[id_]))
