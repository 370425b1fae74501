"""From raw Kafka records to typed values of the head.

A record is recognised by comparing bytes: its value and its key begin with a known schema part or registry id. Only the
payload is parsed, and of it only what is needed. Schemas whose shared fields have the same types are parsed by one
expression over the union of their fields, so that many live versions of a table cost little more than one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.debezium.forms import DecimalFormat, Form, Opaque
from cdc_sync.core.debezium.position import FIRST, LAST
from cdc_sync.core.debezium.wire import WireColumn
from cdc_sync.core.planning.problems import TOO_LARGE, UNKNOWN_SCHEMA
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.projection import Constant, Entry, FromColumn, Untold
from cdc_sync.core.schema.types import DataType, Default
from cdc_sync.spark.changelog import TS, WHOLE_BEFORE
from cdc_sync.spark.columns import (
    HAS_BEFORE,
    HEADERS,
    KEY,
    LSN,
    MADE_UP,
    OFFSET,
    OP,
    OUT_OF_RANGE,
    PARTITION,
    POSITION,
    PROBLEM,
    SNAPSHOT_EDGE,
    VALUE,
    before_column,
    doubt_column,
    unchanged_column,
    value_column,
)
from cdc_sync.spark.conditions import first_of
from cdc_sync.spark.converter import Converter, Decoding
from cdc_sync.spark.decimal_numbers import are_numbers, with_numbers
from cdc_sync.spark.fitting import casts_of, fitted
from cdc_sync.spark.group_columns import (
    FORM,
    IS_KEY_UPDATE,
    MAY_BE_KEY_UPDATE,
    READING,
    settings_of,
    unread_of,
    unsent_of,
)
from cdc_sync.spark.groups import Group, group
from cdc_sync.spark.kept import Projection, kept
from cdc_sync.spark.placeholders import is_placeholder
from cdc_sync.spark.position import incarnation_of, position_at_least, position_before, position_of
from cdc_sync.spark.problems import becomes_null_of, may_name_another_row_of, of_doubts, problem_of, whole_before_of
from cdc_sync.spark.recognise import is_key_update, matches, may_be_key_update, value_has_payload
from cdc_sync.spark.types import literal
from cdc_sync.spark.unchanged import DOUBTS


def convert(
    records: DataFrame, converters: tuple[Converter, ...], head: InternalSchema, decoding: Decoding
) -> DataFrame:
    """Decode records that have a value.

    Args:
        records: columns `key`, `value`, `partition`, `offset` of the Kafka source, and `headers` if ids may be there.
        converters: at least one; a record none of them is for gets the problem `unknown_schema`.
        head: the schema the rows are to have.
        decoding: what is wanted beside the values, and how values are read.

    Returns:
        `partition`, `offset`, `op`, `lsn` (NULL where the connector has none), `problem` (NULL if there is none),
        `snapshot_edge` (whether it is the first or last row of a snapshot), and `value_column(id)` for each head
        column: the values after the change, for deletes only the key's. With `decoding.keep_unchanged` also
        `position`, `unchanged_column(id)` for each column that can be left out, and `doubt_column(id)` (`UNSENT`,
        `UNREAD` or NULL) for each whose value may be in doubt; with `decoding.images` also `has_before` and
        `before_column(id)`; with `decoding.tell_out_of_range` also `out_of_range`, and with `decoding.tell_made_up`
        also `made_up`.
    """
    frame = records
    for projection in _compiled(converters, head, decoding):
        frame = projection.of(frame)
    return frame


def _compiled(converters: tuple[Converter, ...], head: InternalSchema, decoding: Decoding) -> tuple[Projection, ...]:
    """Build the expressions of projections, each over the one before; building them costs more than using them.

    A new schema or a new head is a new key, so nothing is ever invalidated. Each step is a projection of its own, so
    that what two later expressions need is computed once.
    """
    return kept(
        ("compiled", converters, head, decoding),
        lambda: tuple(map(Projection, _Compiler(converters, head, decoding).projections())),
        lambda made: sum(projection.size for projection in made),
    )


class _Compiler:
    """Builds the projections for one set of converters."""

    def __init__(self, converters: tuple[Converter, ...], head: InternalSchema, decoding: Decoding) -> None:
        self._head = head
        self._decoding = decoding
        self._given = converters
        fits = tuple(fitted(item) for item in (with_numbers(converters) if decoding.numbers else converters))
        self._converters = converters = tuple(item.converter for item in fits)
        self._lost = {index: item.lost for index, item in enumerate(fits) if item.lost is not None}
        self._casts = casts_of(converters)
        self._untold = tuple(index for index, item in enumerate(converters) if _has_untold(item, head))
        # Converters that differ only in the positions they are for share a form, and its parsing.
        self._forms = tuple(dict.fromkeys(map(_form_of, converters)))
        self._form_of = [self._forms.index(_form_of(item)) for item in converters]
        self._groups = group(converters, self._form_of, decoding)
        self._group_of = {form: found for found in self._groups for form in found.forms}
        self._bounded = any(item.from_position or item.to_position for item in converters)

    def projections(self) -> tuple[tuple[Column, ...], ...]:
        place = (F.col(PARTITION), F.col(OFFSET), *self._carried())
        form, reading = F.col(FORM), F.col(READING)
        # Each time a row's bytes are asked for they are copied, so the whole value goes no further than it must.
        whole = [F.col(VALUE)] if any(found.wire_format == "avro" for found in self._groups) else []
        key = [F.col(KEY)] if any(found.needs_key for found in self._groups) else []
        payloads = [found.payload for found in self._groups if found.wire_format == "json"]
        parsed = [found.event for found in self._groups]
        parsed += [F.col(found.key_name) for found in self._groups if found.needs_key]
        decoded = [column for found in self._groups for column in found.decoded()]
        return (
            (F.col(PARTITION), F.col(OFFSET), *self._of_headers(), F.col(VALUE), *key, self._form().alias(FORM)),
            (*place, *whole, *key, form, *(column for found in self._groups for column in found.cut_out())),
            (*place, *whole, *key, form, *(column for found in self._groups for column in found.as_text())),
            (*place, form, *payloads, *(column for found in self._groups for column in found.parsed())),
            (*place, form, *payloads, *parsed, self._reading().alias(READING), *decoded),
            (
                F.col(PARTITION),
                F.col(OFFSET),
                self._by_form(lambda found: found.layout.op()).alias(OP),
                self._by_form(lambda found: found.layout.source("lsn")).alias(LSN),
                _kept_whole(self._problem()).alias(PROBLEM),
                *self._asked_for(),
                *(self._value(reading, column.id, before=False) for column in self._head.columns),
                *self._before_images(reading),
                *self._unchanged(reading),
                *self._doubts(reading),
            ),
        )

    def _of_headers(self) -> list[Column]:
        decoding, headers = self._decoding, F.col(HEADERS)
        may_be = [may_be_key_update(headers).alias(MAY_BE_KEY_UPDATE)] if decoding.keep_unchanged else []
        return [*may_be, *([is_key_update(headers).alias(IS_KEY_UPDATE)] if decoding.unsent else [])]

    def _carried(self) -> list[Column]:
        decoding = self._decoding
        asked = ((MAY_BE_KEY_UPDATE, decoding.keep_unchanged), (IS_KEY_UPDATE, decoding.unsent))
        return [F.col(name) for name, is_asked in asked if is_asked]

    def _form(self) -> Column:
        """Return the index of the record's form, NULL if it has none of them, -1 if it is too large to be read."""
        headers = self._decoding.headers
        tests = [(matches(key, value, headers=headers), index) for index, (key, value, _) in enumerate(self._forms)]
        tests = [*self._with_numbers(tests), *tests]
        tests += self._deletes_without_payload()
        limit = self._decoding.max_bytes
        if limit is not None:
            tests.insert(0, (F.length(F.col(VALUE)) > limit, -1))
        return first_of((condition, F.lit(index)) for condition, index in tests)

    def _with_numbers(self, tests: list[tuple[Column, int]]) -> list[tuple[Column, int]]:
        """Return how records are told in which decimals are numbers; their schema is that of others."""
        numeric = {
            form: item
            for item, form in zip(self._converters, self._form_of, strict=True)
            if item.decimal_format == "numeric"
        }
        return [(test & are_numbers(numeric[form]), form) for test, form in tests if form in numeric]

    def _deletes_without_payload(self) -> list[tuple[Column, int]]:
        """Return how deletes of flattened events are told: by their key alone."""
        flattened = {form for item, form in zip(self._converters, self._form_of, strict=True) if item.flattened}
        by_key = {self._forms[form][0]: form for form in sorted(flattened)}
        empty = ~value_has_payload()
        headers = self._decoding.headers
        return [(empty & matches(key, Opaque(), headers=headers), form) for key, form in by_key.items()]

    def _reading(self) -> Column:
        """Return the index of the record's converter, NULL if there is none or the row was truncated since."""
        begin = self._decoding.rows_begin
        if begin is None:
            return self._converter()
        gone = self._by_form(lambda found: position_before(found.layout.source_block(), begin, self._decoding.began))
        return F.when(~F.coalesce(gone, F.lit(False)), self._converter())

    def _converter(self) -> Column:
        if not self._bounded:
            return F.col(FORM)  # one converter for each form, in the same order
        return first_of((self._is_for(index), F.lit(index)) for index in range(len(self._converters)))

    def _is_for(self, index: int) -> Column:
        """Return whether a record is of a converter's form and within its positions."""
        converter, form = self._converters[index], self._form_of[index]
        here = F.col(FORM) == form
        source = self._group_of[form].layout.source_block()
        if converter.from_position is not None:
            here = here & position_at_least(source, converter.from_position, self._decoding.began)
        if converter.to_position is not None:
            here = here & ~position_at_least(source, converter.to_position, self._decoding.began)
        return here

    def _problem(self) -> Column:
        checked = F.when(F.col(READING).isNull(), F.lit(UNKNOWN_SCHEMA)).otherwise(self._by_form(self._problem_of))
        if self._decoding.max_bytes is None:
            return checked
        return F.when(F.col(FORM) < 0, F.lit(TOO_LARGE)).otherwise(checked)

    def _problem_of(self, found: Group) -> Column:
        return problem_of(found, self._lost, self._casts, self._untold)

    def _by_form(self, of: Callable[[Group], Column]) -> Column:
        """Return a group's expression where the record is the group's; with one group no condition is evaluated."""
        if len(self._groups) == 1:
            return of(self._groups[0])
        return first_of((F.col(FORM).isin(*found.forms), of(found)) for found in self._groups)

    def _asked_for(self) -> list[Column]:
        marker = self._by_form(lambda found: found.layout.source("snapshot"))
        asked = [F.coalesce(marker.isin(*FIRST, *LAST), F.lit(False)).alias(SNAPSHOT_EDGE)]
        if self._decoding.tell_out_of_range:
            asked.append(self._by_form(becomes_null_of).alias(OUT_OF_RANGE))
        if self._decoding.tell_made_up:
            asked.append(self._by_form(may_name_another_row_of).alias(MADE_UP))
        if self._decoding.keep_unchanged:
            asked.append(self._by_form(lambda found: self._position(found.layout.source_block())).alias(POSITION))
        if self._decoding.images:
            has_before = self._by_form(lambda found: found.layout.has_before())
            asked.append(F.coalesce(has_before, F.lit(False)).alias(HAS_BEFORE))
        if self._decoding.changelog:
            asked.append(self._by_form(lambda found: found.layout.source("ts_ms")).alias(TS))
            asked.append(self._by_form(whole_before_of).alias(WHOLE_BEFORE))
        return asked

    def _position(self, source: Column) -> Column:
        return position_of(source, incarnation_of(source, self._decoding.began))

    def _value(self, reading: Column, id_: int, *, before: bool) -> Column:
        def of(found: Group, entry: Entry) -> Column:
            match entry:
                case Constant(value=value, target=target):
                    return _literal(value, target)
                case Untold(target=target):
                    return _literal(None, target)
                case FromColumn(name=name):
                    read = found.cast(entry, before=before)
                    left_out = None if before else found.left_out(name)
                    return read if left_out is None else F.when(~left_out, read)

        name = before_column(id_) if before else value_column(id_)
        return self._by_reading(reading, id_, of).alias(name)

    def _before_images(self, reading: Column) -> list[Column]:
        if not self._decoding.images:
            return []
        return [self._value(reading, column.id, before=True) for column in self._head.columns]

    def _unchanged(self, reading: Column) -> list[Column]:
        if not self._decoding.keep_unchanged:
            return []
        found = []
        for id_ in unchangeable(self._given, self._head, self._decoding):
            column = self._by_reading(reading, id_, self._left_out)
            found.append(F.coalesce(column, F.lit(False)).alias(unchanged_column(id_)))
        return found

    def _doubts(self, reading: Column) -> list[Column]:
        if not self._decoding.keep_unchanged:
            return []
        return [
            self._by_reading(reading, id_, self._doubt).alias(doubt_column(id_))
            for id_ in doubtful(self._given, self._head, self._decoding)
        ]

    def _doubt(self, found: Group, entry: Entry) -> Column:
        nothing = F.lit(None).cast("string")
        if not isinstance(entry, FromColumn):
            return nothing
        told = ((of(entry.name), doubt) for of, doubt in zip(of_doubts(found), DOUBTS, strict=True))
        branches = [(condition, F.lit(text)) for condition, text in told if condition is not None]
        return first_of(branches) if branches else nothing

    def _left_out(self, found: Group, entry: Entry) -> Column:
        match entry:
            case FromColumn(name=name):
                condition = found.left_out(name)
                return F.lit(False) if condition is None else condition
            case Untold():
                return found.is_update()
            case Constant():
                return F.lit(False)

    def _by_reading(self, reading: Column, id_: int, of: Callable[[Group, Entry], Column]) -> Column:
        """Return an expression of a head column for each converter; converters with the same one share a branch."""
        by_key: dict[tuple[int, object], list[int]] = {}
        chosen: dict[tuple[int, object], Column] = {}
        for index, converter in enumerate(self._converters):
            entry = next(entry for entry in converter.projection.columns if entry.id == id_)
            found = self._group_of[self._form_of[index]]
            match entry:
                case FromColumn(name=name, casts=casts):  # the group's, by its wire name
                    key: tuple[int, object] = (found.index, (found.field_of(name), casts))
                case Untold():
                    key = (found.index, entry)
                case Constant():  # the same whichever group the record is of
                    key = (-1, entry)
            by_key.setdefault(key, []).append(index)
            if key not in chosen:
                chosen[key] = of(found, entry)
        (default, _), *others = Counter({key: len(indexes) for key, indexes in by_key.items()}).most_common()
        if not others:
            return chosen[default]
        branches = ((reading.isin(*by_key[key]), chosen[key]) for key, _ in others)
        return first_of(branches).otherwise(chosen[default])


