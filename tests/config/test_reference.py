"""conf/reference.yaml lists every key, and shows the defaults of the code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cdc_sync.config import Config, load_config, parse_config
from cdc_sync.config.document import read

_CONF = Path(__file__).parents[2] / "conf"
_ANY_VARIABLE = {"CDC_SYNC_DEMO_FOLDER": "demo", "CDC_SYNC_DEMO_KAFKA": "b:1"}
_REFERENCE = _CONF / "reference.yaml"


def sections_of(field: FieldInfo) -> Iterator[type[BaseModel]]:
    for inner in (field.annotation, *get_args(field.annotation)):
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield inner


def keys_of_code(model: type[BaseModel], above: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield f"{above}{name}"
        for section in sections_of(field):
            yield from keys_of_code(section, f"{above}{name}.")


def keys_of_file(value: object, above: str = "") -> Iterator[str]:
    match value:
        case dict():
            for name, item in value.items():
                yield f"{above}{name}"
                yield from keys_of_file(item, f"{above}{name}.")
        case tuple():
            for item in value:
                yield from keys_of_file(item, above)


def with_defaults(model: BaseModel, above: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Each optional key with its value in the file and its default in the code."""
    for name in type(model).model_fields:
        value = getattr(model, name)
        field = type(model).model_fields[name]
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, BaseModel):
                yield from with_defaults(item, f"{above}{name}.")
        if not field.is_required() and not isinstance(value, BaseModel):
            default = getattr(_validated(type(model)), name, field.default)
            yield f"{above}{name}", value, default


def _validated(model: type[BaseModel]) -> BaseModel | None:
    """The model with nothing but what it requires, so that its defaults went through their own checks."""
    required: dict[str, dict[str, Any]] = {
        "Pipeline": {"name": "p"},
        "Kafka": {"bootstrap_servers": "b:1", "topics": ("t",)},
        "TableRule": {"table": "d.s.t"},
        "Registry": {"url": "http://r:1"},
        "SourceCatalogue": {"dsn": "host=db"},
        "SourceDatabase": {"dsn": "host=db"},
        "Connect": {"url": "http://c:1"},
        "Heartbeats": {"topics": ("h",)},
    }
    return None if model is Config else model(**required.get(model.__name__, {}))


# A rule has one of table and pattern, a pipeline one of topics and topic_pattern: the file shows examples.
_EXAMPLES = {"connector.notifications", "kafka.topics", "tables.table", "tables.pattern", "tables.partition_by"}


def test_the_reference_lists_every_key() -> None:
    document = read(_REFERENCE.read_text(encoding="utf-8"), "reference.yaml")

    assert set(keys_of_file(document.value)) == set(keys_of_code(Config))


def test_the_reference_shows_the_defaults_of_the_code() -> None:
    found = {key: (value, default) for key, value, default in with_defaults(load_config(_REFERENCE, environ={}))}

    wrong = {key: pair for key, pair in found.items() if pair[0] != pair[1] and key not in _EXAMPLES}
    assert wrong == {}
    assert len(found) > 30


@pytest.mark.parametrize("path", sorted(_CONF.glob("*.yaml")), ids=lambda path: path.name)
def test_every_example_can_be_loaded(path: Path) -> None:
    parse_config(path.read_text(encoding="utf-8"), environ=_ANY_VARIABLE)
