"""One row for each key where events leave values out: what the batch knows, what it has to ask, and what is lost."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_sync.core.model.offsets import Place
from cdc_sync.spark.columns import CREATED, DELETED, OP, doubt_column, unchanged_column, value_column
from cdc_sync.spark.lineages import Link, Step, carry, find_delete, find_lineages, steps
from cdc_sync.spark.unchanged import FORGOTTEN, UNSENT, count_unknown, doubted, fold, kept_in_doubt
from tests.targets.source_rows import DATA, ID, LARGE, SCHEMA, TAGS, TEXT, Event, N, Source, converted

KEPT = "what the target has"
LONG, OTHER = "long text", "other text"


def _value(row: Any, id_: int) -> Any:
    return KEPT if id_ in LARGE and row[unchanged_column(id_)] else row[value_column(id_)]


def texts(rows: DataFrame) -> dict[int, Any]:
    """The text of each key that is not deleted."""
    return {row[value_column(ID)]: _value(row, TEXT) for row in rows.collect() if not row[DELETED]}


def folded(session: SparkSession, source: Source) -> DataFrame:
    return fold(converted(session, events(source)), SCHEMA, LARGE)


def events(source: Source) -> list[Event]:
    return [event for log in source.logs for event in log]


def held(session: SparkSession, rows: dict[int, str | None]) -> DataFrame:
    """The target's rows; data and tags are NULL."""
    columns = "c1 long, c3 string, c4 binary, c5 array<string>"
    return session.createDataFrame([(key, text, None, None) for key, text in rows.items()], columns)


def known(**rows: str) -> Source:
    """A source whose rows are older than its log."""
    source = Source()
    for key, text in rows.items():
        source.insert(int(key[1:]), text=text)
    source.logs = [[]]
    return source


@pytest.mark.spark
class TestRows:
    def test_a_value_of_the_batch_outlives_the_events_that_leave_it_out(self, session: SparkSession) -> None:
        source = Source()
        source.insert(1, text=LONG, tags=["a", "b", "c"])
        source.update(1, n=5)
        source.update(1, data=b"12345")
        (row,) = folded(session, source).collect()
        assert [_value(row, id_) for id_ in (N, TEXT, DATA, TAGS)] == [5, LONG, b"12345", ["a", "b", "c"]]
        assert (row[CREATED], row[DELETED], row[FORGOTTEN]) == (True, False, False)

    def test_a_value_that_no_event_has_is_the_target_s(self, session: SparkSession) -> None:
        source = known(k1=LONG)
        source.update(1, n=1)
        (row,) = folded(session, source).collect()
        assert [_value(row, id_) for id_ in (N, TEXT, DATA)] == [1, KEPT, None]
        assert (row[CREATED], row[FORGOTTEN]) == (False, False)

    def test_null_is_a_value(self, session: SparkSession) -> None:
        source = known(k1=LONG)
        source.update(1, text=None)
        source.update(1, n=1)
        assert texts(folded(session, source)) == {1: None}

    def test_a_delete_ends_what_was_known(self, session: SparkSession) -> None:
        source = known(k1=LONG, k2=LONG)
        source.update(1, text=OTHER)
        source.delete(1)
        source.update(2, id=1)
        (row,) = (row for row in folded(session, source).collect() if row[value_column(ID)] == 1)
        assert (row[value_column(ID)], row[FORGOTTEN], _value(row, TEXT)) == (1, True, KEPT)

    def test_a_row_that_is_deleted_leaves_nothing_open(self, session: SparkSession) -> None:
        source = known(k1=LONG)
        source.update(1, n=1)
        source.delete(1)
        (row,) = folded(session, source).collect()
        assert (row[DELETED], row[FORGOTTEN], *(row[unchanged_column(id_)] for id_ in LARGE)) == (
            True,
            False,
            False,
            False,
            False,
        )

    def test_rows_that_would_be_stored_with_null_are_counted(self, session: SparkSession) -> None:
        source = known(k1=LONG, k2=LONG, k3=LONG, k4=LONG)
        source.update(1, n=1)
        source.update(2, n=1)
        source.delete(3)
        source.update(4, id=3)
        rows = folded(session, source)
        assert count_unknown(rows, SCHEMA, LARGE, held(session, {1: LONG, 3: LONG, 4: LONG})) == 2


