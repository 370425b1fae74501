"""What evidence that came late says about decisions made without it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from cdc_sync.core.history.history import History
from cdc_sync.core.history.joined import as_joined
from cdc_sync.core.history.version import Version
from cdc_sync.core.lineage.column_log import ColumnLog, Structure, Token, Unlogged
from cdc_sync.core.lineage.proof import known_tokens, tokens_at
from cdc_sync.core.model.positions import SourcePosition
from cdc_sync.core.schema.alignment import SIDE_COLUMN


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One column that the history holds as two: a rename that was not known when it was decided."""

    version: int
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Two columns that the history, or rows written under its newest version, hold as one."""

    version: int
    name: str
    statement: str


def audit(history: History, log: ColumnLog, written: SourcePosition | None) -> tuple[Split | Joined, ...]:
    """Compare what was decided with what a log says now.

    Args:
        history: as recorded.
        log: as it is now.
        written: position of the last event of the table that was written, None if that is not known.
    """
    found: list[Split | Joined] = []
    history = history.shown
    for before, after in pairwise(version for version in as_joined(history) if version.dropped is None):
        found += _between(before, after, log)
    if written is not None:
        found += _overtaken(history, log, written)
    return tuple(found)


def unlogged_behind(history: History, log: ColumnLog) -> tuple[Unlogged, ...]:
    """Return what changed rows of a table without an event behind its first one, and what may do so all the time."""
    begin = history.versions[0].position
    return tuple(
        item
        for item in log.unlogged
        if item.table == history.table and item.position.kind == begin.kind
        if item.position > begin or item.effect == "follow"
    )


def _between(before: Version, after: Version, log: ColumnLog) -> Iterator[Split | Joined]:
    second = log.at(before.table, after.position)
    if second is None:
        return
    first = tokens_at(before, log)
    old = {column.id: token for column in before.schema.live if (token := first.get(column.name)) is not None}
    sides = {item.subject for item in after.evidence if item.kind == SIDE_COLUMN}  # parted for their types, knowingly
    new = {column.id: token for column in after.schema.live if (token := second.token(column.name)) is not None}
    for id_, token in old.items():
        other = new.get(id_)
        if other is not None and other.era == token.era and other != token:
            yield Joined(version=after.number, name=after.schema.column(id_).name, statement=_ended(log, second, token))
        same = next((new_id for new_id, new_token in new.items() if new_token == token), id_)
        if same != id_ and same not in old and before.schema.column(id_).name not in sides:
            yield Split(version=after.number, old=before.schema.column(id_).name, new=after.schema.column(same).name)


def _overtaken(history: History, log: ColumnLog, written: SourcePosition) -> Iterator[Joined]:
    """Find columns of the newest version whose names stand for others in rows already written."""
    head = history.head
    now = log.at(head.table, written)
    if now is None or written < head.position:
        return
    tokens = known_tokens(history, log)
    for column in head.schema.live:
        known, found = tokens.get(column.id), now.token(column.name)
        if known is not None and found is not None and found.era == known.era and found != known:
            yield Joined(version=head.number, name=column.name, statement=_ended(log, now, known))


def _ended(log: ColumnLog, upto: Structure, token: Token) -> str:
    """Return the first statement that took a column its name; what the log never shows went with its first."""
    if not any(column.token == token for structure in log.of(upto.table) for column in structure.columns):
        return log.of(upto.table)[0].statement
    former: str | None = None
    for structure in log.of(upto.table):
        name = next((column.name for column in structure.columns if column.token == token), None)
        if structure.position <= upto.position and former is not None and name != former:
            return structure.statement
        former = name if name is not None else former
    return upto.statement
