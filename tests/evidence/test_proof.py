"""What tokens at two positions prove about the columns of an event."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.lineage.column_log import ColumnLog, LoggedColumn, Structure, Token, structures_behind
from cdc_sync.core.lineage.proof import Behind, created_at, is_interrupted, prove, was_made_anew
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.schema.alignment import Proof
from cdc_sync.core.schema.changes import AddColumn, RetireColumn
from cdc_sync.core.schema.evolve import apply_all
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT32, INT64
from tests.schema.tables import known, seen

T = TableId(database="inv", schema="", table="t")


def at(pos: int) -> SourcePosition:
    return SourcePosition(kind="binlog", parts=(1, pos, 0))


def columns(text: str) -> tuple[LoggedColumn, ...]:
    """Read `a=1 b=x:2`: names with their tokens' numbers, and an era other than the first before a colon."""
    found = []
    for word in text.split():
        name, _, token = word.partition("=")
        era, _, number = token.rpartition(":")
        found.append(LoggedColumn(name=name, token=Token(era=era, number=int(number)), type="int"))
    return tuple(found)


def log(*steps: tuple[int, str, str]) -> ColumnLog:
    """Make a log of (position, columns, statement)."""
    made = (
        Structure(table=T, position=at(pos), columns=columns(text), statement=statement, reading=not statement)
        for pos, text, statement in steps
    )
    return ColumnLog("ddl", made)


def history(schema: InternalSchema, pos: int = 10) -> History:
    first = Version(
        table=T,
        number=1,
        fingerprint="f1",
        schema=schema,
        changes=(),
        evidence=(),
        position=at(pos),
        kafka=KafkaPosition(topic="t", partition=0, offset=0),
        snapshot=True,
        append_only=False,
    )
    return History(table=T, versions=(first,))


def proven(before: str, after: str, found: ColumnLog, pos: int = 30) -> Proof:
    proof = prove(history(known(before)), seen(after), found, at(pos))
    assert isinstance(proof, Proof), proof
    return proof


def behind(before: str, after: str, found: ColumnLog, pos: int = 30) -> str:
    proof = prove(history(known(before)), seen(after), found, at(pos))
    assert isinstance(proof, Behind), proof
    return proof.reason


