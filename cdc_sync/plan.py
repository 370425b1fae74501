"""Every decision of a batch, without I/O: from what was sighted to new versions, or to a refusal.

A *sighting* is the first event, in source order, of a stretch of events of one table that share one schema. Sightings
come from `spark.observe`; their order is the source's, so the same events give the same versions however they were
split into batches and partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cdc_sync.debezium.conversions import EventSchema, WireUnsupported, observed
from cdc_sync.events import KafkaPosition, SourcePosition, TableId
from cdc_sync.history.history import History
from cdc_sync.history.revision import Version
from cdc_sync.migrate.capabilities import Capabilities, can_change_in_place, can_compare
from cdc_sync.migrate.modes import taken_name
from cdc_sync.migrate.names import NameClash, target_names
from cdc_sync.naming import Route
from cdc_sync.schema.align import Alignment, Evidence, Facts, align
from cdc_sync.schema.changes import AddColumn, ChangePrimaryKey, RenameColumn, SchemaChange, UpdateColumnType
from cdc_sync.schema.derive import derive
from cdc_sync.schema.diff import diff
from cdc_sync.schema.initial import MISSING, Known, Unknown, initial_value
from cdc_sync.schema.internal import EMPTY_SCHEMA, Default, InternalSchema
from cdc_sync.schema.observed import ObservedSchema
from cdc_sync.wording import type_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """The first event of a stretch that shares one schema.

    Attributes:
        snapshot: the event was read by a snapshot (op `r`), not from the log.
        truncate: the event empties the table; it has no key and says nothing about columns.
        append_only: the source never inserts a column between others.
        partitions: how many partitions the topic has.
        opaque_key: records have keys that cannot be read.
        exceeded: which of the operator's limits the schema is beyond, and the remedy.
        holds_default: columns whose value in this very event equals their default.
        betrays_default: columns whose value in this very event shows that the default was cut off.
        before_seen_in_stream: events of the schema in effect before were also read from the log, not only by a
            snapshot.
    """

    table: TableId
    position: SourcePosition
    kafka: KafkaPosition
    schema: EventSchema
    fingerprint: str
    snapshot: bool
    append_only: bool
    truncate: bool = False
    partitions: int = 1
    opaque_key: bool = False
    exceeded: tuple[str, str] | None = None
    holds_default: frozenset[str] = frozenset()
    betrays_default: frozenset[str] = frozenset()
    before_seen_in_stream: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a table cannot go past an event, and what would let it."""

    reason: str
    remedy: str
    position: SourcePosition
    kafka: KafkaPosition


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """New versions to record, in order; then the refusal that stops the table there, if any."""

    versions: tuple[Version, ...]
    refusal: Refusal | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused:
    reason: str
    remedy: str


_TRUNCATED = _Refused(
    reason="the source table was truncated, which is not carried out yet",
    remedy="empty the target by hand and snapshot the table again, or set skipped.operations=t in the connector",
)


def plan_table(
    history: History | None,
    sightings: Iterable[Sighting],
    route: Route,
    capabilities: Capabilities,
) -> TablePlan:
    """Derive the versions that the sightings of one table lead to.

    Law: for sightings given in any number of consecutive groups, each planned on the history the former groups led
    to, the versions are the same as for all of them at once.
    """
    head = history.head if history is not None else None
    versions: list[Version] = []
    warnings: list[str] = []
    for sighting in sorted(sightings, key=lambda s: (s.position, s.kafka)):
        if head is not None and not is_later(sighting.position, sighting.kafka, head):
            continue
        if sighting.truncate and head is None:
            continue
        seen = observed(sighting.schema)
        outcome: Version | _Refused | None = (
            _TRUNCATED if sighting.truncate and not route.append else _unreadable(sighting, seen, route, capabilities)
        )
        if outcome is None and head is None:
            outcome = _baseline(sighting, seen)
        elif outcome is None and head is not None:
            outcome = _next(head, sighting, seen, route, capabilities)
        if isinstance(outcome, Version):
            clash = target_names(outcome.schema, capabilities.columns)
            if isinstance(clash, NameClash):
                outcome = _Refused(reason=clash.reason, remedy=clash.remedy)
        match outcome:
            case _Refused(reason=reason, remedy=remedy):
                refusal = Refusal(reason=reason, remedy=remedy, position=sighting.position, kafka=sighting.kafka)
                return TablePlan(versions=tuple(versions), refusal=refusal, warnings=tuple(warnings))
            case Version() as head:
                versions.append(head)
                warnings += [f"{item.subject}: {item.text}" for item in head.evidence if item.kind == "unproven"]
            case None:
                continue
    return TablePlan(versions=tuple(versions), warnings=tuple(warnings))


def is_later(position: SourcePosition, kafka: KafkaPosition, head: Version) -> bool:
    """Tell whether an event comes after the first event of version `head`, so that it may evolve the table."""
    if position != head.position:
        return position > head.position
    same_partition = (kafka.topic, kafka.partition) == (head.kafka.topic, head.kafka.partition)
    return same_partition and kafka.offset > head.kafka.offset


