"""Copy-on-write Hudi tables, found by their path: hudi-rs says which files are the table, Arrow reads them.

hudi-rs 0.5 fails at some types where it reads rows by itself (docs/readers.md); what lies in which file it knows.
"""

from __future__ import annotations

import json
from pathlib import Path

from hudi import HudiTable, HudiTableBuilder

from cdc_sync.config import Target
from tests.lakes.files import newest, rows_of, undisturbed
from tests.lakes.table import Misread, Place, Table, source_name
from tests.lakes.words import of_avro

_OWN = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
_WIDENED = {"int": "long"}
"""What is widened in place, which every reader of Hudi takes: `docs/hudi.md`."""


class HudiLake:
    """The tables below one folder."""

    def __init__(self, target: Target) -> None:
        self._warehouse = Path(target.catalog.warehouse)

    def table(self, place: Place) -> Table | None:
        folder = self._warehouse.joinpath(*place)
        if not any((folder / ".hoodie").glob("*.*commit")):
            return None
        return undisturbed(lambda: _read(folder))

    def stamp(self) -> int | None:
        return newest(self._warehouse.glob("*/*/.hoodie"))

    def close(self) -> None:
        """Nothing is open."""


def _read(folder: Path) -> Table:
    found: HudiTable = HudiTableBuilder.from_base_uri(folder.as_uri()).build()
    fields = json.loads(found.get_schema_in_avro_str())["fields"]
    columns = {field["name"]: of_avro(field["type"]) for field in fields if field["name"] not in _OWN}
    rows = []
    for part in found.get_file_slices():
        if part.has_log_files():
            raise Misread(f"{folder} has logs; only copy-on-write tables are read here")
        rows += rows_of(folder / part.base_file_relative_path(), columns, own=_OWN, widened=_WIDENED)
    names = {name: source_name(name) for name in columns}
    return Table(
        columns=tuple((names[name], type_) for name, type_ in columns.items()),
        rows=[{names[name]: value for name, value in row.items()} for row in rows],
    )
