"""Records of a schema-change topic, from decoded payloads to values.

Source: Debezium, `SchemaFactory`, `ConnectTableChangeSerializer`, `TableId.toDoubleQuotedString`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cdc_sync.core.debezium.position import position_of
from cdc_sync.core.lineage.ddl_pieces import shortened
from cdc_sync.core.lineage.records import ColumnEntry, SchemaChangeRecord, TableEntry
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.errors import WireError

_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_LARGEST_SIZE = 2**31 - 1
_ACTIONS = ("CREATE", "ALTER", "DROP")


def schema_change(payload: Mapping[str, object], kafka: KafkaPosition) -> SchemaChangeRecord:
    """Return what the decoded value of a schema-change record says.

    Args:
        payload: `source`, `databaseName`, `schemaName`, `ddl`, `tableChanges`; the same from JSON and from Avro.

    Raises:
        WireError: if it is no such record.
    """
    source = payload.get("source")
    connector = source.get("connector") if isinstance(source, Mapping) else None
    changes = payload.get("tableChanges")
    if not isinstance(source, Mapping) or not isinstance(connector, str) or "ddl" not in payload:
        raise WireError(f"Cannot read {kafka}: it is no schema-change record")
    if changes is not None and not isinstance(changes, list):
        raise _damaged(kafka, "tableChanges is no list")
    return SchemaChangeRecord(
        position=position_of(source),
        kafka=kafka,
        connector=connector,
        database=_text(payload, "databaseName", kafka),
        schema=_text(payload, "schemaName", kafka),
        ddl=_text(payload, "ddl", kafka) or "",
        snapshot=source.get("snapshot") not in (None, False, "false"),
        tables=tuple(_table(change, kafka) for change in changes or ()),
    )


def table_id(text: str) -> TableId | None:
    """Read a table as `"database"."table"` or `"database"."schema"."table"`; None if it is neither."""
    parts: list[str] = []
    place = 0
    while (match := _QUOTED.match(text, place)) is not None:
        parts.append(match[1].replace('""', '"'))
        place = match.end() + 1
        if match.end() == len(text) or text[match.end()] != ".":
            break
    if place != len(text) + 1 or not parts[-1]:
        return None
    match parts:
        case [database, table]:
            return TableId(database=database, schema="", table=table)
        case [database, schema, table]:
            return TableId(database=database, schema=schema, table=table)
        case _:
            return None


def _table(change: object, kafka: KafkaPosition) -> TableEntry:
    if not isinstance(change, Mapping):
        raise _damaged(kafka, "a table change is no struct")
    action, id_, table = change.get("type"), change.get("id"), change.get("table")
    named = table_id(id_) if isinstance(id_, str) else None
    if named is None:
        raise _damaged(kafka, f"{_shown(id_)} is no table")
    if action not in _ACTIONS:
        raise _damaged(kafka, f"{_shown(action)} is no kind of table change")
    if table is None:
        if action != "DROP":
            raise _damaged(kafka, f"it does not say the columns of {named}")
        return TableEntry(action=action, table=named, columns=None)
    columns = table.get("columns") if isinstance(table, Mapping) else None
    if not isinstance(columns, list):
        raise _damaged(kafka, f"it does not say the columns of {named}")
    entries = None if action == "DROP" else tuple(_column(column, named, kafka) for column in columns)
    return TableEntry(action=action, table=named, columns=entries)


def _column(column: object, table: TableId, kafka: KafkaPosition) -> ColumnEntry:
    name = column.get("name") if isinstance(column, Mapping) else None
    if not isinstance(column, Mapping) or not isinstance(name, str):
        raise _damaged(kafka, f"a column of {table} has no name")
    optional, default = column.get("optional"), column.get("defaultValueExpression")
    return ColumnEntry(
        name=name,
        type=_type(column),
        optional=optional if isinstance(optional, bool) else None,
        default=default if isinstance(default, str) else None,
    )


def _type(column: Mapping[str, object]) -> str:
    """Write everything that a column says of its type, so that the text differs whenever the type does."""
    name, expression = (_word(column, part) for part in ("typeName", "typeExpression"))
    text = name or expression or ""
    if expression is not None and name is not None and expression != name:
        text = f"{name} {expression}"
    sizes = [str(size) for part in ("length", "scale") if (size := _size(column, part)) is not None]
    if sizes:
        text += f"({','.join(sizes)})"
    values = column.get("enumValues")
    if isinstance(values, list):
        text += f"({','.join(map(repr, values))})"
    return text


def _shown(value: object) -> str:
    return repr(shortened(value)) if isinstance(value, str) else f"a {type(value).__name__}"


def _word(column: Mapping[str, object], name: str) -> str | None:
    value = column.get(name)
    return value if isinstance(value, str) else None


def _size(column: Mapping[str, object], name: str) -> int | None:
    value = column.get(name)
    return value if isinstance(value, int) and abs(value) <= _LARGEST_SIZE else None


def _text(payload: Mapping[str, object], name: str, kafka: KafkaPosition) -> str | None:
    value = payload.get(name)
    if value is not None and not isinstance(value, str):
        raise _damaged(kafka, f"{name} is no text")
    return value


def _damaged(kafka: KafkaPosition, detail: str) -> WireError:
    return WireError(f"Cannot read the schema change at {kafka}: {detail}")
