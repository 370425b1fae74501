"""InternalSchema: the tracked schema of one table, columns keyed by ids that are never handed out twice."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdc_sync.core.schema.sent import Sent
from cdc_sync.core.schema.types import NESTED, DataType, Default, nested_ids
from cdc_sync.errors import SchemaError


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column for as long as it lives.

    Attributes:
        id: unique in the table's whole history, nested ids included.
        name: the source's name in this version.
        type: what the target column holds.
        optional: whether the source accepts NULL; recorded, never enforced in a target.
        comment: the source's column comment, if the connector sends it.
        default: the source's default for future rows, in canonical form (see `Default`), None if there is none or
            it is not known.
        initial: what rows written before the column existed read, in canonical form; None is NULL.
        retired: the source no longer has this column, but the target keeps it and its data, because nothing proved
            whether it was dropped or renamed.
        sent: how events show it; None where an earlier version of cdc_sync recorded it. What the target holds does not
            depend on it, so columns that differ in nothing else are equal.
    """

    id: int
    name: str
    type: DataType
    optional: bool = True
    comment: str | None = None
    default: Default = None
    initial: Default = None
    retired: bool = False
    sent: Sent | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalSchema:
    """Columns in source order, the primary key, and the highest id ever handed out.

    `last_column_id` covers dropped columns and nested fields too, so that an id is never reused.

    Raises:
        SchemaError: on duplicate ids or names, an id above `last_column_id`, or a key of unknown columns.
    """

    columns: tuple[Column, ...]
    primary_key: tuple[int, ...]
    last_column_id: int

    def __post_init__(self) -> None:
        # Once for every change of a migration: what costs much is done for the error messages only.
        ids = {column.id for column in self.columns}
        parts = [id_ for column in self.columns if isinstance(column.type, NESTED) for id_ in nested_ids(column.type)]
        if len(ids.union(parts)) != len(self.columns) + len(parts):
            raise SchemaError(
                f"Cannot build schema: an id is used twice in {sorted([*(c.id for c in self.columns), *parts])}"
            )
        if len({column.name for column in self.columns}) != len(self.columns):
            names = [column.name for column in self.columns]
            raise SchemaError(f"Cannot build schema: a column name is used twice in {names}")
        highest = max(max(ids, default=0), max(parts, default=0))
        if highest > self.last_column_id:
            raise SchemaError(f"Cannot build schema: id {highest} is above {self.last_column_id=}")
        if not ids.issuperset(self.primary_key):
            raise SchemaError(f"Cannot build schema: key {self.primary_key} names unknown columns")

    def column(self, id_: int) -> Column:
        """Return the column with this id.

        Raises:
            SchemaError: if there is none.
        """
        for column in self.columns:
            if column.id == id_:
                return column
        raise SchemaError(f"Cannot find column: no column has id {id_}")

    def find(self, name: str) -> Column | None:
        """Return the column with exactly this name, or None."""
        return next((column for column in self.columns if column.name == name), None)

    @property
    def live(self) -> tuple[Column, ...]:
        """The columns the source has, in source order: all but the retired ones."""
        return tuple(column for column in self.columns if not column.retired)

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """The primary key's columns in key order."""
        return tuple(self.column(id_) for id_ in self.primary_key)


EMPTY_SCHEMA = InternalSchema(columns=(), primary_key=(), last_column_id=0)
