"""What revisions did to lake tables: `migrations/<namespace>.<table>/000001.json`, one file for each entry.

An entry is written before the table is changed, and the table's stamp says that it was; so the newest one may be of a
change that never came to be, and only that one is ever written again.
"""

from __future__ import annotations

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.revisions.applied import Entry, Log, from_json, to_json
from cdc_sync.errors import HistoryError
from cdc_sync.storage.documents import Documents, document
from cdc_sync.storage.object_store import name_of_parts

_FOLDER = "migrations"


class RevisionLogs:
    """Logs of one migrator.

    Every method raises `TransientError` if the store does not answer, and `HistoryError` if a file is damaged.
    """

    def __init__(self, root: str, *, create: bool = False) -> None:
        """Open the files; reading needs no `create`."""
        self._files = Documents(root, create=create)

    def tables(self) -> tuple[TargetName, ...]:
        """Return every table that has a log, ordered."""
        firsts = [path for path in self._files.paths(_FOLDER) if path.endswith("/000001.json")]
        return tuple(sorted(entry.table for path in firsts if (entry := self._entry(path)) is not None))

    def load(self, table: TargetName) -> Log:
        """Return a table's log, an empty one if there is none."""
        paths = self._files.paths(_folder(table))
        wanted = [_path(table, number) for number in range(1, len(paths) + 1)]
        if paths != wanted:
            wrong = sorted({*paths} ^ {*wanted})[0]
            raise HistoryError(f"Cannot read the log of {table}: {wrong} is missing, or does not belong there")
        entries = (self._entry(path) for path in paths)
        return Log(table=table, entries=tuple(entry for entry in entries if entry is not None))

    def begin(self, entry: Entry) -> None:
        """Write down what is about to be done, in place of what was never done."""
        self._files.put(_path(entry.table, entry.number), to_json(entry))

    def _entry(self, path: str) -> Entry | None:
        text = self._files.text(path)
        return None if text is None else from_json(document(text, path), f"{self._files.root}/{path}")


def _folder(table: TargetName) -> str:
    return f"{_FOLDER}/{name_of_parts(table.namespace, table.name)}"


def _path(table: TargetName, number: int) -> str:
    return f"{_folder(table)}/{number:06d}.json"
