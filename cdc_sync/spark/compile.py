"""From raw Kafka records to typed values of the head, one converter for each schema prefix.

A record is recognised by comparing bytes: its value begins with the schema part of a known prefix, its key with that of
the key. Only the payload is parsed, and of it only what is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.debezium.conversions import EventSchema, WireColumn
from cdc_sync.events import SourcePosition, TableId
from cdc_sync.schema.internal import InternalSchema
from cdc_sync.schema.projection import Constant, FromColumn, Projection
from cdc_sync.spark.columns import KEY, LSN, OFFSET, OP, PARTITION, PROBLEM, VALUE, value_column
from cdc_sync.spark.conditions import all_of, any_of
from cdc_sync.spark.decode import decoder, does_not_convert, is_placeholder, json_type
from cdc_sync.spark.position import position_at_least, source_type
from cdc_sync.spark.types import literal, to_spark

UNKNOWN_SCHEMA = "unknown_schema"
"""Problem: the record has a schema, a key schema or a source table that no converter is for."""
TRUNCATE = "truncate"
PLACEHOLDER_FOUND = "placeholder"
KEY_IS_FALLBACK = "key_is_fallback"
AMBIGUOUS_NULL = "ambiguous_null"
PAUSING = (TRUNCATE, PLACEHOLDER_FOUND, KEY_IS_FALLBACK, AMBIGUOUS_NULL)
"""Problems that stop the table; all others set the record aside."""
MALFORMED = "malformed payload"
UNKNOWN_OPERATION = "unknown operation"
NO_KEY = "key is null"
LOST = "does not convert: column "
"""Prefix of the problem of a value that has no place in its column's type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converter:
    """How records of one prefix become rows of the head.

    Attributes:
        key_prefix, value_prefix: bytes the record's key and value begin with, schema part included.
        table: the source table the payload must name.
        schema: the prefix's schema, parsed.
        projection: head columns from the event's.
        from_position, to_position: the converter is for events in this half-open range only, where one prefix
            stood for different columns at different times; None is unbounded.
    """

    key_prefix: bytes
    value_prefix: bytes
    table: TableId
    schema: EventSchema
    projection: Projection
    from_position: SourcePosition | None = None
    to_position: SourcePosition | None = None


