"""States of one table, and what is decided of them where every kind of question has one answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Dropped, Version
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.core.schema.alignment import Evidence
from cdc_sync.core.schema.policy import Policy
from cdc_sync.core.table.questions import Question
from cdc_sync.core.table.seen import Seen
from cdc_sync.core.table.state import TableState, TargetView
from cdc_sync.core.table.transitions import Ask
from tests.history.versions import ORDERS, at, versions
from tests.plan.model import ROUTE as ANY_ROUTE

TOPIC = "pg.public.orders"
ROUTE = replace(ANY_ROUTE, table=ORDERS, target=replace(ANY_ROUTE.target, name="orders"))
RENAMED = replace(ORDERS, table="sales")

S = TypeVar("S")


def policy(**answers: Any) -> Any:
    """Return the route with other answers."""
    return replace(ROUTE, policy=replace(Policy(), **answers))


def history(number: int = 3) -> History:
    """Return the first versions of `tests.history.versions`."""
    return History(table=ORDERS, versions=versions()[:number])


def end(known: History, dropped: Dropped, renamed_to: TableId | None = None) -> Version:
    """Return the version at which a table ends, right behind a history."""
    number = known.head.number + 1
    told = Evidence(subject="orders", kind="postgresql", text="DROP TABLE orders (50)")
    return replace(
        known.head,
        number=number,
        changes=(),
        evidence=(told,),
        position=at(number * 10),
        kafka=KafkaPosition(topic="pg.message", partition=0, offset=9),
        dropped=dropped,
        renamed_to=renamed_to,
    )


def state(number: int = 3, *, stamped: int | None = None, offset: int | None = 5, **changes: Any) -> TableState:
    """Return a table that is read, with so many versions.

    Args:
        number: of versions.
        stamped: what the target has, all of them if not given; 0 for no target.
        offset: up to where partition 0 is written, None if nothing is.
    """
    stamped = number if stamped is None else stamped
    progress = Progress(version=min(stamped, number), offsets={TOPIC: {0: offset}}) if stamped and offset else None
    view = TargetView(stamped=stamped or None)
    known = history(number) if number else None
    return replace(TableState(route=ROUTE, is_read=True, history=known, progress=progress, target=view), **changes)


def ranges(start: int, end: int, partition: int = 0) -> tuple[OffsetRange, ...]:
    """Return one range of the topic."""
    return (OffsetRange(topic=TOPIC, partition=partition, start=start, end=end),)


def stretch(lsn: int, offset: int, *, truncate: bool = False, digest: str = "d") -> Stretch:
    """Return where events of a schema begin."""
    kafka = KafkaPosition(topic=TOPIC, partition=0, offset=offset)
    return Stretch(table=ORDERS, position=at(lsn), kafka=kafka, digest=digest, truncate=truncate)


def decided(
    decision: Callable[[TableState, Seen], Any], known: TableState, seen: Seen, answers: Mapping[type[Any], Any]
) -> Any:
    """Return what is decided once every question that is asked is answered by its kind."""
    for _ in range(20):
        step = decision(known, seen)
        if not isinstance(step, Ask):
            return step
        question: Question[Any] = step.question
        answer = answers[type(question)]
        answer = answer(question) if callable(answer) else answer
        seen = replace(seen, facts=seen.facts.knowing(question, answer))
    raise AssertionError("asking does not come to an end")
