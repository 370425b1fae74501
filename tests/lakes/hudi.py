"""Copy-on-write Hudi tables, found by their path: the timeline says which files are the table, Arrow reads them.

Hudi's specification is what the timeline is read by. hudi-rs 0.5 knows the same wherever no column is a timestamp
without zone, at which it panics ("not yet implemented") before it looks at a file; so there it is asked too, and has
to agree.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudi import HudiTableBuilder

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
_DIVIDES = "cdc_sync_by_"
"""What names begin with of columns that a table is partitioned by, beside the source's: `docs/partitions.md`."""
_WIDENED = {"int": "long"}
"""What is widened in place, which every reader of Hudi takes: `docs/hudi.md`."""
_UNKNOWN_TO_HUDI_RS = "local-timestamp-micros"


class HudiLake:
    """The tables below one folder."""

    def __init__(self, target: Target) -> None:
        self._warehouse = Path(target.catalog.warehouse)

    def table(self, place: Place) -> Table | None:
        folder = self._warehouse.joinpath(*place)
        return undisturbed(lambda: _read(folder))

    def stamp(self) -> int | None:
        return newest(self._warehouse.glob("*/*/.hoodie"))

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The commits of a table that are complete and still told of; no logs.

    Attributes:
        instants: when each was made, in order.
        schema: the columns after the last one, as Avro.
        replaced: file groups that a commit put others in the place of.
    """

    instants: tuple[str, ...]
    schema: Mapping[str, Any]
    replaced: frozenset[str]

    def files(self, folder: Path) -> list[Path]:
        """Return the newest file of each file group; what belongs to no complete commit is none of the table."""
        found: dict[str, tuple[str, Path]] = {}
        for file in folder.rglob("*.parquet"):
            group, _, instant = file.stem.split("_")
            # Of commits before the first one that is told of nothing is left but what was complete.
            complete = instant in self.instants or instant < self.instants[0]
            if complete and group not in self.replaced:
                found[group] = max(found.get(group, ("", file)), (instant, file))
        return sorted(file for _, file in found.values())


def timeline(folder: Path) -> Timeline | None:
    """Read the timeline of a table of version 6; None if nothing was committed.

    Source: Hudi's specification, "Timeline" and "File Layout Hierarchy": names of base files, and
    `partitionToReplaceFileIds` of commits that replace.
    """
    found = {}
    for file in (folder / ".hoodie").glob("*commit"):
        instant, _, action = file.name.partition(".")
        if action == "deltacommit":
            raise Misread(f"{folder} may have logs; only copy-on-write tables are read here")
        found[instant] = json.loads(file.read_text())
    if not found:
        return None
    instants = tuple(sorted(found))
    replaced = (ids for commit in found.values() for ids in (commit.get("partitionToReplaceFileIds") or {}).values())
    return Timeline(
        instants=instants,
        schema=json.loads(found[instants[-1]]["extraMetadata"]["schema"]),
        replaced=frozenset(name for ids in replaced for name in ids),
    )


def _read(folder: Path) -> Table | None:
    told = timeline(folder)
    if told is None:
        return None
    files = told.files(folder)
    names = [field["name"] for field in told.schema["fields"]]
    own = (*_OWN, *(name for name in names if name.startswith(_DIVIDES)))
    fields = [field for field in told.schema["fields"] if field["name"] not in own]
    columns = {field["name"]: of_avro(field["type"]) for field in fields}
    rows = [row for file in files for row in rows_of(file, columns, own=own, widened=_WIDENED)]
    if _UNKNOWN_TO_HUDI_RS not in json.dumps(told.schema):
        _check_hudi_rs_agrees(folder, told, files)
    sources = {name: source_name(name) for name in columns}
    return Table(
        columns=tuple((sources[name], type_) for name, type_ in columns.items()),
        rows=[{sources[name]: value for name, value in row.items()} for row in rows],
    )


def _check_hudi_rs_agrees(folder: Path, told: Timeline, files: list[Path]) -> None:
    """Compare the files with those that hudi-rs takes for the table, unless there was a commit meanwhile."""
    theirs = HudiTableBuilder.from_base_uri(folder.as_uri()).build().get_file_slices()
    found = sorted(folder / part.base_file_relative_path() for part in theirs)
    if found != files and timeline(folder) == told:
        raise Misread(f"{folder} is {files} by its timeline, and {found} for hudi-rs")
