"""From the rules of the tables section to the route of one table."""

from __future__ import annotations

from cdc_sync.config.formats import format_of
from cdc_sync.config.models import Config
from cdc_sync.config.rules import evolution_of, policy_of, readers_of, template_of
from cdc_sync.config.template import TemplateError
from cdc_sync.core.migration.routes import LeftOut, Route
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.errors import ConfigError, RefusedError


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
            target = template_of(rule).fill(table, match.groupdict())
        except TemplateError as error:
            raise RefusedError(f"Cannot route table {table}: tables[{index}].target {error}; fix it") from None
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
            capabilities=format_of(config.target.format).capabilities(evolution_of(config.target, rule)),
            readers=readers_of(config.target, rule),
            merge=None if rule.merge is None else rule.merge.source_column,
            left_out=None if config.connector.excluded_columns is None else LeftOut(config.connector.excluded_columns),
        )
    return None


def is_routed(config: Config, table: TableId) -> bool:
    """Whether events of a table go to a target."""
    try:
        return route(config, table) is not None
    except RefusedError:
        return False
