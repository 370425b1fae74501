"""What stops or marks a table before anything of it is read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.core.lineage.audit import Joined, Split
from cdc_sync.core.lineage.column_log import Unlogged, Unread
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.table.checks import audited, begun_anew, failed, lacks_offsets, of_another_topic
from cdc_sync.core.table.state import Cursor, Failure
from cdc_sync.errors import FilesGone, TargetError, UnfitTarget
from tests.history.versions import ORDERS, at
from tests.table.model import TOPIC, end, history, policy, state


def gone(dropped: Any = "drop", **changes: Any) -> Any:
    return replace(state(3, stamped=0), history=history(3).extended(end(history(3), dropped)), **changes)


def test_a_topic_that_was_made_again_stops_a_table() -> None:
    stop = of_another_topic(state(), TOPIC).stop
    assert stop is not None
    assert "was deleted and made again" in stop.reason


def test_behind_the_end_of_the_table_a_topic_made_again_is_read_from_its_beginning() -> None:
    old = Progress(version=4, offsets={TOPIC: {0: 90}})
    known = of_another_topic(gone(progress=old, cursor=Cursor(passed={(TOPIC, 0): 95})), TOPIC)
    assert known.stop is None
    assert known.next_offset(TOPIC, 0) is None
    assert known.progress is not None
    assert known.progress.truncated is not None
    assert known.progress.truncated.position == at(40), "events from before the end are passed over"


@pytest.mark.parametrize(
    "known", [state(), state(3, stamped=0), state(0, stamped=0)], ids=["written", "never ended", "never seen"]
)
def test_only_a_table_that_ended_begins_anew(known: Any) -> None:
    assert begun_anew(known) == known


def test_offsets_that_are_gone_and_were_read_matter_to_nobody() -> None:
    assert lacks_offsets(state(offset=5), TOPIC, 0, 5).stop is None
    passed = state(offset=5, cursor=Cursor(passed={(TOPIC, 0): 9}))
    assert lacks_offsets(passed, TOPIC, 0, 9) == passed


def test_offsets_that_are_gone_and_were_not_read_stop_the_table() -> None:
    stop = lacks_offsets(state(offset=5), TOPIC, 0, 8).stop
    assert stop is not None
    assert stop.reason.startswith(f"offsets 5 to 7 of {TOPIC}[0] were deleted")


def test_a_partition_that_the_marker_does_not_name_is_told_of_where_the_topic_is_named() -> None:
    (warning,) = lacks_offsets(state(), TOPIC, 1, 3).warnings
    assert f"{TOPIC}[1] begins at offset 3" in warning
    assert lacks_offsets(state(), TOPIC, 1, 0).warnings == ()
    assert lacks_offsets(state(), "pg.public.orders_2", 0, 3).warnings == (), "a topic that came later"


def test_a_target_that_is_not_there_stops_where_the_topic_lacks_the_tables_beginning() -> None:
    known = state(3, stamped=0)  # its first event was at offset 1 of partition 0
    assert lacks_offsets(known, TOPIC, 0, 1).stop is None
    assert lacks_offsets(known, TOPIC, 1, 7).stop is None
    stop = lacks_offsets(known, TOPIC, 0, 2).stop
    assert stop is not None
    assert "offsets 1 to 1" in stop.reason
    inserts = lacks_offsets(replace(known, route=policy(missing_rows="insert")), TOPIC, 0, 2)
    assert inserts.stop is None
    assert "the target was not there" in inserts.warnings[0]
    assert lacks_offsets(state(0, stamped=0), TOPIC, 0, 2) == state(0, stamped=0)


def test_evidence_that_came_late_warns_or_stops() -> None:
    found = audited(
        state(),
        [
            Split(version=2, old="a", new="b"),
            Unread(position=at(1), tables=(ORDERS,), text="alter what", reason="no idea"),
            Unlogged(position=at(2), table=ORDERS, effect="follow", text="ON DELETE CASCADE"),
        ],
    )
    assert found.stop is None
    assert [text[:20] for text in found.warnings] == [
        "version 2: 'a' and '"[:20],
        "a statement was not ",
        "rows of it may chang",
    ]
    assert "--rename a=b" in found.warnings[0]
    stop = audited(state(), [Joined(version=2, name="a", statement="drop a, add a")]).stop
    assert stop is not None
    assert "column 'a'" in stop.reason


def test_rows_that_were_changed_without_an_event_mark_the_table_once() -> None:
    told = Unlogged(position=at(25), table=ORDERS, effect="rows", text="TRUNCATE p1")
    once = audited(state(), [told])
    (doubt,) = once.journal.doubts
    assert (doubt.kind, doubt.version, doubt.ends, doubt.statement) == ("rows", 3, {TOPIC: {0: 5}}, "TRUNCATE p1")
    assert audited(once, [told]).journal.doubts == once.journal.doubts
    (unseen,) = audited(state(0, stamped=0), [told]).journal.doubts
    assert (unseen.version, unseen.ends) == (0, {})


def test_what_fails_is_tried_again_and_what_cannot_pass_stops() -> None:
    known = failed(state(), TargetError("disk full"))
    assert (known.failure, known.stop) == (Failure(text="disk full", code=Code.TARGET), None)
    assert failed(state(), ValueError("odd")).failure == Failure(text="ValueError: odd")
    stop = failed(state(), UnfitTarget(Code.NOT_OURS, "not ours", "move it")).stop
    assert stop is not None
    assert (stop.reason, stop.remedy) == ("not ours", "move it")


def test_files_that_are_gone_stop_a_table_only_when_they_are_gone_again() -> None:
    once = failed(state(), FilesGone("no such file: a"))
    assert once.stop is None
    stop = failed(once, FilesGone("no such file: a")).stop
    assert stop is not None
    assert "were deleted: no such file: a" in stop.reason
    assert failed(failed(once, TargetError("else")), FilesGone("no such file: a")).stop is None
