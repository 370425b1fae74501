"""Files of a pipeline that `status` reads: the state of each table, and the records that were set aside.

Below the pipeline's root (a folder or an object-store URL)::

    tables/<table>.json                              one `TableStatus`
    damaged/<table>.json                             what stood there and could not be read, when the job began it anew
    decisions/<table>.json                           every `Decision`
    joins/<table>/<kept id>-<joined id>.json         one `Join`
    quarantine/<topic>/<partition>/<offset>.jsonl    `QuarantinedRecord`s of one batch, named after the first offset
    unconverted/<table>/<version>.json               the `Unconverted` values of one rewrite
    doubts/<table>.json                              every `Doubt`
    columns/<table>.json                             the `HeldColumns` of its target
    rollbacks/<table>.json                           one `Rollback`
    regimes/<table>.json                             one `RegimeAsked`
    resyncs/<table>/<signal>.json                    one `Resync`
    values/<table>/<digest of the event's place>.json what rows said of columns in doubt, see `lineage.continuity`
    catalogue/<table>/<number>.json                  readings of the source's catalogue, see `lineage.kept`
    maintained/<table>.json                          when a table was maintained
    passed/<table>.json                              how far a table was looked through behind its marker

All text is the same for equal values, so that a backup or a diff shows only what changed.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import obstore
from obstore.exceptions import BaseError, NotFoundError

from cdc_sync.core.lineage.continuity import Compared, Pair
from cdc_sync.core.lineage.kept import Entry, Kept
from cdc_sync.core.lineage.kept_json import entry_from_json, entry_to_json
from cdc_sync.core.migration.altered import HeldColumns, parse_held
from cdc_sync.core.migration.operator_requests import (
    RegimeAsked,
    Rollback,
    Unconverted,
    parse_regime,
    parse_rollback,
    parse_unconverted,
)
from cdc_sync.core.migration.routes import Decision, Join
from cdc_sync.core.model.doubts import Doubt, parse_doubts
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.model.progress import with_number_keys
from cdc_sync.core.planning.resync import Mark, Resync, parse_resync
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.errors import HistoryError, TransientError
from cdc_sync.storage.object_store import holds_any, is_digest, name_of, open_store, table_of

_FORMAT = 1

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedRecord:
    """A record that was not applied, kept whole so that it can be applied later.

    Attributes:
        timestamp: the record's own, in milliseconds since the epoch.
        reason: a short, stable text: `status` counts by it.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    reason: str
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class QuarantineCount:
    """How many records of a topic are set aside for one reason."""

    topic: str
    reason: str
    records: int


