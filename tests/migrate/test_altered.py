"""What others did to a target's columns, told by the numbers that last as long as a column."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.migration.altered import Altered, HeldColumns, altered, undoing

HELD = HeldColumns(identity="u", version=3, numbers={"id": 1, "a": 2, "b": 3})


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ({"id": 1, "a": 2, "b": 3}, Altered()),
        ({"b": 3, "id": 1, "a": 2}, Altered()),
        ({"id": 1, "b": 3}, Altered(dropped=("a",))),
        ({"id": 1, "a": 2, "b": 3, "c": 4}, Altered(added=("c",))),
        ({"id": 1, "z": 2, "b": 3}, Altered(renamed=(("a", "z"),))),
        ({"id": 1, "a": 9, "b": 3}, Altered(replaced=("a",))),
        ({"id": 1, "a": 3, "b": 2}, Altered(replaced=("a", "b"))),
        ({"id": 1, "z": 2, "b": 9, "c": 4}, Altered(added=("c",), renamed=(("a", "z"),), replaced=("b",))),
    ],
)
def test_columns_are_told_apart_by_their_numbers(numbers: dict[str, int], found: Altered) -> None:
    assert altered(HELD, replace(HELD, numbers=numbers)) == found
    assert found.must_be_undone is (found not in (Altered(), Altered(replaced=found.replaced)))


def test_a_table_that_was_migrated_or_made_anew_is_not_altered() -> None:
    for now in (replace(HELD, version=4, numbers={}), replace(HELD, identity="v", numbers={})):
        assert altered(HELD, now) == Altered()


def test_what_was_done_can_be_undone_by_a_statement() -> None:
    found = Altered(dropped=("a b",), added=("x`y",), renamed=(("b", "c"),))
    assert undoing(found, "lake.t") == (
        "column x`y was added, column b was renamed to c, column a b was dropped",
        "ALTER TABLE lake.t DROP COLUMN `x``y`; ALTER TABLE lake.t RENAME COLUMN `c` TO `b`; "
        "ALTER TABLE lake.t ADD COLUMN `a b` <its type>",
    )
