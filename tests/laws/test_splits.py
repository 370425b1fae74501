"""Any split of captured topics into batches gives the same tables and the same history bytes as one batch.

CDC_SYNC_SPLITS=200 asks for that many examples, drawn anew; the few of every test run are always the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, note, settings
from hypothesis import strategies as st

from cdc_sync.local.kafka import KafkaServer
from cdc_sync.testing import Record
from tests.conftest import Produce
from tests.corpus.reader import CAPTURES, topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.corpus.runs import Ended

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(7200)]

_ASKED = os.environ.get("CDC_SYNC_SPLITS")
_EXAMPLES = int(_ASKED or 1)

# A batch of 250 columns is compiled for seconds; the few examples of every run do without.
_DEAR = ("inv.wide",)
_PREFIX = "split"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Some topics of one capture, and where each batch ends in each of them."""

    capture: str
    ends: tuple[Mapping[str, int], ...]

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted(self.ends[-1]))


def _names(capture: str) -> list[str]:
    return sorted(name for name in topics(capture) if _ASKED or not name.endswith(_DEAR))


@st.composite
def splits(draw: st.DrawFn) -> Split:
    capture = draw(st.sampled_from(CAPTURES))
    chosen = draw(st.lists(st.sampled_from(_names(capture)), min_size=1, max_size=3, unique=True))
    batches = draw(st.integers(2, 5))
    cuts = {}
    for topic in chosen:
        size = len(topics(capture)[topic])
        # A topic may stand still in a batch.
        inner = sorted(draw(st.lists(st.integers(0, size), min_size=batches - 1, max_size=batches - 1)))
        cuts[topic] = [*inner, size]
    return Split(
        capture=capture, ends=tuple({topic: cuts[topic][batch] for topic in chosen} for batch in range(batches))
    )


def _one_record_at_a_time(capture: str, topic: str) -> Split:
    return Split(capture=capture, ends=tuple({topic: end} for end in range(1, len(topics(capture)[topic]) + 1)))


RunSplit = Callable[[Split], "Ended"]


@pytest.fixture(scope="module")
def run_split(
    kafka: KafkaServer, produce: Produce, _spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """Run the batches of a split through the real job, into a memory target and a state folder of their own."""
    from cdc_sync.spark.session import build_session
    from tests.corpus.runs import corpus_config, ended_in_memory, memory_job, registry_of, session_of_its_own

    with ExitStack() as stack:
        stack.enter_context(session_of_its_own(_spark))

        @cache
        def prepared(capture: str) -> str | None:
            for topic, messages in topics(capture).items():
                produce(f"{_PREFIX}.{topic}", [Record(key=message.key, value=message.value) for message in messages])
            return stack.enter_context(registry_of(capture))

        def run(split: Split) -> Ended:
            config = corpus_config(
                split.capture,
                folder=tmp_path_factory.mktemp("split"),
                servers=kafka.bootstrap_servers,
                target="memory",
                registry=prepared(split.capture),
                pattern=rf"{_PREFIX}\..*",
                told=False,
                compiled=len(split.ends) == 1,
            )
            with memory_job(config, build_session(config)) as (job, context):
                for ends in split.ends:
                    job.process({(f"{_PREFIX}.{topic}", 0): end for topic, end in ends.items() if end})
                return ended_in_memory(job, context)

        yield run


@pytest.fixture(scope="module")
def in_one_batch(run_split: RunSplit) -> Callable[[str, str], Ended]:
    """Return how one topic ends when it is read at once; each is read once."""

    @cache
    def run(capture: str, topic: str) -> Ended:
        return run_split(Split(capture=capture, ends=({topic: len(topics(capture)[topic])},)))

    return run


@settings(
    max_examples=_EXAMPLES,
    deadline=None,
    derandomize=_ASKED is None,
    database=None,
    # An example takes seconds: what fails is reported as it was drawn.
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(split=splits())
@example(split=_one_record_at_a_time("postgres-json", "pgj.inv.toast"))
@example(split=_one_record_at_a_time("postgres-json", "pgj.inv.newname"))
def test_a_split_gives_what_one_batch_gives(
    split: Split, run_split: RunSplit, in_one_batch: Callable[[str, str], Ended]
) -> None:
    whole = [in_one_batch(split.capture, topic) for topic in split.topics]

    found = run_split(split)

    note(f"{split.capture}: {split.ends}")
    assert found.history == _united(end.history for end in whole), "the same history bytes"
    assert _states(found) == _united(_states(end) for end in whole), "the same pauses, at the same records"
    assert _tables(found) == _united(_tables(end) for end in whole), "the same tables"
    assert set(found.aside) == {item for end in whole for item in end.aside}
    assert found.other_records == _summed(end.other_records for end in whole)


def _states(ended: Ended) -> dict[str, tuple[object, ...]]:
    return {
        table: (status.state, status.reason, status.paused_at, status.version)
        for table, status in ended.statuses.items()
    }


def _tables(ended: Ended) -> dict[str, tuple[object, ...]]:
    # NaN is not itself, but it is written alike.
    return {table: (image.columns, repr(sorted(map(repr, image.rows)))) for table, image in ended.images.items()}


def _united(parts: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in parts:
        found |= part
    return found


def _summed(parts: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        for kind, count in part.items():
            found[kind] = found.get(kind, 0) + count
    return found
