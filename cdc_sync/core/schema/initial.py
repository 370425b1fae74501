"""What rows that existed before a column was added read in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias

from cdc_sync.core.schema.observed import ObservedColumn
from cdc_sync.core.schema.types import Default


class Missing(Enum):
    """The type of `MISSING`."""

    MISSING = "missing"


MISSING: Final[Literal[Missing.MISSING]] = Missing.MISSING
"""The operator declared nothing; None would mean that NULL was declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Existing rows read `value`; None is NULL."""

    value: Default


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Existing rows may read anything; `reason` says why it cannot be told."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """Existing rows read `value` if the column was added with the default that its first event shows; None is NULL."""

    value: Default


InitialValue: TypeAlias = Known | Assumed | Unknown


def initial_value(
    column: ObservedColumn, *, declared: Default | Missing, first_row_holds_default: bool
) -> InitialValue:
    """Work out what existing rows read in a new column.

    Databases give existing rows the default of the moment the column was added. Debezium sends the default of the
    moment at which it reads the table's columns, perhaps set, changed or dropped since then, so that it proves
    nothing; and a function default (`now()`, `gen_random_uuid()`) as 0, '', the epoch or the zero UUID, which no row
    ever held.

    Args:
        column: the new column.
        declared: what the operator wrote; it always wins.
        first_row_holds_default: the first row with the column holds exactly its default. In a column without NULL
            that is no accident of the converter, and a function does not return its own placeholder.
    """
    if declared is not MISSING:
        return Known(value=declared)
    if not column.suspect_default:
        if column.default is not None or column.optional:
            return Assumed(value=column.default)
        return Unknown(reason="it accepts no NULL and has no default")
    if column.default is None:
        return Unknown(reason="its default could not be read")
    if not column.optional and first_row_holds_default:
        return Assumed(value=column.default)
    if column.default is False:
        # Functions that return booleans are not used as defaults, and `false` is the commonest of all.
        return Assumed(value=False)
    return Unknown(reason=f"its default arrives as {column.default!r}, which is also how a function default arrives")
