"""Reading operation, table and position of any event, before it is known which columns it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.debezium.forms import PAYLOAD_MARKER, AvroBody, KnownSchema, Prefix
from cdc_sync.core.model.incarnations import Began
from cdc_sync.core.model.positions import TableId
from cdc_sync.spark.columns import VALUE
from cdc_sync.spark.conditions import any_of, first_of
from cdc_sync.spark.layouts import EnvelopeLayout, FlattenedLayout, Layout, below_of
from cdc_sync.spark.payloads import behind, lost_quotes, read_avro
from cdc_sync.spark.position import source_type
from cdc_sync.spark.recognise import digest, is_canonical, value_has_payload

_NAMES = ("db", "schema", "table")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventReader:
    """How the events of a range are read.

    Attributes:
        known: schemas whose records cannot be read without knowing them: Avro, and flattened events.
        headers: whether ids may be in record headers.
        began: the tables under which the source's log began anew, and when; see `incarnations`.
    """

    known: tuple[KnownSchema, ...] = ()
    headers: bool = False
    began: tuple[tuple[TableId, Began], ...] = ()

    @staticmethod
    def of(known: Iterable[KnownSchema], *, headers: bool, began: Mapping[TableId, Began]) -> EventReader:
        """Take from what is known the schemas that are needed."""
        needed = (
            item
            for item in known
            if item.schema is not None and (isinstance(item.value_form, AvroBody) or item.flattened is not None)
        )
        known = tuple(sorted(needed, key=lambda item: item.digest))
        return EventReader(known=known, headers=headers, began=tuple(sorted(began.items())))

    def carries_change(self) -> Column:
        """Return whether a record may be a change: it has a payload."""
        return value_has_payload()

    def digest(self) -> Column:
        """Return the digest of a record's schemas."""
        return digest(headers=self.headers)

    def event(self) -> Column:
        """Return `source` and `op` of a record whose digest is in the column `digest`, NULL where it has none."""
        if not self.known:
            return _json_event()
        groups: dict[object, list[KnownSchema]] = {}
        for item in self.known:
            groups.setdefault(_alike(item), []).append(item)
        branches = (
            (F.col("digest").isin(*(item.digest for item in alike)), _place_and_operation(alike))
            for alike in groups.values()
        )
        return first_of(branches).otherwise(_json_event())


@cache
def _json_event() -> Column:
    """Return `source` and `op` of a record of JSON with its schema, in whatever layout; every range asks for it."""
    value = F.col(VALUE)
    text = value.cast("string")
    event_type = T.StructType([T.StructField("source", source_type()), T.StructField("op", T.StringType())])
    canonical = is_canonical(value)
    schema_size = F.length(F.substring_index(text, PAYLOAD_MARKER, 1).cast("binary"))
    # The wrapper's closing brace is still there; the parser stops before it.
    payload = value.substr(schema_size + len(PAYLOAD_MARKER) + 1, F.length(value)).cast("string")
    in_order = F.from_json(F.when(canonical, payload), event_type)
    document_type = T.StructType([T.StructField("payload", event_type)])
    other = F.when(~canonical & (F.substring(value, 1, 1) != F.lit(bytearray(1))), text)
    document = F.from_json(other, document_type).getField("payload")
    return F.coalesce(_with_names(in_order, text, compact=True), _with_names(document, text, compact=False))


def _with_names(event: Column, text: Column, *, compact: bool) -> Column:
    """Return the event, NULL if database, schema or table is something else than a text in its JSON."""

    def checked(event: Column) -> Column:
        source = event.getField("source")
        bare = (lost_quotes(text, f'"{name}"', source.getField(name), compact=compact) for name in _NAMES)
        return F.when(~any_of(bare), event)

    return _of_one(event, checked)


def _of_one(event: Column, of: Callable[[Column], Column]) -> Column:
    """Return an expression of the event in which it is read once, however often it is asked for."""
    return F.get(F.transform(F.array(event), of), F.lit(0))


def _alike(item: KnownSchema) -> object:
    """Return what tells records apart whose place and operation are read by expressions of their own."""
    if not isinstance(item.value_form, AvroBody):
        return item.digest
    flat = item.flattened
    return flat and (flat.op, flat.deleted, tuple(flat.source.items()), tuple(flat.constants.items()))


def _place_and_operation(alike: Sequence[KnownSchema]) -> Column:
    """Return `source` and `op` of records whose schemas are known, and which say them in the same way."""
    first, which = alike[0], F.col("digest")
    avro = {item.digest: item.value_form for item in alike if isinstance(item.value_form, AvroBody)}
    below = below_of(first.value_form)

    def layout_of(event: Column) -> Layout:
        if first.flattened is None:
            return EnvelopeLayout(event=event, below=below)
        return FlattenedLayout(event=event, below=below, schema=first.flattened)

    empty = layout_of(F.lit(None))
    if avro:
        event = read_avro(F.col(VALUE), which, avro, empty.avro_type([], [], all_of_source=True))
    else:
        form, here, value = first.value_form, which == first.digest, F.col(VALUE)
        text = behind(value, len(form.text)) if isinstance(form, Prefix) else value
        type_ = empty.json_type(T.StructType([]), T.StructType([]), all_of_source=True)
        event = F.from_json(F.when(here, text.cast("string")), type_)

    def place_and_operation(event: Column) -> Column:
        layout = layout_of(event)
        return F.struct(layout.source_block().alias("source"), layout.op().alias("op"))

    return _of_one(event, place_and_operation)
