"""What one event leads to: the next version of its table, a refusal, or a wait for evidence; without I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.lineage.catalogue import Moment
from cdc_sync.core.lineage.catalogue_proof import Told, prove_by_readings
from cdc_sync.core.lineage.column_log import ColumnLog
from cdc_sync.core.lineage.continuity import Compared, is_settled, prove_by_values
from cdc_sync.core.lineage.coverage import Coverage
from cdc_sync.core.lineage.kept import Kept
from cdc_sync.core.lineage.proof import Behind, created_at, is_interrupted, prove, was_made_anew
from cdc_sync.core.lineage.retyping import TypeStep, told_retyping, told_types
from cdc_sync.core.migration.capabilities import Capabilities
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.migration.typechange import beside
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.planning.change_policy import Wanted, refused_by_policy, wanted
from cdc_sync.core.planning.end_of_table import BACK, all_new
from cdc_sync.core.planning.observation import Observation
from cdc_sync.core.planning.reasons import (
    INTERRUPTED,
    RENEWED,
    back_again,
    considered,
    initial_values,
    kept_evidence,
    late_columns,
    left_out,
    unshown_columns,
    untold,
    wanted_again,
)
from cdc_sync.core.planning.refusals import (
    contradiction,
    is_another_table,
    not_created,
    recreated,
    refused_change,
    refused_key,
    second_snapshot,
    unproven,
)
from cdc_sync.core.planning.resync import ALL_ROWS
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.planning.table_renames import NameChanges
from cdc_sync.core.planning.type_changes import same_types, type_changes
from cdc_sync.core.schema.align import align
from cdc_sync.core.schema.alignment import DECIDED, NEEDS_RESYNC, Alignment, Evidence, Facts, Proof
from cdc_sync.core.schema.changes import SchemaChange
from cdc_sync.core.schema.derive import derive
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.internal import EMPTY_SCHEMA, InternalSchema
from cdc_sync.core.schema.observed import ObservedSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """What an event has to wait for; `table` where it is what another table has yet to do."""

    reason: str
    table: TableId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a table is planned with besides its events, see `plan_table`."""

    route: Route
    capabilities: Capabilities
    logs: Sequence[ColumnLog]
    kept: Kept
    values: Mapping[KafkaPosition, Compared]
    names: NameChanges
    patient: bool
    coverage: Coverage | None


def first_version(event: Observation, seen: ObservedSchema, kept: Kept) -> Version:
    """Return what the first event of a table leads to."""
    added = tuple(range(len(seen.columns)))
    alignment = Alignment(same=(), added=added, dropped=(), unproven=(), evidence=())
    schema = derive(EMPTY_SCHEMA, seen, alignment, retire=False, initials={})
    evidence = Evidence(subject=str(event.table), kind="first sight", text="first event of this table")
    return replace(_version(event, 1, schema, (), (evidence,), kept), began=event.began)


def in_new_log(event: Observation, history: History | None) -> bool:
    """Whether an event is the first to show that the source's log began anew."""
    return history is not None and event.position.incarnation > history.head.position.incarnation


def emptied_in_new_log(given: Given, history: History, event: Observation) -> Version:
    """Return the version that a TRUNCATE leads to which shows that the source's log began anew."""
    head = history.head
    version = _version(event, head.number + 1, head.schema, (), (_new_log(given),), given.kept)
    return replace(version, fingerprint=head.fingerprint, began=event.began[len(history.began) :])


def _new_log(given: Given) -> Evidence:
    if given.route.append:
        return Evidence(subject=ALL_ROWS, kind="name", text=_NEW_LOG)
    return Evidence(subject=ALL_ROWS, kind=NEEDS_RESYNC, text=f"{_NEW_LOG}. {_COMPARE}")


