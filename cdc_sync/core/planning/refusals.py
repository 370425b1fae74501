"""What planning refuses, why, and what would let the table go on."""

from __future__ import annotations

import shlex

from cdc_sync.core.debezium.wire import WireUnsupported
from cdc_sync.core.lineage.coverage import Coverage
from cdc_sync.core.migration.capabilities import Capabilities, can_compare
from cdc_sync.core.migration.modes import taken_name
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.migration.wording import type_text
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.observation import Observation
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.alignment import Alignment
from cdc_sync.core.schema.changes import (
    AddColumn,
    ChangePrimaryKey,
    DropColumn,
    RenameColumn,
    SchemaChange,
    UpdateColumnType,
)
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.observed import ObservedSchema


def unreadable(
    observation: Observation, seen: ObservedSchema, route: Route, capabilities: Capabilities
) -> Refused | None:
    """Refuse what no version can be made of: beyond the limits, no way to find rows, unreadable types or names."""
    schema = observation.schema
    if observation.exceeded is not None:
        return observation.exceeded
    unfindable = _unfindable(observation, seen, route)
    if unfindable is not None:
        return unfindable
    missing = [name for name in seen.key if name not in {column.name for column in seen.columns}]
    if missing:
        return Refused(
            code=Code.KEY,
            reason=f"the key column {missing[0]!r} is not a column of the row",
            remedy="declare other columns as `key` of the table"
            if route.key is not None
            else "do not exclude key columns in the connector",
        )
    for column in schema.columns:
        if isinstance(column.wire, WireUnsupported):
            return Refused(
                code=Code.COLUMN_TYPE,
                reason=f"column {column.name!r} is a {column.wire.name}: {column.wire.reason}",
                remedy="exclude the column in the connector, or change its representation there",
            )
        taken = taken_name(column.name, "append" if route.append else "upsert")
        if taken is not None:
            return Refused(
                code=Code.COLUMN_NAME,
                reason=f"the column name {column.name!r} is that of a changelog's own column {taken}",
                remedy="rename the column at the source, or declare `mode: upsert` for the table",
            )
        if not column.name or column.name.startswith(capabilities.reserved_prefix):
            return Refused(
                code=Code.COLUMN_NAME,
                reason=f"the column name {column.name!r} cannot be used in a target",
                remedy="rename the column at the source",
            )
    return None


def _unfindable(observation: Observation, seen: ObservedSchema, route: Route) -> Refused | None:
    """Refuse a table whose rows cannot be found: no key, and whole rows cannot be compared or come in no order."""
    if route.append:
        return None
    if observation.partitions > 1 and (route.key is not None or not seen.key):
        return _unordered(observation, seen)
    if seen.key:
        return None
    remedy = "declare `key` or `mode: append` for the table"
    if observation.opaque_key:
        return Refused(
            code=Code.KEY,
            reason="the record keys carry no schema, so it is not known which columns identify a row",
            remedy=f"set key.converter.schemas.enable=true in the connector and snapshot the table again, or {remedy}",
        )
    for column in seen.columns:
        if not can_compare(column.type):
            return Refused(
                code=Code.KEY,
                reason=f"the table has no key, and rows cannot be told apart by column {column.name!r}, a "
                f"{type_text(column.type)}",
                remedy=f"give it a primary key at the source and snapshot it again, or {remedy}",
            )
    return None


