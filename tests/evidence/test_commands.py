"""What the numbers of commands tell of rows whose own transaction changed the table, against all transactions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import product

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cdc_sync.core.lineage.catalogue import Attribute, CatalogueReading, Moment, Stamp
from cdc_sync.core.lineage.commands import NOTHING, last_before
from cdc_sync.core.lineage.kept import Span
from cdc_sync.core.lineage.kept_json import entry_from_json, entry_to_json
from cdc_sync.core.lineage.laying import possible_tokens
from cdc_sync.core.migration.routes import LeftOut
from cdc_sync.core.model.positions import Commit
from tests.evidence.test_catalogue import EVENT, NOW, OLD, TABLE, numbers, reading


def own(command: int | None) -> Stamp:
    """A stamp of the event's own transaction."""
    return Stamp(xid=50, at=NOW, command=command)


@pytest.mark.parametrize(
    ("commands", "named", "expected"),
    [
        (set(), None, NOTHING),
        ({0}, None, 0),
        ({0, 1, 2}, None, 2),
        ({0, 2}, None, 0),
        ({1, 2}, None, NOTHING),
        (set(), 0, 0),
        (set(), 1, 1),
        (set(), 2, None),
        ({1}, 2, 2),
        ({0, 1}, 2, 2),
        ({2}, 2, None),
        ({1, 3}, 2, 2),
        ({0, 1, 3}, 2, 3),
        ({1}, 3, None),
    ],
)
def test_a_row_is_behind_commands_that_leave_no_number_for_it(
    commands: set[int], named: int | None, expected: int | None
) -> None:
    assert last_before(commands, named) == expected


@pytest.mark.parametrize(
    ("stamp", "moment", "expected"),
    [
        (own(3), EVENT, 3),
        (own(None), EVENT, None),
        (replace(own(3), xid=51), EVENT, None),
        (replace(own(3), at=NOW + 999), EVENT, 3),
        (replace(own(3), at=NOW + 1000), EVENT, None),
        (replace(own(3), at=NOW - 1), EVENT, None),
        (replace(own(3), at=None), EVENT, None),
        (own(3), replace(EVENT, snapshot=True), None),
        (own(3), replace(EVENT, commit=None), None),
        (own(3), replace(EVENT, commit=Commit(at=NOW)), None),
        (None, EVENT, None),
    ],
)
def test_a_transaction_is_known_by_its_number_and_its_time(
    stamp: Stamp | None, moment: Moment, expected: int | None
) -> None:
    assert moment.own_command(stamp) == expected


def test_what_its_own_transaction_did_before_is_as_it_was() -> None:
    assert EVENT.is_behind(own(2), command=2)
    assert not EVENT.is_behind(own(3), command=2)
    assert not EVENT.is_behind(own(0))
    assert not EVENT.is_behind(own(None), command=2)


def test_a_column_added_by_the_first_command_is_known_to_rows_of_its_transaction() -> None:
    """It might have been the dropped one under its name, before the drop."""
    before = reading(100, {1: "id", 2: "a"}, a1=OLD)
    after = reading(200, {1: "id", 3: "b"}, a1=OLD, a2=own(1), a3=own(0))
    assert numbers(before, after, "id", "b") == {"id": {1}, "b": {3}}
    dropped_first = reading(200, {1: "id", 3: "b"}, a1=OLD, a2=own(0), a3=own(1))
    assert numbers(before, dropped_first, "id", "b") == {"id": {1}, "b": {3}}
    for dropped, added in ((own(2), own(1)), (own(None), own(None))):
        later = reading(200, {1: "id", 3: "b"}, a1=OLD, a2=dropped, a3=added)
        assert numbers(before, later, "id", "b") == {"id": {1}, "b": {2, 3}}


def named(stamp: Stamp) -> CatalogueReading:
    return replace(reading(200, {1: "id", 2: "b"}, a1=OLD, a2=own(1)), named=stamp)


def test_a_table_renamed_away_and_back_around_a_change_is_the_same_in_rows_of_that_transaction() -> None:
    before = reading(100, {1: "id", 2: "a"}, a1=OLD)
    for earlier in (before, None):
        assert numbers(earlier, named(own(2)), "id", "b") == {"id": {1}, "b": {2}}
        assert numbers(earlier, named(own(0)), "id", "b") == {"id": {1}, "b": {2}}


