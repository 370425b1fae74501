"""What operators ask of tables while the job runs: taken up between two batches, for each table by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Literal, TypeAlias

from structlog import get_logger

from cdc_sync.core.migration.operator_requests import Hold, RegimeAsked, Reset, Resume, Rollback, SnapshotReset
from cdc_sync.core.migration.routes import Join
from cdc_sync.core.model.dead_letters import Redrive
from cdc_sync.core.planning.resync import Resync
from cdc_sync.core.table.joining import join_columns
from cdc_sync.core.table.seen import Seen
from cdc_sync.core.table.truncating import has_come
from cdc_sync.errors import TransientError
from cdc_sync.runtime.actor import TableActor
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.redrive import redrive
from cdc_sync.runtime.tables import Tables

Work: TypeAlias = Callable[[], None]
Word: TypeAlias = Literal["hold", "skip", "rollback", "regime", "snapshot"]
"""What stands in a file as long as the operator means it; `Requests` has what the table was read with."""


class Asked:
    """What was written down of the tables of one pipeline. One thread at a time.

    It is looked through while a batch may be running; what is to be done is done between two. A file that cannot be
    read is the failure of its own table.
    """

    def __init__(self, context: Context, tables: Tables, alone: Callable[[TableActor, Work], None]) -> None:
        """Begin with nothing done.

        Args:
            alone: works on a table between two batches, and takes what goes wrong for the table's.
        """
        self._context = context
        self._tables = tables
        self._alone = alone
        self._joined: set[Join] = set()
        self._gaps: set[str] = set()

    def follow(self) -> None:
        """Take up what was asked since the last time.

        Raises:
            TransientError: if Kafka or the store is away.
        """
        said = self._context.state.requests.tables_with
        held, skipped, refilled, reset, resumed, decided, rolled, resynced, joined, rewritten, redriven = (
            said("holds"),
            said("skips"),
            said("snapshot-resets"),
            said("resets"),
            said("resumes"),
            said("decisions"),
            said("rollbacks"),
            said("resyncs"),
            said("joins"),
            said("regimes"),
            said("redrives"),
        )
        for table in self._tables.all():
            if table.table in held or table.state.requests.hold is not None:
                self._take_up(table, self._word(table, "hold"))
            if table.table in skipped:
                self._take_up(table, self._word(table, "skip"))
            if table.table in refilled:
                self._take_up(table, self._snapshot(table))
            if table.table in reset:
                self._take_up(table, self._reset(table))
            if table.table in resumed:
                self._take_up(table, (partial(self._resume, table),))
            if table.table in rolled or table.state.requests.rollback is not None:
                self._take_up(table, self._word(table, "rollback"))
            if table.table in rewritten:
                self._take_up(table, self._word(table, "regime"))
            if table.table in resynced or table.is_behind(()):
                self._take_up(table, self._resyncs(table))
            if table.shows_other_evidence:
                self._take_up(table, self._evidence(table))
            if table.table in decided:
                self._take_up(table, self._decisions(table))
            if table.table in joined:
                self._take_up(table, self._joins(table))
            if table.table in redriven:
                self._take_up(table, self._redrives(table))

    def _take_up(self, table: TableActor, asked: Iterable[Work]) -> None:
        try:
            found = tuple(asked)
        except TransientError:
            raise
        except Exception as error:
            found = (partial(table.miss, error),)
        for work in found:
            self._alone(table, work)

    def follow_while_running(self) -> None:
        """Have tables that are to be paused look for that before their next step, and not at the end of their topics.

        Raises:
            TransientError: if the store is away.
        """
        held = self._context.state.requests.tables_with("holds")
        for table in self._tables.all():
            if table.table in held and table.state.requests.hold is None:
                table.is_to_look = True

    def _word(self, table: TableActor, word: Word) -> Iterator[Work]:
        """Take up a word that was said of a table, or taken back."""
        if _is_unheard(table, word):
            yield partial(follow_word, table, word)

    def _snapshot(self, table: TableActor) -> Iterator[Work]:
        """Have the next snapshot take the place of what a table holds, and forget that once it has."""
        if has_come(table.state):
            yield partial(follow_snapshot, table)
        else:
            yield from self._word(table, "snapshot")

    def _resume(self, table: TableActor) -> None:
        """Let a table try again, whatever it stopped for."""
        self._tables.resume(table)
        self._context.state.requests.remove(Resume(table=table.table))
        if table.state.stop is None:
            get_logger().info("table goes on", table=str(table.table), reason="the operator resumed it")

    def _resyncs(self, table: TableActor) -> Iterator[Work]:
        """Write down what the connector says of the rows that it is to read again."""
        asked = self._context.notifications.follow(self._context.state, table.table)
        if table.is_behind(asked):
            yield partial(_follow_resyncs, table, asked)

    def _evidence(self, table: TableActor) -> Iterator[Work]:
        """Write down since when the evidence tells of a table; a gap that tables share is in the log once."""
        for gap in table.coverage.all_gaps:
            if gap not in self._gaps:
                get_logger().warning(
                    "evidence has a gap", table=str(table.table), why=gap, others="see `cdc-sync status`"
                )
                self._gaps.add(gap)
        yield table.report

    def _decisions(self, table: TableActor) -> Iterator[Work]:
        """Take up what was decided, and let a table go on that stopped for it."""
        if _is_decided(table):
            yield partial(follow_decisions, table)

    def _joins(self, table: TableActor) -> Iterator[Work]:
        """Carry out what the operator said of columns after the fact."""
        for join in self._context.state.requests.all(Join, table.table):
            if replace(join, after=0) not in self._joined:
                yield partial(self._join, table, join)

    def _join(self, table: TableActor, join: Join) -> None:
        if follow_join(table, join):
            self._joined.add(replace(join, after=0))
            table.recovered()

    def _reset(self, table: TableActor) -> Iterator[Work]:
        """Have a table read again from the start."""
        asked = self._context.state.requests.get(Reset, table.table)
        if asked is not None:
            yield partial(follow_reset, table, asked)

    def _redrives(self, table: TableActor) -> Iterator[Work]:
        """Apply dead letters that the operator wants to be."""
        for asked in self._context.state.requests.all(Redrive, table.table):
            yield partial(follow_redrive, table, asked)


def follow_reset(table: TableActor, asked: Reset) -> None:
    """Rename a table's target, so that the table begins anew; a target of the other name tells that this was done."""
    context = table.context
    context.guard()
    if context.target.state(asked.into) is None:
        context.target.archive(table.route.target, asked.into)
    context.state.save_doubts(asked.table, ())  # they were of the rows of before
    context.state.requests.remove(asked)
    table.begin_hour()
    table.go_on()
    get_logger().info("table begins anew", table=str(table.table), by=asked.by, before=str(asked.into))


