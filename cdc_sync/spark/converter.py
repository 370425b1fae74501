"""What `compile` is given: one converter for each schema and stretch of positions, and how values are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cdc_sync.core.debezium.forms import AvroBody, DecimalFormat, FlattenedSchema, Form
from cdc_sync.core.debezium.wire import EventSchema
from cdc_sync.core.model.incarnations import Began
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.core.schema.projection import Projection


@dataclass(frozen=True, slots=True, kw_only=True)
class Converter:
    """How records of one form become rows of the head.

    Attributes:
        key_form, value_form: what the record's key and value look like.
        table: the source table the payload must name.
        schema: the schema, parsed; its key is what identifies a row, declared or the record key's.
        projection: head columns from the event's.
        flattened: which fields are not columns, for events without an envelope.
        decimal_format: how decimals are written in its records, where the format is JSON.
        unsigned: fields whose column is unsigned at the source, so that a negative number is one that did not fit.
        unread: fields that the connector always shows as NULL where it reads the source's log.
        from_position, to_position: the converter is for events in this half-open range only, where one schema stood
            for different columns at different times; None is unbounded.
    """

    key_form: Form
    value_form: Form
    table: TableId
    schema: EventSchema
    projection: Projection
    flattened: FlattenedSchema | None = None
    from_position: SourcePosition | None = None
    to_position: SourcePosition | None = None
    decimal_format: DecimalFormat = "base64"
    unsigned: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()

    @property
    def may_make_up_values(self) -> bool:
        """Whether `before` may have 0, '' or a default where the connector knows no value and NULL is not allowed.

        Only the Postgres connector knows less than the whole row, as the table's replica identity has it. A connector
        that is not known may be any.
        """
        return self.flattened is None and self.schema.connector in (None, "postgresql")

    @property
    def wire_format(self) -> Literal["json", "avro"]:
        """How payloads are written."""
        return "avro" if isinstance(self.value_form, AvroBody) else "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How values are read, and what is wanted beside them; the same for all converters of a table.

    Attributes:
        refuse_ambiguous_null: make a value that may be a NULL the converter replaced a problem.
        keep_unchanged: tell the values an event leaves out apart, instead of making them a problem; needs `headers` of
            the records.
        unsent: a NULL may stand for an unchanged value that has no placeholder, and an array of NULLs for one that was
            not read; with `keep_unchanged` they are told apart, without it they are a problem. Needs `headers` as well.
        images: return the row before the change as well.
        changelog: every event becomes a row, a truncate too; return what a changelog says of it.
        out_of_range: see `schema.policy.Policy`.
        numbers: records may be there in which decimals are JSON numbers (`decimal.format=NUMERIC`).
        placeholder: the connector's `unavailable.value.placeholder`.
        max_bytes: larger values are not read, None for no limit.
        headers: registry ids may be in record headers.
        rows_begin: events before this position are of rows that a TRUNCATE took away, None if there are none such.
        tell_out_of_range: tell the rows in which a value becomes NULL for being out of range.
        tell_made_up: tell the deletes of which the connector may have made up a part of the key; if false, one is a
            problem, and if None, it is a delete like others.
        began: when the source's log began anew under the table.
    """

    refuse_ambiguous_null: bool = False
    keep_unchanged: bool = False
    unsent: bool = False
    images: bool = False
    changelog: bool = False
    out_of_range: Literal["quarantine", "null", "clamp"] = "quarantine"
    numbers: bool = False
    placeholder: str = "__debezium_unavailable_value"
    max_bytes: int | None = None
    headers: bool = False
    rows_begin: SourcePosition | None = None
    tell_out_of_range: bool = False
    tell_made_up: bool | None = None
    began: Began = ()
