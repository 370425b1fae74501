"""What readings around a version and an event prove about the change between the two."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.lineage.catalogue import Attribute, CatalogueReading, Moment, Stamp
from cdc_sync.core.lineage.catalogue_proof import Told, prove_by_readings, refuted
from cdc_sync.core.lineage.kept import NOTHING_KEPT, Kept
from cdc_sync.core.migration.routes import LeftOut
from cdc_sync.core.model.positions import Commit, KafkaPosition, SourcePosition, TableId
from cdc_sync.core.schema.alignment import Evidence
from cdc_sync.core.schema.diff import diff
from tests.schema.tables import known, seen

T = TableId(database="inv", schema="public", table="t")
NOW = 1_700_000_000_000_000
HOUR = 3_600_000_000


def at(lsn: int) -> SourcePosition:
    return SourcePosition(kind="postgresql", parts=(lsn, lsn))


def reading(hour: int, text: str, relid: int = 7) -> CatalogueReading:
    """Read `a@1 -@2 z@?`: names of numbers 1, 2, 3 with the hour of the last write; `-` was dropped."""
    attributes = []
    for number, word in enumerate(text.split(), 1):
        name, _, when = word.partition("@")
        stamp = Stamp(xid=999) if when == "?" else Stamp(xid=int(when) * 10 + 1, at=NOW + int(when) * HOUR)
        attributes.append(Attribute(number=number, name="" if name == "-" else name, stamp=stamp))
    old = Stamp(xid=5, at=NOW - 2 * HOUR)
    return CatalogueReading(
        table=T, begun=hour * 100 + 50, ended=hour * 100 + 51, relid=relid, named=old, schema_named=old,
        attributes=tuple(attributes),
    )  # fmt: skip


def moment(hour: int) -> Moment:
    return Moment(lsn=hour * 100 + 25, commit=Commit(at=NOW + hour * HOUR + HOUR // 2, xid=hour * 10 + 5))


def history(*columns: str, hour: int = 1) -> History:
    event = moment(hour)
    first = Version(
        table=T,
        number=1,
        fingerprint="f1",
        schema=known(" ".join(columns)),
        changes=(),
        evidence=(),
        position=at(event.lsn),
        kafka=KafkaPosition(topic="t", partition=0, offset=0),
        snapshot=False,
        append_only=True,
        commit=event.commit,
    )
    return History(table=T, versions=(first,))


def kept(*readings: CatalogueReading) -> Kept:
    found = NOTHING_KEPT
    for item in readings:
        found = found.with_reading(item)
    return found


def prove(
    before: History, after: Kept, *names: str, hour: int = 3, left_out: LeftOut | None = None
) -> Told | None:  # fmt: skip
    event = moment(hour)
    return prove_by_readings(before, seen(" ".join(names)), after, at(event.lsn), event, left_out)


def proven(before: History, after: Kept, *names: str) -> Told:
    found = prove(before, after, *names)
    assert found is not None
    return found


TABLE = history("id", "a", "z")
FIRST = reading(1, "id@0 a@0 z@0")


def test_a_renamed_last_column_is_one_column() -> None:
    proof = proven(TABLE, kept(FIRST, reading(3, "id@0 a@0 y@2")), "id", "a", "y").proof
    assert (proof.same, proof.gone, proof.new) == ({1: 0, 2: 1, 3: 2}, {}, {})
    assert proof.reasons[3] == "read from the catalogue: attribute 3 of relation 7, before and after"


def test_the_first_reading_may_come_after_the_rename() -> None:
    """Who wrote the attributes that did not change tells what there was before."""
    proof = proven(TABLE, kept(reading(3, "id@0 a@0 y@2")), "id", "a", "y").proof
    assert proof.same == {1: 0, 2: 1, 3: 2}


def test_a_column_that_was_replaced_is_another_one() -> None:
    proof = proven(TABLE, kept(FIRST, reading(3, "id@0 a@0 -@2 n@2")), "id", "a", "n").proof
    assert proof.same == {1: 0, 2: 1}
    assert proof.gone == {3: "read from the catalogue: attribute 3 of relation 7 was dropped"}
    assert proof.new == {2: "read from the catalogue: attribute 4 of relation 7, which no known column is"}


def test_a_name_in_the_middle_that_is_another_column_now_is_told() -> None:
    proof = proven(TABLE, kept(FIRST, reading(3, "id@0 -@2 z@0 a@2")), "id", "z", "a").proof
    assert (proof.same, set(proof.gone), set(proof.new)) == ({1: 0, 3: 1}, {2}, {2})


def test_a_last_name_that_is_another_column_now_may_have_been_so_before_and_stays() -> None:
    """Events between showed no difference: their values are under the old column."""
    proof = proven(TABLE, kept(FIRST, reading(3, "id@0 a@0 -@2 z@2 n@2")), "id", "a", "z", "n").proof
    assert (proof.same, set(proof.gone), set(proof.new)) == ({1: 0, 2: 1}, set(), {3})


def test_a_name_that_passed_to_a_neighbour_is_told() -> None:
    proof = proven(TABLE, kept(FIRST, reading(3, "id@0 z@2 -@2")), "id", "z").proof
    assert (proof.same, set(proof.gone), set(proof.new)) == ({1: 0, 2: 1}, {3}, set())


def test_what_was_touched_after_the_event_is_left_open() -> None:
    proof = proven(TABLE, kept(FIRST, reading(3, "id@0 a@0 -@4 m@4")), "id", "a", "n").proof
    assert (proof.same, proof.gone, proof.new) == ({1: 0, 2: 1}, {}, {})
    assert prove(TABLE, kept(FIRST), "id", "a", "n") is None
    assert prove(TABLE, kept(FIRST).with_missed(10_000), "id", "a", "n") is None


def test_a_column_that_events_do_not_show_any_more_is_not_gone() -> None:
    proof = proven(TABLE, kept(FIRST, reading(3, "id@0 a@0 z@0")), "id", "z").proof
    assert proof.hidden == {2: "attribute 2 of relation 7 is still there, and events no longer show it"}


def test_another_table_under_the_name_has_other_columns() -> None:
    made = replace(reading(3, "id@2 a@2 z@2", relid=8), named=Stamp(xid=21, at=NOW + 2 * HOUR))
    told = proven(TABLE, kept(FIRST, made), "id", "a", "z")
    assert told.made_anew
    assert (set(told.proof.gone), set(told.proof.new)) == ({1, 2, 3}, {0, 1, 2})
    assert told.proof.gone[1].endswith("relation 8 has its name now")


def test_a_retired_column_comes_back_unless_a_live_one_is_the_same() -> None:
    retired = known("id a z", retired="z")
    changes = diff(TABLE.head.schema, retired)
    second = replace(TABLE.head, number=2, schema=retired, changes=changes, position=at(210), commit=moment(2).commit)
    back = kept(FIRST, reading(2, "id@0 a@0 secret@2"), reading(3, "id@0 a@0 y@3"))
    assert proven(History(table=T, versions=(TABLE.head, second)), back, "id", "a", "y").proof.same[3] == 2
    split = known("id a z y", retired="z")
    third = replace(second, schema=split, changes=diff(TABLE.head.schema, split), position=at(225))
    both = kept(FIRST, reading(2, "id@0 a@0 y@1"), reading(3, "id@0 a@0 x@3"))
    told = proven(History(table=T, versions=(TABLE.head, third)), both, "id", "a", "x").proof
    assert told.same == {1: 0, 2: 1, 4: 2}


def test_names_adjusted_for_avro_are_found() -> None:
    odd = history("id", "a_b")
    both = kept(reading(1, "id@0 a-b@0"), reading(3, "id@0 c-d@2"))
    assert proven(odd, both, "id", "c_d").proof.same == {1: 0, 2: 1}
    clash = kept(reading(1, "id@0 a-b@0 a+b@0"), reading(3, "id@0 c-d@2 c+d@2"))
    assert proven(odd, clash, "id", "c_d").proof.same == {1: 0}, "either of the two may be left out"


def test_a_name_adjusted_for_avro_is_not_laid_on_a_column_that_was_added_later() -> None:
    """The first reading comes after ADD COLUMN: to a connector that adjusts nothing, my_col would have to be y."""
    first = reading(3, "id@0 my-col@0 y@2")
    proof = proven(history("id", "my_col"), kept(first), "id", "my_col", "y").proof
    assert (proof.same, proof.gone, proof.hidden) == ({1: 0}, {}, {})


@pytest.mark.parametrize("shown", ["my_col", "my_u002dcol"])
def test_where_it_is_stated_that_nothing_is_left_out_an_adjusted_name_is_certain(shown: str) -> None:
    attributes = (replace(item, type="text", generated=False) for item in reading(3, "id@0 my-col@0 y@2").attributes)
    told = replace(reading(3, ""), attributes=tuple(attributes))
    found = prove(history("id", shown), kept(told), "id", shown, "y", left_out=LeftOut())
    assert found is not None
    assert (found.proof.same, set(found.proof.new)) == ({1: 0, 2: 1}, {2})


def test_a_version_without_columns_that_its_event_showed_says_nothing_of_where_the_others_stood() -> None:
    """By policy.add_column: ignore it holds id and a of id, n, a; then n and a are renamed m and b."""
    ignored = Evidence(subject="n", kind="ignored", text="its values are left out")
    table = History(table=T, versions=(replace(history("id", "a").head, evidence=(ignored,)),))
    attributes = (replace(item, type="text", generated=False) for item in reading(3, "id@0 m@2 b@2").attributes)
    told = kept(replace(reading(3, ""), attributes=tuple(attributes)))
    found = prove(table, told, "id", "m", "b", left_out=LeftOut())
    assert found is not None
    assert found.proof.same == {1: 0}
    assert refuted(table, 1, told, LeftOut()) == ()


def test_events_that_leave_out_more_than_is_stated_are_told_of() -> None:
    attributes = (replace(item, type="text", generated=False) for item in reading(1, "id@0 a@0 z@0").attributes)
    told = kept(replace(reading(1, ""), attributes=tuple(attributes)))
    assert refuted(TABLE, 1, told, LeftOut()) == ()
    shorter = history("id", "z")
    assert refuted(shorter, 1, told, None) == ()
    assert refuted(shorter, 1, told, LeftOut((r"public\.t\.a",))) == ()
    assert refuted(shorter, 2, told, LeftOut()) == ()
    (warning,) = refuted(shorter, 1, told, LeftOut())
    assert warning.startswith("events leave out columns that connector.excluded_columns does not name")


def test_columns_become_known_at_the_first_event_amid_equal_readings() -> None:
    """Nothing told of them before: the server kept no times."""
    unknown = [replace(reading(hour, "id@? a@? z@?"), named=Stamp(xid=5)) for hour in (1, 2, 3)]
    told = proven(TABLE, kept(*unknown), "id", "a", "z")
    assert told.renewed
    second = replace(TABLE.head, number=2, position=at(325), commit=moment(3).commit)
    later = History(table=T, versions=(TABLE.head, second))
    renamed = replace(reading(4, "id@? a@? y@3"), named=Stamp(xid=5))
    again = prove(later, kept(*unknown, renamed), "id", "a", "y", hour=4)
    assert again is None or not again.renewed
    assert not proven(later, kept(*unknown), "id", "a", "z").renewed


def test_versions_of_other_sources_are_left_out() -> None:
    binlog = replace(TABLE.head, position=SourcePosition(kind="binlog", parts=(1, 2, 3)))
    told = proven(History(table=T, versions=(binlog,)), kept(FIRST, reading(3, "id@0 a@0 y@2")), "id", "a", "y")
    assert (told.proof.same, told.proof.gone, told.proof.new) == ({}, {}, {})