@pytest.mark.parametrize("stamp", [own(3), own(None), replace(own(2), xid=51), replace(own(2), at=NOW + 1000)])
def test_a_row_may_be_of_another_table_that_had_the_name_before(stamp: Stamp) -> None:
    """A command wrote it and another one took the name away; or a savepoint, or who knows, gave the name."""
    assert numbers(reading(100, {1: "id", 2: "a"}, a1=OLD), named(stamp), "id", "b") is None


def test_a_schema_that_the_transaction_renamed_makes_everything_uncertain() -> None:
    assert numbers(None, replace(named(own(0)), schema_named=own(0)), "id", "b") is None


def test_commands_are_kept_and_older_readings_tell_none() -> None:
    told = Span.of(replace(named(own(7)), attributes=(Attribute(number=1, name="id", type="text", stamp=own(0)),)))
    data = json.loads(json.dumps(entry_to_json(told)))
    assert commands(entry_from_json(data, TABLE)) == [7, 0]
    data["named"], data["attributes"][0][3] = data["named"][:2], data["attributes"][0][3][:2]
    assert commands(entry_from_json(data, TABLE)) == [None, None]
    assert entry_from_json(data, TABLE) == told, "a number that is not told any more is no other state of the table"


def commands(entry: object) -> list[int | None]:
    assert isinstance(entry, Span)
    return [None if item is None else item.command for item in (entry.first.named, entry.first.attributes[0].stamp)]


# ---- exactness of the rule: every transaction of so many commands, on a table and another one that takes turns with it

_DONE = ("row", "elsewhere", "change", "change another", "away", "back", "other in", "other out", "begin", "go on")


def rows_of(done: Sequence[str], holder: str) -> Iterator[tuple[str, int]]:
    """Yield each row under the name: whose it is, and how many commands were over then. `begin` is a long INSERT."""
    command, begun = 0, ""
    for item in done:
        takes, allowed = item != "go on", True
        match item:
            case "row" if holder:
                yield holder, command
            case "away" if holder == "ours":
                holder = ""
            case "back" if not holder:
                holder = "ours"
            case "other in" if not holder:
                holder = "other"
            case "other out" if holder == "other":
                holder = ""
            case "begin" if holder:
                begun = holder
            case "go on" if begun and begun == holder:
                yield holder, command
            case "elsewhere" | "change" | "change another":
                pass
            case _:
                allowed = False
        if not allowed:
            return
        command += takes


def is_possible(done: Sequence[str], holder: str) -> bool:
    """Whether all of this can be done, and our table has the name in the end."""
    return (("ours", len([item for item in done if item != "go on"]))) in rows_of((*done, "row"), holder)


@pytest.mark.parametrize("holder", ["ours", "other", ""])
def test_no_transaction_has_a_row_that_is_claimed_to_be_behind_what_it_is_not(holder: str) -> None:
    claimed = 0
    for done in product(_DONE, repeat=5):
        if not is_possible(done, holder):
            continue
        taken = [item for item in done if item != "go on"]
        last = {item: number for number, item in enumerate(taken)}
        changes = {last[item] for item in ("change", "change another") if item in last}
        if holder != "ours" or "back" in last:
            found = last_before(changes, last.get("back"))
        else:
            found = last_before(changes, None)
        for whose, over in rows_of(done, holder):
            if found is None:
                continue
            assert whose == "ours", done
            assert over > found, done
            claimed += found > NOTHING
    assert claimed > 50


# ---- soundness of the whole: tables that change, and change names, in transactions with rows in them


@dataclass
class Relation:
    relid: int
    columns: dict[int, str]
    stamps: dict[int, Stamp] = field(default_factory=dict)
    """By attribute number; 0 is the name's."""


