"""What can be known about columns that vanished and appeared; the cases are tables of real Debezium captures."""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.schema.align import align
from cdc_sync.core.schema.internal import EMPTY_SCHEMA
from cdc_sync.core.schema.types import INT32, STRING
from tests.schema.tables import FIRST_FROM_THE_LOG, MYSQL, POSTGRES, known, seen, told


class TestAppendOnlySources:
    def test_the_same_names_are_the_same_columns(self) -> None:
        assert told(known("id a z"), seen("id a z")) == []

    def test_a_new_last_column_was_added(self) -> None:
        assert told(known("id a"), seen("id a b c")) == ["b added (position)", "c added (position)"]

    def test_a_missing_column_was_dropped(self) -> None:
        assert told(known("id a b z"), seen("id b z")) == ["a dropped (position)"]
        assert told(known("id a z"), seen("id a")) == ["z dropped (position)"]

    def test_dropadd_one_dropped_and_one_added_behind_a_column_that_stayed(self) -> None:
        assert told(known("id a z"), seen("id z b")) == ["a dropped (position)", "b added (position)"]

    def test_dropadd_is_proven_at_the_end_of_the_snapshot_too(self) -> None:
        assert told(known("id a z"), seen("id z b"), FIRST_FROM_THE_LOG) == [
            "a dropped (position)",
            "b added (position)",
        ]

    def test_rename_last_cannot_be_told_from_drop_and_add(self) -> None:
        assert told(known("id z a"), seen("id z b")) == ["a or b: unproven"]

    def test_the_explanations_of_a_last_column_are_both_said(self) -> None:
        (case,) = align(known("id z a"), seen("id z b"), POSTGRES).unproven
        assert case.explanations == ("'a' was renamed to 'b'", "'a' was dropped, 'b' was added")

    def test_a_rename_in_the_middle_is_proven(self) -> None:
        assert told(known("id a z"), seen("id a2 z")) == ["a became a2 (position)"]

    def test_a_rename_with_another_type_in_the_middle_is_proven(self) -> None:
        assert told(known("id a z"), seen("id cost z", types={"cost": STRING})) == ["a became cost (position)"]

    def test_renames_side_by_side_in_the_middle_are_proven_in_order(self) -> None:
        assert told(known("id a b z"), seen("id x y z")) == ["a became x (position)", "b became y (position)"]

    def test_a_renamed_key_in_front_is_proven(self) -> None:
        assert told(known("id a"), seen("key a")) == ["id became key (position)"]

    def test_a_rename_and_an_addition_in_one_step_are_both_proven(self) -> None:
        assert told(known("id a z"), seen("id a2 z n")) == ["a became a2 (position)", "n added (position)"]

    def test_evolve_rename_retype_and_drop_in_one_step(self) -> None:
        before, after = known("id full_name qty note flag price"), seen("id full_name qty flag cost x")
        assert told(before, after) == ["note dropped (position)", "price or cost x: unproven"]

    def test_a_drop_and_a_rename_side_by_side_are_not_told_apart(self) -> None:
        (case,) = align(known("id a b z"), seen("id x z"), POSTGRES).unproven
        assert case.vanished == (2, 3)
        assert case.explanations == (
            "'a' was renamed to 'x', 'b' was dropped",
            "'b' was renamed to 'x', 'a' was dropped",
        )

    def test_a_column_that_came_in_the_middle_proves_that_something_else_happened(self) -> None:
        (case,) = align(known("id a z"), seen("id a n z"), POSTGRES).unproven
        assert (case.vanished, case.appeared) == ((), (2,))
        assert "created anew" in case.reason

    def test_a_table_without_any_known_name_is_unproven(self) -> None:
        (case,) = align(known("id v"), seen("pk w x"), POSTGRES).unproven
        assert (case.vanished, case.appeared) == ((1, 2), (0, 1, 2))
        assert told(known("id v"), seen("")) == ["id v or nothing: unproven"]

    def test_the_first_sight_of_a_table_adds_everything(self) -> None:
        assert told(EMPTY_SCHEMA, seen("id a")) == ["id added (position)", "a added (position)"]

    def test_a_rename_by_case_only_is_a_rename_like_others(self) -> None:
        assert told(known("id Name z"), seen("id name z")) == ["Name became name (position)"]
        assert told(known("id Name"), seen("id name")) == ["Name or name: unproven"]

    def test_at_most_ten_explanations_are_listed(self) -> None:
        (case,) = align(known("id a b c d e f z"), seen("id u v w z"), POSTGRES).unproven
        assert len(case.explanations) == 10
        (case,) = align(known("id a b c d e f"), seen("id u v w"), POSTGRES).unproven
        assert len(case.explanations) == 10


