"""Spark's dialect: how a target's column is written in each form."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.types import DataType, DecimalType, ListType
from cdc_sync.operations.verify.dialect import Dialect, Templates
from cdc_sync.operations.verify.forms import Form

SPARK = Dialect(
    quoted=quoted,
    md5="md5({c})",
    md5_bytes="md5({c})",
    joined=lambda parts: f"concat_ws(',', {', '.join(parts)})",
    elements="array_join(transform({c}, element -> {part}), ',')",
    word="cast(conv(substr({k}, 1, 15), 16, 10) as decimal(20,0))",
    prefix="substr({k}, 1, {n})",
    shown="left({c}, {n})",
    shown_bytes="lower(hex(substr({c}, 1, {n})))",
    plain="cast({c} as string)",
)

# Spark has no function for the bits of a number, Java has. It is asked only where there is a number.
_BITS_OF_DOUBLE = (
    "if({c} is null, null, lpad(hex(cast(java_method('java.lang.Double', 'doubleToLongBits', "
    "coalesce(cast({c} as double), 0D)) as bigint)), 16, '0'))"
)
_TRIMMED = "if(locate('.', {c}) > 0, trim(trailing '.' from trim(trailing '0' from {c})), {c})"


def _bits() -> str:
    """Return the bits of bytes that have the lowest byte first: two digits a byte, swapped, each as its four bits."""
    digits = "translate(regexp_replace(hex({c}), '(.)(.)', '$2$1'), '0123456789ABCDEF', 'ghijklmnopqrstuv')"
    for number, letter in enumerate("ghijklmnopqrstuv"):
        digits = f"replace({digits}, '{letter}', '{f'{number:04b}'[::-1]}')"
    return f"trim(trailing '0' from {digits})"


def _member(name: str, template: str) -> str:
    return f"coalesce({template.format(c='{c}.' + name)}, 'N')"


_WKB = [_member("wkb", "hex({c})"), _member("srid", "cast({c} as string)")]
_AXES = [_member("x", _BITS_OF_DOUBLE), _member("y", _BITS_OF_DOUBLE)]


def _struct(members: list[str]) -> str:
    return f"if({{c}} is null, null, concat_ws(' ', {', '.join(members)}))"


_TEMPLATES: Mapping[Form, str] = {
    Form.BOOLEAN: "cast(cast({c} as int) as string)",
    Form.INTEGER: "cast({c} as string)",
    Form.DIGITS: _TRIMMED,
    Form.FLOAT: _BITS_OF_DOUBLE,
    Form.DATE: "cast({c} as string)",
    Form.LOCAL: "cast({c} as string)",
    # The session's zone is UTC.
    Form.INSTANT: "cast({c} as string)",
    Form.TEXT: "{c}",
    Form.BYTES: "{c}",
    Form.BITS: _bits(),
    Form.POINT: _struct([*_AXES, *_WKB]),
    Form.SHAPE: _struct(_WKB),
}


def target_templates(type_: DataType) -> Templates:
    """Return how a target column of a tracked type is written; for a list, how its elements are."""
    if isinstance(type_, ListType):
        return target_templates(type_.element)
    if isinstance(type_, DecimalType):
        # A cast would write 0E-7; a pattern with all digits rounds nothing.
        pattern = f"0.{'0' * max(1, type_.scale)}"
        text = f"format_number({{c}}, '{pattern}')"
        return {**_TEMPLATES, Form.DECIMAL: f"trim(trailing '.' from trim(trailing '0' from {text}))"}
    return _TEMPLATES
