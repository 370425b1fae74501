"""Where in a parsed event the parts of a change are: below an envelope, or beside the columns of a flattened row."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.debezium.avro_union import MEMBER
from cdc_sync.core.debezium.forms import AvroBody, Document, FlattenedSchema, Form
from cdc_sync.core.model.positions import TableId
from cdc_sync.spark.conditions import all_of, any_or_false
from cdc_sync.spark.converter import Converter
from cdc_sync.spark.position import avro_source_type, source_type

CORRUPT = "__cdc_sync_corrupt"
_ALWAYS_READ = ("db", "schema", "table", "lsn", "snapshot")


class Layout(Protocol):
    """The parts of a parsed event as expressions."""

    @property
    def needs_key(self) -> bool:
        """Whether the record's key is read too."""
        ...

    @property
    def tells_operation(self) -> bool:
        """Whether a create is told from an update; if not, every row may be an update."""
        ...

    def json_type(self, row: T.StructType, before: T.StructType, all_of_source: bool) -> T.StructType:
        """Return the type a JSON payload is read as."""
        ...

    def avro_type(self, row: list[dict[str, object]], before: list[dict[str, object]], all_of_source: bool) -> object:
        """Return the reader's schema of an Avro body."""
        ...

    def is_of_table(self, table: TableId) -> Column:
        """Return whether the event names the table."""
        ...

    def malformed(self) -> Column:
        """Return whether the payload could not be read."""
        ...

    def op(self) -> Column:
        """Return `c r u d t`."""
        ...

    def source_block(self) -> Column:
        """Return a struct with the members of `position.source_type`."""
        ...

    def source(self, name: str) -> Column:
        """Return one member of it."""
        ...

    def after(self, field: str) -> Column:
        """Return a field's value after the change."""
        ...

    def before(self, field: str) -> Column:
        """Return a field's value before the change, as far as the event has it."""
        ...

    def has_before(self) -> Column:
        """Return whether the event has the row before the change."""
        ...


class EnvelopeLayout:
    """`before`, `after`, `source` and `op`, as connectors write them."""

    needs_key = False
    tells_operation = True

    def __init__(self, *, event: Column, below: str | None) -> None:
        """Take the parsed column; `below` is the member that holds the envelope, None if it is the whole."""
        self._whole = event
        self._below = below
        self._event = event if below is None else event.getField(below)
        self._is_json = False
        self._reads_before = False

    def json_type(self, row: T.StructType, before: T.StructType, all_of_source: bool) -> T.StructType:
        """Return the envelope, and the member in which Spark tells what it could not parse."""
        self._is_json = True
        self._reads_before = bool(before.fields)
        source = [field for field in source_type() if all_of_source or field.name in _ALWAYS_READ]
        parts = {"before": before, "after": row, "source": T.StructType(source), "op": T.StringType()}
        # A struct without members is not a type that Spark reads.
        envelope = [T.StructField(name, kind) for name, kind in parts.items() if kind != T.StructType([])]
        return _with_corrupt(self._below, envelope)

    def avro_type(self, row: list[dict[str, object]], before: list[dict[str, object]], all_of_source: bool) -> object:
        """Return the envelope as a record whose parts are all optional."""
        self._reads_before = bool(before)
        source = [item for item in avro_source_type() if all_of_source or item["name"] in _ALWAYS_READ]
        members = (("before", before), ("after", row), ("source", source))
        fields: list[dict[str, object]] = [
            {
                "name": name,
                "type": ["null", {"type": "record", "name": f"cdc_sync_{name}", "fields": fields}],
                "default": None,
            }
            for name, fields in members
            if fields
        ]
        fields.append({"name": "op", "type": ["null", "string"], "default": None})
        return {"type": "record", "name": "cdc_sync_event", "fields": fields}

    def is_of_table(self, table: TableId) -> Column:
        """Return whether the source block names the table."""
        return _names(self, table)

    def malformed(self) -> Column:
        """Return whether there is no operation, or Spark could not parse some of what was asked for."""
        missing = self.op().isNull()
        return self._whole.getField(CORRUPT).isNotNull() | missing if self._is_json else missing

    def op(self) -> Column:
        """Return the envelope's."""
        return self._event.getField("op")

    def source_block(self) -> Column:
        """Return the envelope's."""
        return self._event.getField("source")

    def source(self, name: str) -> Column:
        """Return one member of it."""
        return self.source_block().getField(name)

    def after(self, field: str) -> Column:
        """Return a field of `after`."""
        return self._event.getField("after").getField(field)

    def before(self, field: str) -> Column:
        """Return a field of `before`."""
        return self._event.getField("before").getField(field)

    def has_before(self) -> Column:
        """Return whether `before` is there; not, where nothing of it is read."""
        if not self._reads_before:
            return F.lit(False)
        return self._event.getField("before").isNotNull()


