"""What every commit of a Hudi table says about the table, in its extra metadata beside the marker.

Each commit says all of it, so that the newest one is enough: older ones are archived, and clean, rollback, clustering
and compaction make instants of their own that say nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from cdc_sync.core.migration.modes import Mode
from cdc_sync.core.model.progress import PROPERTY, Progress, parse_progress
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.errors import TargetError
from cdc_sync.targets.hudi.partitions import PartitionColumn

STAMP = "cdc_sync.table"
"""The key of the extra metadata that holds `Stamp` as JSON; the marker stands under `progress.PROPERTY`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A state that a savepoint keeps.

    Attributes:
        instant: the commit that led to it.
        version: of the schema it has.
        age: how many commits were made since the rewrite.
    """

    instant: str
    version: int
    age: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What a table is after a commit.

    Attributes:
        version: the schema version of its columns.
        mode: what it was made to hold.
        columns: the name of each column by its id, which the table itself knows nothing of.
        rows: how many there are.
        progress: what they contain, None before anything was written.
        kept: the state before the last rewrite.
        goes_back_to: the instant whose state this commit brought back; those between are undone.
        created: the commit made the table, so that there is none before it.
        partitions: the columns that it was made to be divided by, in order.
        partition_by: the configured text that they are of, or what is left of it; None if there was none.
    """

    version: int
    mode: Mode
    columns: Mapping[int, str]
    rows: int = 0
    progress: Progress | None = None
    kept: Kept | None = None
    goes_back_to: str | None = None
    created: bool = False
    partitions: tuple[PartitionColumn, ...] = ()
    partition_by: str | None = None

    def to_metadata(self) -> dict[str, str]:
        """Return what goes into the commit."""
        data: dict[str, object] = {
            "format": 1,
            "version": self.version,
            "mode": self.mode,
            "columns": {str(id_): name for id_, name in self.columns.items()},
            "rows": self.rows,
        }
        if self.kept is not None:
            data["kept"] = asdict(self.kept)
        if self.goes_back_to is not None:
            data["goes_back_to"] = self.goes_back_to
        if self.created:
            data["created"] = True
        if self.partitions:
            data["partitions"] = [column.to_json() for column in self.partitions]
        if self.partition_by is not None:
            data["partition_by"] = self.partition_by
        marker = {} if self.progress is None else {PROPERTY: self.progress.to_text()}
        return {STAMP: json.dumps(data, separators=(",", ":")), **marker}


def parse_stamp(text: str, marker: str | None) -> Stamp:
    """Read what `Stamp.to_metadata` wrote.

    Raises:
        TargetError: if it is damaged or of a later format.
    """
    try:
        data = json.loads(text)
        if data["format"] != 1:
            raise TargetError(f"Cannot read the table's stamp: format {data['format']} is later than this program")
        kept = data.get("kept")
        return Stamp(
            version=data["version"],
            mode=data["mode"],
            columns={int(id_): name for id_, name in data["columns"].items()},
            rows=data["rows"],
            progress=None if marker is None else parse_progress(marker),
            kept=None if kept is None else Kept(**kept),
            goes_back_to=data.get("goes_back_to"),
            created=data.get("created", False),
            partitions=tuple(map(PartitionColumn.from_json, data.get("partitions", ()))),
            partition_by=data.get("partition_by"),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TargetError(f"Cannot read the table's stamp {text!r}: {error}") from error


def names_of(schema: InternalSchema) -> dict[int, str]:
    """Return the name of each column by its id."""
    return {column.id: column.name for column in schema.columns}
