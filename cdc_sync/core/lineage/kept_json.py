"""Kept readings of the catalogue as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdc_sync.core.lineage.catalogue import Attribute, CatalogueReading, Stamp
from cdc_sync.core.lineage.kept import Entry, Missed, Span
from cdc_sync.core.model.positions import TableId


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """Return what `entry_from_json` reads; the table is not in it."""
    if isinstance(entry, Missed):
        return {"missed_up_to": entry.lsn}
    first = entry.first
    return {
        "first": {"begun": first.begun, "ended": first.ended, "taken": first.taken},
        "last": {"begun": entry.begun, "ended": entry.ended, "taken": entry.taken},
        "server": first.server,
        "relid": first.relid,
        "named": _stamp_to_json(first.named),
        "schema_named": _stamp_to_json(first.schema_named),
        "attributes": [_attribute_to_json(item) for item in first.attributes],
    }


def entry_from_json(data: Mapping[str, Any], table: TableId) -> Entry:
    """Return the entry.

    Raises:
        KeyError, TypeError, ValueError: if it is not what `entry_to_json` made.
    """
    if "missed_up_to" in data:
        return Missed(lsn=data["missed_up_to"])
    first = CatalogueReading(
        table=table,
        relid=data["relid"],
        server=data["server"],
        named=_stamp_from_json(data["named"]),
        schema_named=_stamp_from_json(data["schema_named"]),
        attributes=tuple(_attribute_from_json(*item) for item in data["attributes"]),
        **data["first"],
    )
    return Span(first=first, **data["last"])


def _attribute_to_json(item: Attribute) -> list[Any]:
    told = [] if item.generated is None else [item.generated]
    return [item.number, item.name, item.type, _stamp_to_json(item.stamp), *told]


def _attribute_from_json(number: int, name: str, type_: str, stamp: Any, generated: bool | None = None) -> Attribute:
    """Return an attribute; older readings do not tell whether it is generated."""
    return Attribute(number=number, name=name, type=type_, stamp=_stamp_from_json(stamp), generated=generated)


def _stamp_to_json(stamp: Stamp | None) -> list[int | None] | None:
    if stamp is None:
        return None
    return [stamp.xid, stamp.at, *(() if stamp.command is None else (stamp.command,))]


def _stamp_from_json(data: Any) -> Stamp | None:
    """Return a stamp; older readings tell no command."""
    if data is None:
        return None
    xid, at, *told = data
    return Stamp(xid=xid, at=at, command=told[0] if told else None)
