"""One revision: what a file says is to be done to a table, and in what order with others."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.revisions.actions import Action, AddColumn, Adopt, CastColumn, CreateTable, NewColumn, PartitionBy
from cdc_sync.core.schema import serde


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What one file says.

    Attributes:
        id: unique in the whole tree of files.
        table: in the lake.
        parents: revisions of the same table that come right before; more than one where branches meet.
        depends_on: revisions of any table that come before.
        release: the folder that the file is in, a label.
        file: where it is, for messages.
        description: for people.
        actions: one after the other.
        irreversible: why it cannot be undone, None if it may be.
        replaces: revisions that it stands for, whose files are gone.
        lines: of the file, in which each action begins, from 1.
        allow: codes of findings that are meant.
    """

    id: str
    table: TargetName
    parents: tuple[str, ...]
    actions: tuple[Action, ...]
    depends_on: tuple[str, ...] = ()
    release: str = ""
    file: str = ""
    description: str = ""
    irreversible: str | None = None
    replaces: tuple[str, ...] = ()
    lines: tuple[int, ...] = field(default=(), compare=False)
    allow: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What it does, in one form: the same for files that differ in layout, comments or description only."""
        actions = [_action_to_json(action) for action in self.actions]
        return json.dumps(actions, indent=2, sort_keys=True, ensure_ascii=False)

    @property
    def digest(self) -> str:
        """What tells whether it does something else than it did when it was applied."""
        return sha256(self.text.encode()).hexdigest()


def _action_to_json(action: Action) -> dict[str, Any]:
    found: dict[str, Any] = {"action": type(action).__name__}
    match action:
        case CreateTable():
            found |= {"columns": _columns(action.columns), "partition_by": str(action.partitioning)}
        case PartitionBy():
            found |= {"by": str(action.partitioning)}
        case Adopt():
            found |= {"columns": _columns(action.columns)}
        case AddColumn():
            place, column = asdict(action.place), _columns((action.column,))[0]
            found |= {"column": column, "place": place, "fill": action.fill, "fill_sql": action.fill_sql}
        case CastColumn():
            found |= {"name": action.name, "type": serde.type_to_json(action.type), "lost": action.lost}
            found |= {"way": action.way} if action.way != "exchange" else {}
        case _:
            found |= asdict(action)
    return found


def _columns(columns: tuple[NewColumn, ...]) -> list[dict[str, Any]]:
    return [{"name": it.name, "type": serde.type_to_json(it.type), "comment": it.comment} for it in columns]
