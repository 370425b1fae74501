"""Which partitions a marker names, and where they begin."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.progress import Progress
from cdc_sync.errors import TargetError
from cdc_sync.runtime.bounds import progress_after


class _Broker:
    def beginnings(self, topics: Collection[str]) -> Mapping[str, Mapping[int, int]]:
        return {topic: {0: 0, 1: 0, 2: 70} for topic in topics}

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        return dict.fromkeys(topics, "T")


def _after(before: Progress, *partitions: int) -> Progress:
    context: Any = SimpleNamespace(kafka=_Broker())
    held = before.offsets.get("t", {})
    ranges = [OffsetRange(topic="t", partition=item, start=held.get(item, 0), end=9) for item in partitions]
    return progress_after(context, before, 1, ranges, {})


def test_the_first_marker_names_every_partition_where_the_table_began() -> None:
    marker = _after(Progress(version=1), 0)
    assert marker.offsets == {"t": {0: 9, 1: 0, 2: 70}}
    assert marker.whole == {"t"}


def test_a_later_marker_names_a_new_partition_only_once_it_is_read() -> None:
    before = Progress(version=1, offsets={"t": {0: 5, 1: 0}}, whole=frozenset({"t"}))
    assert _after(before, 0).offsets == {"t": {0: 9, 1: 0}}
    assert _after(before, 0, 2).offsets == {"t": {0: 9, 1: 0, 2: 9}}


def test_the_marker_of_an_earlier_version_is_whole_once_it_names_all() -> None:
    before = Progress(version=1, offsets={"t": {0: 5, 1: 3}})
    assert _after(before, 0).whole == frozenset()
    assert _after(before, 2).whole == {"t"}


def test_what_the_table_holds_is_not_written_again() -> None:
    context: Any = SimpleNamespace(kafka=_Broker())
    before = Progress(version=1, offsets={"t": {0: 5}})
    with pytest.raises(TargetError, match=r"Cannot write t\[0\] from 4: it is held up to 5"):
        progress_after(context, before, 1, [OffsetRange(topic="t", partition=0, start=4, end=9)], {})


def test_the_id_of_a_topic_that_the_table_knows_stays_for_the_next_look_to_find_another() -> None:
    assert _after(Progress(version=1), 0).topic_ids == {"t": "T"}
    assert _after(Progress(version=1, topic_ids={"t": "before"}), 0).topic_ids == {"t": "before"}
