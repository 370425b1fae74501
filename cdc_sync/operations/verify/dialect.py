"""What the three SQL dialects write differently: how a value becomes its form's text, digests, names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cdc_sync.operations.verify.forms import SHORT, AnyForm, Form, ListForm

SHOWN = 100
"""How many characters, or half as many bytes, of a value are shown."""
NULL = "N"
"""Stands for NULL in a row's text; no form's text is this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The words of one SQL dialect; `{c}` in its templates is a value, `{k}` a digest, `{n}` a number.

    Attributes:
        quoted: a name as an identifier.
        md5: 32 lower-case hexadecimal digits of the text's UTF-8 bytes; `md5_bytes` of bytes.
        joined: texts with commas between them, as one; each of them is not NULL.
        elements: the text of a list: `{part}` of each element, `NULL` where that is NULL, commas between them; NULL
            stays NULL. Elements are called `element` inside.
        word: the first 15 hexadecimal digits of a digest as a number below 2^60.
        prefix: the first `{n}` digits.
        shown: the beginning of a text; `shown_bytes` of bytes, in hexadecimal digits.
        plain: any value as the system itself shows it.
    """

    quoted: Callable[[str], str]
    md5: str
    md5_bytes: str
    joined: Callable[[list[str]], str]
    elements: str
    word: str
    prefix: str
    shown: str
    shown_bytes: str
    plain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """SQL for one value.

    Attributes:
        part: what stands for it in a row's text: equal for equal values, never NULL, short, without a comma.
        shown: its beginning, for people.
    """

    part: str
    shown: str


Templates = Mapping[Form, str]
"""By form: the value `{c}` as that form's text, for the types that can have the form."""


def value(dialect: Dialect, form: AnyForm, templates: Templates, column: str) -> Value:
    """Return the SQL for a value.

    Args:
        templates: of the column's type; of the element's for a list.
        column: SQL for the value.
    """
    if isinstance(form, ListForm):
        element = _part(dialect, form.element, templates[form.element], "element")
        text = dialect.elements.format(c=column, part=f"coalesce({element}, '{NULL}')")
        return Value(part=_never_null(dialect.md5.format(c=text)), shown=_shown(dialect, Form.TEXT, column, plain=True))
    part = _part(dialect, form, templates[form], column)
    is_number = form is Form.FLOAT
    text = column if is_number else templates[form].format(c=column)
    return Value(part=_never_null(part), shown=_shown(dialect, form, text, plain=is_number))


def _part(dialect: Dialect, form: Form, template: str, column: str) -> str:
    text = template.format(c=column)
    if form in SHORT:
        return text
    return (dialect.md5_bytes if form is Form.BYTES else dialect.md5).format(c=text)


def _never_null(text: str) -> str:
    return f"coalesce({text}, '{NULL}')"


def _shown(dialect: Dialect, form: Form, text: str, *, plain: bool) -> str:
    if form is Form.BYTES:
        return dialect.shown_bytes.format(c=text, n=SHOWN // 2)
    return dialect.shown.format(c=dialect.plain.format(c=text) if plain else text, n=SHOWN)