def _form_of(converter: Converter) -> tuple[Form, Form, DecimalFormat]:
    return converter.key_form, converter.value_form, converter.decimal_format


def _literal(value: Default, type_: DataType) -> Column:
    return kept(("literal", type(value), value, type_), lambda: literal(value, type_))


def _has_untold(converter: Converter, head: InternalSchema) -> bool:
    entries = converter.projection.columns
    return any(isinstance(entry, Untold) and entry.id not in head.primary_key for entry in entries)


def unchangeable(converters: Iterable[Converter], head: InternalSchema, decoding: Decoding) -> tuple[int, ...]:
    """Return the ids of head columns that some converter may find left out of an event."""
    found = set()
    for converter in converters:
        wires = {column.name: column for column in converter.schema.columns}
        for entry in converter.projection.columns:
            match entry:
                case FromColumn(name=name) if can_be_left_out(wires[name], converter, decoding):
                    found.add(entry.id)
                case Untold(id=id_):
                    found.add(id_)
    return tuple(column.id for column in head.columns if column.id in found and column.id not in head.primary_key)


def can_be_left_out(column: WireColumn, converter: Converter, decoding: Decoding) -> bool:
    """Return whether the connector may send a placeholder, or NULL, in place of the column's value."""
    raw, settings = F.lit(None), settings_of(converter, decoding)
    if column.field in unsent_of(converter, decoding):
        return True
    return is_placeholder(column.wire, raw, converter.wire_format, decoding.placeholder, settings) is not None


def doubtful(converters: Iterable[Converter], head: InternalSchema, decoding: Decoding) -> tuple[int, ...]:
    """Return the ids of head columns whose values some converter may find in doubt."""
    found = set()
    for converter in converters:
        fields = unsent_of(converter, decoding) | unread_of(converter, decoding)
        fields |= converter.unsigned | converter.unread
        names = {column.name for column in converter.schema.columns if column.field in fields}
        entries = converter.projection.columns
        found |= {entry.id for entry in entries if isinstance(entry, FromColumn) and entry.name in names}
    return tuple(column.id for column in head.columns if column.id in found)


def _kept_whole(problem: Column) -> Column:
    """Keep the optimizer from copying the decoding into every filter on the problem.

    Filters are pushed below a projection by copying its expressions, `from_json` once for each column that is checked;
    a projection with a nondeterministic part is left alone.
    """
    return F.when(F.spark_partition_id() >= 0, problem)
