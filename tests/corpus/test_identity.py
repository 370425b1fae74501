"""Every captured table, folded event by event: the ids of columns against what the source knows them by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from cdc_sync.core.debezium.conversions import observed
from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.lineage.column_log import ColumnLog
from cdc_sync.core.lineage.proof import Behind, prove
from cdc_sync.core.model.positions import SourcePosition
from cdc_sync.core.planning.plan import is_later
from cdc_sync.core.schema.align import align
from cdc_sync.core.schema.alignment import Alignment, Facts, Proof
from cdc_sync.core.schema.derive import derive
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.internal import EMPTY_SCHEMA
from cdc_sync.testing import Record
from tests.corpus.carried import script_position
from tests.corpus.reader import database, history, script, topics
from tests.evidence.test_ddl_corpus import IDENTITIES
from tests.evidence.test_ddl_corpus import log_of as ddl_log
from tests.evidence.test_messages_captured import gathered
from tests.plan.model import Event, in_source_order, topic

_RENAMED_BY_CASE = {"A B": "a b", "oRDER": "Order"}


def _logs(capture: str) -> tuple[ColumnLog, ...]:
    return (ddl_log(capture) if database(capture) == "mariadb" else gathered(capture).log(),)


def _tables(capture: str) -> Mapping[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for _, messages in sorted(topics(capture).items()):
        records = [Record(key=message.key, value=message.value) for message in messages]
        if not any(record.value and b'.Envelope"' in record.value[:100_000] for record in records):
            continue
        (events,) = topic(records)
        for event in events:
            if event.known.schema is not None and event.source.op != "t":
                table = event.source.table
                found.setdefault(f"{table.schema or table.database}.{table.table}", []).append(event)
    return found


def _fold(events: Sequence[Event], logs: Sequence[ColumnLog]) -> tuple[History, bool]:
    """Identify the columns of each event; also returns whether something was said to be unproven."""
    recorded: History | None = None
    unproven = False
    for event in in_source_order(events):
        assert event.known.schema is not None
        seen = observed(event.known.schema)
        if recorded is None:
            first = Alignment(same=(), added=tuple(range(len(seen.columns))), dropped=(), unproven=(), evidence=())
            schema = derive(EMPTY_SCHEMA, seen, first, retire=False, initials={})
            recorded = History(table=event.source.table, versions=(_version(event, 1, schema, ()),))
            continue
        if not is_later(event.source.position, event.kafka, recorded.head):
            continue
        proofs = [prove(recorded, seen, log, event.source.position) for log in logs]
        facts = Facts(
            append_only=event.source.append_only,
            snapshot_boundary=recorded.head.snapshot and not event.source.snapshot,
            proofs=tuple(proof for proof in proofs if isinstance(proof, Proof)),
        )
        assert not any(isinstance(proof, Behind) and "nothing about" not in proof.reason for proof in proofs), proofs
        alignment = align(recorded.head.schema, seen, facts)
        assert not alignment.conflicts
        before = recorded.head.schema
        after = derive(before, seen, alignment, retire=True, initials={})
        unproven |= bool(alignment.unproven) or any(item.kind == "unproven" for item in alignment.evidence)
        changes = diff(before, after)
        if changes:
            number = len(recorded.versions) + 1
            recorded = recorded.extended(_version(event, number, after, changes))
    assert recorded is not None
    return recorded, unproven


def _version(event: Event, number: int, schema: object, changes: object) -> Version:
    assert event.known.fingerprint is not None
    return Version(
        table=event.source.table,
        number=number,
        fingerprint=event.known.fingerprint,
        schema=schema,  # type: ignore[arg-type]
        changes=changes,  # type: ignore[arg-type]
        evidence=(),
        position=event.source.position,
        kafka=event.kafka,
        snapshot=event.source.snapshot,
        append_only=event.source.append_only,
    )


def _truth(capture: str, table: str) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], Mapping[str, object]]]:
    """Yield where each step began and ended, and name -> what the source knows the column by, as far as known."""
    era, before = 0, None
    ends = {line["step"]: script_position(capture, line["pos_after"]) for line in script(capture)}
    for line in (line for line in history(capture) if line["table"] == table):
        names = [column[0] for column in line["columns"]]
        place = ends[line["step"]]
        began = max((end for step, end in ends.items() if end < place), default=place)
        if database(capture) == "postgres":
            numbers = {column[0]: column[4] for column in line["columns"]}
            if before is not None and table == "inv.recreated" and names != before:
                era += 1
            before = names
            yield began, place, {name: (era, number) for name, number in numbers.items()}
            continue
        told = [text for step, text in IDENTITIES.get(table, ()) if step <= line["step"]]
        known = dict(word.split("=") for word in told[-1].split()) if told else {}
        yield (
            began,
            place,
            known
            if list(known) == names
            else {}
            if table in IDENTITIES
            else {name: _RENAMED_BY_CASE.get(name, name) for name in names},
        )


def _in_effect(recorded: History, place: tuple[int, ...]) -> Version | None:
    """Return the version of the last event before a place; a place of Postgres is an LSN alone."""
    found = [version for version in recorded.versions if _place(version.position) <= place]
    return found[-1] if found else None


def _place(position: SourcePosition) -> tuple[int, ...]:
    return position.parts[-1:] if position.kind == "postgresql" else position.parts[:2]


@pytest.mark.parametrize(
    ("capture", "told", "unproven_", "namesakes"),
    [
        ("postgres-json", True, {"gen"}, set()),
        ("mariadb-json", True, set(), set()),
        (
            "postgres-json",
            False,
            {"gen", "dropadd_last", "dropadd_same", "ifull", "rename3", "rename_last", "swap"},
            {"recreated"},
        ),
        (
            "mariadb-json",
            False,
            {"Odd.Table é", "dropadd", "evolve", "pkchange", "raced", "dropadd_same", "reorder", "swap"},
            {"recreated", "dropadd_same", "swap"},
        ),
    ],
)
def test_ids_after_every_step_are_the_sources(
    capture: str, told: bool, unproven_: set[str], namesakes: set[str]
) -> None:
    """Without evidence, one name is one column: such tables are told, or paused for another reason (`recreated`)."""
    logs = _logs(capture) if told else ()
    found = [_compared(capture, table, events, logs) for table, events in sorted(_tables(capture).items())]

    assert {item.table for item in found if item.wrong_renames} == set()
    assert {item.table for item in found if item.wrong_names} == namesakes
    assert {item.table for item in found if item.unproven} == unproven_
    assert sum(item.steps for item in found) == (129 if capture == "postgres-json" else 98)
    assert sum(item.columns for item in found) == (2404 if capture == "postgres-json" else 1821)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """How one table went: steps and columns compared, and what an id stands for that it did not stand for before."""

    table: str
    steps: int
    columns: int
    unproven: bool
    wrong_renames: tuple[object, ...]
    wrong_names: tuple[object, ...]


def _compared(capture: str, table: str, events: Sequence[Event], logs: Sequence[ColumnLog]) -> _Compared:
    recorded, unproven = _fold(events, logs)
    first = recorded.versions[0]
    known: dict[int, tuple[object, str]] = {}
    steps = columns = 0
    renames: list[object] = []
    names: list[object] = []
    for began, place, truth in _truth(capture, table):
        if place <= _place(first.position) and set(truth) == {column.name for column in first.schema.columns}:
            # What the snapshot read: the last step before it stays.
            known = {column.id: (truth[column.name], column.name) for column in first.schema.columns}
        version = _in_effect(recorded, place)
        shown = any(began < _place(event.source.position) <= place for event in events)
        if version is None or not shown or {column.name for column in version.schema.live} - set(truth):
            continue  # what the step did shows in no event yet
        steps += 1
        for column in version.schema.live:
            columns += 1
            now, before = truth[column.name], known.setdefault(column.id, (truth[column.name], column.name))
            if before[0] != now:
                (names if before[1] == column.name else renames).append((version.number, column.name, before, now))
        origins = [origin for origin, _ in known.values()]
        if not unproven and len(set(origins)) != len(origins):
            renames.append((version.number, "one column has two ids", known))
    return _Compared(
        table=table.partition(".")[2],
        steps=steps,
        columns=columns,
        unproven=unproven,
        wrong_renames=tuple(renames),
        wrong_names=tuple(names),
    )
