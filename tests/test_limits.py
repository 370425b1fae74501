"""What is beyond a limit is refused with the limit's name; time windows count what happens."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_sync.config import Limits as ConfiguredLimits
from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.limits import (
    Limits,
    Window,
    too_large_to_divide,
    too_large_to_rewrite,
    too_long,
    too_many_tables,
    too_many_versions,
    too_much,
)
from cdc_sync.core.schema.policy import Policy
from cdc_sync.testing import INT32, TEXT, array, column, envelope_schema, struct

LIMITS: Limits = ConfiguredLimits(max_message_bytes=100, max_columns=3, max_depth=4, max_name_length=10)


def envelope(*columns: ConnectSchema) -> ConnectSchema:
    return envelope_schema("shop.public.t", columns)


def deep(levels: int) -> ConnectSchema:
    schema = INT32
    for _ in range(levels - 1):
        schema = array(schema)
    return schema


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ([column(str(i), TEXT) for i in range(4)], "there are more columns than limits.max_columns = 3"),
        (
            [column("a", struct("s", *(column(str(i), TEXT) for i in range(4))))],
            "there are more fields in a column than limits.max_columns = 3",
        ),
        ([column("a", deep(5))], "a column is nested deeper than limits.max_depth = 4"),
        ([column("é" * 11, TEXT)], "a column's name is longer than limits.max_name_length = 10"),
        (
            [column("a", array(struct("s", column("n" * 11, TEXT))))],
            "a column's name is longer than limits.max_name_length = 10",
        ),
    ],
)
def test_a_row_beyond_a_limit_is_refused_with_the_limits_name(columns: list[ConnectSchema], reason: str) -> None:
    for schema in (envelope(*columns), struct("shop.public.t.Value", *columns)):
        found = too_much(schema, LIMITS)
        assert found is not None
        assert found.reason == reason
        assert found.remedy.startswith("raise limits.")


def test_a_row_at_the_limits_passes() -> None:
    columns = [column("é" * 10, TEXT), column("deep", deep(4)), column("c", array(struct("s", column("x", TEXT))))]
    assert too_much(envelope(*columns), LIMITS) is None


def test_the_envelopes_own_fields_do_not_count() -> None:
    assert too_much(envelope(column("id", INT32)), LIMITS) is None


def test_the_name_of_a_table_has_its_limit() -> None:
    table = TableId(database="d" * 10, schema="", table="t")
    assert too_long(table, LIMITS) is None
    assert "limits.max_name_length = 10" in str(too_long(replace(table, table="t" * 11), LIMITS))


def test_a_rate_that_is_exceeded_is_told_with_its_limit() -> None:
    assert "limits.max_versions_per_hour = 100" in too_many_versions(LIMITS).reason
    assert "limits.max_new_tables_per_hour = 1000" in too_many_tables(LIMITS).reason


class Counting:
    """Limits that count how often a part of a schema is held against them."""

    max_message_bytes = max_columns = max_name_length = 1_000
    max_versions_per_hour = max_new_tables_per_hour = max_dead_letters_per_hour = 1_000
    looks = 0

    @property
    def max_depth(self) -> int:
        self.looks += 1
        return 32


def test_every_part_of_the_widest_schema_is_looked_at_once() -> None:
    width = Counting.max_columns
    wide = envelope(*(column(f"c{i}", struct("s", column("x", TEXT), column("y", deep(20)))) for i in range(width)))
    limits = Counting()
    assert too_much(wide, limits) is None
    assert limits.looks == 1 + width * (1 + 1 + 20), "the row; of each column its struct, `x`, and `y` in its depth"


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_window_grants_what_is_left_and_forgets_after_its_time() -> None:
    clock = Clock()
    window = Window(3, seconds=10, clock=clock)
    assert window.take(2) == 2
    clock.now = 4
    assert window.take(5) == 1
    assert window.take() == 0
    assert window.room() == 0
    clock.now = 10
    assert window.room() == 2, "looking takes nothing"
    assert window.take(5) == 2


@given(st.integers(0, 5), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4)), max_size=20))
def test_never_more_than_the_limit_within_the_time(limit: int, calls: list[tuple[int, int]]) -> None:
    clock = Clock()
    window = Window(limit, seconds=10, clock=clock)
    granted: list[float] = []
    for later, wanted in calls:
        clock.now += later
        granted += [clock.now] * window.take(wanted)
        assert sum(at > clock.now - 10 for at in granted) <= limit


def test_threads_share_a_window() -> None:
    window = Window(100)
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(sum(window.take() for _ in range(50)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 100


def test_a_large_target_is_not_rewritten_without_asking() -> None:
    policy = Policy(rewrite_limit=1000)
    assert too_large_to_rewrite(policy, rows=10, size=1000) is None
    found = too_large_to_rewrite(policy, rows=10, size=5 * 1024**3)
    assert found is not None
    assert "10 rows, 5368709120 bytes, which may take about 5 minutes" in found.reason
    assert found.remedy.startswith("set policy.rewrite_limit: 5368709120 or more")
    assert too_large_to_divide(policy, rows=None, size=1000) is None
    asked = too_large_to_divide(policy, rows=None, size=1001)
    assert asked is not None
    assert "has to be rewritten: 1001 bytes" in asked.reason
    assert asked.remedy.startswith("set policy.rewrite_limit: 1001 or more")
