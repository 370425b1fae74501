"""Field types of the configuration: each checks one kind of value and says in words what is wrong with it."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, NoReturn

from pydantic import AfterValidator, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from cdc_sync.config.secrets import Secret, hide_plain, shown_unless_secret

PROBLEM = "problem"
"""Error type of everything raised here; its context holds `reason` and the place below the failing value."""


def problem(reason: str, *at: str | int) -> NoReturn:
    """Refuse a value.

    Args:
        reason: what is wrong; what to do about it.
        at: where below the value being validated.

    Raises:
        PydanticCustomError: always; pydantic collects it.
    """
    raise PydanticCustomError(PROBLEM, "{reason}", {"reason": reason, "at": at})


def describe(value: object) -> str:
    """Name a value in the words of someone who reads YAML; a secret shows as its reference."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"number {value}"
        case str():
            return f"text {value!r}"
        case dict():
            return "a mapping"
        case tuple() | list():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


def _text(value: object) -> str:
    # Not pydantic's own check: it would turn every Secret into plain text.
    if isinstance(value, str):
        if not value.strip():
            problem("must not be empty text")
        return shown_unless_secret(value)
    quoted = f"; write it in quotes: '{str(value).lower()}'" if isinstance(value, bool | int | float) else ""
    problem(f"must be text, not {describe(value)}{quoted}")


def _secret_text(value: object) -> str:
    _text(value)
    assert isinstance(value, str)
    return value


def _property(value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            problem(f"must be text, not {describe(value)}; write it in quotes, so that it stays as it is written")
        case _:
            problem(f"must be text, not {describe(value)}")


def _scalar(value: object) -> bool | int | float | str | None:
    if isinstance(value, str):
        return shown_unless_secret(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    problem(f"must be one value, not {describe(value)}")


_GLOB = re.compile(r"(?:\\\.|(?<!\\)[A-Za-z0-9_-])\*")
"""A letter, digit, `_`, `-` or escaped dot, repeated: the `*` of shells, in all likelihood."""


def _regex(value: str) -> str:
    glob = _GLOB.search(re.sub(r"\[[^]]*\]", "[]", value))
    if glob is not None:
        one = glob[0].removesuffix("*")
        problem(
            f"looks like a pattern of shells: as a regular expression '{one}*' is any number of '{one}'; write "
            f"'{one}.*' for anything behind it, or '(?:{one})*' if it is meant so"
        )
    try:
        re.compile(value)
    except re.error as error:
        shell = ", and '*' alone means nothing there; write '.*' for anything" if value.startswith("*") else ""
        problem(f"is not a regular expression: {error.msg} at character {(error.pos or 0) + 1}{shell}")
    return value


def _column_regex(value: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            re.compile(_regex(value), re.ASCII | re.IGNORECASE)
    except (ValueError, FutureWarning) as error:
        problem(f"is another one to the connector, whose expressions are Java's ({error}); write it without")
    return value


def _folder_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", value):
        problem("must be letters, digits, '.', '_' and '-', because a folder is named after it")
    return value


def _location(value: str) -> str:
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", value):
        return value
    absolute = os.path.abspath(value)
    if isinstance(value, Secret):
        return Secret(absolute, reference=value.reference, parts=value.parts)
    return absolute


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _duration(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    match = re.fullmatch(r"(\d{1,9})\s?(ms|s|m|h)", value) if isinstance(value, str) else None
    if match is None:
        problem(f"must be a duration such as 500ms, 10s, 5m or 1h, not {describe(value)}")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])


def parse_duration(text: str) -> timedelta:
    """Read a duration as the configuration has it.

    Raises:
        ValueError: if it is none; the text continues "it ".
    """
    return _duration(text)


def duration_text(value: timedelta) -> str:
    """Write a duration the way the configuration reads it, in the largest unit that keeps it whole."""
    milliseconds = value // timedelta(milliseconds=1)
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


Text = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string", "minLength": 1})]
"""Text that is not empty."""

SecretText = Annotated[str, PlainValidator(_secret_text)]
"""Text that is not empty and is never shown."""

Property = Annotated[str, PlainValidator(_property)]
"""A value handed to other software as text; whole numbers, true and false may stand unquoted."""

Scalar = Annotated[
    bool | int | float | str | None,
    PlainValidator(_scalar),
    WithJsonSchema({"type": ["boolean", "number", "string", "null"]}),
]
"""A column value as the operator wrote it."""

Regex = Annotated[str, PlainValidator(_text), AfterValidator(_regex)]
"""A Python regular expression that compiles."""

ColumnRegex = Annotated[str, PlainValidator(_text), AfterValidator(_column_regex)]
"""A regular expression that means the same in Java, as far as Python can tell: no sets inside sets, only ASCII."""

FolderName = Annotated[str, PlainValidator(_text), AfterValidator(_folder_name)]
"""A name that a folder is called by."""

Location = Annotated[str, PlainValidator(_text), AfterValidator(_location)]
"""A folder, made absolute, or a URL, left alone."""

Duration = Annotated[
    timedelta, PlainValidator(_duration), PlainSerializer(duration_text, return_type=str, when_used="json")
]
"""A length of time, written as a whole number and a unit."""

Properties = Annotated[dict[str, Property], AfterValidator(hide_plain)]
"""Settings of other software by their own names; what is named like a password is never shown."""


def kind_words(error: Mapping[str, Any]) -> str | None:
    """Put pydantic's own type errors in words; None for a kind of error that is not about a single value."""
    found = describe(error["input"])
    context = error.get("ctx", {})
    match error["type"]:
        case "int_type" | "int_from_float":
            return f"must be a whole number, not {found}"
        case "bool_type":
            return f"must be true or false, not {found}"
        case "tuple_type" | "list_type":
            return f"must be a list, not {found}"
        case "mapping_type" | "dict_type" | "model_type" | "model_attributes_type":
            return f"must be a mapping, not {found}"
        case "literal_error":
            return f"must be {str(context['expected']).replace(chr(39), '')}, not {found}"
        case "greater_than_equal":
            return f"must be at least {context['ge']}, not {found.removeprefix('number ')}"
        case "less_than_equal":
            return f"must be at most {context['le']}, not {found.removeprefix('number ')}"
        case "too_short":
            return "must not be empty"
        case _:
            return None