class TestNamesUsedAgain:
    """An append-only source never reorders, so names in another order stand for other columns."""

    def test_a_swap_is_unproven(self) -> None:
        assert told(known("id a b c"), seen("id b a c")) == ["a b or b a: unproven"]

    def test_a_rotation_is_unproven(self) -> None:
        assert told(known("id a b c"), seen("id b c a")) == ["a b c or b c a: unproven"]

    def test_dropadd_same_is_unproven(self) -> None:
        assert told(known("id a z"), seen("id z a")) == ["a z or z a: unproven"]

    def test_the_explanations_name_renames_and_dropping_and_adding_again(self) -> None:
        (case,) = align(known("id a z"), seen("id z a"), POSTGRES).unproven
        assert case.explanations == (
            "'a' was renamed to 'z', 'z' was renamed to 'a'",
            "'z' was dropped and added again",
            "'a' was dropped and added again",
        )
        (case,) = align(known("id a b z"), seen("id z a"), POSTGRES).unproven
        assert case.explanations == ("'z' was dropped and added again", "'a' was dropped and added again")

    def test_columns_around_the_swap_are_still_known(self) -> None:
        assert told(known("id p o a b q r"), seen("id p2 o b a q n")) == [
            "p became p2 (position)",
            "a b or b a: unproven",
            "r or n: unproven",
        ]

    def test_a_declared_swap_is_believed(self) -> None:
        facts = replace(POSTGRES, renames={"a": "b", "b": "a"})
        assert (
            told(known("id a b c"), seen("id b a c"), facts) == ["b became a (declared)", "a became b (declared)"][::-1]
        )

    def test_a_declared_drop_settles_dropadd_same(self) -> None:
        facts = replace(POSTGRES, drops=frozenset({"a"}))
        before, after = known("id a z"), seen("id z a")
        alignment = align(before, after, facts)
        assert alignment.same == ((1, 0), (3, 1))
        assert (alignment.dropped, alignment.added) == ((2,), (2,))

    def test_half_a_declaration_does_not_help(self) -> None:
        facts = replace(POSTGRES, renames={"a": "b"})
        assert told(known("id a b c"), seen("id b a c"), facts) == ["a b or b a: unproven"]

    def test_a_declaration_about_names_that_are_in_order_is_not_looked_at(self) -> None:
        facts = replace(POSTGRES, renames={"a": "b", "b": "a"}, drops=frozenset({"z"}))
        assert told(known("id a b z"), seen("id a b z"), facts) == []


class TestTheEndOfTheSnapshot:
    def test_gen_a_column_that_only_the_snapshot_showed_is_not_dropped(self) -> None:
        before, after = known("id a b c"), seen("id a c")
        assert told(before, after, FIRST_FROM_THE_LOG) == ["b or nothing: unproven"]
        (case,) = align(before, after, FIRST_FROM_THE_LOG).unproven
        assert "generated or excluded" in case.reason
        assert case.explanations == ("'b' was dropped", "'b' was left out of the stream")

    def test_gen_the_same_step_later_is_a_drop(self) -> None:
        assert told(known("id a b c"), seen("id a c")) == ["b dropped (position)"]

    def test_gen_a_column_that_comes_back_is_not_taken_for_the_one_that_was_kept(self) -> None:
        assert told(known("id a b c", retired="b"), seen("id a b c")) == ["nothing or b: unproven"]

    def test_a_kept_name_in_the_place_of_another_column_is_no_rename(self) -> None:
        assert told(known("id a g z", retired="g"), seen("id g z")) == ["a or g: unproven"]
        assert told(known("id g", retired="g"), seen("id g")) == ["nothing or g: unproven"]

    def test_several_columns_are_said_in_one_case(self) -> None:
        (case,) = align(known("id a b c d"), seen("id c"), FIRST_FROM_THE_LOG).unproven
        assert case.explanations == ("'a', 'b', 'd' were dropped", "'a', 'b', 'd' were left out of the stream")

    def test_a_declared_drop_is_believed(self) -> None:
        facts = replace(FIRST_FROM_THE_LOG, drops=frozenset({"b"}))
        assert told(known("id a b c"), seen("id a c"), facts) == ["b dropped (declared)"]

    def test_a_rename_in_the_same_step_shows_that_the_table_was_changed(self) -> None:
        facts = replace(FIRST_FROM_THE_LOG, renames={"c": "c2"})
        assert told(known("id a b c d"), seen("id a c2 d"), facts) == [
            "c became c2 (declared)",
            "b dropped (position)",
        ]