class TestWhatIsProven:
    def test_one_token_under_two_names_is_a_rename_in_the_words_of_the_statement(self) -> None:
        proof = proven("id a", "id b", log((5, "id=1 a=2", ""), (20, "id=1 b=2", "alter t rename a to b")))
        assert (proof.same, proof.gone, proof.new) == ({1: 0, 2: 1}, {}, {})
        assert proof.reasons[2] == "alter t rename a to b (binlog:1/20/0)"

    def test_all_statements_of_a_chain_are_cited(self) -> None:
        found = log((5, "id=1 a=2", ""), (20, "id=1 x=2", "a to x"), (21, "id=1 b=2", "x to b"))
        assert proven("id a", "id b", found).reasons[2] == "a to x (binlog:1/20/0), then x to b (binlog:1/21/0)"

    def test_two_tokens_under_one_name_are_two_columns(self) -> None:
        found = log((5, "id=1 a=2", ""), (20, "id=1", "drop a"), (21, "id=1 a=3", "add a"))
        proof = proven("id a", "id a", found)
        assert proof.same == {1: 0}
        assert proof.gone == {2: "drop a (binlog:1/20/0)"}
        assert proof.new == {1: "add a (binlog:1/21/0)"}

    def test_a_swap(self) -> None:
        found = log((5, "id=1 a=2 b=3", ""), (20, "id=1 b=2 a=3", "swap"))
        assert proven("id a b", "id b a", found).same == {1: 0, 2: 1, 3: 2}

    def test_what_lies_behind_the_event_does_not_count(self) -> None:
        found = log((5, "id=1 a=2", ""), (20, "id=1 b=2", "a to b"), (40, "id=1 c=2", "b to c"))
        assert proven("id a", "id b", found).same == {1: 0, 2: 1}

    def test_a_column_the_events_hide_is_neither_gone_nor_the_same(self) -> None:
        proof = proven("id a g", "id a", log((5, "id=1 a=2 g=3", "")))
        assert (proof.same, proof.gone) == ({1: 0, 2: 1}, {})
        assert list(proof.hidden) == [3]

    def test_tokens_of_two_eras_prove_nothing(self) -> None:
        proof = proven("id a", "id b", log((5, "id=1 a=2", ""), (20, "id=x:1 b=x:2", "who knows")))
        assert (proof.same, proof.gone, proof.new, proof.hidden) == ({}, {}, {}, {})

    def test_a_log_that_does_not_fit_the_version_proves_nothing(self) -> None:
        proof = proven("id a z", "id b z", log((5, "id=1 a=2", ""), (20, "id=1 b=4 z=3", "?")))
        assert (proof.same, proof.gone, proof.new) == ({}, {}, {})

    def test_a_reading_tells_of_columns_seen_before_it(self) -> None:
        proof = proven("id a", "id b", log((15, "id=1 a=2", ""), (20, "id=1 b=2", "a to b")))
        assert proof.same == {1: 0, 2: 1}

    def test_a_first_structure_behind_a_change_does_not(self) -> None:
        assert proven("id a", "id b", log((20, "id=1 b=2", "a to b"))).same == {}

    def test_a_reading_of_other_names_does_not(self) -> None:
        assert proven("id q", "id b", log((15, "id=1 a=2", ""), (20, "id=1 b=2", "a to b"))).same == {}

    def test_a_retired_column_keeps_the_token_it_had(self) -> None:
        recorded = history(known("id a"))
        changes = (RetireColumn(id=2, name="a"),)
        second = replace(
            recorded.head,
            number=2,
            schema=apply_all(recorded.head.schema, changes),
            changes=changes,
            position=at(12),
        )
        found = log((5, "id=1 a=2", ""), (11, "id=1 a=2 n=3", "add n"))
        proof = prove(recorded.extended(second), seen("id a"), found, at(30))
        assert isinstance(proof, Proof)
        assert proof.same == {1: 0, 2: 1}

    def test_a_retired_column_does_not_push_out_the_one_that_took_its_place(self) -> None:
        recorded = history(known("id a"))
        added = Column(id=3, name="b", type=INT32)
        changes = (RetireColumn(id=2, name="a"), AddColumn(column=added, after=2))
        schema = apply_all(recorded.head.schema, changes)
        split = replace(recorded.head, number=2, schema=schema, changes=changes, position=at(25))
        found = log((5, "id=1 a=2", ""), (20, "id=1 b=2", "a to b"))
        proof = prove(recorded.extended(split), seen("id b"), found, at(30))
        assert isinstance(proof, Proof)
        assert proof.same == {1: 0, 3: 1}

    def test_names_that_a_connector_adjusted_for_avro_are_found(self) -> None:
        odd = ColumnLog(
            "ddl",
            (
                Structure(
                    table=T,
                    position=at(pos),
                    columns=tuple(
                        LoggedColumn(name=name, token=Token(era="", number=number)) for number, name in enumerate(names)
                    ),
                    statement=statement,
                    reading=not statement,
                )
                for pos, names, statement in ((5, ("id", "a b"), ""), (20, ("id", "1é"), "a b to 1é"))
            ),
        )
        assert proven("id a_b", "id _1_", odd).same == {1: 0, 2: 1}