def convert(
    records: DataFrame, converters: tuple[Converter, ...], head: InternalSchema, *, refuse_ambiguous_null: bool
) -> DataFrame:
    """Decode records that have a value.

    Args:
        records: columns `key`, `value`, `partition`, `offset` of the Kafka source, values not null.
        converters: at least one; a record none of them is for gets the problem `unknown_schema`.
        head: the schema the rows are to have.
        refuse_ambiguous_null: make a value that may be a NULL the converter replaced a problem.

    Returns:
        `partition`, `offset`, `op`, `lsn` (NULL where the connector has none), `problem` (NULL if there is none), and
        `value_column(id)` for each head column: the values after the change, for deletes only the key's.
    """
    compiled = _compiled(converters, head, refuse_ambiguous_null)
    parsed = records.select(*compiled.recognised).select(*compiled.parsed)
    return parsed.select(*compiled.decoded).select(*compiled.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compiled:
    """The expressions of four projections, each over the one before; building them costs more than using them."""

    recognised: tuple[Column, ...]
    parsed: tuple[Column, ...]
    decoded: tuple[Column, ...]
    values: tuple[Column, ...]


@lru_cache(maxsize=256)
def _compiled(converters: tuple[Converter, ...], head: InternalSchema, refuse_ambiguous_null: bool) -> _Compiled:
    """Build the expressions; a new schema or a new head is a new key, so nothing is ever invalidated."""
    indexes = range(len(converters))
    guarded = len(converters) > 1
    branches = [
        _Branch(index=index, converter=converter, head=head, refuse_ambiguous_null=refuse_ambiguous_null)
        for index, converter in enumerate(converters)
    ]
    place = (F.col(PARTITION), F.col(OFFSET))
    ops = [(branch.matches, branch.event.getField("op")) for branch in branches]
    lsns = [(branch.matches, branch.event.getField("source").getField("lsn")) for branch in branches]
    values = (
        _choose([(branch.matches, branch.value(column.id)) for branch in branches]).alias(value_column(column.id))
        for column in head.columns
    )
    return _Compiled(
        recognised=(*place, F.col(VALUE), *(matches(converters[i]).alias(f"m{i}") for i in indexes)),
        parsed=(
            *place,
            *(F.col(f"m{i}") for i in indexes),
            *(
                _event(i, converters[i], guarded=guarded, refuse_ambiguous_null=refuse_ambiguous_null).alias(f"j{i}")
                for i in indexes
            ),
        ),
        # A projection of its own: a value and the check that it was not lost then share one conversion.
        decoded=(
            *place,
            *(F.col(f"{letter}{i}") for i in indexes for letter in "mj"),
            *(column for branch in branches for column in branch.decoded()),
        ),
        values=(
            *place,
            _choose(ops).alias(OP),
            _choose(lsns).alias(LSN),
            _kept_whole(_problem(branches)).alias(PROBLEM),
            *values,
        ),
    )


def matches(converter: Converter) -> Column:
    """Return whether a record begins with the converter's prefixes."""
    return F.startswith(F.col(VALUE), F.lit(bytearray(converter.value_prefix))) & F.startswith(
        F.col(KEY), F.lit(bytearray(converter.key_prefix))
    )


def _event(index: int, converter: Converter, *, guarded: bool, refuse_ambiguous_null: bool) -> Column:
    """Return the payload parsed; `guarded` parses only where the record is the converter's."""
    start = len(converter.value_prefix) + 1
    # Everything between the prefix and the wrapper's closing brace.
    payload = F.expr(f"substring({VALUE}, {start}, length({VALUE}) - {start})").cast("string")
    if guarded:
        payload = F.when(F.col(f"m{index}"), payload)
    bounded = converter.from_position is not None or converter.to_position is not None
    event_type = _event_type(converter.schema, all_of_source=bounded or refuse_ambiguous_null)
    return F.from_json(payload, event_type, {"columnNameOfCorruptRecord": _CORRUPT})


_CORRUPT = "__cdc_sync_corrupt"
_ALWAYS_READ = ("db", "schema", "table", "lsn")


def _event_type(schema: EventSchema, *, all_of_source: bool) -> T.StructType:
    source = [field for field in source_type() if all_of_source or field.name in _ALWAYS_READ]
    row = T.StructType([T.StructField(column.name, json_type(column.wire)) for column in schema.columns])
    before = T.StructType(
        [
            T.StructField(column.name, json_type(column.wire))
            for column in schema.columns
            if column.name in schema.key or not column.optional
        ]
    )
    return T.StructType(
        [
            T.StructField("before", before),
            T.StructField("after", row),
            T.StructField("source", T.StructType(source)),
            T.StructField("op", T.StringType()),
            T.StructField(_CORRUPT, T.StringType()),
        ]
    )


def _choose(options: Sequence[tuple[Column, Column]]) -> Column:
    """Return the value of the first branch that matches; with one branch no condition is evaluated."""
    if len(options) == 1:
        return options[0][1]
    chosen = F.when(*options[0])
    for condition, value in options[1:]:
        chosen = chosen.when(condition, value)
    return chosen


class _Branch:
    """One converter over its parsed columns."""

    def __init__(self, *, index: int, converter: Converter, head: InternalSchema, refuse_ambiguous_null: bool) -> None:
        self._index = index
        self._converter = converter
        self._refuse_ambiguous_null = refuse_ambiguous_null
        self._wires = {column.name: column for column in converter.schema.columns}
        self._head = head
        self.event = F.col(f"j{index}")
        self.matches = F.col(f"m{index}")
        source = self.event.getField("source")
        if converter.from_position is not None:
            self.matches = self.matches & position_at_least(source, converter.from_position)
        if converter.to_position is not None:
            self.matches = self.matches & ~position_at_least(source, converter.to_position)

    def value(self, id_: int) -> Column:
        entry = next(entry for entry in self._converter.projection.columns if entry.id == id_)
        match entry:
            case Constant(value=value, target=target):
                return literal(value, target)
            case FromColumn(name=name, target=target):
                return self._converted(self._wires[name]).cast(to_spark(target))

    def _raw(self, column: WireColumn) -> Column:
        after = self.event.getField("after").getField(column.name)
        if column.name in self._converter.schema.key:
            # A delete has no `after`; of `before` only the key is data without full replica identity.
            return F.coalesce(after, self.event.getField("before").getField(column.name))
        return after

    def decoded(self) -> list[Column]:
        """Return the columns that `_converted` refers to."""
        return [
            decode(self._raw(column)).alias(self._decoded_name(column))
            for column in self._converter.schema.columns
            if (decode := decoder(column.wire)) is not None
        ]

    def _decoded_name(self, column: WireColumn) -> str:
        return f"d{self._index}_{self._converter.schema.columns.index(column)}"

    def _converted(self, column: WireColumn) -> Column:
        return self._raw(column) if decoder(column.wire) is None else F.col(self._decoded_name(column))

    def problem(self) -> Column:
        """Return the first thing wrong with the record, NULL if there is nothing."""
        op = self.event.getField("op")
        checks: list[tuple[Column, str]] = [
            (self.event.getField(_CORRUPT).isNotNull() | op.isNull(), MALFORMED),
            (~self._is_of_table(), UNKNOWN_SCHEMA),
            (op == "t", TRUNCATE),
            (~op.isin("c", "u", "d", "r"), UNKNOWN_OPERATION),
            (self._any(self._key_is_null()), NO_KEY),
        ]
        fallback = self._fallback_key()
        if fallback is not None:
            checks.append(((op == "d") & fallback, KEY_IS_FALLBACK))
        placeholders = [
            found
            for column in self._converter.schema.columns
            if (found := is_placeholder(column.wire, self._raw(column))) is not None
        ]
        if placeholders:
            checks.append((self._any(placeholders), PLACEHOLDER_FOUND))
        if self._refuse_ambiguous_null:
            checks += self._ambiguous_null()
        for column in self._converter.schema.columns:
            lost = does_not_convert(column.wire, self._raw(column), self._converted(column))
            if lost is not None:
                checks.append((lost, LOST + column.name))
        return _choose_text(checks)

    def _is_of_table(self) -> Column:
        table = self._converter.table
        source = self.event.getField("source")
        wanted = (("db", table.database), ("schema", table.schema), ("table", table.table))
        return all_of(
            (F.coalesce(source.getField(name), F.lit("")) == F.lit(text) for name, text in wanted),
        )

    def _key_is_null(self) -> list[Column]:
        return [self._raw(self._wires[name]).isNull() for name in self._converter.schema.key]

    def _fallback_key(self) -> Column | None:
        """Return whether a delete's key is made up: REPLICA IDENTITY USING INDEX sends 0 or '' for key columns.

        Such a `before` still holds the real values of the index's NOT NULL columns, which a default identity never
        does (Debezium, Postgres `JdbcValueConverters.convertValue`).
        """
        others = [
            column
            for column in self._converter.schema.columns
            if not column.optional and column.name not in self._converter.schema.key
        ]
        if not others:
            return None
        before = self.event.getField("before")
        made_up = [_is_fallback(before.getField(name), self._wires[name]) for name in self._converter.schema.key]
        real = [~_is_fallback(before.getField(column.name), column) for column in others]
        return all_of(made_up) & self._any(real)

    def _ambiguous_null(self) -> list[tuple[Column, str]]:
        """Find values equal to the default of a nullable column where the converter replaces NULL by the default.

        That it does shows in `source.snapshot`: unset in streaming, so its default "false" appears only then.
        """
        replaces = self.event.getField("source").getField("snapshot") == "false"
        return [
            (replaces & self._converted(column).eqNullSafe(self._default_of(column)), AMBIGUOUS_NULL)
            for column in self._converter.schema.columns
            if column.optional and column.default is not None
        ]

    def _default_of(self, column: WireColumn) -> Column:
        from cdc_sync.debezium.conversions import logical_type

        return literal(column.default, logical_type(column.wire))

    @staticmethod
    def _any(conditions: Sequence[Column]) -> Column:
        return F.coalesce(any_of(conditions), F.lit(False))


def _is_fallback(raw: Column, column: WireColumn) -> Column:
    """Whether a NOT NULL value is what Debezium sends when it has none: 0, '' or false."""
    kind = json_type(column.wire)
    if isinstance(kind, (T.StringType, T.BinaryType)):
        zero = F.length(raw) == 0
    elif isinstance(kind, T.BooleanType):
        zero = ~raw
    elif isinstance(kind, T.ArrayType):
        zero = F.size(raw) == 0
    else:
        zero = raw == 0
    return F.coalesce(zero, F.lit(True))


def _problem(branches: Sequence[_Branch]) -> Column:
    matched = [(branch.matches, branch.problem()) for branch in branches]
    chosen = F.when(*matched[0])
    for condition, problem in matched[1:]:
        chosen = chosen.when(condition, problem)
    return chosen.otherwise(F.lit(UNKNOWN_SCHEMA))


def _kept_whole(problem: Column) -> Column:
    """Keep the optimizer from copying the decoding into every filter on the problem.

    Filters are pushed below a projection by copying its expressions, `from_json` once for each column that is checked;
    a projection with a nondeterministic part is left alone.
    """
    return F.when(F.spark_partition_id() >= 0, problem)


def _choose_text(checks: Sequence[tuple[Column, str]]) -> Column:
    chosen = F.when(checks[0][0], F.lit(checks[0][1]))
    for condition, text in checks[1:]:
        chosen = chosen.when(condition, F.lit(text))
    return chosen
