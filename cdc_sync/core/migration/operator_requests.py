"""What operators ask of a table, and what is written down about its rewrites: values that had no place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdc_sync.core.migration.capabilities import SchemaEvolution
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.positions import KafkaPosition, TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class UnconvertedValue:
    """A value of a row that was there which has no place in its column's new type; the row has NULL instead.

    Attributes:
        key: what the row is found by, as text: its key's columns, or the record that a changelog's row is.
        value: as Spark writes it, bytes in base64; of a column of structs, whose other parts are kept, all as JSON.
    """

    key: Mapping[str, str]
    column: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unconverted:
    """What one rewrite had no place for.

    Attributes:
        version: the version that rewrote the rows.
        counts: rows by column, all of them.
        values: the first of them; all are in the state that the target keeps.
    """

    version: int
    counts: Mapping[str, int]
    values: tuple[UnconvertedValue, ...]


def rolled_back_text(version: int) -> str:
    """Say what a table stands at whose rewrite was undone."""
    return f"version {version} was rolled back: rows and columns are those of version {version - 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """The operator's word that a rewrite is to be undone; the table stays paused as long as it is there.

    Attributes:
        version: the version that rewrote the rows.
    """

    table: TableId
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The operator's word that a table is to be paused; it is as long as this is there.

    Attributes:
        by: who said so, as in "ann@web-1".
        why: in the operator's words, None if none were given.
        at: when it was said, in ISO 8601.
    """

    table: TableId
    by: str
    at: str
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """The operator's word that a table goes on, or tries again; forgotten once it has."""

    table: TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """The operator's word that a table passes one record, which becomes a dead letter. It stays as a trace of that.

    Attributes:
        by, at, why: who said so, when, and in what words.
    """

    table: TableId
    place: KafkaPosition
    by: str
    at: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """The operator's word that a table is read again from the start; forgotten once its target is renamed.

    Attributes:
        into: what its target is called from then on; no other word has this name.
        by, at: who said so, and when.
    """

    table: TableId
    into: TargetName
    by: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotReset:
    """The operator's word that the next snapshot of the whole table takes the place of all that the target holds.

    Attributes:
        since: topic -> partition -> the offset from which on a snapshot may be that one.
        by, at: who said so, and when.
    """

    table: TableId
    since: Mapping[str, Mapping[int, int]]
    by: str
    at: str

    def is_about(self, first: KafkaPosition) -> bool:
        """Whether a snapshot may be that one, by its first row."""
        return first.offset >= self.since.get(first.topic, {}).get(first.partition, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeAsked:
    """The operator's word that a table of the other regime is to be rewritten; forgotten once it is.

    Attributes:
        evolution: what the configuration asked for when this was said.
    """

    table: TableId
    evolution: SchemaEvolution
