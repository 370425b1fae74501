"""Where histories are kept: one immutable file for each version, on a folder or an object store.

``<root>/<database>.<schema>.<table>/000001.json``, each part percent-encoded. A file is created only if it is absent,
so that two writers cannot both record a version. There is no wall-clock time in it: replaying the topic gives the
same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotFoundError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Former, Version
from cdc_sync.core.model.positions import Commit, KafkaPosition, SourcePosition, TableId
from cdc_sync.core.schema import serde
from cdc_sync.errors import HistoryError, TransientError, VersionExists
from cdc_sync.storage.object_store import is_digest, name_of, open_store, table_of

T = TypeVar("T")
_REFUSALS = (PermissionDeniedError, UnauthenticatedError, InvalidPathError, NotSupportedError, PermissionError)
"""Errors that asking again does not fix."""


class HistoryStore:
    """Histories below one root. Thread-safe for different tables."""

    def __init__(self, root: str) -> None:
        """Name the root, a folder or an object-store URL; it is made when the first version is recorded."""
        self._root = root

    def tables(self) -> tuple[TableId, ...]:
        """Return every table with a recorded version, ordered."""
        store = self._open(create=False)
        paths = self._asked(lambda: _listed(store))
        found = {table_of(path.split("/")[0]) for path in paths}
        firsts = (path for path in paths if is_digest(path.split("/")[0]) and path.endswith(f"/{_FIRST}"))
        found |= {self._version(store, path).table for path in firsts}
        return tuple(sorted(table for table in found if table is not None))

    def load(self, table: TableId) -> History:
        """Return a table's history.

        Raises:
            HistoryError: if there is none, or it is damaged.
        """
        found = self.find(table)
        if found is None:
            raise HistoryError(f"Cannot find history of {table}: no version of it is recorded in {self._root}")
        return found

    def find(self, table: TableId) -> History | None:
        """Return a table's history, None if no version is recorded.

        Raises:
            HistoryError: if it is damaged: a file is missing between others, is not what `append` writes, or does
                not follow from the one before.
            TransientError: if the store does not answer.
        """
        store = self._open(create=False)
        names = self._asked(lambda: _listed(store, f"{name_of(table)}/"))
        expected = [_path(table, number) for number in range(1, len(names) + 1)]
        if sorted(names) != expected:
            wrong = sorted(set(names) ^ set(expected))[0]
            raise HistoryError(
                f"Cannot read history of {table}: {self._root}/{wrong} is missing, or does not belong there"
            )
        versions = [self._version(store, path) for path in expected]
        return History(table=table, versions=tuple(versions)) if versions else None

    def append(self, version: Version) -> None:
        """Record a version; recording the very same one again is no change.

        Raises:
            VersionExists: if another version of this number is there.
            HistoryError: if the version before is not recorded, or the store refuses.
            TransientError: if the store does not answer.
        """
        store = self._open(create=True)
        path = _path(version.table, version.number)
        text = version_to_text(version)
        before = _path(version.table, version.number - 1)
        if version.number > 1 and self._asked(lambda: _read(store, before)) is None:
            raise HistoryError(
                f"Cannot record version {version.number} of {version.table}: {self._root}/{before} is missing"
            )
        try:
            self._asked(lambda: obstore.put(store, path, text.encode(), mode="create"))
        except AlreadyExistsError:
            if self._asked(lambda: _read(store, path)) != text:
                raise VersionExists(
                    f"Cannot record version {version.number} of {version.table}: another one is recorded"
                ) from None

    def _open(self, *, create: bool) -> ObjectStore:
        try:
            return open_store(self._root, create=create)
        except (BaseError, OSError, ValueError) as error:
            raise HistoryError(f"Cannot open history store {self._root}: {_first_line(error)}") from error

    def _version(self, store: ObjectStore, path: str) -> Version:
        text = self._asked(lambda: _read(store, path))
        if text is None:
            raise TransientError(f"Cannot read history file {self._root}/{path}: it was listed, but is not there")
        return _version_from_text(text, f"{self._root}/{path}")

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except AlreadyExistsError:
            raise
        except _REFUSALS as error:
            raise HistoryError(f"Cannot use history store {self._root}: {_first_line(error)}") from error
        except (BaseError, OSError) as error:
            raise TransientError(f"Cannot use history store {self._root}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """The store's errors go on with a dump of its own data structures."""
    return str(error).partition("\n")[0]