def _unordered(observation: Observation, seen: ObservedSchema) -> Refused | None:
    """Refuse a table whose record keys do not bring all events of a row into one of several partitions.

    Kafka Connect chooses the partition by the record key. Events of one declared key have one record key, and so come
    in one partition, exactly if all columns of the record key are among those declared.
    """
    record_key = observation.schema.record_key
    if record_key and set(record_key) <= set(seen.key):
        return None
    several = f"the topic has {observation.partitions} partitions: a row's events come in any of them, in no order"
    one = "give the topic one partition"
    again = "snapshot the table again into a new target; or declare `mode: append` for the table"
    if observation.opaque_key:
        return Refused(
            code=Code.KEY,
            reason=f"the record keys carry no schema, so it is not known which columns they are of, and {several}",
            remedy=f"set key.converter.schemas.enable=true in the connector or {one}, and {again}",
        )
    routed = "set message.key.columns in the connector (Postgres: with REPLICA IDENTITY FULL)"
    if not record_key:
        return Refused(
            code=Code.KEY,
            reason=f"the records have no key, and {several}",
            remedy=f"{one} or {routed} to columns that identify a row, and {again}",
        )
    record, declared = ", ".join(record_key), ", ".join(seen.key)
    return Refused(
        code=Code.KEY,
        reason=f"the record key ({record}) has columns that the declared `key` ({declared}) has not, and {several}",
        remedy=f"{one} or {routed} to columns of the declared `key`, or declare a `key` that has all columns of the "
        f"record key, or none, and {again}",
    )


def refused_key(
    changes: tuple[SchemaChange, ...], before: InternalSchema, after: InternalSchema, observation: Observation
) -> Refused | None:
    """Refuse what sends a key to another partition: nothing orders its events across the two.

    Kafka Connect chooses the partition by the bytes of the key, which hold the key columns' names and types.
    """
    for change in changes if observation.partitions > 1 else ():
        match change:
            case ChangePrimaryKey(old=old_key, new=new_key):
                what = f"the key changed from {_names(before, old_key)} to {_names(after, new_key)}"
            case RenameColumn(id=id_) | UpdateColumnType(id=id_) if id_ in before.primary_key:
                what = f"key column {before.column(id_).name!r} changed"
            case _:
                continue
        return _moved(what, observation)
    return None


def refused_record_key(before: tuple[str, ...] | None, observation: Observation) -> Refused | None:
    """Refuse another record key than before under a declared key, for it sends rows to another partition.

    Args:
        before: names of the record key's columns, None if they are not known.
    """
    after = observation.schema.record_key
    if before is None or before == after or observation.partitions == 1:
        return None
    return _moved(f"the record key changed from ({', '.join(before)}) to ({', '.join(after)})", observation)


def _moved(what: str, observation: Observation) -> Refused:
    return Refused(
        code=Code.KEY_SPREAD,
        reason=f"{what}, and the topic has {observation.partitions} partitions: rows of one key now come in two "
        "of them, in no order",
        remedy="give the topic one partition and snapshot the table again into a new target",
    )


def refused_change(changes: tuple[SchemaChange, ...], before: InternalSchema, table: TableId) -> Refused | None:
    """Refuse what would make two columns of one name."""
    gone = {change.column.id for change in changes if isinstance(change, DropColumn)}
    kept = {column.name for column in before.columns if column.retired and column.id not in gone}
    for change in changes:
        match change:
            case AddColumn(column=column) if column.name in kept:
                return Refused(
                    code=Code.COLUMN_NAME,
                    reason=f"the new column {column.name!r} has the name of a column that is kept although the "
                    "source no longer has it",
                    remedy=f"{_decide(table, '--drop', column.name)} lets the kept one go, with its data; if it is the "
                    f"same column again, {_decide(table, '--rename', f'{column.name}={column.name}')} fills it again",
                )
            case _:
                continue
    return None


def _names(schema: InternalSchema, ids: tuple[int, ...]) -> str:
    return "(" + ", ".join(schema.column(id_).name for id_ in ids) + ")" if ids else "none"


_LONGEST_REASON = 4_000
"""Characters: a table may have thousands of columns, and people have to read this."""


def is_another_table(alignment: Alignment) -> bool:
    """Whether no column is the same: the table was dropped, and another one has its name."""
    return not alignment.same and not alignment.unproven and bool(alignment.dropped and alignment.added)


def recreated(alignment: Alignment) -> Refused:
    """Refuse a table of which no column is the same."""
    told = (item.text for item in alignment.evidence if item.text.startswith(("added: ", "created ")))
    said = next((f", {text}" for text in told), "")
    return Refused(
        code=Code.RECREATED,
        reason=_bounded(f"the source table was dropped and created again{said}"),
        remedy="snapshot the new table into a new target; the target follows with policy.recreate: apply, where the "
        "source's own evidence tells of it",
    )


