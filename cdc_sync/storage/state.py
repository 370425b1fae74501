"""Files of a pipeline that `status` reads: the state of each table, and the records that were set aside.

Below the pipeline's root (a folder or an object-store URL)::

    tables/<table>.json                              one `TableStatus`
    damaged/<table>.json                             what stood there and could not be read, when the job began it anew
    decisions/<table>.json                           every `Decision`
    joins/<table>/<kept id>-<joined id>.json         one `Join`
    dead-letters/<topic>/<partition>/                what was not applied, see `storage.dead_letters`
    unconverted/<table>/<version>.json               the `Unconverted` values of one rewrite
    doubts/<table>.json                              every `Doubt`
    columns/<table>.json                             the `HeldColumns` of its target
    holds/<table>.json                               one `Hold`
    resumes/<table>.json                             that the operator wants a table to try again, until it has
    redrives/<table>/<id>.json                       one `Redrive`
    rollbacks/<table>.json                           one `Rollback`
    resets/<table>.json                              one `Reset`
    skips/<table>/<digest of the record's place>.json one `Skip`
    regimes/<table>.json                             one `RegimeAsked`
    resyncs/<table>/<signal>.json                    one `Resync`
    values/<table>/<digest of the event's place>.json what rows said of columns in doubt, see `lineage.continuity`
    catalogue/<table>/<number>.json                  readings of the source's catalogue, see `lineage.kept`
    maintained/<table>.json                          when a table was maintained
    passed/<table>.json                              how far a table was looked through behind its marker
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias, get_args
from urllib.parse import quote

from cdc_sync.core.lineage.continuity import Compared, Pair
from cdc_sync.core.lineage.kept import Entry, Kept
from cdc_sync.core.lineage.kept_json import entry_from_json, entry_to_json
from cdc_sync.core.migration.altered import HeldColumns
from cdc_sync.core.migration.operator_requests import Hold, RegimeAsked, Reset, Rollback, Skip, Unconverted
from cdc_sync.core.migration.routes import Decision, Join
from cdc_sync.core.model.dead_letters import Redrive
from cdc_sync.core.model.doubts import Doubt
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.planning.resync import Resync
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.errors import HistoryError
from cdc_sync.storage.dead_letters import DeadLetters
from cdc_sync.storage.documents import Documents, as_value, document
from cdc_sync.storage.object_store import holds_any, is_digest, name_of, table_of

Requests: TypeAlias = Literal[
    "decisions", "holds", "joins", "redrives", "regimes", "resets", "resumes", "resyncs", "rollbacks", "skips"
]
"""The folders of what operators ask for."""

_OF_TABLES = (
    *get_args(Requests),
    "catalogue",
    "columns",
    "damaged",
    "doubts",
    "maintained",
    "passed",
    "unconverted",
    "values",
)
"""Folders of which each has a file or a folder for a table."""

_WRITTEN_ANEW = "delete the file, the job writes it anew"
_ASK_AGAIN = "delete the file and ask again"
_RESTORE = "restore the pipeline's state folder"


@dataclass(frozen=True, slots=True)
class _Decisions:
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class _Doubts:
    doubts: tuple[Doubt, ...]


@dataclass(frozen=True, slots=True)
class _Passed:
    marker: str
    offsets: Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class _Maintained:
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """What rows said, and of which event."""

    at: KafkaPosition
    rows: int
    least: int
    pairs: tuple[Pair, ...]


class TablesWith:
    """Some tables, known by the names of their files."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)

    def __contains__(self, table: TableId) -> bool:
        return name_of(table) in self._names


_UNTOLD = TableId(database="", schema="", table="(a table whose long name its damaged status does not tell)")


