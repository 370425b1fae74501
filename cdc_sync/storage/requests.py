"""What operators ask of tables: each request is a file below the folder of its kind, until it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote

from cdc_sync.core.migration.operator_requests import Hold, RegimeAsked, Reset, Resume, Rollback, Skip, SnapshotReset
from cdc_sync.core.migration.routes import Decision, Join
from cdc_sync.core.model.dead_letters import Redrive
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.planning.resync import Resync
from cdc_sync.storage.documents import Documents, as_value, document
from cdc_sync.storage.object_store import digest, name_of

Folder: TypeAlias = Literal[
    "decisions",
    "holds",
    "joins",
    "redrives",
    "regimes",
    "resets",
    "resumes",
    "resyncs",
    "rollbacks",
    "skips",
    "snapshot-resets",
]
Request: TypeAlias = Hold | RegimeAsked | Reset | Resume | Rollback | Skip | SnapshotReset | Join | Redrive | Resync
R = TypeVar("R", Hold, RegimeAsked, Reset, Resume, Rollback, Skip, SnapshotReset, Join, Redrive, Resync)

_ASK_AGAIN = "delete the file and ask again"


@dataclass(frozen=True)
class _Kind:
    """Where requests of a kind are.

    Attributes:
        name: of one's file; None where a table has one at most, whose file is named after the table.
        order: of several of a table.
    """

    folder: Folder
    name: Callable[[Any], str] | None = None
    order: Callable[[Any], Any] = str


_KINDS: Mapping[type[Request], _Kind] = {
    Hold: _Kind("holds"),
    Resume: _Kind("resumes"),
    Rollback: _Kind("rollbacks"),
    RegimeAsked: _Kind("regimes"),
    Reset: _Kind("resets"),
    SnapshotReset: _Kind("snapshot-resets"),
    Skip: _Kind("skips", lambda it: digest(str(it.place))[:16], lambda it: (it.at, str(it.place))),
    Redrive: _Kind("redrives", lambda it: quote(it.id, safe=""), lambda it: (it.at, it.id)),
    Resync: _Kind("resyncs", lambda it: quote(it.signal, safe=""), lambda it: (it.version, it.signal)),
    Join: _Kind("joins", lambda it: f"{it.kept:06d}-{it.joined:06d}", lambda it: (it.after, it.kept, it.joined)),
}


@dataclass(frozen=True, slots=True)
class _Decisions:
    decisions: tuple[Decision, ...]


class TablesWith:
    """Some tables, known by the names of their files."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)

    def __contains__(self, table: TableId) -> bool:
        return name_of(table) in self._names


class OperatorRequests:
    """What was asked of the tables of one pipeline. Thread-safe for different tables; raises as `StateStore` does."""

    def __init__(self, files: Documents) -> None:
        self._files = files

    def add(self, request: Request) -> None:
        """Keep a request; asked again, it takes the place of what was asked before."""
        self._files.put(_path(request), asdict(request))

    def get(self, kind: type[R], table: TableId) -> R | None:
        """Return the request of a kind that a table has one of at most, None if it has none."""
        return self._files.get(f"{_KINDS[kind].folder}/{name_of(table)}.json", kind, _ASK_AGAIN)

    def all(self, kind: type[R], table: TableId) -> tuple[R, ...]:
        """Return the requests of a kind that a table may have several of, done or not, the oldest first."""
        found = self._files.all(f"{_KINDS[kind].folder}/{name_of(table)}/", kind, _ASK_AGAIN)
        return tuple(sorted(found, key=_KINDS[kind].order))

    def remove(self, request: Request) -> None:
        """Forget a request; nothing happens if it is not there."""
        self._files.delete(_path(request))

    def resume(self, table: TableId) -> None:
        """Keep that a table goes on, or tries again, and is not to be paused any more."""
        self._files.delete(f"holds/{name_of(table)}.json")  # first, for without it the table goes on already
        self.add(Resume(table=table))

    def tables_with(self, folder: Folder) -> TablesWith:
        """Return of which tables there is something in a folder, whether or not it can be read."""
        return TablesWith(path.split("/")[1].removesuffix(".json") for path in self._files.paths(folder))

    def skipped(self, table: TableId) -> frozenset[KafkaPosition]:
        """Return which records a table passes."""
        return frozenset(skip.place for skip in self.all(Skip, table))

    def decide(self, decision: Decision) -> None:
        """Keep what the operator decided; a later word about the same change takes the place of an earlier one."""
        others = [
            item for item in self.decisions(decision.table) if (item.at, item.after) != (decision.at, decision.after)
        ]
        data = [{**asdict(item), "table": None} for item in (*others, decision)]
        self._files.put(f"decisions/{name_of(decision.table)}.json", {"decisions": data})

    def decisions(self, table: TableId) -> tuple[Decision, ...]:
        """Return everything that was decided about a table, oldest first."""
        text = self._files.text(path := f"decisions/{name_of(table)}.json")
        if text is None:
            return ()
        data, remedy = document(text, path), "decide again after deleting the file"
        items = data.get("decisions")
        named = [{**item, "table": table} if isinstance(item, dict) else item for item in items or ()]
        return as_value({"decisions": None if items is None else named}, _Decisions, path, remedy).decisions


def _path(request: Request) -> str:
    kind = _KINDS[type(request)]
    own = "" if kind.name is None else f"/{kind.name(request)}"
    return f"{kind.folder}/{name_of(request.table)}{own}.json"
