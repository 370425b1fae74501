"""What connectors make of a column's name before it is a field's: nothing, or what Avro allows.

Neither the server nor an event tells which of these a connector does (`field.name.adjustment.mode`).

Source: Debezium, `SchemaNameAdjuster`, `FieldNameUnderscoreReplacementFunction`, `FieldNameUnicodeReplacementFunction`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cdc_sync.core.lineage.column_log import avro_name


@dataclass(frozen=True, slots=True)
class Adjustment:
    """One way in which a connector makes names of fields from names of columns.

    Attributes:
        name: a column's name -> its field's.
        can_make: whether a field's name can come of it.
    """

    name: Callable[[str], str]
    can_make: Callable[[str], bool]


def possible_adjustments(fields: Sequence[str]) -> tuple[Adjustment, ...]:
    """Return all ways in which an event's names can have come about."""
    return tuple(item for item in _ALL if all(map(item.can_make, fields)))


def _digit_replaced(name: str) -> str:
    """Return a name as `avro_name` does, but that a digit in front becomes `_` instead of getting one before it."""
    return avro_name(f"_{name[1:]}" if name[:1].isdigit() else name)


def _unicode_name(name: str) -> str:
    """Return a name in which all but ASCII letters and digits, and a digit in front, is `_u` and its code."""
    code = name.encode("utf-16-be")  # as Java counts characters
    units = [int.from_bytes(code[place : place + 2], "big") for place in range(0, len(code), 2)]
    return "".join(_unit(unit, first=place == 0) for place, unit in enumerate(units))


def _unit(unit: int, *, first: bool) -> str:
    text = chr(unit)
    if text.isascii() and (text.isalpha() or (text.isdigit() and not first)):
        return text
    return f"_u00{unit:x}" if unit < 0x100 else f"_u{unit:x}"


def _is_avro(field: str) -> bool:
    return avro_name(field) == field


_UNICODE = re.compile(r"(?![0-9])([A-Za-z0-9]|_u[0-9a-f]{3,4})*")

_ALL = (
    Adjustment(lambda name: name, lambda _: True),
    Adjustment(avro_name, _is_avro),
    Adjustment(_digit_replaced, _is_avro),
    Adjustment(_unicode_name, lambda field: _UNICODE.fullmatch(field) is not None),
)
