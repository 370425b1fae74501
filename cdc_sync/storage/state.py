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
    snapshot-resets/<table>.json                     one `SnapshotReset`
    skips/<table>/<digest of the record's place>.json one `Skip`
    regimes/<table>.json                             one `RegimeAsked`
    resyncs/<table>/<signal>.json                    one `Resync`
    values/<table>/<digest of the event's place>.json what rows said of columns in doubt, see `lineage.continuity`
    catalogue/<table>/<number>.json                  readings of the source's catalogue, see `lineage.kept`
    maintained/<table>.json                          when a table was maintained
    passed/<table>.json                              how far a table was looked through behind its marker
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import get_args

from cdc_sync.core.lineage.continuity import Compared, Pair
from cdc_sync.core.lineage.kept import Entry, Kept
from cdc_sync.core.lineage.kept_json import entry_from_json, entry_to_json
from cdc_sync.core.migration.altered import HeldColumns
from cdc_sync.core.migration.operator_requests import Unconverted
from cdc_sync.core.model.doubts import Doubt
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.errors import HistoryError
from cdc_sync.storage.dead_letters import DeadLetters
from cdc_sync.storage.documents import Documents, as_value, document
from cdc_sync.storage.object_store import digest, holds_any, is_digest, name_of, table_of
from cdc_sync.storage.requests import Folder, OperatorRequests

_OF_TABLES = (
    *get_args(Folder),
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


_UNTOLD = TableId(database="", schema="", table="(a table whose long name its damaged status does not tell)")


class StateStore:
    """Status, and what is kept beside it, of the tables of one pipeline. Thread-safe for different tables.

    Every method raises `TransientError` if the store does not answer, and `HistoryError` if a file is damaged.

    Attributes:
        dead_letters: the records that were set aside.
        requests: what operators asked of tables.
    """

    def __init__(self, root: str, *, create: bool = False) -> None:
        """Open the files below a pipeline's root; reading needs no `create`."""
        self._files = Documents(root, create=create)
        self.dead_letters = DeadLetters(self._files)
        self.requests = OperatorRequests(self._files)

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
        path = f"{_folder('values', table)}{digest(str(at))[:16]}.json"
        self._files.put(path, {"at": asdict(at), **asdict(compared)}, sort_keys=False)

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
        self._files.put(_path("passed", table), {"marker": digest(marker), "offsets": offsets})

    def passed(self, table: TableId, marker: str) -> Mapping[tuple[str, int], int]:
        """Return that, empty where it was kept for another marker or not at all."""
        found = self._files.get(_path("passed", table), _Passed, _WRITTEN_ANEW)
        if found is None or found.marker != digest(marker):
            return {}
        return {(topic, number): at for topic, places in found.offsets.items() for number, at in places.items()}


def _path(folder: str, table: TableId) -> str:
    return f"{folder}/{name_of(table)}.json"


def _folder(folder: str, table: TableId) -> str:
    return f"{folder}/{name_of(table)}/"


def _entry(text: str, path: str, table: TableId) -> Entry:
    try:
        return entry_from_json(document(text, path), table)
    except (KeyError, TypeError, ValueError) as error:
        raise HistoryError(f"Cannot read {path}: {error!r}; {_RESTORE}") from None
