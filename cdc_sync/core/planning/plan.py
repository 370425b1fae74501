"""Every decision of a batch, without I/O: from what was seen to new versions, or to a refusal.

An *observation* is the first event, in source order, of a stretch of events of one table that share one schema. They
come from `spark.observe`; their order is the source's, so the same events give the same versions however they were
split into batches and partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from cdc_sync.core.debezium.conversions import observed
from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.history.warned import WARNED, warning_of
from cdc_sync.core.lineage.column_log import ColumnLog
from cdc_sync.core.lineage.continuity import Compared
from cdc_sync.core.lineage.coverage import Coverage
from cdc_sync.core.lineage.drops import ToldDrop, first_drop
from cdc_sync.core.lineage.kept import NOTHING_KEPT, Kept
from cdc_sync.core.lineage.renames import ToldRename
from cdc_sync.core.migration.capabilities import Capabilities
from cdc_sync.core.migration.names import NameClash, target_names
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition
from cdc_sync.core.planning.end_of_table import Awaited, end_of_table
from cdc_sync.core.planning.merge_columns import versions_of_joins
from cdc_sync.core.planning.next_version import (
    Given,
    Waits,
    emptied_in_new_log,
    first_version,
    in_new_log,
    next_version,
)
from cdc_sync.core.planning.observation import Observation, Refusal, TablePlan, Waiting
from cdc_sync.core.planning.refusals import recreated_before, refused_record_key, unreadable
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.planning.table_renames import NO_NAME_CHANGES, NameChanges, departure_of


def plan_table(
    history: History | None,
    observations: Iterable[Observation],
    route: Route,
    capabilities: Capabilities,
    *,
    logs: Sequence[ColumnLog] = (),
    kept: Kept = NOTHING_KEPT,
    values: Mapping[KafkaPosition, Compared] = MappingProxyType({}),
    names: NameChanges = NO_NAME_CHANGES,
    coverage: Coverage | None = None,
    patient: bool = False,
    to_the_end: bool = False,
) -> TablePlan:
    """Derive the versions that the observations of one table lead to.

    Law: for observations given in any number of consecutive groups, each planned on the history the former groups led
    to, the versions are the same as for all of them at once.

    Args:
        history: None if there is none yet.
        observations: the first event of each stretch, and the first one behind each structure in `logs`.
        route: what the operator wants of the table.
        capabilities: what its target can do.
        logs: what the source itself says of its columns, the strongest evidence first.
        kept: readings of the source's catalogue.
        values: what rows say about columns in doubt, by the place of the event that shows them.
        names: where the table got another name, or came under this one.
        coverage: since when what is configured tells of the table, for the text of a refusal.
        patient: stop at a change that the evidence does not explain although it should, instead of deciding without.
        to_the_end: no event of the table is left to be planned for, so that it may be told that it was dropped or
            renamed.
    """
    given = Given(
        route=route,
        capabilities=capabilities,
        logs=logs,
        kept=kept,
        values=values,
        names=names,
        patient=patient,
        coverage=coverage,
    )
    versions: list[Version] = []
    warnings: list[str] = []
    if history is not None:
        history = _with_joins(history, route, capabilities, versions)
    for observation in sorted(observations, key=lambda s: (s.position, s.kafka)):
        if history is not None:
            if not is_later(observation.position, observation.kafka, history.head):
                continue
            stop, history = _to_its_end(given, history, versions, observation)
            if stop is not None:
                return replace(stop, versions=tuple(versions), warnings=tuple(warnings))
        if observation.truncate and (history is None or not route.append):
            # It says nothing of columns, and has no key.
            if history is not None and in_new_log(observation, history):
                versions.append(emptied_in_new_log(given, history, observation))
                history = history.extended(versions[-1])
            continue
        seen = observed(observation.schema)
        outcome: Version | Refused | Waits | None = _to_come_here(given, history, observation)
        if outcome is None:
            outcome = unreadable(observation, seen, route, capabilities)
        if outcome is None and history is not None and route.key is not None and not route.append:
            outcome = refused_record_key(history.record_key, observation)
        if outcome is None and history is None:
            outcome = first_version(observation, seen, given.kept)
        elif outcome is None and history is not None:
            outcome = next_version(given, history, observation, seen)
        if isinstance(outcome, Version):
            clash = target_names(outcome.schema, capabilities.columns)
            if isinstance(clash, NameClash):
                outcome = Refused(code=Code.COLUMN_NAME, reason=clash.reason, remedy=clash.remedy)
            elif route.key is not None:
                outcome = replace(outcome, record_key=observation.schema.record_key)
        match outcome:
            case Refused() as why:
                refusal = Refusal(why=why, position=observation.position, kafka=observation.kafka)
                return TablePlan(versions=tuple(versions), refusal=refusal, warnings=tuple(warnings))
            case Waits(reason=reason, table=other):
                waiting = Waiting(reason=reason, position=observation.position, kafka=observation.kafka, table=other)
                return TablePlan(versions=tuple(versions), waiting=waiting, warnings=tuple(warnings))
            case Version() as version:
                if history is None:
                    history = History(table=version.table, versions=(version,))
                else:
                    history = history.extended(version)
                versions.append(version)
                history = _with_joins(history, route, capabilities, versions)
                warnings += [warning_of(item) for item in version.evidence if item.kind in WARNED]
            case None:
                continue
    if history is not None and to_the_end:
        stop, _ = _to_its_end(given, history, versions)
        if stop is not None:
            return replace(stop, versions=tuple(versions), warnings=tuple(warnings))
    return TablePlan(versions=tuple(versions), warnings=tuple(warnings))


def _to_its_end(
    given: Given, history: History, versions: list[Version], observation: Observation | None = None
) -> tuple[TablePlan | None, History]:
    """Take up that the table was dropped or renamed, if the source says so of a place before the next event.

    Returns:
        What stops the table there, if anything; and the history then.
    """
    if history.head.dropped is not None or (observation is not None and in_new_log(observation, history)):
        return None, history
    upto = None if observation is None else observation.position
    told = first_end(given.logs, history, given.names, upto)
    if told is None:
        return None, history
    found = (
        end_of_table(history, told, given.route.policy, patient=given.patient, overtaken=upto is not None)
        if isinstance(told, ToldDrop)
        else departure_of(history, told, given.route.policy, patient=given.patient)
    )
    match found:
        case Refused() as why:
            refusal = Refusal(why=why, position=told.position, kafka=told.kafka)
            return TablePlan(versions=(), refusal=refusal), history
        case Awaited(reason=reason):
            waiting = Waiting(reason=reason, position=told.position, kafka=told.kafka)
            return TablePlan(versions=(), waiting=waiting), history
        case Version():
            versions.append(found)
            return None, history.extended(found)


def first_end(
    logs: Sequence[ColumnLog], history: History, names: NameChanges, upto: SourcePosition | None = None
) -> ToldDrop | ToldRename | None:
    """Return what ends the table first behind its newest version, up to a position if one is given."""
    after = history.head.position
    found = (first_drop(logs, history.table, after, upto), names.first_away(after, upto))
    return min((told for told in found if told is not None), key=lambda told: told.position, default=None)


def _to_come_here(given: Given, history: History | None, observation: Observation) -> Waits | None:
    """Wait for the table that came under this name before an event, until its rows from before have."""
    told = given.names.due_here(None if history is None else history.head.position, observation.position)
    if told is None:
        return None
    return Waits(reason=f"the table was {told.old} before ({told.statement}), whose rows come first", table=told.old)


def _with_joins(history: History, route: Route, capabilities: Capabilities, versions: list[Version]) -> History:
    for version in versions_of_joins(history, route.joins, capabilities):
        versions.append(version)
        history = history.extended(version)
    return history


def in_time(plan: TablePlan, written: SourcePosition | None) -> TablePlan:
    """Stop before a version that empties or ends the target, if rows of the new table were written as the old one's.

    Args:
        plan: what the evidence leads to.
        written: the highest position among the table's events that were written, None if none was.
    """
    last = plan.versions[-1:]
    if last and last[0].dropped == "keep" and written is not None and written >= last[0].position:
        plan = replace(plan, versions=plan.versions[:-1])  # it is there again, as the next event that is looked at says
    for place, version in enumerate(plan.versions):
        created = version.position if version.ends_target else version.made_anew
        if created is not None and written is not None and written.kind == created.kind and written >= created:
            stop = Refusal(why=recreated_before(), position=version.position, kafka=version.kafka)
            return replace(plan, versions=plan.versions[:place], refusal=stop, waiting=None)
    return plan


def is_later(position: SourcePosition, kafka: KafkaPosition, head: Version) -> bool:
    """Tell whether an event comes after the first event of version `head`, so that it may evolve the table."""
    if position != head.position:
        return position > head.position
    same_partition = (kafka.topic, kafka.partition) == (head.kafka.topic, head.kafka.partition)
    return same_partition and kafka.offset > head.kafka.offset
