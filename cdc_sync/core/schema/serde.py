"""Versioned JSON for schemas, changes and evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from typing_extensions import assert_never

from cdc_sync.core.schema import changes as changes_
from cdc_sync.core.schema.alignment import Evidence
from cdc_sync.core.schema.changes import SchemaChange
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.sent import Sent
from cdc_sync.core.schema.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    Field,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)
from cdc_sync.errors import HistoryError, SchemaError

FORMAT = 1

_CHANGES: Mapping[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        changes_.AddColumn,
        changes_.DropColumn,
        changes_.JoinColumn,
        changes_.RenameColumn,
        changes_.UpdateColumnType,
        changes_.UpdateColumnNullability,
        changes_.UpdateColumnComment,
        changes_.UpdateColumnDefault,
        changes_.MoveColumn,
        changes_.RetireColumn,
        changes_.ReviveColumn,
        changes_.ChangePrimaryKey,
    )
}
_PLAIN: Mapping[str, DataType] = {
    "boolean": BooleanType(),
    "string": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamp": TimestampType(zoned=False),
    "timestamptz": TimestampType(zoned=True),
}


def to_text(data: Mapping[str, Any]) -> str:
    """Return JSON for people and machines, the same bytes for equal data.

    Raises:
        HistoryError: for a value that JSON cannot hold: NaN or an infinity.
    """
    try:
        text = json.dumps({"format": FORMAT, **data}, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise HistoryError(f"Cannot write schema: {error}") from error
    return f"{text}\n"


def from_text(text: str) -> dict[str, Any]:
    """Read what `to_text` wrote.

    Raises:
        HistoryError: if it is not JSON, or of a later format.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise HistoryError(f"Cannot read schema: not JSON: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else None
        raise HistoryError(f"Cannot read schema: format {found} is not known to this program; update cdc_sync")
    return data


def schema_to_json(schema: InternalSchema) -> dict[str, Any]:
    """Return a schema as JSON values."""
    return {
        "columns": [column_to_json(column) for column in schema.columns],
        "primary_key": list(schema.primary_key),
        "last_column_id": schema.last_column_id,
    }


def schema_from_json(data: Mapping[str, Any]) -> InternalSchema:
    """Read what `schema_to_json` returned.

    Raises:
        HistoryError: if a part is missing or of the wrong kind.
    """
    try:
        return InternalSchema(
            columns=tuple(column_from_json(column) for column in data["columns"]),
            primary_key=tuple(data["primary_key"]),
            last_column_id=data["last_column_id"],
        )
    except (KeyError, TypeError, AttributeError, ValueError, SchemaError) as error:
        raise HistoryError(f"Cannot read schema: {error!r}") from error


def column_to_json(column: Column) -> dict[str, Any]:
    """Return a column as JSON values; members at their defaults are left out."""
    data: dict[str, Any] = {"id": column.id, "name": column.name, "type": type_to_json(column.type)}
    data["optional"] = column.optional
    if column.comment is not None:
        data["comment"] = column.comment
    if column.default is not None:
        data["default"] = column.default
    if column.initial is not None:
        data["initial"] = column.initial
    if column.retired:
        data["retired"] = True
    if column.sent is not None:
        data["sent"] = _sent_to_json(column.sent)
    return data


def _sent_to_json(sent: Sent) -> dict[str, Any]:
    given = {"name": sent.name, "parameters": dict(sent.parameters), "source": sent.source}
    return {"type": sent.type, **{name: value for name, value in given.items() if value}}


def _sent_from_json(data: Mapping[str, Any]) -> Sent:
    return Sent(
        type=data["type"],
        name=data.get("name", ""),
        parameters=tuple(sorted(data.get("parameters", {}).items())),
        source=data.get("source", ""),
    )


def column_from_json(data: Mapping[str, Any]) -> Column:
    """Read what `column_to_json` returned."""
    return Column(
        id=data["id"],
        name=data["name"],
        type=type_from_json(data["type"]),
        optional=data["optional"],
        comment=data.get("comment"),
        default=data.get("default"),
        initial=data.get("initial"),
        retired=data.get("retired", False),
        sent=None if "sent" not in data else _sent_from_json(data["sent"]),
    )


def type_to_json(type_: DataType) -> Any:
    """Return a type as JSON: a word, `decimal(p,s)`, or an object for nested types."""
    match type_:
        case IntegerType(bits=bits):
            return f"int{bits}"
        case FloatType(bits=bits):
            return f"float{bits}"
        case DecimalType(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case BooleanType():
            return "boolean"
        case StringType():
            return "string"
        case BinaryType():
            return "binary"
        case DateType():
            return "date"
        case TimestampType(zoned=zoned):
            return "timestamptz" if zoned else "timestamp"
        case StructType(fields=members):
            return {"struct": [_field_to_json(member) for member in members]}
        case ListType(element_id=id_, element=element, element_optional=optional):
            return {"list": type_to_json(element), "element_id": id_, "element_optional": optional}
        case MapType():
            return {
                "map": [type_to_json(type_.key), type_to_json(type_.value)],
                "key_id": type_.key_id,
                "value_id": type_.value_id,
                "value_optional": type_.value_optional,
            }
        case _:
            assert_never(type_)


def type_from_json(data: Any) -> DataType:
    """Read what `type_to_json` returned.

    Raises:
        HistoryError: for a type that this program does not know.
    """
    if isinstance(data, str):
        return _plain_from_json(data)
    if "struct" in data:
        return StructType(fields=tuple(_field_from_json(member) for member in data["struct"]))
    if "list" in data:
        return ListType(
            element_id=data["element_id"],
            element=type_from_json(data["list"]),
            element_optional=data["element_optional"],
        )
    key, value = data["map"]
    return MapType(
        key_id=data["key_id"],
        key=type_from_json(key),
        value_id=data["value_id"],
        value=type_from_json(value),
        value_optional=data["value_optional"],
    )


def _plain_from_json(text: str) -> DataType:
    if text in _PLAIN:
        return _PLAIN[text]
    if text in ("int8", "int16", "int32", "int64"):
        return IntegerType(bits=int(text.removeprefix("int")))
    if text in ("float32", "float64"):
        return FloatType(bits=int(text.removeprefix("float")))
    if text.startswith("decimal(") and text.endswith(")"):
        precision, _, scale = text[8:-1].partition(",")
        return DecimalType(precision=int(precision), scale=int(scale))
    raise HistoryError(f"Cannot read type {text!r}: this program does not know it; update cdc_sync")


def _field_to_json(field: Field) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": field.id,
        "name": field.name,
        "type": type_to_json(field.type),
        "optional": field.optional,
    }
    if field.comment is not None:
        data["comment"] = field.comment
    return data


def _field_from_json(data: Mapping[str, Any]) -> Field:
    return Field(
        id=data["id"],
        name=data["name"],
        type=type_from_json(data["type"]),
        optional=data["optional"],
        comment=data.get("comment"),
    )


def change_to_json(change: SchemaChange) -> dict[str, Any]:
    """Return a change as JSON values; `change` names its kind."""
    data: dict[str, Any] = {"change": type(change).__name__}
    for member in fields(change):
        value = getattr(change, member.name)
        if isinstance(value, Column):
            data[member.name] = column_to_json(value)
        elif isinstance(change, changes_.UpdateColumnType) and member.name in ("old", "new"):
            data[member.name] = type_to_json(value)
        else:
            data[member.name] = list(value) if isinstance(value, tuple) else value
    return data


def change_from_json(data: Mapping[str, Any]) -> SchemaChange:
    """Read what `change_to_json` returned.

    Raises:
        HistoryError: for a kind of change that this program does not know.
    """
    kind = _CHANGES.get(data.get("change", ""))
    if kind is None:
        raise HistoryError(f"Cannot read change {data.get('change')!r}: this program does not know it; update cdc_sync")
    values: dict[str, Any] = {}
    for name, value in data.items():
        if name == "change":
            continue
        if name == "column":
            values[name] = column_from_json(value)
        elif kind is changes_.UpdateColumnType and name in ("old", "new"):
            values[name] = type_from_json(value)
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
    change: SchemaChange = kind(**values)
    return change


def evidence_to_json(evidence: Evidence) -> dict[str, str]:
    """Return evidence as JSON values."""
    return {"subject": evidence.subject, "kind": evidence.kind, "text": evidence.text}


def evidence_from_json(data: Mapping[str, Any]) -> Evidence:
    """Read what `evidence_to_json` returned."""
    return Evidence(subject=data["subject"], kind=data["kind"], text=data["text"])
