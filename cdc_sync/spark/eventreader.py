"""Reading operation, table and position of any event, before it is known which columns it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from cdc_sync.spark.layouts import EnvelopeLayout, FlattenedLayout, Layout
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
        branches = ((F.col("digest") == item.digest, item) for item in self.known)
        return first_of((here, _place_and_operation(item, here)) for here, item in branches).otherwise(_json_event())


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

    # So that the payload is parsed once, and not once more for the names.
    return F.get(F.transform(F.array(event), checked), F.lit(0))


def _place_and_operation(known: KnownSchema, here: Column) -> Column:
    """Return `source` and `op` of a record whose schema is known."""
    form, value = known.value_form, F.col(VALUE)
    layout: Layout = EnvelopeLayout(event=F.lit(None))
    if known.flattened is not None:
        layout = FlattenedLayout(event=F.lit(None), schema=known.flattened)
    if isinstance(form, AvroBody):
        event = read_avro(value, form, here, layout.avro_type([], [], all_of_source=True))
    else:
        kind = layout.json_type(T.StructType([]), T.StructType([]), all_of_source=True)
        if isinstance(form, Prefix):
            event = F.from_json(F.when(here, behind(value, len(form.text)).cast("string")), kind)
        else:
            document = T.StructType([T.StructField("payload", kind)])
            event = F.from_json(F.when(here, value.cast("string")), document).getField("payload")
    if known.flattened is not None:
        layout = FlattenedLayout(event=event, schema=known.flattened)
        return F.struct(layout.source_block().alias("source"), layout.op().alias("op"))
    return F.struct(event.getField("source").alias("source"), event.getField("op").alias("op"))
