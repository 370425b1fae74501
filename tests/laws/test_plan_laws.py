"""However events are split and interleaved, a table gets the same versions, and in the end the source's rows."""

from __future__ import annotations

import os
from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc_sync.core.history.version import Version
from cdc_sync.testing import encode
from tests.laws.sources import Life, lives
from tests.laws.world import World

law = settings(
    max_examples=int(os.environ.get("CDC_SYNC_EXAMPLES", "80")),
    deadline=None,
    derandomize=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
steps = st.lists(st.integers(0, 2**16), max_size=6)
"""How far the producer and the reader get in each step, as one integer."""


def outcome(world: World) -> tuple[tuple[Version, ...], str | None, str | None]:
    versions, stop = world.recorded.versions if world.recorded else (), world.state.stop
    return versions, stop.reason if stop else None, stop.at if stop else None


def source_rows(life: Life) -> list[dict[str, object]]:
    return [{c.field or "": encode(c, row[c.field or ""]) for c in life.columns} for row in life.rows]


def target_rows(done: World) -> list[dict[str, object]]:
    if done.target is None or done.recorded is None:
        return []
    live = done.recorded.head.schema.live
    return [{column.name: row.get(column.id) for column in live} for row in done.target.rows.values()]


def by_text(rows: list[dict[str, object]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


def flush(life: Life) -> None:
    """Write once more, so that the last changes of columns show."""
    life.put(2**20 - 1)


@law
@given(lives, steps)
def test_any_split_into_batches_gives_the_same_versions_and_refusal(life: Life, numbers: list[int]) -> None:
    assert outcome(World.of(life, 1).run(numbers)) == outcome(World.of(life, 1).run([]))


def test_a_drop_behind_a_snapshot_is_told_alike_whatever_was_read_together() -> None:
    life = Life([1, 594, 0, 6772, 0])
    assert outcome(World.of(life, 2).run([415])) == outcome(World.of(life, 2).run([]))


@law
@given(lives, st.integers(2, 3), steps)
def test_any_interleaving_of_partitions_gives_the_same_versions_and_refusal(
    life: Life, partitions: int, numbers: list[int]
) -> None:
    assert outcome(World.of(life, partitions).run(numbers)) == outcome(World.of(life, partitions).run([]))


@law
@given(lives, st.integers(1, 3), steps)
def test_in_the_end_the_target_holds_the_rows_of_the_source(life: Life, partitions: int, numbers: list[int]) -> None:
    flush(life)
    done = World.of(life, partitions).run(numbers)
    assert done.recorded is not None or done.state.stop is not None
    guessed = done.recorded and any(
        item.kind == "unproven" for version in done.recorded.versions for item in version.evidence
    )
    if done.state.stop is None and not guessed:
        assert by_text(target_rows(done)) == by_text(source_rows(life))


def test_the_generated_lives_reach_what_the_laws_are_about() -> None:
    """Unless versions, refusals and proven ends all occur, the laws above say little."""
    found: Counter[str] = Counter()
    for seed in range(120):
        life = Life([(seed * 7919 + place * 104_729) ** 2 % 2**20 for place in range(2 + seed % 20)])
        flush(life)
        done = World.of(life, 1 + seed % 3).run([(seed + 1) * 7919 * (step + 1) % 2**16 for step in range(8)])
        found["refused" if done.state.stop else "ended"] += 1
        found["truncated"] += done.steps["TruncateTarget"]
        found["again"] += done.again
        versions = done.recorded.versions if done.recorded else ()
        found["versions"] += len(versions)
        kinds = {item.kind for version in versions for item in version.evidence}
        found.update(kinds)
    assert found["versions"] > 160, found
    kinds = {"refused", "ended", "unproven", "position", "truncated", "needs resync"}
    assert min(found[kind] for kind in kinds) > 5, found
    assert found["again"], found
