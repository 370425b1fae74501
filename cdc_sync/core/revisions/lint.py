"""What is right in a revision's file, and may not be meant: told before it is applied, each by a code that stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cdc_sync.core.migration.capabilities import Capabilities
from cdc_sync.core.migration.typechange import rewrites
from cdc_sync.core.migration.wording import type_text
from cdc_sync.core.revisions.actions import (
    Action,
    AddColumn,
    CastColumn,
    DropColumn,
    MoveColumn,
    PartitionBy,
    RenameColumn,
)
from cdc_sync.core.revisions.compile import Compiled, compiled
from cdc_sync.core.revisions.revision import Revision
from cdc_sync.core.schema.casts import always_converts, casts_values
from cdc_sync.core.schema.changes import UpdateColumnType
from cdc_sync.core.schema.internal import InternalSchema

CODES: Mapping[str, str] = {
    "MG201": "values are gone for good",
    "MG202": "values that have no place in the new type become NULL",
    "MG203": "it is refused when it is applied if a value has no place in the new type",
    "MG301": "who reads or writes the column by its old name fails",
    "MG401": "all rows are written anew, in one commit",
    "MG402": "a column goes and another one comes: a renamed column would keep its values",
}
"""What each finding means; a code is never given to another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that may not be meant.

    Attributes:
        code: of `CODES`.
        revision: its id.
        file: where it is, and `line` in it, from 1; 0 where nobody knows.
        text: what it is about.
    """

    code: str
    revision: str
    file: str
    line: int
    text: str


def lint(revision: Revision, before: InternalSchema | None, capabilities: Capabilities) -> tuple[Finding, ...]:
    """Return what is found in a revision that can be used, less what its file allows.

    Args:
        before: the columns that it is applied to, None if only the lake knows them.
        capabilities: of the format.
    """
    found: list[Finding] = []
    for index, action in enumerate(revision.actions):
        line = revision.lines[index] if index < len(revision.lines) else 0
        made = None if before is None else compiled(revision.actions[: index + 1], before)
        for code, text in _of(action, revision.actions, made, capabilities):
            if code not in revision.allow:
                found.append(Finding(code=code, revision=revision.id, file=revision.file, line=line, text=text))
    return tuple(found)


def _of(
    action: Action, actions: tuple[Action, ...], made: Compiled | None, capabilities: Capabilities
) -> Iterator[tuple[str, str]]:
    match action:
        case DropColumn(name=name):
            yield "MG201", f"{name} is dropped; `down` does not bring its values back"
            added = next((other.column.name for other in actions if isinstance(other, AddColumn)), None)
            if added is not None:
                yield "MG402", f"{name} is dropped and {added} is added; say rename_column if they are the same"
        case RenameColumn(old=old, new=new):
            yield "MG301", f"{old} is called {new} from then on"
        case CastColumn():
            yield from _of_cast(action, made)
        case _:
            pass
    if made is not None and isinstance(action, (CastColumn, DropColumn, RenameColumn, MoveColumn, AddColumn)):
        change = made.changes[-1] if made.changes else None
        expands = isinstance(action, CastColumn) and action.way == "expand"
        if change is not None and not expands and rewrites((change,), capabilities, made.schema):
            hint = "; way: expand does it unit by unit" if isinstance(action, CastColumn) else ""
            yield "MG401", f"{capabilities.format} cannot do this in place{hint}"
    if isinstance(action, PartitionBy) and capabilities.partitions == "derived":
        yield "MG401", f"{capabilities.format} cannot do this in place"


def _of_cast(action: CastColumn, made: Compiled | None) -> Iterator[tuple[str, str]]:
    to = type_text(action.type)
    if made is not None and action.way == "exchange":
        (change,) = made.changes[-1:]
        if isinstance(change, UpdateColumnType) and not (
            casts_values(change.old, change.new) and not always_converts(change.old, change.new)
        ):
            return
    if action.lost == "null":
        yield "MG202", f"{action.name} becomes {to}"
    else:
        yield "MG203", f"{action.name} becomes {to}"
