"""One recorded version of a table's schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from cdc_sync.core.model.incarnations import Began
from cdc_sync.core.model.positions import Commit, KafkaPosition, SourcePosition, TableId
from cdc_sync.core.schema.alignment import Evidence
from cdc_sync.core.schema.changes import SchemaChange
from cdc_sync.core.schema.internal import InternalSchema

Dropped: TypeAlias = Literal["keep", "drop", "archive", "rename"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """What a table was under another name.

    Attributes:
        names: every name it had, oldest first; the last is the one it had right before.
        version: the number of its newest version under that name.
        shown_as, shown_at: under which name, and at which position, an event showed the columns it came with.
    """

    names: tuple[TableId, ...]
    version: int
    shown_as: TableId
    shown_at: SourcePosition


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A state of the schema, and the step that led to it.

    Attributes:
        number: 1 for the first sight of the table, then one more each.
        fingerprint: of the event schema that showed it; several versions may share one.
        changes: from the version before, in canonical order; empty for the first.
        evidence: why the changes are what they are.
        position, kafka: the first event, in source order, that has this schema.
        snapshot: that event was read by a snapshot.
        append_only: the source only adds columns behind the others.
        commit: of that event, kept only where readings of the catalogue tell of the table.
        made_anew: where the source table was created that has the name of an older one; rows from before are gone. None
            if it is the same table.
        dropped: the source table was dropped here, or got another name, and what becomes of its target; no event shows
            it, so `kafka` is the record that tells of it, and the columns stay those of before. None elsewhere.
        renamed_to: the table's name from here on, where `dropped` is `rename`.
        record_key: names of the record key's columns in that event, where rows are found by another, declared key.
        renamed_from: the table came under this name here, with its columns, their ids and its target; nothing of this
            history before counts any more. None elsewhere.
        read_again: it is the first row of a snapshot that read the whole table again.
        began: when the source's log began anew since the version before, oldest first; see `incarnations`.
    """

    table: TableId
    number: int
    fingerprint: str
    schema: InternalSchema
    changes: tuple[SchemaChange, ...]
    evidence: tuple[Evidence, ...]
    position: SourcePosition
    kafka: KafkaPosition
    snapshot: bool
    append_only: bool
    commit: Commit | None = None
    made_anew: SourcePosition | None = None
    dropped: Dropped | None = None
    renamed_to: TableId | None = None
    renamed_from: Former | None = None
    record_key: tuple[str, ...] | None = None
    read_again: bool = False
    began: Began = ()

    @property
    def ends_target(self) -> bool:
        """Whether the target does not outlive this version: a table of the same name gets another one."""
        return self.dropped in ("drop", "archive", "rename")