def not_created() -> Refused:
    """Refuse a table of the name of one that was dropped, if nothing says that it was created under it."""
    return Refused(
        code=Code.AFTER_DROP,
        reason="the source table was dropped or renamed, its target is gone, and rows come under its name of a table "
        "that nothing says was created since: it may have rows that never came under this name",
        remedy="snapshot the table again, with another target",
    )


def second_snapshot() -> Refused:
    """Refuse a snapshot of the whole table behind the first one."""
    return Refused(
        code=Code.POLICY,
        reason="a snapshot reads the whole table again (a slot or offsets lost, a connector made anew, an ad-hoc "
        "snapshot), and policy.second_snapshot is pause",
        remedy="set policy.second_snapshot: apply, which lets rows go that it does not show, or mark, which keeps them "
        "and says so",
    )


def recreated_before() -> Refused:
    """Refuse a table that was made anew before events that were written."""
    return Refused(
        code=Code.TOLD_LATE,
        reason="the source table was dropped and created again before events that were written already, which was told "
        "too late",
        remedy="snapshot the new table into a new target",
    )


def unproven(
    before: InternalSchema, seen: ObservedSchema, alignment: Alignment, table: TableId, coverage: Coverage | None
) -> Refused:
    """Refuse a change that nothing proves, with everything it may have been."""
    texts = []
    for case in alignment.unproven:
        gone = ", ".join(repr(before.column(id_).name) for id_ in case.vanished) or "nothing"
        new = ", ".join(repr(seen.columns[index].name) for index in case.appeared) or "nothing"
        options = "; or ".join(case.explanations)
        texts.append(f"{gone} vanished, {new} appeared: {case.reason}" + (f" ({options})" if options else ""))
    return Refused(
        code=Code.UNPROVEN,
        reason=_bounded("it cannot be proven what happened to columns: " + " | ".join(texts)),
        remedy=_say_what_happened(before, seen, alignment, table) + (f"; {coverage.in_words}" if coverage else ""),
    )


def _say_what_happened(before: InternalSchema, seen: ObservedSchema, alignment: Alignment, table: TableId) -> str:
    gone = [before.column(id_).name for case in alignment.unproven for id_ in case.vanished]
    new = [seen.columns[index].name for case in alignment.unproven for index in case.appeared]
    if again := [name for name in gone if name in new]:
        names = " or ".join(again)
        drop = f"{_decide(table, '--drop', 'NAME')} for each column that was dropped and added again, {names}"
        return f"{drop}; perhaps for more than one"
    ways = [_decide(table, "--rename", f"{gone[0]}={new[0]}")] if gone and new else []
    ways.append(_decide(table, "--drop", gone[0]) if gone else _decide(table, "--not-same", new[0]))
    more = ", for each column" if max(len(gone), len(new)) > 1 else ""
    said = f"say what happened: {' or '.join(ways)}{more}"
    return f"{said}; or set policy.unproven_rename: add"


def _decide(table: TableId, option: str, value: str) -> str:
    """Write a command that can be pasted into a shell."""
    return f"`cdc-sync decide CONFIG {shlex.quote(str(table))} {option} {shlex.quote(value)}`"


def _bounded(reason: str) -> str:
    return reason if len(reason) <= _LONGEST_REASON else reason[:_LONGEST_REASON] + "…"


def contradiction(alignment: Alignment) -> Refused:
    """Refuse a change of which two kinds of evidence say different things."""
    said = "; ".join(
        f"{conflict.subject}: " + ", but ".join(f"{claim.text} ({claim.kind})" for claim in conflict.claims)
        for conflict in alignment.conflicts
    )
    return Refused(
        code=Code.CONTRADICTION,
        reason=_bounded(f"the evidence contradicts itself: {said}"),
        remedy="remove the declaration that is wrong from `renames` or `drops` of the table, or the topic under "
        "`evidence` that is not this source's",
    )
