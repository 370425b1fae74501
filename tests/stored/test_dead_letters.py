"""Dead letters in a pipeline's store: kept once, counted without being read, let go with a trace."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_sync.core.debezium import refusals
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.dead_letters import DeadLetter, DeadLetterCount, headers_of, kept_of, parts_of
from cdc_sync.core.model.offsets import offsets_in, runs_of
from cdc_sync.core.planning import problems
from cdc_sync.core.planning.problems import record_code
from cdc_sync.errors import HistoryError
from cdc_sync.storage.dead_letters import DeadLetters
from cdc_sync.storage.documents import Documents

TOPIC = "shop.inv.orders"
FOLDER = f"dead-letters/{TOPIC}/0"


def letter(offset: int, *, partition: int = 0, reason: str = "not JSON", value: bytes = b"\xff") -> DeadLetter:
    return DeadLetter(
        topic=TOPIC,
        partition=partition,
        offset=offset,
        timestamp=1_700_000_000_000,
        code=record_code(reason),
        reason=reason,
        key=None,
        value=value,
    )


@pytest.fixture
def kept(tmp_path: Path) -> DeadLetters:
    return DeadLetters(Documents(str(tmp_path), create=True))


def number(kept: DeadLetters) -> int:
    return sum(count.records for count in kept.counts())


def test_letters_are_kept_whole(kept: DeadLetters, tmp_path: Path) -> None:
    letters = (letter(4), letter(7, value=b"{}"))

    kept.add(letters)

    assert tuple(kept.letters()) == letters
    assert (tmp_path / FOLDER / "4.jsonl").exists()


def test_keeping_the_same_again_changes_nothing(kept: DeadLetters) -> None:
    kept.add((letter(4), letter(7)))
    kept.add((letter(4), letter(7)))

    assert tuple(kept.letters()) == (letter(4), letter(7))
    assert number(kept) == 2


def test_a_shorter_repeated_batch_loses_none(kept: DeadLetters) -> None:
    kept.add((letter(4), letter(7)))
    kept.add((letter(4),))

    assert tuple(kept.letters()) == (letter(4), letter(7))


def test_they_are_counted_once_by_topic_and_reason(kept: DeadLetters) -> None:
    kept.add((letter(4), letter(7), letter(4, partition=1)))
    kept.add((letter(7), letter(8, reason="malformed payload")))

    assert kept.counts() == (
        DeadLetterCount(topic=TOPIC, code=Code.RECORD_MALFORMED, reason="malformed payload", records=1),
        DeadLetterCount(topic=TOPIC, code=Code.RECORD_FOREIGN, reason="not JSON", records=3),
    )
    assert kept.places(TOPIC) == {(0, 4), (0, 7), (0, 8), (1, 4)}


def test_a_reason_may_hold_any_character(kept: DeadLetters) -> None:
    odd = letter(4, reason="line\u2028separator\n\x85")

    kept.add((odd,))
    kept.add((odd,))

    assert tuple(kept.letters()) == (odd,)


def test_a_damaged_line_is_named(kept: DeadLetters, tmp_path: Path) -> None:
    kept.add((letter(4),))
    with (tmp_path / FOLDER / "4.jsonl").open("a") as file:
        file.write("{}\n")

    with pytest.raises(HistoryError, match=r"Cannot read dead letter dead-letters/.*/4\.jsonl:2"):
        tuple(kept.letters())
    assert number(kept) == 1


def test_a_job_that_died_before_the_index_counts_all_when_the_batch_is_repeated(
    kept: DeadLetters, tmp_path: Path
) -> None:
    kept.add((letter(4),))
    index = (tmp_path / FOLDER / "index.json").read_text()
    kept.add((letter(7), letter(9)))
    (tmp_path / FOLDER / "index.json").write_text(index)

    kept.add((letter(7), letter(9)))

    assert number(kept) == 3


@pytest.mark.parametrize("index", [True, False])
def test_what_is_discarded_is_gone_but_for_its_place(kept: DeadLetters, tmp_path: Path, index: bool) -> None:
    kept.add((letter(4), letter(7), letter(9, reason="malformed payload")))
    if not index:
        (tmp_path / FOLDER / "index.json").unlink()

    kept.settle(
        [letter(4).place, letter(9).place], outcome="discarded", by="ann@host", at="now", why="a test wrote them"
    )

    assert tuple(kept.letters()) == (letter(7),)
    assert (kept.find(letter(4).place), kept.find(letter(7).place)) == (None, letter(7))
    assert [(count.reason, count.records) for count in kept.counts()] == [("not JSON", 1)]
    (word,) = (tmp_path / FOLDER / "settled").iterdir()
    said = json.loads(word.read_text())
    assert (said["by"], said["why"], said["offsets"]) == ("ann@host", "a test wrote them", [[4, 5], [9, 10]])
    assert len((tmp_path / FOLDER / "4.jsonl").read_text().splitlines()) == 1

    kept.settle([letter(7).place], outcome="discarded", by="ann@host", at="now", why="this too")

    assert (tuple(kept.letters()), kept.counts()) == ((), ())
    assert not (tmp_path / FOLDER / "4.jsonl").exists()


def test_what_was_discarded_stays_so_when_a_batch_is_repeated(kept: DeadLetters) -> None:
    kept.add((letter(4), letter(7)))
    kept.settle([letter(4).place], outcome="discarded", by="ann@host", at="now", why="of no use")

    kept.add((letter(4), letter(7)))

    assert tuple(kept.letters()) == (letter(7),)
    assert number(kept) == 1
    # A column that is joined later leaves it out all the same: it was never applied.
    assert kept.places(TOPIC) == {(0, 4), (0, 7)}


def test_letters_of_before_there_was_an_index_count_too(kept: DeadLetters, tmp_path: Path) -> None:
    before = tmp_path / "quarantine" / TOPIC / "0"
    before.mkdir(parents=True)
    line = {"topic": TOPIC, "partition": 0, "offset": 3, "timestamp": None, "reason": "not JSON", "key": None}
    (before / "3.jsonl").write_text(json.dumps({**line, "value": None}) + "\n")
    kept.add((letter(4),))

    assert number(kept) == 2
    assert {found.offset: found.code for found in kept.letters()} == dict.fromkeys((3, 4), Code.RECORD_FOREIGN)
    kept.settle([replace(letter(3)).place], outcome="discarded", by="ann@host", at="now", why="old")
    assert [found.offset for found in kept.letters()] == [4]


def test_counting_reads_no_letter(kept: DeadLetters, tmp_path: Path) -> None:
    kept.add(letter(offset, value=b"x" * 10_000) for offset in range(0, 2_000, 2))
    (tmp_path / FOLDER / "0.jsonl").write_text("this is read by nobody")

    assert number(kept) == 1_000


def test_a_hundred_thousand_are_counted_at_once(kept: DeadLetters) -> None:
    for partition in range(4):
        kept.add(letter(2 * offset, partition=partition, value=b"") for offset in range(25_000))
    began = time.process_time()

    assert number(kept) == 100_000
    # Ten times what it takes; reading the letters would take a hundred times as long.
    assert time.process_time() - began < 3


@given(st.sets(st.integers(min_value=0, max_value=60)))
def test_runs_hold_what_they_were_made_of(offsets: set[int]) -> None:
    runs = runs_of(offsets)
    assert offsets_in(runs) == offsets
    assert all(start < end for start, end in runs)
    assert all(before[1] < after[0] for before, after in pairwise(runs))


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (problems.MALFORMED + ": it is cut short or damaged", Code.RECORD_MALFORMED),
        (problems.HALF_OF_A_PAIR, Code.RECORD_TEXT),
        (problems.TOO_LARGE, Code.RECORD_SIZE),
        (problems.UNKNOWN_OPERATION, Code.RECORD_OPERATION),
        (problems.NO_KEY, Code.RECORD_KEY),
        (problems.KEY_MISSING, Code.RECORD_KEY),
        (problems.KEY_UNREADABLE, Code.RECORD_KEY),
        (f"{problems.LOST}qty", Code.RECORD_VALUE),
        (f"{problems.STRANGER} (shop.inv.items)", Code.RECORD_STRANGER),
        ("Cannot read schema: it has no type", Code.RECORD_SCHEMA),
        (problems.NOT_READABLE, Code.RECORD_FOREIGN),
        (str(refusals.CLOUD_EVENT), Code.RECORD_FOREIGN),
        (str(refusals.DAMAGED_JSON), Code.RECORD_FOREIGN),
    ],
)
def test_each_reason_has_its_code(reason: str, code: Code) -> None:
    assert record_code(reason) is code


def test_old_ones_are_let_go_of_with_a_trace(kept: DeadLetters, tmp_path: Path) -> None:
    kept.add((letter(4), letter(7)))
    kept.add((letter(2, partition=1),))
    written = time.time() - 3600
    os.utime(tmp_path / FOLDER / "4.jsonl", (written, written))

    assert kept.expire(1800, math.inf, at="2026-01-02T03:04:05Z") == 2
    assert kept.expire(1800, math.inf, at="2026-01-02T03:04:05Z") == 0

    assert [found.place.partition for found in kept.letters()] == [1]
    assert number(kept) == 1
    (trace,) = (tmp_path / FOLDER / "settled").iterdir()
    assert json.loads(trace.read_text())["why"] == "older or more than dead_letters keeps"
    assert not (tmp_path / FOLDER / "4.jsonl").exists()


def test_the_oldest_are_let_go_of_where_there_are_too_many_bytes(kept: DeadLetters, tmp_path: Path) -> None:
    for minutes, offset in enumerate((9, 4, 7)):  # the newest first
        kept.add((letter(offset),))
        written = time.time() - 60 * minutes
        os.utime(tmp_path / FOLDER / f"{offset}.jsonl", (written, written))
    size = (tmp_path / FOLDER / "9.jsonl").stat().st_size

    assert kept.expire(math.inf, 2 * size, at="2026-01-02T03:04:05Z") == 1

    assert sorted(found.offset for found in kept.letters()) == [4, 9]


def test_headers_are_those_of_kafka_connect() -> None:
    found = letter(4, reason="half \ud800")
    told = dict(headers_of(found, "shop"))
    assert told["__connect.errors.topic"] == found.topic.encode()
    assert told["__connect.errors.offset"] == str(found.offset).encode()
    assert told["__connect.errors.connector.name"] == b"shop"
    assert told["__connect.errors.exception.class.name"] == found.code.value.encode()
    assert told["__connect.errors.exception.message"] == b"half ?"
    assert not {"cdc_sync.table", "cdc_sync.schema"} & set(told)


def test_what_is_kept_of_a_record() -> None:
    value = json.dumps(
        {
            "schema": {"default": "Ann"},
            "payload": {"after": {"name": "Ann", "n": 7, "ok": True, "none": None, "tags": ["x"]}},
        }
    ).encode()

    assert kept_of(value, "full") == value
    assert kept_of(value, "none") is None
    assert kept_of(None, "full") is None
    shape = {"after": {"name": "text of 3", "n": "number", "ok": "boolean", "none": None, "tags": ["text of 1"]}}
    assert json.loads(kept_of(value, "masked") or b"") == shape
    assert kept_of(b"\x00Avro", "masked") is None
    assert kept_of(b"[" * 100_000, "masked") is None
    assert kept_of(b'"bare"', "masked") == b'"text of 4"'


def test_what_was_redriven_was_applied(kept: DeadLetters) -> None:
    kept.add((letter(4), letter(7)))

    kept.settle([letter(4).place], outcome="redriven", by="ann@host", at="now", why="redriven")

    assert tuple(kept.letters()) == (letter(7),)
    assert kept.places(TOPIC) == {(0, 7)}
    assert number(kept) == 1


def test_a_table_that_is_read_anew_meets_what_was_redriven_again(kept: DeadLetters) -> None:
    kept.add((letter(4), letter(5), letter(7)))
    kept.settle([letter(4).place, letter(5).place], outcome="redriven", by="ann@host", at="now", why="redriven")
    kept.settle([letter(7).place], outcome="discarded", by="ann@host", at="now", why="of no use")

    kept.add((letter(4), letter(7)))

    assert tuple(kept.letters()) == (letter(4),)
    assert number(kept) == 1
    assert kept.places(TOPIC) == {(0, 4), (0, 7)}


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ([], []),
        ([1, 1, 1], [2, 1]),
        ([5, 5, 1], [2, 1]),
        ([6, 5], [1, 1]),
        ([99, 1], [1, 1]),
        ([None, 10], [2]),
    ],
)
def test_letters_are_kept_in_parts_of_so_many_and_so_many_bytes(sizes: list[int | None], parts: list[int]) -> None:
    letters = [replace(letter(offset), size=size) for offset, size in enumerate(sizes)]

    found = list(parts_of(letters, most=2, most_bytes=10))

    assert [len(part) for part in found] == parts
    assert [it for part in found for it in part] == letters
