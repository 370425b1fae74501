"""What the rules of the tables section say, each by itself and beside the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from cdc_sync.config.fields import problem
from cdc_sync.config.regimes import Readers
from cdc_sync.config.tables import PolicyDefaults, TableRule
from cdc_sync.config.target import Target
from cdc_sync.config.template import Template, TemplateError
from cdc_sync.core.migration.capabilities import SchemaEvolution
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.schema.policy import Policy, answers


def evolution_of(target: Target, rule: TableRule) -> SchemaEvolution:
    """Return how columns of a rule's tables are to be found in older files."""
    return target.schema_evolution if rule.schema_evolution is None else rule.schema_evolution


def readers_of(target: Target, rule: TableRule) -> Readers:
    """Return the engines that read a rule's tables."""
    return target.readers if rule.readers is None else rule.readers


def check_rules(rules: Sequence[TableRule]) -> None:
    """Refuse exact rules that can never match, and exact rules of different tables on one target.

    Raises:
        PydanticCustomError: placed at the rule.
    """
    targets: dict[TargetName, TableRule] = {}
    for index, rule in enumerate(rules):
        if rule.table is None:
            continue
        earlier = next((number for number, other in enumerate(rules[:index]) if other.matches(rule.table)), None)
        if earlier is not None:
            remedy = "move this rule before it" if rules[earlier].table is None else "remove one of the two"
            problem(
                f"is never used: tables[{earlier}] matches this table first; {remedy}",
                "tables",
                index,
                "table",
            )
        target = _known_target(rule)
        if target is None:
            continue
        if target in targets and (rule.merge is None or rule.merge != targets[target].merge):
            problem(
                f"is {target}, where table {targets[target].table} goes already; give one of the two another target, "
                "or both rules the same merge",
                "tables",
                index,
                "target",
            )
        targets[target] = rule


def _known_target(rule: TableRule) -> TargetName | None:
    """The target of an exact rule; None if only an event can tell which part of the name is which."""
    parts = (rule.table or "").split(".")
    match parts:
        case [database, schema, table]:
            id_ = TableId(database=database, schema=schema, table=table)
        case [database, table]:
            id_ = TableId(database=database, schema="", table=table)
        case _:
            return None
    try:
        return template_of(rule).fill(id_, {})
    except TemplateError:
        return None


def template_of(rule: TableRule) -> Template:
    """Return how a rule names its tables' targets."""
    return Template.parse(rule.target, groups=frozenset(re.compile(rule.pattern or "").groupindex))


def policy_of(defaults: PolicyDefaults, rule: TableRule) -> Policy:
    """Put a table's policy together: its own answers, then those of its mode, then what is said for all tables.

    Where rows of other tables are in the target, a type that it cannot change to in place pauses the table instead.
    """
    override = rule.policy
    said = {name: getattr(defaults, name) for name in defaults.model_fields_set - {"mode"}}
    own = {name: value for name, value in override.model_dump().items() if name != "mode" and value is not None}
    of_mode = answers(override.mode) if override.mode is not None else {}
    found = Policy(**{**answers(defaults.mode), **said, **of_mode, **own})
    rewrites = rule.merge is not None and found.incompatible_types == "rewrite"
    return replace(found, incompatible_types="pause") if rewrites else found