class StateStore:
    """Status, and what the operator said, of one pipeline. Thread-safe for different tables.

    Every method raises `TransientError` if the store does not answer, and `HistoryError` if a file is damaged.

    Attributes:
        dead_letters: the records that were set aside.
    """

    def __init__(self, root: str, *, create: bool = False) -> None:
        """Open the files below a pipeline's root; reading needs no `create`."""
        self._files = Documents(root, create=create)
        self.dead_letters = DeadLetters(self._files)

    def holds_any(self) -> bool:
        """Tell whether a job ever wrote here; of a folder, whether it is there."""
        return holds_any(self._files.root)

    def save(self, status: TableStatus) -> None:
        """Replace the status of a table, atomically."""
        self._files.put(_path("tables", status.table), asdict(status))

    def load(self, table: TableId) -> TableStatus | None:
        """Return the status of a table, None if the job never saw it."""
        return self._files.get(_path("tables", table), TableStatus, _WRITTEN_ANEW)

    def tables(self) -> tuple[TableStatus, ...]:
        """Return the status of every table, ordered by name; one whose file is damaged is failing for that."""
        paths = [path for path in self._files.paths("tables") if path.endswith(".json")]
        found = [(path, table_of(path.split("/")[1])) for path in paths]
        statuses = [self._status_or_why_not(path, table) for path, table in found if table is not None]
        statuses += [self._status_or_why_not(path, _UNTOLD) for path in paths if is_digest(path.split("/")[1])]
        return tuple(sorted(statuses, key=lambda status: status.table))

    def _status_or_why_not(self, path: str, table: TableId) -> TableStatus:
        try:
            text = self._files.text(path) or ""
            return as_value(document(text, path), TableStatus, path, _WRITTEN_ANEW)
        except HistoryError as error:
            return TableStatus(table=table, target="", state="failing", reason=str(error))

    def has_status(self, table: TableId) -> bool:
        """Tell whether there is a status of a table, readable or not."""
        return self._files.exists(_path("tables", table))

    def set_status_aside(self, table: TableId) -> str:
        """Keep a status that cannot be read where the next one does not overwrite it; return where."""
        aside = _path("damaged", table)
        self._files.copy(_path("tables", table), aside)
        return aside

    def decide(self, decision: Decision) -> None:
        """Keep what the operator decided; a later word about the same change takes the place of an earlier one."""
        others = [
            item for item in self.decisions(decision.table) if (item.at, item.after) != (decision.at, decision.after)
        ]
        data = [{**asdict(item), "table": None} for item in (*others, decision)]
        self._files.put(_path("decisions", decision.table), {"decisions": data})

    def decisions(self, table: TableId) -> tuple[Decision, ...]:
        """Return everything that was decided about a table, oldest first."""
        text = self._files.text(path := _path("decisions", table))
        if text is None:
            return ()
        data, remedy = document(text, path), "decide again after deleting the file"
        items = data.get("decisions")
        named = [{**item, "table": table} if isinstance(item, dict) else item for item in items or ()]
        return as_value({"decisions": None if items is None else named}, _Decisions, path, remedy).decisions

    def readings(self, table: TableId) -> Kept:
        """Return the readings of the source's catalogue that were kept of a table."""
        paths = self._files.paths(_folder("catalogue", table))
        return Kept(tuple(_entry(self._files.text(path) or "", path, table) for path in paths))

    def keep(self, table: TableId, number: int, entry: Entry) -> None:
        """Keep one of these; `number` is its place among them."""
        self._files.put(f"{_folder('catalogue', table)}{number:08d}.json", entry_to_json(entry), indent=None)

    def compared(self, table: TableId) -> Mapping[KafkaPosition, Compared]:
        """Return what rows said about a table's columns, by the events whose versions were made by it."""
        found = self._files.all(_folder("values", table), _Compared, _RESTORE)
        return {item.at: Compared(rows=item.rows, least=item.least, pairs=item.pairs) for item in found}

    def keep_compared(self, table: TableId, at: KafkaPosition, compared: Compared) -> None:
        """Keep one of these."""
        path = f"{_folder('values', table)}{_digest(str(at))[:16]}.json"
        self._files.put(path, {"at": asdict(at), **asdict(compared)}, sort_keys=False)

    def declare(self, join: Join) -> None:
        """Keep that two columns are one; said again, it takes the place of what was said before."""
        self._files.put(_join_path(join), asdict(join))

    def withdraw(self, join: Join) -> None:
        """Forget what was said; nothing happens if it is not there."""
        self._files.delete(_join_path(join))

    def joins(self, table: TableId) -> tuple[Join, ...]:
        """Return what was said of a table, what is carried out included, oldest first."""
        found = self._files.all(_folder("joins", table), Join, "decide again after deleting the file")
        return tuple(sorted(found, key=lambda join: (join.after, join.kept, join.joined)))

    def keep_unconverted(self, table: TableId, values: Unconverted) -> None:
        """Keep what a rewrite had no place for; done again, it takes the place of what was kept before."""
        self._files.put(f"{_folder('unconverted', table)}{values.version:08d}.json", asdict(values))

    def unconverted(self, table: TableId) -> tuple[Unconverted, ...]:
        """Return what the rewrites of a table had no place for, oldest first."""
        return tuple(self._files.all(_folder("unconverted", table), Unconverted, _RESTORE))

    def save_held_columns(self, table: TableId, columns: HeldColumns) -> None:
        """Keep the columns that a table's target has now."""
        self._files.put(_path("columns", table), asdict(columns))

    def held_columns(self, table: TableId) -> HeldColumns | None:
        """Return the columns that a table's target had, None if none were kept."""
        return self._files.get(_path("columns", table), HeldColumns, "delete it and `cdc-sync resume` the table")

    def save_doubts(self, table: TableId, doubts: Iterable[Doubt]) -> None:
        """Write down what the events of a table leave in doubt."""
        self._files.put(_path("doubts", table), asdict(_Doubts(tuple(doubts))))

    def doubts(self, table: TableId) -> tuple[Doubt, ...]:
        """Return what the events of a table leave in doubt."""
        found = self._files.get(_path("doubts", table), _Doubts, "restore it, or delete it and compare the table")
        return () if found is None else found.doubts

    def hold_back(self, hold: Hold) -> None:
        """Keep that a table is to be paused."""
        self._files.put(_path("holds", hold.table), asdict(hold))

    def hold(self, table: TableId) -> Hold | None:
        """Return why a table is to be paused, None if it is not."""
        return self._files.get(_path("holds", table), Hold, _ASK_AGAIN)

    def ask_resume(self, table: TableId) -> None:
        """Keep that a table is to go on, or to try again."""
        self._files.delete(_path("holds", table))  # first, for without it the table goes on already
        self._files.put(_path("resumes", table), {})

    def has_resumed(self, table: TableId) -> None:
        """Forget it; nothing happens if it is not there."""
        self._files.delete(_path("resumes", table))

    def ask_redrive(self, asked: Redrive) -> None:
        """Keep that dead letters are to be applied after all."""
        self._files.put(_redrive_path(asked), asdict(asked))

    def redrives(self, table: TableId) -> tuple[Redrive, ...]:
        """Return what was asked of a table's dead letters and is not done, oldest first."""
        found = self._files.all(_folder("redrives", table), Redrive, _ASK_AGAIN)
        return tuple(sorted(found, key=lambda item: (item.at, item.id)))

    def has_redriven(self, asked: Redrive) -> None:
        """Forget it; nothing happens if it is not there."""
        self._files.delete(_redrive_path(asked))

    def ask_skip(self, skip: Skip) -> None:
        """Keep that a table passes a record."""
        self._files.put(f"{_folder('skips', skip.table)}{_digest(str(skip.place))[:16]}.json", asdict(skip))

    def skips(self, table: TableId) -> tuple[Skip, ...]:
        """Return what was said of a table's records, passed or not, oldest first."""
        found = self._files.all(_folder("skips", table), Skip, _ASK_AGAIN)
        return tuple(sorted(found, key=lambda item: (item.at, str(item.place))))

    def skipped(self, table: TableId) -> frozenset[KafkaPosition]:
        """Return which records a table passes."""
        return frozenset(skip.place for skip in self.skips(table))

    def ask_rollback(self, rollback: Rollback) -> None:
        """Keep that a rewrite is to be undone."""
        self._files.put(_path("rollbacks", rollback.table), asdict(rollback))

    def withdraw_rollback(self, table: TableId) -> None:
        """Forget it; nothing happens if it is not there."""
        self._files.delete(_path("rollbacks", table))

    def rollback(self, table: TableId) -> Rollback | None:
        """Return which rewrite of a table is to be undone, None if none is."""
        return self._files.get(_path("rollbacks", table), Rollback, _ASK_AGAIN)

    def ask_regime(self, asked: RegimeAsked) -> None:
        """Keep that a table is to be rewritten in another regime."""
        self._files.put(_path("regimes", asked.table), asdict(asked))

    def withdraw_regime(self, table: TableId) -> None:
        """Forget it; nothing happens if it is not there."""
        self._files.delete(_path("regimes", table))

    def regime(self, table: TableId) -> RegimeAsked | None:
        """Return in which regime a table is to be rewritten, None if nobody asked for that."""
        return self._files.get(_path("regimes", table), RegimeAsked, _ASK_AGAIN)

    def tables_with(self, folder: Requests) -> TablesWith:
        """Return of which tables there is something in a folder, whether or not it can be read."""
        return TablesWith(path.split("/")[1].removesuffix(".json") for path in self._files.paths(folder))

    def ask_reset(self, reset: Reset) -> None:
        """Keep that a table is read again from the start."""
        self._files.put(_path("resets", reset.table), asdict(reset))

    def reset(self, table: TableId) -> Reset | None:
        """Return that word, None if it was not said or is done."""
        return self._files.get(_path("resets", table), Reset, _ASK_AGAIN)

    def has_reset(self, table: TableId) -> None:
        """Forget it, and what was in doubt of the rows of before; nothing happens if it is not there."""
        self.save_doubts(table, ())
        self._files.delete(_path("resets", table))

    def forget(self, table: TableId) -> None:
        """Delete all that is written of a table here, its status last; nothing happens if there is none."""
        name = name_of(table)
        for folder in (*_OF_TABLES, "tables"):
            for path in (f"{folder}/{name}.json", *self._files.paths(f"{folder}/{name}/")):
                self._files.delete(path)

    def save_maintained(self, table: TableId, at: float) -> None:
        """Keep when a table was maintained, in seconds since the epoch."""
        self._files.put(_path("maintained", table), {"at": at}, sort_keys=False, indent=None)

    def maintained(self, table: TableId) -> float | None:
        """Return when a table was maintained, None if it never was or what says so cannot be read."""
        try:
            found = self._files.get(_path("maintained", table), _Maintained, _WRITTEN_ANEW)
        except HistoryError:
            return None  # one round too many does no harm, and writes it anew
        return None if found is None else found.at

    def save_passed(self, table: TableId, marker: str, places: Mapping[tuple[str, int], int]) -> None:
        """Keep up to where a table that holds what a marker says was read without finding anything of its own.

        Args:
            marker: as a text, of which a digest is kept.
            places: topic and partition -> the next offset to read.
        """
        offsets: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in sorted(places.items()):
            offsets.setdefault(topic, {})[str(partition)] = offset
        self._files.put(_path("passed", table), {"marker": _digest(marker), "offsets": offsets})

    def passed(self, table: TableId, marker: str) -> Mapping[tuple[str, int], int]:
        """Return that, empty where it was kept for another marker or not at all."""
        found = self._files.get(_path("passed", table), _Passed, _WRITTEN_ANEW)
        if found is None or found.marker != _digest(marker):
            return {}
        return {(topic, number): at for topic, places in found.offsets.items() for number, at in places.items()}

    def save_resync(self, resync: Resync) -> None:
        """Keep that rows of a table are read again, and how far that has come."""
        self._files.put(f"{_folder('resyncs', resync.table)}{quote(resync.signal, safe='')}.json", asdict(resync))

    def resyncs(self, table: TableId) -> tuple[Resync, ...]:
        """Return what was asked of a table, done or not."""
        found = self._files.all(_folder("resyncs", table), Resync, _ASK_AGAIN)
        return tuple(sorted(found, key=lambda item: (item.version, item.signal)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _path(folder: str, table: TableId) -> str:
    return f"{folder}/{name_of(table)}.json"


def _folder(folder: str, table: TableId) -> str:
    return f"{folder}/{name_of(table)}/"


def _join_path(join: Join) -> str:
    return f"{_folder('joins', join.table)}{join.kept:06d}-{join.joined:06d}.json"


def _redrive_path(asked: Redrive) -> str:
    return f"{_folder('redrives', asked.table)}{quote(asked.id, safe='')}.json"


def _entry(text: str, path: str, table: TableId) -> Entry:
    try:
        return entry_from_json(document(text, path), table)
    except (KeyError, TypeError, ValueError) as error:
        raise HistoryError(f"Cannot read {path}: {error!r}; {_RESTORE}") from None
