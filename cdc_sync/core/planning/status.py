"""What `cdc-sync status` says of one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.resync import Mark

StateName: TypeAlias = Literal["running", "paused", "failing", "waiting", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """What the job last said about one table.

    Attributes:
        target: the target's dotted name, for reading only.
        state: `paused` waits for a decision; `failing` is tried again on its own; `waiting` is before a change that
            the evidence does not tell of yet; `gone`: the source table was dropped.
        version: the schema version of the target's columns, None before the first.
        reason, remedy: why it does not run, and what would let it.
        offsets: topic -> partition -> the next offset to read.
        paused_at: the record it stands before, as topic[partition]@offset.
        counts: what was not applied, by kind, since the table's beginning.
        needs_resync: columns whose values in some rows no event tells.
        replaced_nulls: ids of columns in which a NULL arrived as the default, and until when; see `replaced_nulls`.
        evidence, evidence_gaps: since when what is configured tells of it, and what is missing; see `Coverage`.
    """

    table: TableId
    target: str
    state: StateName
    version: int | None = None
    reason: str | None = None
    remedy: str | None = None
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    paused_at: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    needs_resync: tuple[Mark, ...] = ()
    replaced_nulls: Mapping[int, int] = field(default_factory=dict)
    evidence: Mapping[str, str | None] = field(default_factory=dict)
    evidence_gaps: tuple[str, ...] = ()
