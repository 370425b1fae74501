"""From a file to a `Config`, or to one `ConfigError` with its place."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from cdc_sync.config.document import Document, Place, read
from cdc_sync.config.fields import PROBLEM, describe, kind_words
from cdc_sync.config.models import Config
from cdc_sync.config.secrets import UnresolvedError, resolve
from cdc_sync.errors import ConfigError

M = TypeVar("M", bound=BaseModel)


def load_config(path: str | Path, *, environ: Mapping[str, str] | None = None) -> Config:
    """Read and check a configuration file, resolving its references.

    Args:
        path: the file.
        environ: what `${env:NAME}` sees; the process's environment if None.

    Raises:
        ConfigError: with file, line and column of the first problem; the others are with it.
    """
    return parse_config(text_of(path), path=str(path), environ=environ)


def text_of(path: str | Path) -> str:
    """Return what is in a file.

    Raises:
        ConfigError: if it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"Cannot read the file: byte {error.start + 1} is not UTF-8", path=str(path)) from None
    except OSError as error:
        raise ConfigError(f"Cannot read the file: {error.strerror}", path=str(path)) from None


def parse_config(text: str, *, path: str = "<text>", environ: Mapping[str, str] | None = None) -> Config:
    """Check the text of a configuration; `path` is for messages and `${config_dir}`.

    Raises:
        ConfigError: as `load_config`.
    """
    return parse_as(Config, text, path=path, environ=environ)


def parse_as(kind: type[M], text: str, *, path: str, environ: Mapping[str, str] | None = None) -> M:
    """Check the text of a file that a model describes, resolving its references.

    Raises:
        ConfigError: as `load_config`.
    """
    document = read(text, path)
    known = os.environ if environ is None else environ
    unresolved: list[ConfigError] = []
    values = _resolved(document, document.value, (), known, unresolved)
    if unresolved:
        raise together(unresolved)
    return checked(kind, document, values)


def checked(kind: type[M], document: Document, values: object) -> M:
    """Check the values of a document by a model.

    Raises:
        ConfigError: as `load_config`.
    """
    if not isinstance(values, dict):
        keys = " and ".join(list(kind.model_fields)[:2])
        raise document.error(
            f"Cannot use the file: it must be a mapping of keys such as {keys}, not {describe(values)}", ()
        )
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        # `from None`: pydantic's own error quotes values.
        raise _problems(kind, document, error) from None


def together(problems: Sequence[ConfigError]) -> ConfigError:
    """Return the first of some problems, with the others."""
    first, *others = problems
    first.others = tuple(others)
    return first


def _resolved(
    document: Document, value: object, place: Place, environ: Mapping[str, str], unresolved: list[ConfigError]
) -> object:
    """Return a value with its references resolved; what cannot be is added to `unresolved`."""
    match value:
        case str():
            try:
                config_dir = os.path.dirname(os.path.abspath(document.path))
                return resolve(value, config_dir=config_dir, environ=environ)
            except UnresolvedError as error:
                unresolved.append(document.error(f"Cannot resolve {dotted(place)}: {error}", place))
                return value
        case dict():
            for key in value:
                if "${" in key:
                    raise document.error(
                        f"Cannot resolve {dotted(place)}: key {key!r} holds a reference, which only values may; write "
                        "the key out",
                        (*place, key),
                        at_key=True,
                    )
            items = value.items()
            return {key: _resolved(document, item, (*place, key), environ, unresolved) for key, item in items}
        case tuple():
            return tuple(_resolved(document, item, (*place, i), environ, unresolved) for i, item in enumerate(value))
        case _:
            return value


def dotted(place: Place) -> str:
    """Write a place the way people say it: `tables[0].target`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".") or "the file"


def _problems(kind: type[BaseModel], document: Document, error: ValidationError) -> ConfigError:
    """Report all that is wrong: misspelt keys first, without what they make look missing; else in the file's order."""
    found = error.errors(include_url=False)
    misspelt = {item["loc"][:-1] for item in found if item["type"] == "extra_forbidden"}
    told = [item for item in found if item["type"] != "missing" or item["loc"][:-1] not in misspelt]
    problems = {str(it): (item["type"], it) for item in told for it in (_translated(kind, document, dict(item)),)}
    ordered = sorted(problems.values(), key=lambda it: (it[0] != "extra_forbidden", it[1].line, it[1].column))
    return together([problem for _, problem in ordered])


def _translated(model: type[BaseModel], document: Document, found: dict[str, Any]) -> ConfigError:
    place: Place = tuple(step for step in found["loc"] if step != "[key]")
    match found["type"]:
        case "extra_forbidden":
            reason = f"unknown key{_hint(model, place)}"
            return document.error(f"Cannot use {dotted(place)}: {reason}", place, at_key=True)
        case "missing":
            owner = dotted(place[:-1])
            return document.error(
                f"Cannot use {owner}: key {place[-1]!r} is missing; add it (`cdc-sync docs reference` explains every "
                "key)",
                place[:-1],
                at_key=True,
            )
        case kind if kind == PROBLEM:
            place = (*place, *found["ctx"]["at"])
            return document.error(f"Cannot use {dotted(place)}: it {found['ctx']['reason']}", place)
        case _:
            reason = kind_words(found) or f"{found['msg'][:1].lower()}{found['msg'][1:]}"
            return document.error(f"Cannot use {dotted(place)}: it {reason}", place)


def _hint(model: type[BaseModel], place: Place) -> str:
    """What the writer of an unknown key may have meant."""
    key = str(place[-1])
    places = list(_keys(model, ()))
    parent = tuple(step for step in place[:-1] if not isinstance(step, int))
    siblings = [known[-1] for known in places if known[:-1] == parent]
    near = difflib.get_close_matches(key, siblings, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    elsewhere = [".".join(known) for known in places if known[-1] == key]
    if elsewhere:
        return f"; did you mean {' or '.join(elsewhere)}?"
    return f"; known here: {', '.join(siblings)}"


def _keys(model: type[BaseModel], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        yield (*above, name)
        for inner in (field.annotation, *get_args(field.annotation)):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from _keys(inner, (*above, name))