def follow_snapshot(table: TableActor) -> None:
    """Forget that a snapshot was to take the place of what a table held, for it has."""
    asked = table.state.requests.snapshot
    if asked is not None:
        table.context.state.requests.remove(asked)
        table.become(replace(table.state, requests=replace(table.state.requests, snapshot=None)))
        get_logger().info("table was read again", table=str(table.table), by=asked.by)


def follow_redrive(table: TableActor, asked: Redrive) -> None:
    """Apply dead letters of a table, and write down which were and why others were not."""
    table.reload_after_failure()
    store = table.context.state
    found = redrive(table.context, table.state, asked.places)
    if found.progress is not None:
        table.become(replace(table.state, progress=found.progress))
    store.dead_letters.settle(found.applied, outcome="redriven", by=asked.by, at=asked.at, why="redriven")
    store.dead_letters.refuse(found.refused)
    store.requests.remove(asked)
    if found.progress is not None:  # what is written down need not stand in each commit from here on
        table.become(replace(table.state, progress=replace(found.progress, redriven={})))
    counted = {"applied": len(found.applied), "refused": len(found.refused)}
    get_logger().info("dead letters redriven", table=str(table.table), by=asked.by, **counted)


def follow_word(table: TableActor, word: Word) -> None:
    """Read a table again where a word of the operator is another than when it was read last: that carries it out."""
    if not _is_unheard(table, word):
        return
    table.go_on()
    asked = table.state.requests.rollback
    if word in ("rollback", "skip") and table.state.failure is None:
        get_logger().info("table goes on" if asked is None else "table rolled back", table=str(table.table))


def _is_unheard(table: TableActor, word: Word) -> bool:
    store, heard = table.context.state, table.state.requests
    match word:
        case "hold":
            return store.requests.get(Hold, table.table) != heard.hold
        case "skip":
            return store.requests.skipped(table.table) != heard.skips
        case "rollback":
            return store.requests.get(Rollback, table.table) != heard.rollback
        case "regime":
            return store.requests.get(RegimeAsked, table.table) != heard.regime
        case "snapshot":
            return store.requests.get(SnapshotReset, table.table) != heard.snapshot


def _is_decided(table: TableActor) -> bool:
    """Whether the operator decided something since the table was looked at."""
    return table.context.state.requests.decisions(table.table) != table.route.decisions


def follow_decisions(table: TableActor) -> None:
    """Let a stopped table try again if the operator decided something since; another one takes note."""
    if not _is_decided(table):
        return
    if table.state.stop is None:
        _take_note(table)
        return
    table.go_on()
    if table.state.stop is None:
        get_logger().info("table goes on", table=str(table.table), reason="the operator decided")


def _take_note(table: TableActor) -> None:
    """Take up what was said of columns that were kept; where it stands in the history is part of it."""
    store, history = table.context.state, table.state.history
    head = 0 if history is None else history.head.number
    for item in store.requests.decisions(table.table):
        if item not in table.route.decisions and item.after is not None and item.after < head:
            store.requests.decide(replace(item, after=head))
    table.become(replace(table.state, route=replace(table.route, decisions=store.requests.decisions(table.table))))


def follow_join(table: TableActor, join: Join) -> bool:
    """Carry out what the operator said after the fact; return whether it is done. A stopped table then goes on."""
    table.reload_after_failure()
    done = table.run(join_columns, Seen(join=join)).done
    if done and table.state.stop is not None:
        table.go_on()
    table.report()
    return done


def _follow_resyncs(table: TableActor, resyncs: tuple[Resync, ...]) -> None:
    """Take note of what the operator asked to be read again, and how far it has come."""
    table.become(table.state.with_resyncs(resyncs))
    table.report()
