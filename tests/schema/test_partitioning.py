"""How the operator says what a table is partitioned by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_sync.core.schema.partitioning import (
    UNITS,
    UNPARTITIONED,
    Bucket,
    Identity,
    PartitionField,
    Partitioning,
    PartitioningError,
    Period,
    Truncate,
)

_COLUMNS = st.text(min_size=1, max_size=8) | st.sampled_from(["day", "a b", "a,b", "a`b", "a.b", "bucket(16", ")"])
_NUMBERS = st.integers(1, 2**31 - 1)
_FIELDS = st.one_of(
    st.builds(Identity, column=_COLUMNS),
    st.builds(Period, unit=st.sampled_from(UNITS), column=_COLUMNS),
    st.builds(Bucket, count=_NUMBERS, column=_COLUMNS),
    st.builds(Truncate, width=_NUMBERS, column=_COLUMNS),
)


def _says_something_once(item: PartitionField) -> object:
    return ("period", item.column) if isinstance(item, Period) else item


_PARTITIONINGS = st.lists(_FIELDS, max_size=5, unique_by=_says_something_once).map(
    lambda fields: Partitioning(fields=tuple(fields))
)


@given(_PARTITIONINGS)
def test_what_is_written_is_read_again(partitioning: Partitioning) -> None:
    assert Partitioning.parse([str(partitioning)] if partitioning.fields else []) == partitioning


@given(_PARTITIONINGS)
def test_it_does_not_matter_that_yaml_cuts_a_list_at_its_commas(partitioning: Partitioning) -> None:
    assert str(Partitioning.parse(str(partitioning).split(",") if partitioning.fields else [])) == str(partitioning)


@given(st.lists(st.text(alphabet="aday(),` 16bucket", max_size=12), max_size=4))
def test_any_text_is_read_or_refused_with_the_place(texts: list[str]) -> None:
    refused, found = None, UNPARTITIONED
    try:
        found = Partitioning.parse(texts)
    except PartitioningError as error:
        refused = error.index

    assert refused in (None, *range(len(texts)))
    assert refused is not None or Partitioning.parse([str(found)] if found.fields else []) == found


def test_the_example_of_the_reference() -> None:
    assert Partitioning.parse(["day(created_at)", "bucket(16", "id)", "region"]) == Partitioning(
        fields=(Period(unit="day", column="created_at"), Bucket(count=16, column="id"), Identity(column="region"))
    )


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("region", "region"),
        ("`region`", "region"),
        (" day( created_at ) ", "day(created_at)"),
        ("bucket( 016,id )", "bucket(16, id)"),
        ("truncate(4,`my name`)", "truncate(4, `my name`)"),
        ("`a,b`,`a``b`", "`a,b`, `a``b`"),
        ("day, `day(day)`", "day, `day(day)`"),
        ("Größe", "Größe"),
        ("a.b", "a.b"),
    ],
)
def test_one_partitioning_has_one_text(text: str, canonical: str) -> None:
    assert str(Partitioning.parse([text])) == canonical


_REFUSED = {
    "": (0, "has no column where one is expected"),
    "a,,b": (0, "has no column where one is expected"),
    "a,": (0, "has no column where one is expected"),
    "a b": (0, "has 'b' behind a field"),
    "a)": (0, "has ')' behind a field"),
    "`a`(b)": (0, "has '(' behind a field"),
    "``": (0, "names a column without a name"),
    "day(``)": (0, "names a column without a name"),
    "day(`a)": (0, "opens a name with `"),
    "day(": (0, "names no column in day(...)"),
    "day()": (0, "names no column in day(...)"),
    "day(a": (0, "has no closing bracket behind day(a"),
    "day(a b)": (0, "has 'b' where the bracket closes"),
    "bucket(id)": (0, "does not say how many buckets"),
    "bucket(0, id)": (0, "does not say how many buckets"),
    "bucket(-1, id)": (0, "does not say how many buckets"),
    "bucket(2147483648, id)": (0, "does not say how many buckets"),
    "bucket(١٦, id)": (0, "does not say how many buckets"),
    "bucket(16)": (0, "does not say how many buckets"),
    "bucket(16, )": (0, "names no column in bucket(...)"),
    "truncate(name, 4)": (0, "does not say how much is kept"),
    "DAY(a)": (0, "has the unknown transform 'DAY'; did you mean day?"),
    "identity(a)": (0, "name the column alone"),
    "zorder(a)": (0, "has the unknown transform 'zorder'; there are year"),
    "a|b|a": (2, "names a twice"),
    "day(a)|bucket(4|a)|hour(a)": (3, "names day(a) and hour(a), of which Iceberg takes one"),
    "bucket(4|a)|bucket(x|b)": (2, "does not say how many buckets"),
}


@pytest.mark.parametrize("written", _REFUSED)
def test_is_refused_at_its_place(written: str) -> None:
    """The texts of the list stand between bars."""
    index, reason = _REFUSED[written]
    with pytest.raises(PartitioningError) as refusal:
        Partitioning.parse(written.split("|"))

    assert reason in refusal.value.reason
    assert refusal.value.index == index


def test_two_transforms_of_one_column_may_stand_beside_each_other() -> None:
    text = "a, day(a), bucket(4, a), bucket(8, a), truncate(2, a)"
    assert str(Partitioning.parse([text])) == text
