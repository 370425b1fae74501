"""Which columns values prove to be one, and what they never prove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_sync.core.lineage.continuity import Change, Compared, Pair, compare
from cdc_sync.core.schema.alignment import Evidence
from cdc_sync.testing import TEXT, column
from tests.plan.model import ROUTE
from tests.plan.tables import Table

UNKNOWN = ("__unknown",)
Row = dict[str, object]


def insert(key: int, row: Row) -> Change:
    return Change(key=str(key).encode(), before=None, after=row)


def update(key: int, before: Row | None, after: Row) -> Change:
    return Change(key=str(key).encode(), before=before, after=after)


def delete(key: int, before: Row | None) -> Change:
    return Change(key=str(key).encode(), before=before, after=None)


def compared(earlier: Sequence[Change], later: Sequence[Change], new: Sequence[str] = ("id", "c", "y")) -> Compared:
    return compare(earlier, later, ("id", "c", "x"), new, least=3, unknown=UNKNOWN)


def rows(count: int = 5) -> list[Change]:
    return [insert(number, {"id": number, "c": "same", "x": f"v{number}"}) for number in range(count)]


def test_values_before_are_compared_with_the_first_image_behind() -> None:
    found = compared(
        [*rows(), update(1, None, {"id": 1, "c": "same", "x": "newer"})],
        [
            update(0, {"id": 0, "c": "same", "y": "v0"}, {"id": 0, "c": "same", "y": "then"}),
            update(0, {"id": 0, "c": "same", "y": "then"}, {"id": 0, "c": "same", "y": "now"}),
            delete(1, {"id": 1, "c": "same", "y": "newer"}),
            update(2, {"id": 2, "c": "same", "y": "another"}, {"id": 2, "c": "same", "y": "v2"}),
        ],
    )

    assert found == Compared(rows=3, least=3, pairs=(Pair(old="x", new="y", equal=2, distinct=2, different=1),))


@pytest.mark.parametrize(
    "later",
    [
        insert(1, {"id": 1, "c": "same", "y": "v1"}),
        update(1, None, {"id": 1, "c": "same", "y": "v1"}),
        update(1, {"id": 1, "c": "missed", "y": "v1"}, {"id": 1, "c": "same", "y": "v1"}),
        update(1, {"id": 1, "c": None, "y": None}, {"id": 1, "c": "same", "y": "v1"}),
        update(9, {"id": 9, "c": "same", "y": "v9"}, {"id": 9, "c": "same", "y": "v9"}),
    ],
    ids=["created", "no image", "something was missed", "an image of the key", "never seen before"],
)
def test_what_shows_no_whole_row_does_not_count(later: Change) -> None:
    assert compared(rows(), [later]).rows == 0


def test_what_is_left_out_or_null_on_both_sides_proves_nothing() -> None:
    earlier = [
        insert(1, {"id": 1, "c": "__unknown", "x": "v1"}),
        insert(2, {"id": 2, "c": "same", "x": "__unknown"}),
        insert(3, {"id": 3, "c": "same", "x": None}),
    ]
    later = [
        delete(1, {"id": 1, "c": "same", "y": "v1"}),
        delete(2, {"id": 2, "c": "same", "y": "v2"}),
        delete(3, {"id": 3, "c": "same", "y": None}),
    ]

    assert compared(earlier, later).pairs == (Pair(old="x", new="y", equal=1, distinct=1, different=0),)


def test_an_older_event_that_comes_late_is_one_of_before() -> None:
    late = update(1, None, {"id": 1, "c": "same", "x": "late"})

    assert compared(rows(), [late, delete(1, {"id": 1, "c": "same", "y": "late"})]).pairs[0].equal == 1


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.lists(st.integers(0, 5), min_size=30, max_size=30))
def test_a_rename_never_differs_and_another_column_is_not_taken_for_it(old: list[int], other: list[int]) -> None:
    earlier = [insert(key, {"id": key, "c": 1, "x": value}) for key, value in enumerate(old)]
    later = [
        delete(key, {"id": key, "c": 1, "y": value, "z": another})
        for key, (value, another) in enumerate(zip(old, other, strict=False))
    ]

    renamed, added = compared(earlier, later, ("id", "c", "y", "z")).pairs

    assert (renamed.equal, renamed.distinct, renamed.different) == (len(old), len(set(old)), 0)
    assert (added.different == 0) == (other[: len(old)] == old)


def renamed(**values: object) -> tuple[Table, Compared]:
    """Return a table whose last column is gone while another one came, and a comparison of the two."""
    table = Table()
    table.drop_column("z")
    table.add_column(column("y", TEXT))
    table.row()
    whole = {"rows": 9, "least": 3, "pairs": (Pair(old="z", new="y", equal=9, distinct=4, different=0),)}
    return table, Compared(**{**whole, **values})  # type: ignore[arg-type]


def at(table: Table) -> object:
    return table.events()[-1].kafka


def test_enough_different_values_that_agree_prove_a_rename() -> None:
    table, found = renamed()

    plan = table.plan(values={at(table): found}, patient=True)

    (_, version) = plan.versions
    assert [(item.id, item.name) for item in version.schema.columns] == [(1, "id"), (2, "a"), (3, "y")]
    assert version.evidence[0] == Evidence(
        subject="z",
        kind="values",
        text="renamed to 'y': 9 rows that are known from before have its values there, 4 different ones, and none has "
        "another",
    )


@pytest.mark.parametrize(
    ("found", "waits"),
    [
        ({"pairs": (Pair(old="z", new="y", equal=9, distinct=2, different=0),)}, True),
        ({"pairs": (Pair(old="z", new="y", equal=0, distinct=0, different=0),), "rows": 0}, True),
        ({"pairs": (Pair(old="z", new="y", equal=9, distinct=9, different=1),)}, False),
    ],
    ids=["too few values", "nothing compared", "one differs"],
)
def test_less_is_waited_for_and_proves_nothing(found: Row, waits: bool) -> None:
    table, compared = renamed(**found)
    values = {at(table): compared}

    patient, at_last = table.plan(values=values, patient=True), table.plan(values=values)

    assert (patient.waiting is not None) == waits
    assert [item.kind for item in at_last.versions[-1].evidence][:1] == ["unproven"]
    assert len(at_last.versions[-1].schema.columns) == 4


def test_two_columns_with_the_same_values_are_left_in_doubt() -> None:
    table = Table()
    table.drop_column("z")
    table.add_column(column("y", TEXT))
    table.add_column(column("x", TEXT))
    table.row()
    pairs = tuple(Pair(old="z", new=name, equal=9, distinct=9, different=0) for name in "yx")

    plan = table.plan(values={at(table): Compared(rows=9, least=3, pairs=pairs)})

    assert "values" not in {item.kind for item in plan.versions[-1].evidence}


def test_what_is_declared_is_not_compared() -> None:
    table, _ = renamed()
    contrary = Compared(rows=9, least=3, pairs=(Pair(old="z", new="y", equal=0, distinct=0, different=9),))

    plan = table.plan(replace(ROUTE, renames={"z": "y"}), values={at(table): contrary}, patient=True)

    assert [item.kind for item in plan.versions[-1].evidence] == ["declared"]