def _baseline(sighting: Sighting, seen: ObservedSchema) -> Version:
    added = tuple(range(len(seen.columns)))
    alignment = Alignment(same=(), added=added, dropped=(), unproven=(), evidence=())
    schema = derive(EMPTY_SCHEMA, seen, alignment, retire=False, initials={})
    evidence = Evidence(subject=str(sighting.table), kind="first sight", text="first event of this table")
    return _version(sighting, 1, schema, (), (evidence,))


def _next(
    head: Version, sighting: Sighting, seen: ObservedSchema, route: Route, capabilities: Capabilities
) -> Version | _Refused | None:
    boundary = head.snapshot and not sighting.snapshot and not sighting.before_seen_in_stream
    facts = Facts(
        append_only=sighting.append_only,
        snapshot_boundary=boundary,
        renames=route.renames,
        drops=route.drops,
    )
    alignment = align(head.schema, seen, facts)
    if alignment.unproven and (route.policy.unproven_rename == "pause" or _names_clash(head.schema, seen, alignment)):
        return _unproven(head.schema, seen, alignment)
    initials = _initials(seen, alignment, sighting, route)
    if isinstance(initials, _Refused):
        return initials
    values, reasons = initials
    after = derive(head.schema, seen, alignment, retire=True, initials=values)
    changes = diff(head.schema, after)
    if not changes:
        return None
    refused = _refused_key(changes, head.schema, sighting) or _refused_change(changes, head.schema, after, capabilities)
    if refused is not None:
        return refused
    evidence = alignment.evidence + _kept_evidence(head.schema, seen, alignment) + reasons
    return _version(sighting, head.number + 1, after, changes, evidence)


def _version(
    sighting: Sighting,
    number: int,
    schema: InternalSchema,
    changes: tuple[SchemaChange, ...],
    evidence: tuple[Evidence, ...],
) -> Version:
    return Version(
        table=sighting.table,
        number=number,
        fingerprint=sighting.fingerprint,
        schema=schema,
        changes=changes,
        evidence=evidence,
        position=sighting.position,
        kafka=sighting.kafka,
        snapshot=sighting.snapshot,
        append_only=sighting.append_only,
    )


def _unreadable(sighting: Sighting, seen: ObservedSchema, route: Route, capabilities: Capabilities) -> _Refused | None:
    """Refuse what no version can be made of: beyond the limits, no way to find rows, unreadable types or names."""
    schema = sighting.schema
    if sighting.exceeded is not None:
        return _Refused(reason=sighting.exceeded[0], remedy=sighting.exceeded[1])
    unfindable = _unfindable(sighting, seen, route)
    if unfindable is not None:
        return unfindable
    missing = [name for name in seen.key if name not in {column.name for column in seen.columns}]
    if missing:
        return _Refused(
            reason=f"the key column {missing[0]!r} is not a column of the row",
            remedy="declare other columns as `key` of the table"
            if route.key is not None
            else "do not exclude key columns in the connector",
        )
    for column in schema.columns:
        if isinstance(column.wire, WireUnsupported):
            return _Refused(
                reason=f"column {column.name!r} is a {column.wire.name}: {column.wire.reason}",
                remedy="exclude the column in the connector, or change its representation there",
            )
        taken = taken_name(column.name, "append" if route.append else "upsert")
        if taken is not None:
            return _Refused(
                reason=f"the column name {column.name!r} is that of a changelog's own column {taken}",
                remedy="rename the column at the source, or declare `mode: upsert` for the table",
            )
        if not column.name or column.name.startswith(capabilities.reserved_prefix):
            return _Refused(
                reason=f"the column name {column.name!r} cannot be used in a target",
                remedy="rename the column at the source",
            )
    return None


def _unfindable(sighting: Sighting, seen: ObservedSchema, route: Route) -> _Refused | None:
    """Refuse a table whose rows cannot be found: there is no key, and whole rows cannot be compared."""
    if seen.key or route.append:
        return None
    remedy = "declare `key` or `mode: append` for the table"
    if sighting.opaque_key:
        return _Refused(
            reason="the record keys carry no schema, so it is not known which columns identify a row",
            remedy=f"set key.converter.schemas.enable=true in the connector and snapshot the table again, or {remedy}",
        )
    if sighting.partitions > 1:
        return _Refused(
            reason=f"the table has no key, and the topic has {sighting.partitions} partitions: a row's events come in "
            "any of them, in no order",
            remedy=f"give the topic one partition and snapshot the table again, or {remedy}",
        )
    for column in seen.columns:
        if not can_compare(column.type):
            return _Refused(
                reason=f"the table has no key, and rows cannot be told apart by column {column.name!r}, a "
                f"{type_text(column.type)}",
                remedy=f"give it a primary key at the source and snapshot it again, or {remedy}",
            )
    return None


_LONGEST_REASON = 4_000
"""Characters: a table may have thousands of columns, and people have to read this."""


