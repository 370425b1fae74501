"""Looks again at rows that differ until they agree or a time has passed: some are only on their way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from cdc_sync.operations.verify.compare import Found, Row, both, compare
from cdc_sync.operations.verify.sides import Side

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Seconds that pass, and waiting for them; a test has its own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What is left in the end.

    Attributes:
        rows: keys whose rows differ.
        unsettled: those of them whose source row changed while it was looked at, or that were found too late to tell.
    """

    rows: dict[str, Row]
    unsettled: frozenset[str]


def settle(
    source: Side,
    target: Side,
    found: Found,
    *,
    bound: int,
    seconds: float,
    clock: Clock,
    say: Callable[..., None] = lambda *_, **__: None,
) -> Settled:
    """Look again at what differs; `found.left` is brought up to date.

    Args:
        seconds: how long to go on; with 0 what was found is what differs.
    """
    rows, first = dict(found.rows), dict(found.rows)
    moved: set[str] = set()
    deadline, pause = clock.now() + seconds, _FIRST_PAUSE
    while (rows or found.left) and clock.now() < deadline:
        clock.sleep(min(pause, max(0.0, deadline - clock.now())))
        pause = min(2 * pause, _LONGEST_PAUSE)
        both(lambda side: side.renew(), source, target)
        rows = _again(source, target, rows)
        moved |= {key for key, row in rows.items() if row.source != first[key].source}
        room = bound - len(rows)
        if found.left and room > 0:
            late = compare(source, target, bound, within=_shortest(found), room=room, say=say)
            found.left = late.left
            # What is found only now has not been looked at for long enough.
            new = {key: row for key, row in late.rows.items() if key not in first}
            first |= new
            moved |= new.keys()
            rows |= late.rows
        say("looked again", differing=len(rows))
    return Settled(rows=rows, unsettled=frozenset(moved & rows.keys()))


def _again(source: Side, target: Side, rows: dict[str, Row]) -> dict[str, Row]:
    if not rows:
        return {}
    ours, theirs = both(lambda side: side.digests(rows.keys()), source, target)
    found = {}
    for key, row in rows.items():
        now = Row(ours.get(key, type(row.source)()), theirs.get(key, type(row.target)()))
        if now.source != now.target:
            found[key] = now
    return found


def _shortest(found: Found) -> tuple[str, ...]:
    """Return the ranges that are left, cut to one length: a query names ranges of one length only."""
    length = min(len(item.prefix) for item in found.left)
    return tuple(sorted({item.prefix[:length] for item in found.left}))