@pytest.mark.spark
class TestDoubts:
    """Texts of which an event shows NULL that may be unchanged: Source leaves them out, and the doubt is added here."""

    @staticmethod
    def kept(session: SparkSession, source: Source, before: dict[int, str | None]) -> bool:
        found = converted(session, events(source))
        doubt = F.when(F.col(unchanged_column(TEXT)) & (F.col(OP) != "d"), F.lit(UNSENT))
        found = found.withColumn(doubt_column(TEXT), doubt)
        assert doubted(found, ()) == {}
        assert doubted(found, [TEXT]) == ({UNSENT: {TEXT}} if _leaves_out_text(source) else {})
        return TEXT in kept_in_doubt(found, SCHEMA, [TEXT], LARGE, held(session, before))

    def test_a_value_of_the_target_is_kept_in_doubt_and_null_is_not(self, session: SparkSession) -> None:
        source = known(k1=LONG, k2=LONG)
        source.update(1, n=1)
        assert self.kept(session, source, {1: LONG, 2: None})
        assert not self.kept(session, source, {1: None, 2: LONG})
        assert not self.kept(session, source, {2: LONG}), "a row that is not there keeps nothing"

    def test_what_the_batch_says_later_ends_the_doubt_and_earlier_begins_it(self, session: SparkSession) -> None:
        source = known(k1=LONG)
        source.update(1, n=1)
        source.update(1, text=OTHER)
        assert not self.kept(session, source, {1: LONG})
        source.update(1, n=2)
        assert self.kept(session, source, {1: None})
        source.update(1, text=None)
        assert not self.kept(session, source, {1: LONG})

    def test_a_delete_ends_it_and_another_row_begins_anew(self, session: SparkSession) -> None:
        source = known(k1=LONG)
        source.update(1, n=1)
        source.delete(1)
        assert not self.kept(session, source, {1: LONG})
        source.insert(1, text=None)
        assert not self.kept(session, source, {1: LONG})

    def test_a_row_that_came_from_another_key_counts(self, session: SparkSession) -> None:
        source = known(k1=LONG)
        source.update(1, id=2)
        assert self.kept(session, source, {1: LONG})


def _leaves_out_text(source: Source) -> bool:
    return any(event.op != "d" and TEXT not in event.row for event in events(source))


def resolved(
    session: SparkSession, source: Source, before: dict[int, str | None], *, starts: dict[int, int] | None = None
) -> dict[int, Any]:
    """The texts after a batch, where the target held others before the first event."""
    everything = converted(session, events(source))
    found = find_lineages(everything, SCHEMA, LARGE, starts)
    assert found.unlinked == ()
    given = carry(everything, SCHEMA, LARGE, found, held(session, before), starts)
    batch = [event for event in events(source) if event.offset >= (starts or {}).get(event.partition, 0)]
    return texts(fold(converted(session, batch), SCHEMA, LARGE, given))


