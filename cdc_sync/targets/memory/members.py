"""Values of nested columns under another type of their column, as Python has them."""

from __future__ import annotations

from typing import Any

from cdc_sync.core.schema.types import DataType, ListType, MapType, StructType


def reshaped(value: Any, old: DataType, new: DataType) -> Any:
    """Return a value with the members of another type, found by their ids; new ones are None. Leaves stay as they are.

    Args:
        value: structs as dictionaries by name, maps as dictionaries, lists as lists; None is NULL.
        old: the type it has.
        new: one that a format could change to in place.
    """
    if value is None:
        return None
    match old, new:
        case StructType(), StructType():
            known = {field.id: field for field in old.fields}
            return {
                field.name: reshaped(value[known[field.id].name], known[field.id].type, field.type)
                if field.id in known
                else None
                for field in new.fields
            }
        case ListType(), ListType():
            return [reshaped(item, old.element, new.element) for item in value]
        case MapType(), MapType():
            return {key: reshaped(item, old.value, new.value) for key, item in value.items()}
        case _:
            return value