class TestDeclarations:
    def test_a_declared_rename_of_the_last_column_is_believed(self) -> None:
        facts = replace(POSTGRES, renames={"a": "b"})
        assert told(known("id z a"), seen("id z b"), facts) == ["a became b (declared)"]

    def test_a_declared_drop_of_the_last_column_proves_the_addition(self) -> None:
        facts = replace(POSTGRES, drops=frozenset({"a"}))
        assert told(known("id z a"), seen("id z b"), facts) == ["a dropped (declared)", "b added (position)"]

    def test_a_declared_rename_proves_what_stands_before_it(self) -> None:
        facts = replace(POSTGRES, renames={"b": "b2"})
        assert told(known("id z a b"), seen("id z a2 b2"), facts) == [
            "a became a2 (position)",
            "b became b2 (declared)",
        ]

    def test_a_declared_rename_against_the_order_is_believed_and_proves_nothing_else(self) -> None:
        facts = replace(POSTGRES, renames={"a": "b"})
        assert told(known("id a z"), seen("id z b"), facts) == ["a became b (declared)"]
        assert told(known("id a x z"), seen("id z b y"), facts) == [
            "a became b (declared)",
            "x dropped (position)",
            "y added (position)",
        ]

    def test_declarations_that_do_not_fit_are_ignored(self) -> None:
        facts = replace(POSTGRES, renames={"a": "b", "gone": "n", "id": "nowhere"}, drops=frozenset({"id", "never"}))
        assert told(known("id a"), seen("id a n"), facts) == ["n added (position)"]

    def test_a_kept_column_can_be_dropped_by_declaration(self) -> None:
        facts = replace(POSTGRES, drops=frozenset({"a"}))
        assert told(known("id a z", retired="a"), seen("id z"), facts) == ["a dropped (declared)"]


class TestSourcesThatPlaceColumnsAnywhere:
    def test_a_column_added_in_the_middle(self) -> None:
        assert told(known("id a z"), seen("id n a z"), MYSQL) == ["n added (name)"]

    def test_a_reorder_is_no_rename(self) -> None:
        assert told(known("id a b c"), seen("c id b a"), MYSQL) == []

    def test_a_missing_column_was_dropped_at_the_end_of_the_snapshot_too(self) -> None:
        facts = replace(MYSQL, snapshot_boundary=True)
        assert told(known("id a z"), seen("id z"), facts) == ["a dropped (name)"]

    def test_a_name_in_the_place_of_another_proves_nothing(self) -> None:
        assert told(known("id a z"), seen("id b z"), MYSQL) == ["a or b: unproven"]

    def test_the_explanations_are_every_rename_and_drop_with_add(self) -> None:
        (case,) = align(known("id a b"), seen("id x y"), MYSQL).unproven
        assert case.explanations == (
            "'a' was renamed to 'x'",
            "'a' was renamed to 'y'",
            "'b' was renamed to 'x'",
            "'b' was renamed to 'y'",
            "'a', 'b' were dropped and 'x', 'y' added",
        )

    def test_a_declared_rename_leaves_the_rest_to_its_name(self) -> None:
        facts = replace(MYSQL, renames={"a": "b"})
        assert told(known("id a z"), seen("id b z n"), facts) == ["a became b (declared)", "n added (name)"]


def test_every_decision_has_its_evidence_in_words() -> None:
    alignment = align(known("id a b z", types={"a": INT32}), seen("id a2 z n"), replace(POSTGRES, drops=frozenset("b")))
    assert [(item.subject, item.kind, item.text) for item in alignment.evidence] == [
        ("b", "declared", "dropped: the operator declared it"),
        (
            "a",
            "position",
            "renamed to 'a2': it stands in the same place, and columns are never inserted before others",
        ),
        ("n", "position", "added: it stands behind all known columns"),
    ]
