"""The `target` of a rule: `namespace.name` with placeholders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.positions import TableId

PARTS = frozenset({"database", "schema", "table"})
"""Placeholders every rule has; a pattern's named groups come on top."""

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class TemplateError(Exception):
    """A template that cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A target name in two parts.

    The text is split at its dot before anything is filled in, so a dot inside a table's name stays inside the name.
    """

    namespace: str
    name: str

    @staticmethod
    def parse(text: str, *, groups: frozenset[str] = frozenset()) -> Template:
        """Read a template.

        Raises:
            TemplateError: if it has more than two parts, an empty part, or an unknown placeholder.
        """
        known = PARTS | groups
        for placeholder in _PLACEHOLDER.findall(text):
            if placeholder not in known:
                names = ", ".join(f"{{{name}}}" for name in sorted(known))
                raise TemplateError(
                    f"has the unknown placeholder {{{placeholder}}}; there are {names}"
                    + ("" if groups else ", and the pattern's named groups")
                )
        if re.search(r"[{}\\]", _PLACEHOLDER.sub("", text)):
            raise TemplateError("has a brace or backslash that belongs to no placeholder; write {table} or {group}")
        *namespaces, name = text.split(".")
        if len(namespaces) > 1:
            raise TemplateError("has more than two parts; write namespace.name")
        namespace = namespaces[0] if namespaces else "default"
        if not namespace or not name:
            raise TemplateError("has an empty part; write namespace.name")
        return Template(namespace=namespace, name=name)

    def fill(self, table: TableId, groups: Mapping[str, str | None]) -> TargetName:
        """Fill in a table's parts and the groups of the pattern that matched it; groups win over parts.

        `{schema}` is the database where the source has no schemas.

        Raises:
            TemplateError: if a part of the name comes out empty.
        """
        values = {
            "database": table.database,
            "schema": table.schema or table.database,
            "table": table.table,
            **{name: value or "" for name, value in groups.items()},
        }

        def part(text: str) -> str:
            return _PLACEHOLDER.sub(lambda match: values[match[1]], text)

        target = TargetName(namespace=part(self.namespace), name=part(self.name))
        if not target.namespace or not target.name:
            raise TemplateError(f"gives {str(target)!r}, which has an empty part")
        return target