@pytest.mark.spark
class TestKeyUpdates:
    @pytest.mark.parametrize("partitions", [1, 2])
    def test_the_values_are_those_of_the_row_under_the_old_key(self, session: SparkSession, partitions: int) -> None:
        source = Source(partitions)
        source.rows = {1: {1: 1, TEXT: LONG}}
        source._position = 1
        source.update(1, id=2)
        source.update(2, n=3)
        assert resolved(session, source, {1: LONG}) == {2: LONG}

    def test_an_event_of_the_old_key_knows_better_than_the_target(self, session: SparkSession) -> None:
        source = known(k1=LONG)
        source.update(1, text=OTHER)
        source.update(1, id=2)
        assert resolved(session, source, {1: LONG}) == {2: OTHER}

    def test_a_row_is_followed_from_key_to_key(self, session: SparkSession) -> None:
        source = known(k1=LONG, k5=OTHER)
        source.update(1, id=2)
        source.update(5, id=1)
        source.update(2, id=3)
        source.update(3, id=5)
        source.update(1, id=3)
        assert resolved(session, source, {1: LONG, 5: OTHER}) == {5: LONG, 3: OTHER}

    def test_two_rows_change_places(self, session: SparkSession) -> None:
        source = known(k1=LONG, k2=OTHER)
        source.update(1, id=0)
        source.update(2, id=1)
        source.update(0, id=2)
        assert resolved(session, source, {1: LONG, 2: OTHER}) == {1: OTHER, 2: LONG}

    def test_null_is_carried_too(self, session: SparkSession) -> None:
        source = known(k1=LONG)
        source.update(1, id=2)
        assert resolved(session, source, {1: None}) == {2: None}

    def test_what_neither_events_nor_target_know_stays_open(self, session: SparkSession) -> None:
        source = known(k1=LONG)
        source.update(1, id=2)
        assert resolved(session, source, {}) == {2: KEPT}

    def test_an_event_that_comes_again_does_not_change_the_row_it_made(self, session: SparkSession) -> None:
        source = known(k1=LONG)
        source.update(1, id=2)
        assert resolved(session, source, {1: "a new row under the old key", 2: LONG}) == {2: KEPT}

    def test_a_key_update_that_comes_twice_is_linked_twice(self, session: SparkSession) -> None:
        source = known(k1=LONG)
        source.update(1, id=2)
        source.repeat(source.position)
        assert resolved(session, source, {1: LONG}) == {2: LONG}

    def test_events_before_the_batch_tell_what_a_delete_there_took(self, session: SparkSession) -> None:
        source = known(k1=LONG)
        source.update(1, text=OTHER)
        source.update(1, id=2)
        assert resolved(session, source, {1: LONG}, starts={0: 2}) == {2: OTHER}

    def test_a_create_without_its_delete_is_reported(self, session: SparkSession) -> None:
        source = known(k1=LONG, k2=LONG, k3=LONG)
        source.update(1, id=4)
        source.update(2, id=5)
        source.update(3, id=6, text=OTHER, data=None, tags=None)
        creates = [event for event in events(source) if event.op == "c"]
        found = find_lineages(converted(session, creates), SCHEMA, LARGE)
        assert (found.steps, found.unlinked) == ((), (place(1), place(3)))
        found = find_lineages(converted(session, creates), SCHEMA, LARGE, {0: 2})
        assert found.unlinked == (place(3),)

    @pytest.mark.parametrize("position", [0, 7], ids=["without positions", "with one position for all"])
    def test_one_record_may_be_both_halves(self, session: SparkSession, position: int) -> None:
        more = {"partition": 0, "position": position}
        both = [
            Event(op=op, offset=offset, row={ID: key}, **more)
            for offset, (old, new) in enumerate([(1, 2), (5, 6), (2, 3)])
            for op, key in (("d", old), ("c", new))
        ]
        everything = converted(session, both)
        found = find_lineages(everything, SCHEMA, LARGE)
        assert found.unlinked == ()
        given = carry(everything, SCHEMA, LARGE, found, held(session, {1: LONG, 5: OTHER}))
        assert texts(fold(everything, SCHEMA, LARGE, given)) == {3: LONG, 6: OTHER}

    def test_the_delete_of_a_create_is_found(self, session: SparkSession) -> None:
        source = known(k1=LONG, k2=LONG)
        source.update(1, id=3)
        source.update(2, id=1)
        source.repeat(source.position)
        everything = converted(session, events(source))
        found = [find_delete(everything, place(offset)) for offset in (1, 3)]
        assert found == [place(0), place(4)]
        only = converted(session, events(source)[1:2])
        assert find_delete(only, place(1)) is None

    def test_a_create_before_the_batch_is_reported_where_its_row_goes_on(self, session: SparkSession) -> None:
        source = known(k1=LONG, k5=LONG)
        source.update(1, id=2)
        source.update(2, id=3)
        without_first_delete = converted(session, events(source)[1:])
        assert find_lineages(without_first_delete, SCHEMA, LARGE, {0: 3}).unlinked == (place(1),)
        assert find_lineages(without_first_delete, SCHEMA, LARGE, {0: 4}).unlinked == ()

    @pytest.mark.parametrize("position", [0, 7], ids=["without positions", "with one position for all"])
    def test_what_the_position_does_not_tell_is_not_guessed(self, session: SparkSession, position: int) -> None:
        more = {"partition": 0, "position": position}
        several = [
            Event(op="d", offset=0, row={1: 1}, **more),
            Event(op="d", offset=1, row={1: 2}, **more),
            Event(op="c", offset=2, row={1: 3}, **more),
        ]
        found = find_lineages(converted(session, several), SCHEMA, LARGE)
        assert (found.steps, found.unlinked) == ((), (place(2),))

    def test_ten_thousand_rows_change_their_keys_in_one_batch(self, session: SparkSession) -> None:
        source = known(**{f"k{key}": f"{LONG} {key}" for key in range(10_000)})
        for key in range(10_000):
            source.update(key, id=key + 20_000)
        after = resolved(session, source, {key: f"{LONG} {key}" for key in range(10_000)})
        assert after == {key + 20_000: f"{LONG} {key}" for key in range(10_000)}


def place(offset: int, partition: int = 0) -> Place:
    return Place(partition=partition, offset=offset)


def link(donor: int, receiver: int, create: int | None = None) -> Link:
    return Link(donor=place(donor), receiver=place(receiver), create=place(create or receiver))


def step(segment: int, chain: int, depth: int) -> Step:
    return Step(segment=place(segment), chain=chain, depth=depth, create=place(segment) if depth else None)


def test_steps_follow_each_row_from_its_first_segment() -> None:
    links = [link(5, 9), link(0, 2), link(2, 5), link(1, 3)]
    assert steps(links) == (
        step(0, 0, 0),
        step(2, 0, 1),
        step(5, 0, 2),
        step(9, 0, 3),
        step(1, 1, 0),
        step(3, 1, 1),
    )


def test_the_first_create_of_a_segment_takes_over() -> None:
    assert steps([link(7, 2, create=9), link(0, 2)]) == (step(0, 0, 0), step(2, 0, 1))


def test_links_in_a_circle_end() -> None:
    assert steps([link(1, 2), link(2, 1)]) == ()
