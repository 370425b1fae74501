"""Where a table lies."""

from __future__ import annotations

from cdc_sync.core.migration.namerules import NameRules
from cdc_sync.core.migration.names import held_name
from cdc_sync.core.migration.routes import TargetName


def held_parts(name: TargetName, rules: NameRules) -> tuple[str, str]:
    """Return the parts of a table's name as folders of their own; a crafted one must not leave the warehouse."""
    return held_name(name.namespace, rules), held_name(name.name, rules)


def held_target(name: TargetName, rules: NameRules) -> TargetName:
    """Return the name that a table is found by in the target."""
    namespace, table = held_parts(name, rules)
    return TargetName(namespace=namespace, name=table)
