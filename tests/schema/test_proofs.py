"""What proofs decide about columns, and what contradicts them."""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.schema.align import align
from cdc_sync.core.schema.alignment import Facts, Proof
from cdc_sync.core.schema.derive import derive
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.observed import ObservedSchema
from tests.schema.tables import MYSQL, POSTGRES, known, seen, told


def _proven(facts: Facts, *proofs: Proof) -> Facts:
    return replace(facts, proofs=proofs)


def _conflicts(before: InternalSchema, observed: ObservedSchema, facts: Facts) -> list[tuple[str, list[str]]]:
    found = align(before, observed, facts).conflicts
    return [(conflict.subject, [f"{claim.kind}: {claim.text}" for claim in conflict.claims]) for conflict in found]


class TestWhatAProofDecides:
    def test_a_rename_that_place_and_name_leave_open(self) -> None:
        facts = _proven(MYSQL, Proof(kind="ddl", same={1: 0, 2: 1}, reasons={2: "ALTER …"}))
        assert told(known("id a"), seen("id b"), facts) == ["a became b (ddl)"]
        (item,) = align(known("id a"), seen("id b"), facts).evidence
        assert item.text == "renamed to 'b': ALTER …"

    def test_a_swap(self) -> None:
        for facts in (MYSQL, POSTGRES):
            proof = Proof(kind="message", same={1: 0, 2: 1, 3: 2})
            assert told(known("id a b"), seen("id b a"), _proven(facts, proof)) == [
                "a became b (message)",
                "b became a (message)",
            ]

    def test_a_name_that_is_another_column_now(self) -> None:
        proof = Proof(kind="message", same={1: 0}, gone={2: "DROP …"}, new={1: "ADD …"})
        assert told(known("id a"), seen("id a"), _proven(POSTGRES, proof)) == [
            "a dropped (message)",
            "a added (message)",
        ]

    def test_a_column_that_events_hide_is_kept(self) -> None:
        proof = Proof(kind="ddl", same={1: 0}, hidden={2: "still there"})
        before, after = known("id a"), seen("id b")
        facts = _proven(MYSQL, replace(proof, new={1: "ADD …"}))
        assert told(before, after, facts) == ["b added (ddl)", "a or nothing: unproven"]

    def test_a_hidden_column_is_dropped_if_that_is_declared(self) -> None:
        facts = replace(_proven(MYSQL, Proof(kind="ddl", hidden={2: "still there"})), drops=frozenset("a"))
        assert told(known("id a"), seen("id"), facts) == ["a dropped (declared)"]

    def test_a_retired_column_that_is_back(self) -> None:
        before, after = known("id a", retired="a"), seen("id a")
        alignment = align(before, after, _proven(POSTGRES, Proof(kind="message", same={1: 0, 2: 1})))
        assert alignment.same == ((1, 0), (2, 1))
        schema = derive(before, after, alignment, retire=True, initials={})
        assert [(column.id, column.name, column.retired) for column in schema.columns] == [
            (1, "id", False),
            (2, "a", False),
        ]

    def test_what_no_proof_names_is_decided_as_before(self) -> None:
        proof = Proof(kind="message", same={1: 0})
        assert told(known("id a z"), seen("id b z"), _proven(POSTGRES, proof)) == ["a became b (position)"]
        assert told(known("id a z"), seen("id b z"), _proven(MYSQL, proof)) == ["a or b: unproven"]

    def test_a_recreated_table_overrules_places(self) -> None:
        proof = Proof(kind="message", gone={1: "DROP", 2: "DROP"}, new={0: "CREATE", 1: "CREATE"})
        assert told(known("id a"), seen("id a"), _proven(POSTGRES, proof)) == [
            "id dropped (message)",
            "a dropped (message)",
            "id added (message)",
            "a added (message)",
        ]


class TestContradictions:
    def test_none_where_proofs_agree(self) -> None:
        proof = Proof(kind="ddl", same={1: 0, 2: 1})
        facts = replace(_proven(MYSQL, proof, replace(proof, kind="catalogue")), renames={"a": "b"})
        assert _conflicts(known("id a"), seen("id b"), facts) == []

    def test_a_declared_rename_of_a_column_that_was_dropped(self) -> None:
        facts = replace(_proven(MYSQL, Proof(kind="ddl", gone={2: "DROP"}, new={1: "ADD"})), renames={"a": "b"})
        assert _conflicts(known("id a"), seen("id b"), facts) == [
            ("a", ["declared: renamed to 'b': the operator declared it", "ddl: dropped: DROP", "ddl: added: ADD"])
        ]

    def test_a_declared_drop_of_a_column_that_was_renamed(self) -> None:
        facts = replace(_proven(MYSQL, Proof(kind="ddl", same={2: 1})), drops=frozenset("a"))
        assert _conflicts(known("id a"), seen("id b"), facts) == [
            ("a", ["declared: dropped: the operator declared it", "ddl: renamed to 'b'"])
        ]

    def test_a_declaration_about_something_else_is_no_contradiction(self) -> None:
        facts = replace(_proven(MYSQL, Proof(kind="ddl", same={1: 0, 2: 1})), renames={"x": "y"}, drops=frozenset("q"))
        assert _conflicts(known("id a"), seen("id b"), facts) == []

    def test_two_proofs_of_one_column(self) -> None:
        facts = _proven(POSTGRES, Proof(kind="message", same={2: 1}), Proof(kind="catalogue", same={3: 1}))
        assert _conflicts(known("id a b"), seen("id c"), facts) == [
            ("b", ["message: renamed to 'c'", "catalogue: renamed to 'c'"])
        ]

    def test_one_says_same_and_one_says_gone(self) -> None:
        for proofs in (
            (Proof(kind="message", same={2: 1}), Proof(kind="catalogue", gone={2: "dropped"})),
            (Proof(kind="catalogue", gone={2: "dropped"}), Proof(kind="message", same={2: 1})),
            (Proof(kind="message", same={2: 1}), Proof(kind="catalogue", new={1: "added"})),
            (Proof(kind="catalogue", new={1: "added"}), Proof(kind="message", same={2: 1})),
        ):
            assert len(_conflicts(known("id a"), seen("id b"), _proven(POSTGRES, *proofs))) == 1


class TestDecisions:
    DECIDED_SAME = Proof(kind="decided", same={2: 1})
    DECIDED_OTHER = Proof(kind="decided", gone={2: "said"}, new={1: "said"})

    def test_nothing_contradicts_a_decision(self) -> None:
        against = Proof(kind="ddl", gone={2: "DROP"}, new={1: "ADD"})
        facts = _proven(MYSQL, self.DECIDED_SAME, against)
        assert told(known("id a"), seen("id b"), facts) == ["a became b (decided)"]
        assert _conflicts(known("id a"), seen("id b"), facts) == []

    def test_a_decision_stands_above_a_declaration(self) -> None:
        facts = replace(_proven(MYSQL, self.DECIDED_OTHER), renames={"a": "b"})
        assert told(known("id a"), seen("id b"), facts) == ["a dropped (decided)", "b added (decided)"]
        assert _conflicts(known("id a"), seen("id b"), facts) == []

    def test_a_name_that_is_decided_to_be_another_column(self) -> None:
        facts = _proven(POSTGRES, self.DECIDED_OTHER)
        assert told(known("id a"), seen("id a"), facts) == ["a dropped (decided)", "a added (decided)"]
