"""What one event says about its table: columns and key by name, without ids."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.sent import Sent
from cdc_sync.core.schema.types import DataType, Default, without_ids


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedColumn:
    """A column as an event shows it.

    Attributes:
        type: what the target column holds; all nested ids are 0.
        default: in canonical form, None if there is none or it could not be read.
        suspect_default: the default is what a function default arrives as (0, '', the epoch, the zero UUID, the text
            of an SQL expression), or it could not be read.
        sent: how the event shows the column.
    """

    name: str
    type: DataType
    optional: bool = True
    comment: str | None = None
    default: Default = None
    suspect_default: bool = False
    sent: Sent | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSchema:
    """Columns in the source's order; `key` names the key's columns in key order, empty if records have no key."""

    columns: tuple[ObservedColumn, ...]
    key: tuple[str, ...]

    def shows(self, schema: InternalSchema) -> bool:
        """Whether just the schema's live columns are shown: names, order and types."""
        known = [(column.name, without_ids(column.type)) for column in schema.live]
        return known == [(column.name, column.type) for column in self.columns]
