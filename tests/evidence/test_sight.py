"""What readings tell of events whose connector adjusts names, in any way, against histories walked one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cdc_sync.core.lineage.adjusted import possible_adjustments
from cdc_sync.core.lineage.catalogue import CatalogueReading, Moment
from cdc_sync.core.lineage.sight import sight
from cdc_sync.core.migration.routes import LeftOut
from tests.evidence.test_catalogue import Database, change
from tests.evidence.test_laying import NONE, SECRET, secret, told

ODD = {"a": "a-b", "b": "a_b", "c": "a+b", "d": "1d", "e": "_d", "f": "a_u002db", "g": "naïve"}
NAMES = [item.name for item in possible_adjustments(())]


@pytest.mark.parametrize(
    ("column", "fields"),
    [
        ("plain", {"plain"}),
        ("a-b", {"a-b", "a_b", "a_u002db"}),
        ("a_b", {"a_b", "a_u005fb"}),
        ("1st", {"1st", "_1st", "_st", "_u0031st"}),
        ("x\U0001f600", {"x\U0001f600", "x__", "x_ud83d_ude00"}),
    ],
)
def test_a_name_becomes_one_of_these_fields(column: str, fields: set[str]) -> None:
    assert {name(column) for name in NAMES} == fields
    for field in fields:
        assert field in {item.name(column) for item in possible_adjustments([field])}


def test_fields_that_avro_does_not_allow_were_not_adjusted() -> None:
    assert [item.name("a-b") for item in possible_adjustments(["id", "x-y"])] == ["a-b"]


@settings(max_examples=400, deadline=None)
@given(st.data(), st.sampled_from(NAMES), st.sampled_from([None, NONE, SECRET]))
def test_no_column_is_told_wrongly_whatever_a_connector_makes_of_names(
    data: st.DataObject, adjusted: Callable[[str], str], left_out: LeftOut | None
) -> None:
    hidden = data.draw(st.frozensets(st.integers(1, 7), max_size=0 if left_out == NONE else 2))
    base = Database()
    base.columns, base.highest = dict(enumerate("abcd", 1)), 4
    base.commit({1, 2, 3, 4}, 0)
    readings: list[CatalogueReading] = []
    events: list[tuple[Moment, dict[int, str]]] = []
    for _ in range(data.draw(st.integers(3, 12))):
        kind = data.draw(st.sampled_from(["change", "row", "row", "read"]))
        if kind == "read":
            readings.append(odd(base, hidden))
            continue
        touched = change(base, data) if kind == "change" else set()
        lsn = base.lsn + 5
        commit = base.commit(touched, data.draw(st.sampled_from([0, 1, 5_000, 2_000_000])))
        if kind == "row":
            events.append((Moment(lsn=lsn, commit=commit), dict(base.columns)))
    readings.append(odd(base, hidden))
    for moment, columns in events:
        after = next(item for item in readings if item.begun >= moment.lsn)
        before = next((item for item in reversed(readings) if item.ended <= moment.lsn), None)
        shown = {number: adjusted(ODD[name]) for number, name in columns.items() if number not in hidden}
        if len({*shown.values()}) == len(shown):  # a connector stops at two fields of one name
            event(f"certain: {checked(before, after, shown, moment, left_out)}")


def odd(base: Database, hidden: frozenset[int]) -> CatalogueReading:
    plain = told(base.read(times=True))
    attributes = tuple(item if item.dropped else replace(item, name=ODD[item.name]) for item in plain.attributes)
    return secret(replace(plain, attributes=attributes), hidden)


def checked(
    before: CatalogueReading | None,
    after: CatalogueReading,
    shown: Mapping[int, str],
    moment: Moment,
    left_out: LeftOut | None,
) -> int:
    """Compare what is told with what an event shows, and return how many columns are certain."""
    found = sight(before, after, [*shown.values()], moment, left_out)
    if found is None:
        assert not moment.is_behind(after.named) or not shown
        return 0
    for number, name in shown.items():
        assert after.token(number) in found.tokens[name]
        assert after.token(number) not in found.hidden | found.gone
    return sum(found.one(name) is not None for name in shown.values())
