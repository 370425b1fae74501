"""From the rules of the tables section to the route of one table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cdc_sync.config.fields import problem
from cdc_sync.config.template import Template, TemplateError
from cdc_sync.core.migration.capabilities import SchemaEvolution, capabilities_of
from cdc_sync.core.migration.routes import LeftOut, Route, TargetName
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.schema.policy import Policy, answers
from cdc_sync.errors import ConfigError, RefusedError

if TYPE_CHECKING:
    from cdc_sync.config.models import Config
    from cdc_sync.config.regimes import Readers
    from cdc_sync.config.tables import PolicyDefaults, TableRule
    from cdc_sync.config.target import Target


def route(config: Config, table: TableId) -> Route | None:
    """Find what the operator wants of a table.

    Returns:
        None if no rule matches, or only patterns do and it is the connector's signalling table: it is ignored.

    Raises:
        RefusedError: if the rule that matches gives the table no usable target name, or a pattern takes too long.
    """
    for index, rule in enumerate(config.tables):
        try:
            match = rule.matches(str(table))
        except ConfigError as error:
            raise RefusedError(f"Cannot route table {table} by tables[{index}]: {error}") from None
        if match is None or (rule.table is None and config.connector.is_signal_table(str(table))):
            continue
        try:
            target = _template(rule).fill(table, match.groupdict())
        except TemplateError as error:
            raise RefusedError(f"Cannot route table {table}: tables[{index}].target {error}; mend it") from None
        return Route(
            table=table,
            target=target,
            renames=rule.renames,
            drops=frozenset(rule.drops),
            initials=rule.initial_values,
            policy=policy_of(config.policy, rule),
            key=rule.key,
            append=rule.mode == "append",
            partition_by=None if rule.partition_by is None else Partitioning.parse(rule.partition_by),
            capabilities=capabilities_of(config.target.format, evolution_of(config.target, rule)),
            readers=readers_of(config.target, rule),
            merge=None if rule.merge is None else rule.merge.source_column,
            left_out=None if config.connector.excluded_columns is None else LeftOut(config.connector.excluded_columns),
        )
    return None


def evolution_of(target: Target, rule: TableRule) -> SchemaEvolution:
    """Return how columns of a rule's tables are to be found in older files."""
    return target.schema_evolution if rule.schema_evolution is None else rule.schema_evolution


def readers_of(target: Target, rule: TableRule) -> Readers:
    """Return the engines that read a rule's tables."""
    return target.readers if rule.readers is None else rule.readers


def is_routed(config: Config, table: TableId) -> bool:
    """Whether events of a table go to a target."""
    try:
        return route(config, table) is not None
    except RefusedError:
        return False


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
        return _template(rule).fill(id_, {})
    except TemplateError:
        return None


def _template(rule: TableRule) -> Template:
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
