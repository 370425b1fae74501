"""Every kind of file that a pipeline keeps, as main wrote it on 2026-11-27: it is read still, and written the same.

What somebody's job has stored is theirs: these files change by being added to, never by being edited. One whose form
changes gets a sibling in the new form beside it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdc_sync.core.lineage.catalogue import Attribute, CatalogueReading, Stamp
from cdc_sync.core.lineage.continuity import Compared, Pair
from cdc_sync.core.lineage.kept import Kept, Missed, Span
from cdc_sync.core.migration.altered import HeldColumns
from cdc_sync.core.migration.operator_requests import (
    RegimeAsked,
    Reset,
    Rollback,
    Skip,
    SnapshotReset,
    Unconverted,
    UnconvertedValue,
)
from cdc_sync.core.migration.routes import Decision, Join, TargetName
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.dead_letters import DeadLetter, Redrive
from cdc_sync.core.model.doubts import Doubt
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.model.progress import Progress, Truncated, parse_progress
from cdc_sync.core.planning.resync import Mark, Resync
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.errors import HistoryError
from cdc_sync.storage.state import StateStore

GOLDEN = Path(__file__).parent / "state"
ORDERS = TableId(database="shop", schema="inv", table="orders")
ODD = TableId(database="sh/op", schema="", table="größe 😀.x")
LONG = TableId(database="shop", schema="Ж" * 31, table="Ж" * 31)
AT = KafkaPosition(topic="shop.inv.orders", partition=3, offset=41)

STATUSES = (
    TableStatus(table=ODD, target="op.größe", state="running"),
    TableStatus(table=LONG, target="x", state="failing", version=1, reason="no route to host"),
    TableStatus(
        table=ORDERS,
        target="inv.orders",
        state="paused",
        version=3,
        reason="column qty vanished",
        remedy="declare the rename",
        offsets={"shop.inv.orders": {0: 41, 10: 7, 2: 0}},
        paused_at=str(AT),
        counts={"values unknown, NULL stored": 2},
        warnings=("größer",),
        needs_resync=(Mark(column="created", id=4, version=2, reason="not known"),),
        replaced_nulls={4: 2},
        evidence={"evidence.messages": "postgresql:7/7", "evidence.values": None},
        evidence_gaps=("it tells nothing",),
    ),
)
READING = CatalogueReading(
    table=ORDERS,
    begun=7,
    ended=9,
    relid=16409,
    taken=1_700_000_000_000_000,
    server="7123/00000001",
    named=Stamp(xid=5, at=17, command=1),
    schema_named=Stamp(xid=3, at=None),
    attributes=(
        Attribute(number=1, name="id", type="integer", stamp=Stamp(xid=5, at=17), generated=False),
        Attribute(number=2, stamp=Stamp(xid=6, at=18, command=0)),
    ),
)
KEPT = Kept((Missed(lsn=5), Span(first=READING, begun=11, ended=12, taken=1_700_000_000_000_001)))
COMPARED = Compared(rows=30, least=20, pairs=(Pair(old="a", new="b", equal=29, distinct=25, different=0),))
DECISIONS = (
    Decision(table=ORDERS, at=str(AT), renames={"a": "b"}, not_same=("c",), dropped=("d",)),
    Decision(table=ORDERS, at="", renames={}, dropped=("e",), after=2),
)
JOIN = Join(table=ORDERS, kept=2, joined=5, old="a", new="b", after=3)
UNCONVERTED = Unconverted(
    version=3, counts={"qty": 2}, values=(UnconvertedValue(key={"id": "1"}, column="qty", value="many"),)
)
HELD = HeldColumns(identity="0f1e None", version=3, numbers={"id": 1, "qty": 5})
DOUBTS = (
    Doubt(kind="unsent", id=4, version=2, ends={"shop.inv.orders": {0: 9}}),
    Doubt(kind="rows", id=0, version=2, ends={}, at="binlog:1/2/0", statement="alter table t drop partition p"),
)
RESYNC = Resync(
    table=ORDERS,
    signal="abc",
    version=3,
    columns=(4, 5),
    ends={"shop.inv.orders": {0: 99}},
    failed="no such table",
    collection="inv.orders",
    since={"notes": {0: 3}},
    asked={"shop.inv.orders": {0: 50}},
)
LETTERS = (
    DeadLetter(
        topic="t",
        partition=1,
        offset=8,
        timestamp=17,
        code=Code.RECORD_MALFORMED,
        reason="malformed payload",
        table=ORDERS,
        version=3,
        schema="ab12",
        size=2,
        key=b"\xff",
        value=b"{",
    ),
)
RESET = Reset(table=ORDERS, into=TargetName(namespace="inv", name="orders__reset_1"), by="ann@host", at="now")
SNAPSHOT_RESET = SnapshotReset(table=ORDERS, since={"shop.inv.orders": {3: 40}}, by="ann@host", at="now")
SKIP = Skip(table=ORDERS, place=LETTERS[0].place, by="ann@host", at="2026-11-28T10:51:18Z", why="deleted by hand")
REDRIVE = Redrive(table=ORDERS, id="ab12", by="ann@host", at="2026-11-28T10:51:18Z", places=(LETTERS[0].place,))
BEFORE_CODES = tuple(
    DeadLetter(
        topic="t",
        partition=0,
        timestamp=at,
        code=Code.RECORD_FOREIGN,
        reason=reason,
        offset=offset,
        key=key,
        value=value,
    )
    for offset, at, reason, key, value in ((4, 17, "malformed", b"\xff", b"{"), (5, None, "not Debezium", None, None))
)
"""What versions wrote before there were codes, below `quarantine/`."""
PLAIN = Progress(
    version=3,
    offsets={"t": {0: 5, 1: 0}},
    topic_ids={"t": "T-id"},
    high_water={"t": {0: 900}},
    whole=frozenset({"t"}),
)
MARKERS = {
    "plain": PLAIN,
    "truncated": Progress(
        version=2,
        offsets={"t": {0: 5}},
        truncated=Truncated(
            position=SourcePosition(kind="postgresql", parts=(7, 9)), offsets={"t": {0: 4}}, made_anew=True
        ),
    ),
    "shared": Progress(version=1, shares={"shop.inv.orders": PLAIN}),
}


def write(store: StateStore) -> None:
    """Have the store write one file of each kind."""
    for status in STATUSES:
        store.save(status)
    for decision in DECISIONS:
        store.requests.decide(decision)
    store.requests.add(JOIN)
    for number, entry in enumerate(KEPT.entries):
        store.keep(ORDERS, number, entry)
    store.keep_compared(ORDERS, AT, COMPARED)
    store.keep_unconverted(ORDERS, UNCONVERTED)
    store.save_held_columns(ORDERS, HELD)
    store.save_doubts(ORDERS, DOUBTS)
    store.requests.add(Rollback(table=ORDERS, version=3))
    store.requests.add(RegimeAsked(table=ORDERS, evolution="on_read"))
    store.save_maintained(ORDERS, 1_700_000_000.5)
    store.save_passed(ORDERS, "marker", {("t", 0): 7})
    store.requests.add(RESYNC)
    store.dead_letters.add(LETTERS)
    store.requests.add(REDRIVE)
    store.requests.add(SKIP)
    store.requests.add(RESET)
    store.requests.add(SNAPSHOT_RESET)


READ: tuple[tuple[Callable[[StateStore], Any], Any], ...] = (
    (lambda store: {status.table for status in store.tables()}, {ORDERS, ODD, LONG}),
    (lambda store: tuple(store.load(status.table) for status in STATUSES), STATUSES),
    (lambda store: store.requests.decisions(ORDERS), DECISIONS),
    (lambda store: store.requests.all(Join, ORDERS), (JOIN,)),
    (lambda store: store.readings(ORDERS), KEPT),
    (lambda store: store.compared(ORDERS), {AT: COMPARED}),
    (lambda store: store.unconverted(ORDERS), (UNCONVERTED,)),
    (lambda store: store.held_columns(ORDERS), HELD),
    (lambda store: store.doubts(ORDERS), DOUBTS),
    (lambda store: store.requests.get(Rollback, ORDERS), Rollback(table=ORDERS, version=3)),
    (lambda store: store.requests.get(RegimeAsked, ORDERS), RegimeAsked(table=ORDERS, evolution="on_read")),
    (lambda store: store.maintained(ORDERS), 1_700_000_000.5),
    (lambda store: store.passed(ORDERS, "marker"), {("t", 0): 7}),
    (lambda store: store.requests.all(Resync, ORDERS), (RESYNC,)),
    (lambda store: store.requests.all(Redrive, ORDERS), (REDRIVE,)),
    (lambda store: store.requests.all(Skip, ORDERS), (SKIP,)),
    (lambda store: store.requests.get(Reset, ORDERS), RESET),
    (lambda store: store.requests.get(SnapshotReset, ORDERS), SNAPSHOT_RESET),
    (lambda store: tuple(store.dead_letters.letters()), (*LETTERS, *BEFORE_CODES)),
    (lambda store: sum(count.records for count in store.dead_letters.counts()), 3),
)


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(("read", "value"), READ)
def test_what_was_stored_is_read(read: Callable[[StateStore], Any], value: Any) -> None:
    assert read(StateStore(str(GOLDEN))) == value


def test_it_is_written_the_same(tmp_path: Path) -> None:
    write(StateStore(str(tmp_path), create=True))
    written = {name: _without_times(data) for name, data in files(tmp_path).items()}
    assert written == {
        name: data for name, data in files(GOLDEN).items() if not name.startswith(("markers", "quarantine"))
    }


def _without_times(data: bytes) -> bytes:
    """Leave out what statuses have held since, and no older one does."""
    text = re.sub(r'\n  "(?:code|since|written_at|event_at)": null,?', "", data.decode())
    return text.replace(",\n}", "\n}").encode()


def _read(store: StateStore, read: Callable[[StateStore], Any]) -> Any:
    try:
        return read(store)
    except HistoryError as error:
        return str(error)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 1}', '{"format": 2}', '{"format": 1, "table": 7}'])
@pytest.mark.parametrize("path", [path for path in files(GOLDEN) if path.endswith(".json") and "markers" not in path])
def test_a_damaged_file_is_named_with_what_to_do_and_costs_no_other(path: str, text: str, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "state")
    (tmp_path / "state" / path).write_text(text)
    store = StateStore(str(tmp_path / "state"))
    found = [_read(store, read) for read, _ in READ]
    damaged = [said for said, (_, value) in zip(found, READ, strict=True) if said != value]
    errors = [said for said in damaged if isinstance(said, str)]
    assert all(said.startswith(f"Cannot read {path}: ") for said in errors)
    assert text in ("{", "[]") or all(";" in said for said in errors), "what is to be done"
    assert errors or path.startswith(("tables/", "maintained/"))
    assert len(damaged) == (2 if path.startswith("tables/~") else 1)


@pytest.mark.parametrize(("name", "marker"), tuple(MARKERS.items()))
def test_markers_in_tables_are_read_and_written_the_same(name: str, marker: Progress) -> None:
    text = (GOLDEN / "markers" / f"{name}.json").read_text(encoding="utf-8").strip()
    assert parse_progress(text) == marker
    assert marker.to_text() == text
