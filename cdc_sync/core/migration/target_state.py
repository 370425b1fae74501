"""What a target says about itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdc_sync.core.migration.altered import HeldColumns
from cdc_sync.core.migration.capabilities import SchemaEvolution
from cdc_sync.core.migration.modes import Mode
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetState:
    """What a target says about itself.

    Attributes:
        version: the schema version its columns are stamped with; None if it has no stamp.
        progress: the marker of the newest commit that has one; None if none has.
        mode: what the table was made to hold; a table without a mode is from before there were two.
        rows: how many there are, None where that is not known without reading them.
        size: bytes of data files.
        kept: the version that `Target.roll_back` leads to, None if nothing is kept.
        partitioning: what new files are divided by, in the columns' present names.
        partition_by: the configured text that this was brought to, None if there was none. Where a column went that
            it named, what is left of it: it differs from the configured text then.
        rows_version: of a table that revisions are applied to, the one that its rows are complete for; else None.
        union: of a table that several source tables share, what is stamped beside the version (`cdc_sync.union`).
        evolution: how columns are found in older files, where the format has more than one way.
        logs: changed rows lie in logs beside the files, which readers have to know.
        columns: what it has, None where the format knows no column by more than its name.
    """

    version: int | None
    progress: Progress | None
    mode: Mode = "upsert"
    rows: int | None = None
    size: int = 0
    kept: int | None = None
    partitioning: Partitioning = UNPARTITIONED
    partition_by: str | None = None
    union: str | None = None
    rows_version: int | None = None
    evolution: SchemaEvolution = "on_write"
    logs: bool = False
    columns: HeldColumns | None = field(default=None, compare=False)