def _listed(store: ObjectStore, prefix: str | None = None) -> list[str]:
    paths = [item["path"] for chunk in obstore.list(store, prefix) for item in chunk]
    return [path for path in paths if path.endswith(".json")]


def _read(store: ObjectStore, path: str) -> str | None:
    try:
        return bytes(obstore.get(store, path).bytes()).decode()
    except (FileNotFoundError, NotFoundError):
        return None


_FIRST = "000001.json"


def _path(table: TableId, number: int) -> str:
    return f"{name_of(table)}/{number:06d}.json"


def version_to_text(version: Version) -> str:
    """Return the file of a version."""
    return serde.to_text(
        {
            "table": {
                "database": version.table.database,
                "schema": version.table.schema,
                "table": version.table.table,
            },
            "version": version.number,
            "fingerprint": version.fingerprint,
            "source_position": str(version.position),
            "kafka": {
                "topic": version.kafka.topic,
                "partition": version.kafka.partition,
                "offset": version.kafka.offset,
            },
            "first_seen_in_snapshot": version.snapshot,
            "append_only_source": version.append_only,
            **({} if version.commit is None else {"commit": {"at": version.commit.at, "xid": version.commit.xid}}),
            **({} if version.made_anew is None else {"made_anew": str(version.made_anew)}),
            **({} if version.dropped is None else {"dropped": version.dropped}),
            **({} if version.renamed_to is None else {"renamed_to": asdict(version.renamed_to)}),
            **({} if version.renamed_from is None else {"renamed_from": _former_to_json(version.renamed_from)}),
            **({} if version.record_key is None else {"record_key": list(version.record_key)}),
            **({} if not version.read_again else {"read_again": True}),
            **({} if not version.began else {"log_began": list(version.began)}),
            "changes": [serde.change_to_json(change) for change in version.changes],
            "evidence": [serde.evidence_to_json(item) for item in version.evidence],
            "columns_and_key": serde.schema_to_json(version.schema),
        }
    )


def _former_to_json(former: Former) -> dict[str, object]:
    return {
        "names": [asdict(name) for name in former.names],
        "version": former.version,
        "shown_as": asdict(former.shown_as),
        "shown_at": str(former.shown_at),
    }


def _former_from_json(data: Mapping[str, Any]) -> Former:
    return Former(
        names=tuple(TableId(**name) for name in data["names"]),
        version=data["version"],
        shown_as=TableId(**data["shown_as"]),
        shown_at=SourcePosition.parse(data["shown_at"]),
    )


def _version_from_text(text: str, place: str) -> Version:
    data = serde.from_text(text)
    try:
        return Version(
            table=TableId(**data["table"]),
            number=data["version"],
            fingerprint=data["fingerprint"],
            schema=serde.schema_from_json(data["columns_and_key"]),
            changes=tuple(serde.change_from_json(change) for change in data["changes"]),
            evidence=tuple(serde.evidence_from_json(item) for item in data["evidence"]),
            position=SourcePosition.parse(data["source_position"]),
            kafka=KafkaPosition(**data["kafka"]),
            snapshot=data["first_seen_in_snapshot"],
            append_only=data["append_only_source"],
            commit=Commit(**data["commit"]) if "commit" in data else None,
            made_anew=SourcePosition.parse(data["made_anew"]) if "made_anew" in data else None,
            dropped=data.get("dropped"),
            renamed_to=TableId(**data["renamed_to"]) if "renamed_to" in data else None,
            renamed_from=_former_from_json(data["renamed_from"]) if "renamed_from" in data else None,
            record_key=tuple(data["record_key"]) if "record_key" in data else None,
            read_again=data.get("read_again", False),
            began=tuple(data.get("log_began", ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise HistoryError(f"Cannot read history file {place}: {error!r}") from error