class FlattenedLayout:
    """A row's columns with the fields that ExtractNewRecordState added; a delete may be a key without a payload."""

    needs_key = True

    def __init__(self, *, event: Column, below: str | None, schema: FlattenedSchema, key: Column | None = None) -> None:
        """Take the parsed column, `below` as above, what its fields are, and the key: a delete may have no more."""
        self._whole = event
        self._below = below
        self._event = event if below is None else event.getField(below)
        self._schema = schema
        self._key = F.lit(None) if key is None else key
        self._is_json = False

    @property
    def tells_operation(self) -> bool:
        """Whether the operation is among what was added."""
        return self._schema.op is not None

    def json_type(self, row: T.StructType, before: T.StructType, all_of_source: bool) -> T.StructType:
        """Return the row with what was added to it."""
        self._is_json = True
        kinds = {field.name: field.dataType for field in source_type()}
        added = {field: kinds[name] for name, field in self._schema.source.items() if name in kinds}
        added |= {field: T.StringType() for field in (self._schema.op, self._schema.deleted) if field is not None}
        members = [T.StructField(field, kind) for field, kind in added.items()]
        return _with_corrupt(self._below, [*row.fields, *members])

    def avro_type(self, row: list[dict[str, object]], before: list[dict[str, object]], all_of_source: bool) -> object:
        """Return the row with what was added to it."""
        kinds = {str(item["name"]): item for item in avro_source_type()}
        added = [{**kinds[name], "name": field} for name, field in self._schema.source.items() if name in kinds]
        added += [
            {"name": field, "type": ["null", "string"], "default": None}
            for field in (self._schema.op, self._schema.deleted)
            if field is not None
        ]
        return {"type": "record", "name": "cdc_sync_row", "fields": [*row, *added]}

    def malformed(self) -> Column:
        """Return whether Spark could not parse some of what was asked for, or `__deleted` is neither true nor false."""
        unread = self._whole.isNotNull() & self._event.isNull()
        checks = [self._whole.getField(CORRUPT).isNotNull() if self._is_json else unread]
        if self._schema.deleted is not None:
            checks.append(~self._event.getField(self._schema.deleted).isin("true", "false"))
        return any_or_false(checks)

    def op(self) -> Column:
        """Return what the event says; without any word of it, a row that may be new or not: `r`."""
        named = self._event.getField(self._schema.op) if self._schema.op else F.lit(None).cast("string")
        given = F.coalesce(named, F.lit("r"))
        if self._schema.deleted is not None:
            given = F.when(self._event.getField(self._schema.deleted) == "true", "d").otherwise(given)
        return F.when(self._has_no_payload(), "d").otherwise(given)

    def _has_no_payload(self) -> Column:
        """Return whether the record is no more than its key; in Avro then there is no value at all."""
        return self._event.isNull() if self._is_json else self._whole.isNull()

    def source_block(self) -> Column:
        """Return a source block of what was added and what is known."""
        return F.struct(*(self.source(field.name).alias(field.name) for field in source_type()))

    def source(self, name: str) -> Column:
        """Return one member of it, NULL if the event does not have it."""
        kind = next(field.dataType for field in source_type() if field.name == name)
        field = self._schema.source.get(name)
        return self._event.getField(field) if field else F.lit(self._schema.constants.get(name)).cast(kind)

    def is_of_table(self, table: TableId) -> Column:
        """Return whether the event names the table; a delete without a payload is told by its key."""
        return self._has_no_payload() | _names(self, table)

    def after(self, field: str) -> Column:
        """Return a field of the row."""
        return self._event.getField(field)

    def before(self, field: str) -> Column:
        """Return a field of the record's key; no other is known."""
        return self._key.getField(field)

    def has_before(self) -> Column:
        """Return that there is none."""
        return F.lit(False)


def layout_of(converter: Converter, event: Column, key: Column) -> Layout:
    """Return where the parts are in the records of a converter, as parsed."""
    below = below_of(converter.value_form)
    if converter.flattened is not None:
        return FlattenedLayout(event=event, below=below, schema=converter.flattened, key=key)
    return EnvelopeLayout(event=event, below=below)


def below_of(form: Form) -> str | None:
    """Return the member of what is parsed that holds the event, None if it is the whole."""
    match form:
        case Document():
            return "payload"
        case AvroBody():
            return MEMBER
        case _:
            return None


def _with_corrupt(below: str | None, event: list[T.StructField]) -> T.StructType:
    """Return the type of a document, with the member in which Spark tells what it could not parse."""
    members = event if below is None else [T.StructField(below, T.StructType(event))]
    return T.StructType([*members, T.StructField(CORRUPT, T.StringType())])


def _names(layout: Layout, table: TableId) -> Column:
    wanted = (("db", table.database), ("schema", table.schema), ("table", table.table))
    return all_of(F.coalesce(layout.source(name), F.lit("")) == F.lit(text) for name, text in wanted)