@dataclass
class Server:
    tables: dict[str, Relation] = field(default_factory=dict)
    lsn: int = 100
    clock: int = NOW
    xid: int = 100
    events: list[tuple[Moment, int, dict[int, str]]] = field(default_factory=list)

    def reading(self) -> CatalogueReading | None:
        found = self.tables.get("t")
        if found is None:
            return None
        return CatalogueReading(
            table=TABLE,
            begun=self.lsn,
            ended=self.lsn,
            relid=found.relid,
            named=found.stamps.get(0, OLD),
            schema_named=OLD,
            attributes=tuple(
                Attribute(
                    number=number,
                    name=found.columns.get(number, ""),
                    type="integer" if number in found.columns else "",
                    stamp=found.stamps.get(number, OLD),
                    generated=False if number in found.columns else None,
                )
                for number in range(1, max((*found.columns, *found.stamps)) + 1)
            ),
        )

    def transaction(self, data: st.DataObject) -> None:
        saved = deepcopy(self.tables)
        wrote = []
        touched: dict[tuple[int, int], int] = {}
        self.xid += data.draw(st.integers(1, 2))
        for command in range(data.draw(st.integers(1, 6))):
            name = data.draw(st.sampled_from(sorted(self.tables)))
            free = sorted({"t", "u", "v"} - self.tables.keys())
            match data.draw(st.sampled_from(["row", "row", "elsewhere", "alter", "move", "move", "move"])):
                case "row" if "t" in self.tables:
                    wrote.append((self.tables["t"].relid, dict(self.tables["t"].columns)))
                case "alter":
                    touched[self.tables[name].relid, alter(self.tables[name], data)] = command
                case "move" if free:
                    target = data.draw(st.sampled_from(free))
                    touched[self.tables[name].relid, 0] = command
                    self.tables[target] = self.tables.pop(name)
        place, self.lsn = self.lsn + 5, self.lsn + 10
        self.clock += data.draw(st.sampled_from([0, 1, 900, 5_000, 2_000_000]))
        is_undone = data.draw(st.sampled_from([False] * 5 + [True]))
        if is_undone:
            self.tables = saved
        for relation in self.tables.values():
            for (relid, number), by in touched.items():
                if relid == relation.relid and not is_undone:
                    relation.stamps[number] = Stamp(xid=self.xid, at=self.clock, command=by)
                elif relid == relation.relid and number in relation.stamps:
                    relation.stamps[number] = replace(relation.stamps[number], command=None)
        at = self.clock - self.clock % data.draw(st.sampled_from([1, 1000]))
        moment = Moment(lsn=place, commit=Commit(at=at, xid=self.xid))
        self.events += [(moment, *row) for row in wrote if not is_undone]


def alter(relation: Relation, data: st.DataObject) -> int:
    columns = relation.columns
    free = sorted(set("abcdef") - set(columns.values()))
    what = data.draw(st.sampled_from(["add", "drop", "rename", "rename"]))
    number = data.draw(st.sampled_from(sorted(columns)))
    if what == "drop" and len(columns) > 1:
        del columns[number]
        relation.stamps.setdefault(number, OLD)
    elif what == "add" and free:
        number = max((*columns, *relation.stamps)) + 1
        columns[number] = data.draw(st.sampled_from(free))
    elif free:
        columns[number] = data.draw(st.sampled_from(free))
    return number


@settings(max_examples=400, deadline=None)
@given(st.data(), st.booleans())
def test_no_row_of_a_random_transaction_is_told_wrongly(data: st.DataObject, stated: bool) -> None:
    names = dict(enumerate("abc", 1))
    server = Server(tables={"t": Relation(relid=1, columns=dict(names)), "u": Relation(relid=2, columns=dict(names))})
    readings: list[CatalogueReading] = []
    for _ in range(data.draw(st.integers(1, 6))):
        server.transaction(data)
        found = server.reading() if data.draw(st.booleans()) else None
        readings += [] if found is None else [found]
    decided = 0
    for moment, relid, columns in server.events:
        after = next((item for item in readings if item.begun >= moment.lsn), None)
        before = next((item for item in reversed(readings) if item.ended <= moment.lsn), None)
        if after is None:
            continue
        left_out = LeftOut() if stated else None
        tokens = possible_tokens(before, after, [*columns.values()], moment, left_out=left_out)
        for number, name in columns.items() if tokens is not None else ():
            assert tokens is not None
            assert (relid, number) in {token.number for token in tokens[name]}
            decided += len(tokens[name]) == 1 and any(
                moment.own_command(item.stamp) is not None for item in after.attributes
            )
    event(f"decided in a transaction that changed the table: {min(decided, 3)}")
