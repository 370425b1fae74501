"""In which text a value of the source and one of the target are compared: equal values, equal text.

Which form a column has follows from its tracked type and from the source's own type; `docs/verify.md` shows them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from typing_extensions import assert_never

from cdc_sync.core.schema.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)


class Form(Enum):
    """One way to write a value down; the value is its name in messages."""

    BOOLEAN = "0 or 1"
    INTEGER = "digits"
    DECIMAL = "digits without trailing zeros"
    """Of a number that both sides hold as one."""
    DIGITS = "digits without trailing zeros, kept as text"
    """Of a number that the target holds as text, because it has too many digits or no scale."""
    FLOAT = "the 64 bits of an IEEE 754 number"
    """The only text that is exact in every system; a number of 32 bits is widened, which is exact too."""
    DATE = "YYYY-MM-DD"
    LOCAL = "YYYY-MM-DD HH:MM:SS[.f]"
    INSTANT = "the same in UTC"
    TEXT = "the text itself"
    BYTES = "the bytes themselves"
    BITS = "bits, lowest first, without the zeros above the highest one"
    POINT = "x, y, WKB and SRID"
    SHAPE = "WKB and SRID"


@dataclass(frozen=True, slots=True)
class ListForm:
    """The elements in order, each in its form."""

    element: Form


AnyForm: TypeAlias = Form | ListForm

SHORT = frozenset({Form.BOOLEAN, Form.INTEGER, Form.DECIMAL, Form.FLOAT, Form.DATE, Form.LOCAL, Form.INSTANT})
"""Forms that are short and hold no comma: they stand in a row's text as they are, the others as their MD5."""

_POINT = ("x", "y", "wkb", "srid")
_SHAPE = ("wkb", "srid")


def forms_of(type_: DataType) -> tuple[AnyForm, ...]:
    """Return the forms that a target column of this type can be compared in, the likeliest first; () if in none."""
    match type_:
        case BooleanType():
            return (Form.BOOLEAN,)
        case IntegerType():
            return (Form.INTEGER,)
        case FloatType():
            return (Form.FLOAT,)
        case DecimalType():
            return (Form.DECIMAL,)
        case StringType():
            return (Form.TEXT, Form.DIGITS)
        case BinaryType():
            return (Form.BYTES, Form.BITS)
        case DateType():
            return (Form.DATE,)
        case TimestampType(zoned=zoned):
            return (Form.INSTANT if zoned else Form.LOCAL,)
        case ListType(element=element):
            return tuple(ListForm(form) for form in forms_of(element) if isinstance(form, Form))
        case StructType(fields=fields):
            names = tuple(field.name for field in fields)
            return (Form.POINT,) if names == _POINT else (Form.SHAPE,) if names == _SHAPE else ()
        case MapType():
            return ()
        case _:
            assert_never(type_)
