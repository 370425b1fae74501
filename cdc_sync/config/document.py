"""A YAML file as plain values that still know where in the file they stand.

Scalars follow YAML 1.2's core schema, not PyYAML's 1.1: `no` stays text, and so do `2020-01-01` and `12:30:00`, which
1.1 turns into a boolean, a date object and the number 45000.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from cdc_sync.errors import ConfigError

Place: TypeAlias = tuple[str | int, ...]
"""The way from the root to a value: keys, and indexes of list items."""


class _CoreLoader(yaml.SafeLoader):
    """SafeLoader with the implicit types of YAML 1.2's core schema."""

    yaml_implicit_resolvers: dict[str, Any] = {}


_TAG = "tag:yaml.org,2002:"
_CoreLoader.add_implicit_resolver(_TAG + "bool", re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF"))
_CoreLoader.add_implicit_resolver(_TAG + "int", re.compile(r"[-+]?[0-9]{1,40}\Z"), list("-+0123456789"))
_CoreLoader.add_implicit_resolver(
    _TAG + "float",
    re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z"),
    list("-+.0123456789"),
)
_CoreLoader.add_implicit_resolver(_TAG + "null", re.compile(r"(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""])

_SCALARS: dict[str, Callable[[str], object]] = {
    _TAG + "str": str,
    _TAG + "int": int,
    _TAG + "float": float,
    _TAG + "bool": lambda text: text.lower() == "true",
    _TAG + "null": lambda _: None,
}

_LONGEST = 16 * 1024 * 1024
_MOST_VALUES = 1_000_000
"""An alias inside an alias, some dozens of times, is more than any memory holds."""
_COLLECTIONS = frozenset({_TAG + "map", _TAG + "seq"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The values of a file (dict with text keys, tuple, str, int, float, bool, None) and their places."""

    path: str
    value: object
    root: yaml.Node | None

    def line(self, place: Place) -> int:
        """Return the line of a place, or of the nearest that exists in the file; from 1."""
        return _mark(self.root, place, False).line + 1

    def error(self, message: str, place: Place, *, at_key: bool = False) -> ConfigError:
        """Build the error for a place.

        Args:
            message: what is wrong and how to fix it.
            place: the value, or the nearest that exists in the file.
            at_key: point at the key instead of what stands behind it.
        """
        mark = _mark(self.root, place, at_key)
        return ConfigError(message, path=self.path, line=mark.line + 1, column=mark.column + 1)


def read(text: str, path: str) -> Document:
    """Read one YAML document.

    Raises:
        ConfigError: if it is not YAML, is too large, has a key twice, or uses a tag or an alias that plain data needs
            not.
    """
    if len(text) > _LONGEST:
        raise ConfigError(f"Cannot read YAML: it is longer than {_LONGEST} characters", path=path)
    try:
        root = yaml.compose(text, Loader=_CoreLoader)
        value = _Builder(path).build(root) if root is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        detail = " ".join(part for part in (error.context, error.problem) if part)
        raise ConfigError(
            f"Cannot read YAML: {detail}",
            path=path,
            line=mark.line + 1 if mark else None,
            column=mark.column + 1 if mark else None,
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"Cannot read YAML: {' '.join(str(error).split())}", path=path) from None
    except RecursionError:
        raise ConfigError("Cannot read YAML: it is nested too deeply", path=path) from None
    return Document(path=path, value=value, root=root)


class _Builder:
    """Turns nodes into values, once per file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._open: set[int] = set()
        self._built = 0

    def build(self, node: yaml.Node) -> object:
        self._built += 1
        if self._built > _MOST_VALUES:
            raise self._error(f"Cannot use this file: with its aliases it holds more than {_MOST_VALUES} values", node)
        if id(node) in self._open:
            raise self._error("Cannot use this alias: it contains itself", node)
        self._open.add(id(node))
        try:
            match node:
                case yaml.MappingNode(tag=tag) | yaml.SequenceNode(tag=tag) if tag not in _COLLECTIONS:
                    raise self._unknown_tag(node)
                case yaml.MappingNode():
                    return self._mapping(node)
                case yaml.SequenceNode():
                    return tuple(self.build(item) for item in node.value)
                case _:
                    return self._scalar(node)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode) -> dict[str, object]:
        values: dict[str, object] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error("Cannot use this key: keys must be text", key_node)
            key = str(key_node.value)
            if key in values:
                raise self._error(
                    f"Cannot use key {key!r}: it stands in line {lines[key]} already; keep one of the two",
                    key_node,
                )
            lines[key] = key_node.start_mark.line + 1
            values[key] = self.build(value_node)
        return values

    def _scalar(self, node: yaml.Node) -> object:
        scalar = _SCALARS.get(node.tag)
        if scalar is None:
            raise self._unknown_tag(node)
        try:
            return scalar(node.value)
        except ValueError:
            raise self._error(f"Cannot read {node.value!r} as {node.tag.replace(_TAG, '')}", node) from None

    def _unknown_tag(self, node: yaml.Node) -> ConfigError:
        tag = node.tag.replace(_TAG, "!!")
        return self._error(f"Cannot use tag {tag!r}: there are plain mappings, lists and values only; remove it", node)

    def _error(self, message: str, node: yaml.Node) -> ConfigError:
        mark = node.start_mark
        return ConfigError(message, path=self._path, line=mark.line + 1, column=mark.column + 1)


def _mark(node: yaml.Node | None, place: Place, at_key: bool) -> yaml.Mark:
    """Walk as far along `place` as the file goes."""
    if node is None:
        return yaml.Mark("", 0, 0, 0, None, 0)
    # A block mapping's own mark is that of its first key, which reads as if that key were wrong; its key says more.
    mark = node.start_mark
    for step in place:
        found = None
        if isinstance(node, yaml.MappingNode):
            found = next((pair for pair in node.value if pair[0].value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            found = (node.value[step], node.value[step])
        if found is None:
            return mark
        key, node = found
        mark = key.start_mark if at_key or not isinstance(node, yaml.ScalarNode) else node.start_mark
    return mark
