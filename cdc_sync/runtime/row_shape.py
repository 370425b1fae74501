"""How the events of a table become the rows of a batch: by its key, by whole rows, or each as a row of its own."""

from __future__ import annotations

from enum import Enum

from pyspark.sql import DataFrame

from cdc_sync.config.models import Config
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.spark.changelog import changelog
from cdc_sync.spark.converter import Decoding
from cdc_sync.spark.latest import latest
from cdc_sync.spark.rekey import split_key_updates
from cdc_sync.spark.source import in_one_task
from cdc_sync.spark.whole_rows import whole_rows


class Shape(Enum):
    """What finds the row of an event."""

    RECORD_KEY = "the record's key"
    DECLARED_KEY = "a key the operator declared"
    WHOLE_ROW = "all of its values"
    NOTHING = "nothing: every event is a row of its own"


def shape_of(route: Route, schema: InternalSchema) -> Shape:
    """Return how a table's rows are found."""
    if route.append:
        return Shape.NOTHING
    if not schema.primary_key:
        return Shape.WHOLE_ROW
    return Shape.RECORD_KEY if route.key is None else Shape.DECLARED_KEY


def decoding_of(
    config: Config, route: Route, shape: Shape, *, keep_unchanged: bool, numbers: bool, headers: bool
) -> Decoding:
    """Return how a table's records are read."""
    policy, connector = route.policy, config.connector
    return Decoding(
        refuse_ambiguous_null=policy.ambiguous_null == "pause",
        keep_unchanged=keep_unchanged or shape is Shape.NOTHING,
        unsent=policy.unsent_values != "null",
        images=shape is not Shape.RECORD_KEY,
        changelog=shape is Shape.NOTHING,
        out_of_range=policy.out_of_range,
        numbers=numbers or connector.decimal_format == "numeric",
        placeholder=connector.unavailable_value_placeholder,
        max_bytes=config.limits.max_message_bytes,
        headers=headers,
    )


def events_of(converted: DataFrame, schema: InternalSchema, shape: Shape) -> DataFrame:
    """Return events as the rest of the write takes them: one for each key they touch."""
    return split_key_updates(converted, schema) if shape is Shape.DECLARED_KEY else converted


def rows_of(events: DataFrame, schema: InternalSchema, shape: Shape, *, ranges: tuple[OffsetRange, ...]) -> DataFrame:
    """Reduce events of ranges of a topic to the rows that `targets.protocol.Batch` wants of this shape."""
    match shape:
        case Shape.NOTHING:
            return changelog(events, schema, topic=ranges[0].topic)
        case Shape.WHOLE_ROW:
            return whole_rows(events, schema)
        case Shape.RECORD_KEY | Shape.DECLARED_KEY:
            return latest(events, schema, one_task=in_one_task(ranges))
