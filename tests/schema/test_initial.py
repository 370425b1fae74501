"""What rows that are there already read in a new column."""

from __future__ import annotations

import pytest

from cdc_sync.core.schema.initial import MISSING, Assumed, InitialValue, Known, Missing, Unknown, initial_value
from cdc_sync.core.schema.observed import ObservedColumn
from cdc_sync.core.schema.types import BOOLEAN, INT32, Default


def read(
    *,
    optional: bool = True,
    default: Default = None,
    suspect: bool = False,
    declared: Default | Missing = MISSING,
    first_row_holds_default: bool = False,
) -> InitialValue:
    type_ = BOOLEAN if isinstance(default, bool) else INT32
    column = ObservedColumn(name="n", type=type_, optional=optional, default=default, suspect_default=suspect)
    return initial_value(column, declared=declared, first_row_holds_default=first_row_holds_default)


def test_a_column_without_default_may_have_had_one_when_it_was_added() -> None:
    assert read() == Assumed(value=None)


@pytest.mark.parametrize("optional", [True, False])
def test_a_constant_default_may_have_been_set_or_changed_since(optional: bool) -> None:
    assert read(optional=optional, default=7) == Assumed(value=7)


def test_a_column_that_accepts_no_null_and_has_no_default_is_unknown() -> None:
    assert read(optional=False) == Unknown(reason="it accepts no NULL and has no default")


@pytest.mark.parametrize("default", [0, "", "1970-01-01T00:00:00Z", "00000000-0000-0000-0000-000000000000", True])
def test_what_a_function_default_arrives_as_is_never_copied(default: Default) -> None:
    assert isinstance(read(default=default, suspect=True), Unknown)
    assert isinstance(read(default=default, suspect=True, optional=False), Unknown)


def test_the_first_row_can_show_that_a_suspect_default_is_none_of_a_function_but_only_without_null() -> None:
    assert read(default=0, suspect=True, optional=False, first_row_holds_default=True) == Assumed(value=0)
    assert isinstance(read(default=0, suspect=True, first_row_holds_default=True), Unknown)


def test_false_is_no_function() -> None:
    assert read(default=False, suspect=True) == Assumed(value=False)
    assert isinstance(read(default=0, suspect=True), Unknown)


def test_a_default_that_could_not_be_read_is_unknown() -> None:
    assert read(suspect=True, first_row_holds_default=True, optional=False) == Unknown(
        reason="its default could not be read"
    )


@pytest.mark.parametrize("declared", [None, 5, "x", False])
def test_what_is_declared_always_wins(declared: Default) -> None:
    assert read(declared=declared, default=7) == Known(value=declared)
    assert read(declared=declared, default=0, suspect=True) == Known(value=declared)