def _names_clash(before: InternalSchema, seen: ObservedSchema, alignment: Alignment) -> bool:
    """Whether an old column that would be kept has the name of a new one, so that both cannot stand in one table."""
    kept = {before.column(id_).name for case in alignment.unproven for id_ in case.vanished}
    return bool(kept & {column.name for column in seen.columns})


def _unproven(before: InternalSchema, seen: ObservedSchema, alignment: Alignment) -> _Refused:
    texts = []
    for case in alignment.unproven:
        gone = ", ".join(repr(before.column(id_).name) for id_ in case.vanished) or "nothing"
        new = ", ".join(repr(seen.columns[index].name) for index in case.appeared) or "nothing"
        options = "; or ".join(case.explanations)
        texts.append(f"{gone} vanished, {new} appeared: {case.reason}" + (f" ({options})" if options else ""))
    reason = "it cannot be proven what happened to columns: " + " | ".join(texts)
    return _Refused(
        reason=reason if len(reason) <= _LONGEST_REASON else reason[:_LONGEST_REASON] + "…",
        remedy="declare it under `renames` or `drops` of the table, or set policy.unproven_rename: add",
    )


def _kept_evidence(before: InternalSchema, seen: ObservedSchema, alignment: Alignment) -> tuple[Evidence, ...]:
    """Say in the history which columns were kept because nothing proved what became of them."""
    return tuple(
        Evidence(
            subject=before.column(id_).name,
            kind="unproven",
            text=f"kept with its data, gone at the source: {case.reason}",
        )
        for case in alignment.unproven
        for id_ in case.vanished
    )


def _initials(
    seen: ObservedSchema, alignment: Alignment, sighting: Sighting, route: Route
) -> tuple[dict[str, Default], tuple[Evidence, ...]] | _Refused:
    """Find what existing rows read in each new column."""
    values: dict[str, Default] = {}
    evidence: list[Evidence] = []
    appeared = {*alignment.added, *(index for case in alignment.unproven for index in case.appeared)}
    for index in sorted(appeared):
        column = seen.columns[index]
        declared = route.initials.get(column.name, MISSING)
        if declared is MISSING and column.name in sighting.betrays_default:
            column = replace(column, suspect_default=True)
        found = initial_value(column, declared=declared, first_row_holds_default=column.name in sighting.holds_default)
        match found:
            case Unknown(reason=reason):
                return _Refused(
                    reason=f"what existing rows hold in the new column {column.name!r} is not known: {reason}",
                    remedy=f"set initial_values: {{{column.name}: <value>}} for the table (null for NULL)",
                )
            case Known(value=value):
                values[column.name] = value
                if value is not None:
                    text = f"existing rows read {value!r}, " + (
                        "declared" if declared is not MISSING else "the column's default"
                    )
                    evidence.append(Evidence(subject=column.name, kind="default", text=text))
    return values, tuple(evidence)


def _refused_key(changes: tuple[SchemaChange, ...], before: InternalSchema, sighting: Sighting) -> _Refused | None:
    """Refuse what sends a key to another partition: nothing orders its events across the two.

    Kafka Connect chooses the partition by the bytes of the key, which hold the key columns' names and types.
    """
    for change in changes:
        if not isinstance(change, (RenameColumn, UpdateColumnType)) or sighting.partitions == 1:
            continue
        if change.id in before.primary_key:
            return _Refused(
                reason=f"key column {before.column(change.id).name!r} changed, and the topic has "
                f"{sighting.partitions} partitions: rows of one key now come in two of them, in no order",
                remedy="give the topic one partition and snapshot the table again into a new target",
            )
    return None


def _refused_change(
    changes: tuple[SchemaChange, ...],
    before: InternalSchema,
    after: InternalSchema,
    capabilities: Capabilities,
) -> _Refused | None:
    for change in changes:
        match change:
            case UpdateColumnType(id=id_, old=old, new=new) if not can_change_in_place(capabilities, old, new):
                return _Refused(
                    reason=f"column {before.column(id_).name!r} changed from {type_text(old)} to {type_text(new)}, "
                    f"which {capabilities.format} cannot do in place",
                    remedy="change the type back at the source, or re-create the target table",
                )
            case ChangePrimaryKey(old=old_key, new=new_key):
                return _Refused(
                    reason=f"the key changed from {_names(before, old_key)} to {_names(after, new_key)}",
                    remedy="restore the key at the source, or re-create the target table from a new snapshot",
                )
            case AddColumn(column=column) if before.find(column.name) is not None and any(
                other.retired and other.name == column.name for other in before.columns
            ):
                return _Refused(
                    reason=f"the new column {column.name!r} has the name of a column that is kept although the "
                    "source no longer has it",
                    remedy=f"declare drops: [{column.name}] for the table",
                )
            case _:
                continue
    return None


def _names(schema: InternalSchema, ids: tuple[int, ...]) -> str:
    return "(" + ", ".join(schema.column(id_).name for id_ in ids) + ")"