class TestInterruptions:
    def test_tokens_of_another_era_are_taken_over_by_name(self) -> None:
        found = log((5, "id=1 a=2", ""), (20, "id=x:1 a=x:3", ""))
        assert is_interrupted(history(known("id a")), found, at(30))
        assert not is_interrupted(history(known("id a")), found, at(15))

    def test_columns_that_were_not_known_before_are_too(self) -> None:
        assert is_interrupted(history(known("id a")), log((20, "id=1 a=2", "something")), at(30))

    def test_known_tokens_are_no_interruption(self) -> None:
        found = log((5, "id=1 a=2", ""), (20, "id=1 a=3", "drop and add"))
        assert not is_interrupted(history(known("id a")), found, at(30))

    def test_a_log_without_the_columns_is_none(self) -> None:
        assert not is_interrupted(history(known("id a")), log((20, "id=1", "something")), at(30))

    def test_a_table_that_was_dropped_or_exchanged_was_made_anew(self) -> None:
        for between in ("", "id=7 a=8", "id=x:1 a=x:2"):
            found = log((5, "id=1 a=2", ""), (20, between, "something"))
            assert was_made_anew(found, T, at(10), at(30))
            assert not was_made_anew(found, T, at(10), at(15))

    def test_a_table_that_kept_a_column_was_not(self) -> None:
        assert not was_made_anew(log((5, "id=1 a=2", ""), (20, "id=1 b=3", "most of it")), T, at(10), at(30))


class TestWhatIsMissing:
    def test_a_log_that_does_not_know_the_table(self) -> None:
        assert "nothing about the table" in behind("id a", "id b", log())
        assert "nothing about the table" in behind("id a", "id b", log((40, "id=1 b=2", "later")))

    def test_a_column_the_log_does_not_show(self) -> None:
        assert behind("id a", "id b", log((5, "id=1 a=2", ""))) == "it does not show column 'b' yet"

    def test_columns_in_another_order(self) -> None:
        assert "another order" in behind("id a b", "id b a", log((5, "id=1 a=2 b=3", "")))

    def test_a_type_that_changed_in_the_events_only(self) -> None:
        found = prove(history(known("id a")), seen("id a", types={"a": INT64}), log((5, "id=1 a=2", "")), at(30))
        assert isinstance(found, Behind)
        assert found.reason == "it shows no change of the type of column 'a'"

    def test_a_type_that_changed_in_both(self) -> None:
        changed = replace(columns("a=2")[0], type="bigint")
        found = ColumnLog(
            "ddl",
            (
                *log((5, "id=1 a=2", "")).of(T),
                Structure(table=T, position=at(20), columns=(*columns("id=1"), changed), statement="modify"),
            ),
        )
        assert isinstance(prove(history(known("id a")), seen("id a", types={"a": INT64}), found, at(30)), Proof)


def test_a_log_of_another_kind_of_source_says_nothing() -> None:
    assert prove(history(known("id")), seen("id"), ColumnLog("message"), at(30)) is None


@pytest.mark.parametrize(("behind_", "wanted"), [(None, [5, 20]), (5, [20]), (20, [])])
def test_structures_behind_a_position(behind_: int | None, wanted: list[int]) -> None:
    found = log((5, "id=1", ""), (20, "id=1 a=2", "add a"))
    position = None if behind_ is None else at(behind_)
    assert structures_behind((found,), T, position) == tuple(map(at, wanted))


class TestCreatedAt:
    """Where the table that has the name now was created, if everything that happened to it since is known."""

    def log(self, *steps: tuple[int, str, bool]) -> ColumnLog:
        structures = [replace(item, created=step[2]) for step in steps for item in log((step[0], step[1], "")).of(T)]
        return ColumnLog("ddl", structures)

    def test_the_last_create_between_counts(self) -> None:
        found = self.log((5, "id=1", True), (10, "", False), (20, "id=2", True), (25, "id=2 a=3", False))

        assert created_at(found, T, at(7), at(30)) == at(20)
        assert created_at(found, T, at(7), at(15)) is None
        assert created_at(found, T, at(21), at(30)) is None, "it was there before"

    def test_a_table_that_took_the_name_may_have_rows(self) -> None:
        assert created_at(self.log((5, "id=1", True), (20, "id=2", False)), T, at(7), at(30)) is None
        exchanged = self.log((5, "id=1", True), (20, "id=2", True), (25, "id=3", False))
        assert created_at(exchanged, T, at(7), at(30)) is None

    def test_nothing_is_known_behind_what_was_not_understood(self) -> None:
        assert created_at(self.log((20, "id=2", True), (25, "", False)), T, at(7), at(30)) is None