_GONE = (
    "Rows that were deleted before it, while nobody listened, show in no event and are still here: set "
    "policy.second_snapshot: apply, which leaves only rows that it shows; or compare with `cdc-sync verify`, and end "
    "this mark with `cdc-sync resync --done`"
)
_NEW_LOG = (
    "the source's log began anew (failover, restored or upgraded server): columns are told by their names across it; "
    "DDL capture and readings of the catalogue are not joined to events behind it"
)
_COMPARE = (
    "What was changed between the two logs is in no event: compare with `cdc-sync verify`, and end this mark with "
    "`cdc-sync resync --done`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aligned:
    """What is known of the columns of an event.

    Attributes:
        facts: what it was found by.
        read: what readings of the catalogue say.
    """

    alignment: Alignment
    facts: Facts
    read: Told | None


def _aligned(given: Given, history: History, event: Observation, seen: ObservedSchema) -> _Aligned | Refused | Waits:
    """Find out which columns an event shows, with all evidence there is."""
    history = history.shown
    head, route, logs = history.head, given.route, given.logs
    found = [prove(history, seen, log, event.position) for log in logs]
    behind = [item for item in found if isinstance(item, Behind)]
    if given.patient and behind and not seen.shows(head.schema):
        return Waits(reason=" and ".join(f"{_CALLED[item.kind]}: {item.reason}" for item in behind))
    read = _read(history, seen, event, given)
    boundary = head.snapshot and not event.snapshot and not event.before_seen_in_stream
    anew = any(was_made_anew(log, history.table, head.position, event.position) for log in logs)
    facts = Facts(
        append_only=event.append_only
        and not anew
        and not (read is not None and read.made_anew)
        and not in_new_log(event, history),
        snapshot_boundary=boundary,
        renames=route.renames,
        drops=route.drops | _late_drops(route, head),
        proofs=(
            *_decided(route, event, head.schema, seen),
            *(item for item in found if isinstance(item, Proof)),
            *(() if read is None else (read.proof,)),
        ),
    )
    alignment = align(head.schema, seen, facts)
    compared = given.values.get(event.kafka)
    if alignment.unproven and compared is not None:
        if given.patient and not is_settled(compared, head.schema, seen, alignment.unproven):
            return Waits(reason=f"rows: {compared.rows} were compared, which does not show what became of columns yet")
        proof = prove_by_values(compared, head.schema, seen, alignment.unproven)
        facts = facts if proof is None else replace(facts, proofs=(*facts.proofs, proof))
        alignment = align(head.schema, seen, facts)
    if alignment.conflicts:
        return contradiction(alignment)
    if alignment.unproven and (route.policy.unproven_rename == "pause" or _names_clash(head.schema, seen, alignment)):
        return unproven(head.schema, seen, alignment, event.table, given.coverage)
    return _Aligned(alignment=alignment, facts=facts, read=read)


def _late_drops(route: Route, head: Version) -> frozenset[str]:
    """Return the columns that were kept and that the operator said are gone, after the fact."""
    kept = {column.name for column in head.schema.columns if column.retired}
    said = (item for item in route.decisions if item.after is not None and item.after <= head.number)
    return frozenset(kept.intersection(name for item in said for name in item.dropped))


def next_version(
    given: Given, history: History, event: Observation, seen: ObservedSchema
) -> Version | Refused | Waits | None:
    """Return what an event leads to that is later than the newest version; None if it shows nothing new."""
    began, again = event.began[len(history.began) :], _is_read_again(history, event)
    if again and given.route.policy.second_snapshot == "pause":
        return second_snapshot()
    found = _next_version(given, history, event, seen)
    if not (began or again) or isinstance(found, (Refused, Waits)):
        return found
    said = (*((_new_log(given),) if began else ()), *((_read_again(given),) if again else ()))
    if found is None:
        found = _version(event, history.head.number + 1, history.head.schema, (), (), given.kept)
    return replace(found, evidence=(*found.evidence, *said), began=began, read_again=again)


def _is_read_again(history: History, event: Observation) -> bool:
    """Whether an event is the first row of another snapshot of the whole table than those that were seen.

    All rows of one share a position. Where the connector has none, the first one's own word counts.
    """
    if not event.reading:
        return False
    known = {version.position for version in history.versions if version.snapshot or version.read_again}
    return event.position not in known if event.position.parts else event.begins_reading


def _read_again(given: Given) -> Evidence:
    text = "a snapshot read the whole table again (a slot or offsets lost, a connector made anew, an ad-hoc snapshot)"
    if given.route.append:
        return Evidence(subject=ALL_ROWS, kind="name", text=text)
    return Evidence(subject=ALL_ROWS, kind=NEEDS_RESYNC, text=f"{text}. {_GONE}")


def _next_version(
    given: Given, history: History, event: Observation, seen: ObservedSchema
) -> Version | Refused | Waits | None:
    ended = history.head.ends_target
    aligned = _behind_the_end(given, history, event, seen) or _aligned(given, history, event, seen)
    if not isinstance(aligned, _Aligned):
        return aligned
    head, route, logs, kept = history.head, given.route, given.logs, given.kept
    whole = aligned.alignment
    is_other = is_another_table(whole)
    made_anew = _created(given, history, event) if is_other else None
    if is_other and ((route.append and not ended) or made_anew is None or route.policy.recreate == "pause"):
        return recreated(whole)
    choice = Wanted(seen=seen, alignment=whole) if is_other else wanted(head.schema, seen, whole, route.policy)
    if isinstance(choice, Refused):
        return choice
    excluded = left_out(history)
    late = late_columns(seen, whole, aligned.facts)
    initials = (
        ({}, ()) if is_other else initial_values(choice.seen, choice.alignment, event, route, logs, excluded, late)
    )
    if isinstance(initials, Refused):
        return initials
    values, reasons = initials
    after = derive(head.schema, choice.seen, choice.alignment, retire=True, initials=values)
    changes = diff(head.schema, after)
    steps = partial(_type_steps, logs, head, event, after)
    is_written = not (route.append or event.snapshot)
    retold = () if is_other else same_types(head.schema, after, steps, is_written=is_written)
    if not changes:
        interrupted = any(is_interrupted(history.shown, log, event.position) for log in logs)
        renewed = aligned.read is not None and aligned.read.renewed
        told = untold(choice, history)
        is_new = not excluded.issuperset(choice.ignored) or any(item.subject in choice.kept for item in told)
        said = (*(told if is_new else ()), *unshown_columns(aligned.facts), *retold)
        said = said or ((INTERRUPTED,) if interrupted else (RENEWED,) if renewed else (BACK,) if head.dropped else ())
        return _version(event, head.number + 1, after, (), said, kept) if said else None
    types = type_changes(
        changes,
        head.schema,
        after,
        route,
        given.capabilities,
        kind=event.position.kind,
        told=lambda id_: told_retyping(logs, event.table, head.position, event.position, after.column(id_).name),
        steps=steps,
    )
    refused = None if is_other else refused_by_policy(changes, head.schema, after, route.policy)
    if types.sides:
        after = derive(head.schema, choice.seen, beside(choice.alignment, types.sides), retire=True, initials=values)
        changes = diff(head.schema, after)
    refused = (
        refused
        or (None if route.append or is_other else refused_key(changes, head.schema, after, event))
        or types.refused
        or refused_change(changes, head.schema, event.table)
    )
    if refused is not None:
        return refused
    evidence = (
        *choice.alignment.evidence,
        *kept_evidence(head.schema, whole),
        *considered(head.schema, seen, aligned.facts, whole),
        *untold(choice, history),
        *reasons,
        *types.evidence,
        *retold,
        *(() if route.append else wanted_again(changes, head.schema, excluded)),
        # A snapshot brings all rows, with all that they hold.
        *(() if route.append or event.snapshot else back_again(changes)),
    )
    return replace(_version(event, head.number + 1, after, changes, evidence, kept), made_anew=made_anew)


def _type_steps(
    logs: Sequence[ColumnLog], head: Version, event: Observation, after: InternalSchema, id_: int
) -> Sequence[TypeStep] | None:
    return told_types(logs, event.table, head.position, event.position, after.column(id_).name)


def _created(given: Given, history: History, event: Observation) -> SourcePosition | None:
    """Return where the table was created behind the newest version, None if nothing tells of it."""
    places = (created_at(log, history.table, history.head.position, event.position) for log in given.logs)
    return next((place for place in places if place is not None), None)


def _behind_the_end(
    given: Given, history: History, event: Observation, seen: ObservedSchema
) -> _Aligned | Refused | Waits | None:
    """Begin another table under the name of one that was dropped, if a CREATE TABLE is told.

    Returns:
        None if it is not, and the target was kept: then its columns decide, as everywhere.
    """
    head = history.head
    decided = any(decision.at == str(event.kafka) for decision in given.route.decisions)
    if head.dropped is None or (decided and not head.ends_target):
        return None
    at = _created(given, history, event)
    if at is None:
        if not head.ends_target:
            return None
        if given.patient:
            return Waits(reason="rows came after the source table was dropped, and no CREATE TABLE is told yet")
        return not_created()
    text = f"created again after the table of this name was dropped ({at})"
    alignment = all_new(head.schema, seen, text)
    return _Aligned(alignment=alignment, facts=Facts(append_only=event.append_only), read=None)


def moment_of(event: Observation) -> Moment | None:
    """Return when an event's event was written, None where readings of the catalogue cannot be joined to it."""
    if event.position.kind != "postgresql" or event.position.incarnation:
        return None  # readings name places in the first log
    return Moment(lsn=event.position.parts[-1], commit=event.commit, snapshot=event.snapshot)


def _read(history: History, seen: ObservedSchema, event: Observation, given: Given) -> Told | None:
    moment = moment_of(event)
    if moment is None:
        return None
    return prove_by_readings(history, seen, given.kept, event.position, moment, given.route.left_out)


def _decided(route: Route, event: Observation, before: InternalSchema, seen: ObservedSchema) -> Iterator[Proof]:
    """Return what the operator decided about just this change; names that are not there are passed over."""
    place = {column.name: index for index, column in enumerate(seen.columns)}
    for decision in route.decisions:
        if decision.at != str(event.kafka):
            continue
        pairs = [(before.find(old), place.get(new)) for old, new in decision.renames.items()]
        same = {column.id: index for column, index in pairs if column is not None and index is not None}
        others = [name for name in decision.not_same if name in place]
        named = (*others, *decision.dropped)
        gone = [column.id for name in named if (column := before.find(name)) is not None and column.id not in same]
        said = "the operator decided it"
        yield Proof(
            kind=DECIDED,
            same=same,
            reasons=dict.fromkeys(same, said),
            gone=dict.fromkeys(gone, said),
            new={place[name]: said for name in others},
        )


_CALLED = {
    "ddl": "the schema-change topic",
    "message": "the topic of logical messages",
}


def _version(
    event: Observation,
    number: int,
    schema: InternalSchema,
    changes: tuple[SchemaChange, ...],
    evidence: tuple[Evidence, ...],
    kept: Kept,
) -> Version:
    moment = moment_of(event)
    is_read = moment is not None and kept.around(moment) is not None
    return Version(
        table=event.table,
        number=number,
        fingerprint=event.fingerprint,
        schema=schema,
        changes=changes,
        evidence=evidence,
        position=event.position,
        kafka=event.kafka,
        snapshot=event.snapshot,
        append_only=event.append_only,
        commit=event.commit if is_read else None,
    )


def _names_clash(before: InternalSchema, seen: ObservedSchema, alignment: Alignment) -> bool:
    """Whether an old column that would be kept has the name of a new one, so that both cannot stand in one table."""
    kept = {before.column(id_).name for case in alignment.unproven for id_ in case.vanished}
    return bool(kept & {column.name for column in seen.columns})