class TablesWith:
    """Some tables, known by the names of their files."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)

    def __contains__(self, table: TableId) -> bool:
        return name_of(table) in self._names


_UNTOLD = TableId(database="", schema="", table="(a table whose long name its damaged status does not tell)")


class StateStore:
    """Status and quarantine of one pipeline. Thread-safe for different tables and partitions.

    Every method raises `TransientError` if the store does not answer, and `HistoryError` if a file is damaged.
    """

    def __init__(self, root: str, *, create: bool = False) -> None:
        """Open the files below a pipeline's root; reading needs no `create`."""
        self._root = root
        self._store = self._asked(lambda: open_store(root, create=create))

    def holds_any(self) -> bool:
        """Tell whether a job ever wrote here; of a folder, whether it is there."""
        return self._asked(lambda: holds_any(self._root))

    def save(self, status: TableStatus) -> None:
        """Replace the status of a table, atomically."""
        self._write(_path("tables", status.table), _document(asdict(status)))

    def load(self, table: TableId) -> TableStatus | None:
        """Return the status of a table, None if the job never saw it."""
        path = _path("tables", table)
        text = self._read(path)
        return _parse_status(text, path) if text is not None else None

    def tables(self) -> tuple[TableStatus, ...]:
        """Return the status of every table, ordered by name; one whose file is damaged is failing for that."""
        paths = [path for path in self._paths("tables") if path.endswith(".json")]
        found = [(path, table_of(path.split("/")[1])) for path in paths]
        statuses = [self._status_or_why_not(path, table) for path, table in found if table is not None]
        statuses += [self._status_or_why_not(path, _UNTOLD) for path in paths if is_digest(path.split("/")[1])]
        return tuple(sorted(statuses, key=lambda status: status.table))

    def has_status(self, table: TableId) -> bool:
        """Tell whether there is a status of a table, readable or not."""
        try:
            self._asked(lambda: obstore.head(self._store, _path("tables", table)))
        except (FileNotFoundError, NotFoundError):
            return False
        return True

    def set_status_aside(self, table: TableId) -> str:
        """Keep a status that cannot be read where the next one does not overwrite it; return where."""
        aside = _path("damaged", table)
        self._asked(lambda: obstore.copy(self._store, _path("tables", table), aside))
        return aside

    def decide(self, decision: Decision) -> None:
        """Keep what the operator decided; a later word about the same change takes the place of an earlier one."""
        others = [
            item for item in self.decisions(decision.table) if (item.at, item.after) != (decision.at, decision.after)
        ]
        data = [{**asdict(item), "table": None} for item in (*others, decision)]
        self._write(_path("decisions", decision.table), _document({"decisions": data}))

    def decisions(self, table: TableId) -> tuple[Decision, ...]:
        """Return everything that was decided about a table, oldest first."""
        path = _path("decisions", table)
        text = self._read(path)
        if text is None:
            return ()
        data = _object(text, path)
        if data.get("format") != _FORMAT:
            raise HistoryError(f"Cannot read decisions {path}: they are of another format than {_FORMAT}")
        try:
            return tuple(
                Decision(
                    table=table,
                    at=item["at"],
                    renames=item["renames"],
                    not_same=tuple(item["not_same"]),
                    dropped=tuple(item.get("dropped", ())),
                    after=item.get("after"),
                )
                for item in data["decisions"]
            )
        except (KeyError, TypeError) as error:
            raise HistoryError(f"Cannot read decisions {path}: {error}; decide again after deleting the file") from None

    def readings(self, table: TableId) -> Kept:
        """Return the readings of the source's catalogue that were kept of a table."""
        paths = self._paths(_folder("catalogue", table))
        return Kept(tuple(_parse_entry(self._read(path) or "", path, table) for path in paths))

    def keep(self, table: TableId, number: int, entry: Entry) -> None:
        """Keep one of these; `number` is its place among them."""
        folder = _folder("catalogue", table)
        text = json.dumps({"format": _FORMAT, **entry_to_json(entry)}, sort_keys=True, ensure_ascii=False)
        self._write(f"{folder}/{number:08d}.json", text + "\n")

    def compared(self, table: TableId) -> Mapping[KafkaPosition, Compared]:
        """Return what rows said about a table's columns, by the events whose versions were made by it."""
        paths = self._paths(_folder("values", table))
        return dict(_parse_compared(self._read(path) or "", path) for path in paths)

    def keep_compared(self, table: TableId, at: KafkaPosition, compared: Compared) -> None:
        """Keep one of these."""
        data = {"format": _FORMAT, "at": asdict(at), **asdict(compared)}
        name = hashlib.sha256(str(at).encode()).hexdigest()[:16]
        self._write(f"{_folder('values', table)}/{name}.json", json.dumps(data, indent=2, ensure_ascii=False) + "\n")

    def declare(self, join: Join) -> None:
        """Keep that two columns are one; said again, it takes the place of what was said before."""
        self._write(_join_path(join), _document(asdict(join)))

    def withdraw(self, join: Join) -> None:
        """Forget what was said; nothing happens if it is not there."""
        self._delete(_join_path(join))

    def joins(self, table: TableId) -> tuple[Join, ...]:
        """Return what was said of a table, what is carried out included, oldest first."""
        texts = ((path, self._read(path)) for path in self._paths(_folder("joins", table)) if path.endswith(".json"))
        found = [_parse_join(text, path) for path, text in texts if text is not None]
        return tuple(sorted(found, key=lambda join: (join.after, join.kept, join.joined)))

    def keep_unconverted(self, table: TableId, values: Unconverted) -> None:
        """Keep what a rewrite had no place for; done again, it takes the place of what was kept before."""
        self._write(f"{_folder('unconverted', table)}/{values.version:08d}.json", _document(asdict(values)))

    def unconverted(self, table: TableId) -> tuple[Unconverted, ...]:
        """Return what the rewrites of a table had no place for, oldest first."""
        paths = self._paths(_folder("unconverted", table))
        return tuple(parse_unconverted(_object(self._read(path) or "", path), path) for path in paths)

    def save_held_columns(self, table: TableId, columns: HeldColumns) -> None:
        """Keep the columns that a table's target has now."""
        self._write(_path("columns", table), _document(asdict(columns)))

    def held_columns(self, table: TableId) -> HeldColumns | None:
        """Return the columns that a table's target had, None if none were kept."""
        text = self._read(path := _path("columns", table))
        return None if text is None else parse_held(_object(text, path), path)

    def save_doubts(self, table: TableId, doubts: Iterable[Doubt]) -> None:
        """Write down what the events of a table leave in doubt."""
        self._write(_path("doubts", table), _document({"doubts": [asdict(item) for item in doubts]}))

    def doubts(self, table: TableId) -> tuple[Doubt, ...]:
        """Return what the events of a table leave in doubt."""
        text = self._read(path := _path("doubts", table))
        return () if text is None else parse_doubts(_object(text, path), path)

    def ask_rollback(self, rollback: Rollback) -> None:
        """Keep that a rewrite is to be undone."""
        self._write(_path("rollbacks", rollback.table), _document(asdict(rollback)))

    def withdraw_rollback(self, table: TableId) -> None:
        """Forget it; nothing happens if it is not there."""
        self._delete(_path("rollbacks", table))

    def rollback(self, table: TableId) -> Rollback | None:
        """Return which rewrite of a table is to be undone, None if none is."""
        text = self._read(path := _path("rollbacks", table))
        return None if text is None else parse_rollback(_object(text, path), path)

    def ask_regime(self, asked: RegimeAsked) -> None:
        """Keep that a table is to be rewritten in another regime."""
        self._write(_path("regimes", asked.table), _document(asdict(asked)))

    def withdraw_regime(self, table: TableId) -> None:
        """Forget it; nothing happens if it is not there."""
        self._delete(_path("regimes", table))

    def regime(self, table: TableId) -> RegimeAsked | None:
        """Return in which regime a table is to be rewritten, None if nobody asked for that."""
        text = self._read(path := _path("regimes", table))
        return None if text is None else parse_regime(_object(text, path), path)

    def tables_with(self, folder: Literal["decisions", "joins", "regimes", "resyncs", "rollbacks"]) -> TablesWith:
        """Return of which tables there is something in a folder, whether or not it can be read."""
        return TablesWith(path.split("/")[1].removesuffix(".json") for path in self._paths(folder))

    def save_maintained(self, table: TableId, at: float) -> None:
        """Keep when a table was maintained, in seconds since the epoch."""
        self._write(_path("maintained", table), json.dumps({"format": _FORMAT, "at": at}) + "\n")

    def maintained(self, table: TableId) -> float | None:
        """Return when a table was maintained, None if it never was or what says so cannot be read."""
        path = _path("maintained", table)
        text = self._read(path)
        try:
            return None if text is None else float(_of_our_format(text, path)["at"])
        except (HistoryError, KeyError, TypeError, ValueError):
            return None  # one round too many does no harm, and writes it anew

    def save_passed(self, table: TableId, marker: str, places: Mapping[tuple[str, int], int]) -> None:
        """Keep up to where a table that holds what a marker says was read without finding anything of its own.

        Args:
            marker: as a text, of which a digest is kept.
            places: topic and partition -> the next offset to read.
        """
        offsets: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in sorted(places.items()):
            offsets.setdefault(topic, {})[str(partition)] = offset
        self._write(_path("passed", table), _document({"marker": _digest(marker), "offsets": offsets}))

    def passed(self, table: TableId, marker: str) -> Mapping[tuple[str, int], int]:
        """Return that, empty where it was kept for another marker or not at all."""
        text = self._read(path := _path("passed", table))
        data = {} if text is None else _of_our_format(text, path)
        if data.get("marker") != _digest(marker):
            return {}
        try:
            offsets = with_number_keys(data["offsets"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise HistoryError(f"Cannot read {path}: {error!r}; delete the file, the job writes it anew") from None
        return {(topic, number): at for topic, found in offsets.items() for number, at in found.items()}

    def save_resync(self, resync: Resync) -> None:
        """Keep that rows of a table are read again, and how far that has come."""
        self._write(
            f"{_folder('resyncs', resync.table)}/{quote(resync.signal, safe='')}.json", _document(asdict(resync))
        )

    def resyncs(self, table: TableId) -> tuple[Resync, ...]:
        """Return what was asked of a table, done or not."""
        paths = self._paths(_folder("resyncs", table))
        found = [parse_resync(_object(self._read(path) or "", path), path) for path in paths]
        return tuple(sorted(found, key=lambda item: (item.version, item.signal)))

    def quarantine(self, records: Iterable[QuarantinedRecord]) -> None:
        """Set records aside; doing it again changes nothing.

        Records whose first offset already names a file are added to that file: a repeated batch may be shorter than
        the one that wrote it.
        """
        groups: dict[tuple[str, int], list[QuarantinedRecord]] = {}
        for record in records:
            groups.setdefault((record.topic, record.partition), []).append(record)
        for (topic, partition), group in groups.items():
            path = f"quarantine/{topic}/{partition}/{min(record.offset for record in group)}.jsonl"
            lines = {_record_line(record) for record in group} | set(_lines(self._read(path)))
            ordered = sorted(lines, key=lambda line: (json.loads(line)["offset"], line))
            self._write(path, "".join(f"{line}\n" for line in ordered))

    def quarantined(self) -> Iterator[QuarantinedRecord]:
        """Return every record that was set aside; twice, if two batches wrote it."""
        for path in self._paths("quarantine"):
            for number, line in enumerate(_lines(self._read(path)), 1):
                yield _parse_record(line, f"{path}:{number}")

    def quarantine_counts(self) -> tuple[QuarantineCount, ...]:
        """Count distinct records by topic and reason."""
        places: dict[tuple[str, str], set[tuple[int, int]]] = {}
        for record in self.quarantined():
            places.setdefault((record.topic, record.reason), set()).add((record.partition, record.offset))
        counts = (
            QuarantineCount(topic=topic, reason=reason, records=len(offsets))
            for (topic, reason), offsets in places.items()
        )
        return tuple(sorted(counts))

    def _status_or_why_not(self, path: str, table: TableId) -> TableStatus:
        try:
            return _parse_status(self._read(path) or "", path)
        except HistoryError as error:
            return TableStatus(table=table, target="", state="failing", reason=str(error))

    def _paths(self, folder: str) -> list[str]:
        return self._asked(
            lambda: sorted(item["path"] for chunk in obstore.list(self._store, prefix=folder) for item in chunk)
        )

    def _write(self, path: str, text: str) -> None:
        self._asked(lambda: obstore.put(self._store, path, text.encode()))

    def _read(self, path: str) -> str | None:
        try:
            return self._asked(lambda: bytes(obstore.get(self._store, path).bytes())).decode()
        except (FileNotFoundError, NotFoundError):
            return None
        except UnicodeDecodeError as error:
            raise HistoryError(f"Cannot read {path}: {error}") from None

    def _delete(self, path: str) -> None:
        """Delete a file; nothing happens if it is not there."""
        with contextlib.suppress(FileNotFoundError, NotFoundError):
            self._asked(lambda: obstore.delete(self._store, path))

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except (FileNotFoundError, NotFoundError):
            raise
        except (BaseError, OSError) as error:
            raise TransientError(f"Cannot use state in {self._root}: {' '.join(str(error).split())}") from error


def _lines(text: str | None) -> list[str]:
    # Not splitlines: a text inside the JSON may hold one of the other characters that it takes for a line's end.
    return [line for line in (text or "").split("\n") if line]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _path(folder: str, table: TableId) -> str:
    return f"{folder}/{name_of(table)}.json"


def _folder(folder: str, table: TableId) -> str:
    return f"{folder}/{name_of(table)}"


def _join_path(join: Join) -> str:
    return f"{_folder('joins', join.table)}/{join.kept:06d}-{join.joined:06d}.json"


def _parse_join(text: str, path: str) -> Join:
    data = _of_our_format(text, path, "decision ")
    try:
        return Join(**{**data, "table": TableId(**data["table"])})
    except (KeyError, TypeError) as error:
        raise HistoryError(f"Cannot read decision {path}: {error}; decide again after deleting the file") from None


def _document(data: Mapping[str, Any]) -> str:
    """Write what `_of_our_format` reads."""
    return json.dumps({"format": _FORMAT, **data}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _parse_status(text: str, path: str) -> TableStatus:
    data = _of_our_format(text, path, "status ")
    try:
        return TableStatus(
            **{
                **data,
                "table": TableId(**data["table"]),
                "offsets": with_number_keys(data["offsets"]),
                "warnings": tuple(data["warnings"]),
                "needs_resync": tuple(Mark(**item) for item in data.get("needs_resync", ())),
                "evidence_gaps": tuple(data.get("evidence_gaps", ())),
                "replaced_nulls": {int(id_): at for id_, at in data.get("replaced_nulls", {}).items()},
            }
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HistoryError(f"Cannot read status {path}: {error}; delete the file, the job writes it anew") from None


def _parse_entry(text: str, path: str, table: TableId) -> Entry:
    data = _of_our_format(text, path)
    try:
        return entry_from_json(data, table)
    except (KeyError, TypeError, ValueError) as error:
        raise HistoryError(f"Cannot read {path}: {error!r}; restore the pipeline's state folder") from None


def _parse_compared(text: str, path: str) -> tuple[KafkaPosition, Compared]:
    data = _of_our_format(text, path)
    try:
        at = KafkaPosition(**data.pop("at"))
        pairs = tuple(Pair(**pair) for pair in data.pop("pairs"))
        return at, Compared(pairs=pairs, **data)
    except (KeyError, TypeError) as error:
        raise HistoryError(f"Cannot read {path}: {error!r}; restore the pipeline's state folder") from None


def _record_line(record: QuarantinedRecord) -> str:
    data = {
        **asdict(record),
        "key": base64.b64encode(record.key).decode() if record.key is not None else None,
        "value": base64.b64encode(record.value).decode() if record.value is not None else None,
    }
    return json.dumps(data, sort_keys=True, ensure_ascii=False)


def _parse_record(line: str, place: str) -> QuarantinedRecord:
    data = _object(line, place)
    try:
        decoded = {name: base64.b64decode(data[name]) if data[name] is not None else None for name in ("key", "value")}
        return QuarantinedRecord(**{**data, **decoded})
    except (KeyError, TypeError, ValueError) as error:
        raise HistoryError(f"Cannot read quarantined record {place}: {error}") from None


def _of_our_format(text: str, path: str, what: str = "") -> dict[str, Any]:
    """Read an object and take its format out; `what` says in errors what the file is."""
    data = _object(text, path)
    if data.pop("format", None) != _FORMAT:
        raise HistoryError(f"Cannot read {what}{path}: it is of another format than {_FORMAT}; update cdc_sync")
    return data


def _object(text: str, place: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise HistoryError(f"Cannot read {place}: not JSON: {error}") from None
    if not isinstance(data, dict):
        raise HistoryError(f"Cannot read {place}: not a JSON object")
    return data
