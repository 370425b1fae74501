"""What the operator may say of columns, and what follows: pure, for `cdc-sync decide`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdc_sync.core.history.history import History
from cdc_sync.core.migration.capabilities import Capabilities
from cdc_sync.core.migration.routes import Decision, Join
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.merge_columns import find_join, join_version
from cdc_sync.core.planning.stops import Refused
from cdc_sync.errors import RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What was said.

    Attributes:
        renames: old to new name.
        not_same: names of new columns that are none of those before.
        dropped: names of columns that are gone.
    """

    renames: Mapping[str, str]
    not_same: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What was kept of the operator's words.

    Attributes:
        at: the record before which the table is paused; None if nothing was said of that change.
        renames, not_same, dropped: what was said of it.
        joins: renames of earlier changes, whose columns will be joined.
        late_drops: columns that were kept at earlier changes, and go with the next one.
    """

    table: TableId
    at: str | None
    renames: Mapping[str, str]
    not_same: tuple[str, ...]
    joins: tuple[Join, ...]
    dropped: tuple[str, ...] = ()
    late_drops: tuple[str, ...] = ()

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What is written down for the change before which the table is paused."""
        if self.at is None:
            return ()
        said = Decision(
            table=self.table, at=self.at, renames=self.renames, not_same=self.not_same, dropped=self.dropped
        )
        return (said,)

    def with_late(self, after: int, before: tuple[Decision, ...]) -> tuple[Decision, ...]:
        """Return everything that is written down, late drops with those that were said of the same version before.

        Args:
            after: the newest version.
            before: what is written down already.
        """
        if not self.late_drops:
            return self.decisions
        said = (name for item in before if item.after == after for name in item.dropped)
        names = tuple(dict.fromkeys((*said, *self.late_drops)))
        return (*self.decisions, Decision(table=self.table, at="", renames={}, dropped=names, after=after))


def decide(history: History, words: Words, paused_at: str | None, capabilities: Capabilities) -> Decided:
    """Find out which changes the words are about.

    A rename is either part of the change before which the table is paused, or was made long ago and its two columns
    have been kept apart since: then they are joined. A drop is part of that change too, or of a column that was kept.

    Args:
        history: as recorded.
        paused_at: the record before which the table is paused, None if it is not.
        capabilities: what the target can do.

    Raises:
        RefusedError: if a name is none of the columns it could be about, or nothing is to be decided.
    """
    table, schema = history.table, history.head.schema
    if not words.renames and not words.not_same and not words.dropped:
        raise RefusedError(
            f"Cannot decide about {table}: nothing was said; use --rename OLD=NEW, --drop NAME or --not-same NAME"
        )
    news = list(words.renames.values())
    for name in (*news, *words.dropped):
        twice = (*news, *words.dropped).count(name) > 1 or (name in words.dropped and name in words.renames)
        if twice or name in words.not_same:
            raise RefusedError(f"Cannot decide about {table}: {name!r} is named twice; keep one of the two")
    late = {old: find_join(history, old, new) for old, new in words.renames.items()}
    for item in late.values():
        version = join_version(history, item, capabilities) if isinstance(item, Join) else None
        if isinstance(version, Refused):
            raise RefusedError(f"Cannot join columns of {table}: {version.reason}; {version.remedy}")
    retired = {column.name for column in schema.columns if column.retired}
    late_drops = tuple(name for name in words.dropped if name in retired)
    dropped = tuple(name for name in words.dropped if name not in retired)
    renames = {old: new for old, new in words.renames.items() if isinstance(late[old], Refused)}
    is_of_change = bool(renames or words.not_same or dropped)
    if is_of_change and paused_at is None:
        why = next((item for old in renames if isinstance(item := late[old], Refused)), None)
        why = why or (TOO_LATE if words.not_same else _not_kept(dropped[0], sorted(retired)))
        raise RefusedError(
            f"Cannot decide about {table}: it is not paused before a change, and of an earlier one: {why.reason}; "
            f"{why.remedy}"
        )
    known = [column.name for column in schema.columns]
    for old in (*renames, *dropped):
        if old not in known:
            raise RefusedError(f"Cannot decide about {table}: {old!r} is none of its columns ({', '.join(known)})")
    return Decided(
        table=table,
        at=paused_at if is_of_change else None,
        renames=renames,
        not_same=words.not_same,
        joins=tuple(item for item in late.values() if isinstance(item, Join)),
        dropped=dropped,
        late_drops=late_drops,
    )


TOO_LATE = Refused(
    code=Code.JOIN,
    reason="columns that were taken for one cannot be taken apart afterwards, for the values of the first were "
    "overwritten by those of the second",
    remedy="snapshot the table again into a new target, with the older column declared under `drops` of the table",
)


def _not_kept(name: str, kept: list[str]) -> Refused:
    return Refused(
        code=Code.JOIN,
        reason=f"{name!r} is none of the columns that are kept although the source lost them "
        f"({', '.join(kept) or 'there are none'})",
        remedy="look at `cdc-sync history`",
    )
