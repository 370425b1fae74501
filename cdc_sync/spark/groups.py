"""Groups of converters that one expression parses, and where in what it returns the values are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cdc_sync.core.debezium.conversions import logical_type
from cdc_sync.core.debezium.forms import AvroBody, Prefix
from cdc_sync.core.debezium.wire import WireColumn, WireDecimal, WireText
from cdc_sync.core.schema.projection import FromColumn
from cdc_sync.spark.casting import read_as, through
from cdc_sync.spark.columns import VALUE
from cdc_sync.spark.conditions import any_or_false
from cdc_sync.spark.converter import Converter, Decoding
from cdc_sync.spark.decimals import MOST_TOGETHER, decimals_of, together
from cdc_sync.spark.decode import decoder
from cdc_sync.spark.group_columns import (
    FORM,
    IS_KEY_UPDATE,
    MAY_BE_KEY_UPDATE,
    by_index,
    has_whole_before,
    key_fields,
    needed_of,
    read_both,
    read_key,
    settings_of,
    unread_of,
    unsent_of,
)
from cdc_sync.spark.kept import kept
from cdc_sync.spark.layouts import CORRUPT, Layout, layout_of
from cdc_sync.spark.payloads import behind, read_avro
from cdc_sync.spark.placeholders import is_placeholder
from cdc_sync.spark.raw import Format, ReadAs, avro_reader_type, raw_type
from cdc_sync.spark.recognise import are_text, is_text, value_has_payload
from cdc_sync.spark.types import to_spark


class Group:
    """Converters of one layout whose shared fields have the same types.

    The parser and the checks look at every field of the union in every record, so a name that stands for a column that
    is gone in one converter, and for one that is read in another, keeps the two apart; so does one that is of the key
    in one of them only.

    Attributes:
        index: in order of their making; names of columns hold it.
        forms: indexes of the forms that belong to it.
        members: the converters.
        columns: by wire field, every column that is needed of the row.
        layout: where in the parsed event the parts are.
        decoding: how values are read.
    """

    def __init__(self, index: int, decoding: Decoding) -> None:
        self.index = index
        self.forms: list[int] = []
        self.members: list[tuple[int, Converter]] = []
        self.columns: dict[str, WireColumn] = {}
        self._before: dict[str, WireColumn] = {}
        self._fields: dict[str, str] = {}
        self._present: dict[str, WireColumn | None] = {}
        self.decoding = decoding
        self.event = F.col(f"j{index}")
        self.layout: Layout

    def takes(self, converter: Converter, needed: Sequence[WireColumn], before: Sequence[WireColumn]) -> bool:
        """Return whether the converter's fields fit in.

        Args:
            needed: its columns that are read of the row after the change.
            before: those that are read of the row before it.
        """
        if not self.members:
            return True
        first = self.members[0][1]
        if first.decimal_format != converter.decimal_format:
            return False
        if type(first.value_form) is not type(converter.value_form) or first.flattened != converter.flattened:
            return False
        wanted, earlier = ({column.field: column for column in columns} for columns in (needed, before))
        own = {column.field: column for column in converter.schema.columns}
        shared = own.keys() & self._present.keys()
        return (
            all(self._fields.get(column.name, column.field) == column.field for column in (*needed, *before))
            and all((field in wanted) == (field in self.columns) for field in shared)
            and shared & key_fields(converter) == shared & self.key_fields
            and all(read_both(self.columns[field], own[field]) for field in shared & wanted.keys())
            and all(
                read_both(self._present[field], own[field]) for field in shared & (self._before.keys() | earlier.keys())
            )
        )

    def add(self, form: int, converter: Converter, needed: Iterable[WireColumn], before: Iterable[WireColumn]) -> None:
        """Take in a converter that `takes` accepts."""
        if form not in self.forms:
            self.forms.append(form)
        self.members.append((form, converter))
        for column in converter.schema.columns:
            self._present[column.field] = read_both(self._present.get(column.field, column), column)
        for columns, taken in ((self.columns, needed), (self._before, before)):
            for column in taken:
                columns[column.field] = read_both(columns.get(column.field, column), column) or column
                self._fields[column.name] = column.field
        for field, column in self._before.items():
            self._before[field] = self._present[field] or column
        self.layout = layout_of(converter, self.event, F.col(self.key_name))

    @property
    def key_name(self) -> str:
        """The column that holds the parsed key, if it is needed."""
        return f"k{self.index}"

    def field_of(self, name: str) -> str:
        """Return the wire field of a column."""
        return self._fields[name]

    @property
    def settings(self) -> ReadAs:
        """How values are read."""
        return settings_of(self.members[0][1], self.decoding)

    @property
    def needs_key(self) -> bool:
        """Whether the record's key is read, not only compared."""
        return self.layout.needs_key

    @property
    def key_fields(self) -> frozenset[str]:
        """Wire fields of the columns that identify a row, in any of the converters."""
        found = (self._fields.get(name) for _, item in self.members for name in item.schema.key)
        return frozenset(field for field in found if field is not None)

    def has(self, name: str) -> bool:
        """Whether a column is read; a record key may name one that the row does not have."""
        return name in self._fields

    def raw(self, field: str, *, before: bool = False) -> Column:
        """Return a field's value as parsed, after the change or before it."""
        if before or field not in self.key_fields:
            return self.side(field, before=before)
        # A delete has no `after`; of `before` only the key is data without full replica identity.
        sides = (self.side(field, before=False), self.side(field, before=True))
        return kept(("of a key", self.place(field)), lambda: F.coalesce(*sides))

    def side(self, field: str, *, before: bool) -> Column:
        """Return a field's value on one side of the change as the event has it."""
        layout = self.layout
        return kept(
            ("side", self.place(field, before=before)),
            lambda: layout.before(field) if before else layout.after(field),
        )

    def place(self, field: str, *, before: bool = False) -> tuple[object, ...]:
        """Return what tells a field's value, as parsed, from all others: it is the same expression wherever that is."""
        return self.index, type(self.layout), type(self.members[0][1].value_form), field, before

    def converted(self, name: str, *, before: bool = False) -> Column:
        """Return a column's value in its own tracked type."""
        field = self._fields[name]
        shared = self._decimal(field)
        if shared is not None:
            return together(F.col(self._decimals_name), self._decoded_name(field, before=before), *shared)
        if self._decoder(field) is None:
            return self.raw(field, before=before)
        return F.col(self._decoded_name(field, before=before))

    def cast(self, entry: FromColumn, *, before: bool) -> Column:
        """Return a column's value in the type of the head, by way of those between."""
        field, casts, target = self._fields[entry.name], entry.casts, entry.target
        key = ("cast", self.place(field, before=before), self._decoded_name(field, before=before))
        return kept(
            (*key, field in self.key_fields, self.columns[field].wire, self.settings, self.decoding, casts, target),
            lambda: through(self.known(entry, before=before), casts).cast(to_spark(target)),
        )

    def known(self, entry: FromColumn, *, before: bool) -> Column:
        """Return a column's value in the type that its version had, or where that just widens, in the head's."""
        shown = logical_type(self.columns[self._fields[entry.name]].wire)
        known = entry.casts[0] if entry.casts else entry.target
        return read_as(self.converted(entry.name, before=before), shown, known)

    def decoded(self) -> list[Column]:
        """Return the columns that `converted` refers to: a value and the check that it was not lost share them."""
        found: list[Column] = []
        decimals: dict[str, tuple[Column, int, int]] = {}
        for before in self.sides:
            for field in self.columns:
                name, raw = self._decoded_name(field, before=before), self.raw(field, before=before)
                shared, decode = self._decimal(field), self._decoder(field)
                if shared is not None:
                    decimals[name] = (raw, *shared)
                elif decode is not None:
                    found.append(decode(raw).alias(name))
        if decimals:
            found.append(decimals_of(decimals).alias(self._decimals_name))
        texts = self.texts()
        if texts:
            found.append(are_text(texts).alias(f"t{self.index}"))
        return found

    def _decimal(self, field: str) -> tuple[int, int] | None:
        """Return precision and scale of a column that is decoded together with others, None if it is not."""
        match self.columns[field].wire:
            case WireDecimal(precision=int(precision), scale=scale) as wire if precision <= MOST_TOGETHER:
                return (precision, scale) if raw_type(wire, self.wire_format, self.settings) == T.BinaryType() else None
            case _:
                return None

    def texts(self) -> list[Column]:
        """Return the values that are texts only if their bytes are: Avro's, which no parser has looked at."""
        fields = [field for field in self.columns if self.may_be_no_text(field)]
        return [self.raw(field, before=before) for before in self.sides for field in fields]

    def may_be_no_text(self, field: str) -> bool:
        """Return whether a field's text is one only if its bytes are; JSON's texts went through the parser."""
        return self.wire_format == "avro" and isinstance(self.columns[field].wire, WireText)

    @property
    def sides(self) -> tuple[bool, ...]:
        """Which rows of an event are read: the one after the change, and with full images the one before it (True)."""
        return (False, True) if self.decoding.images else (False,)

    @property
    def are_text(self) -> Column:
        """Whether all of `texts` are."""
        return F.col(f"t{self.index}")

    @property
    def _decimals_name(self) -> str:
        return f"m{self.index}"

    def _decoder(self, field: str) -> Callable[[Column], Column] | None:
        return decoder(self.columns[field].wire, self.wire_format, self.settings)

    def _decoded_name(self, field: str, *, before: bool) -> str:
        return f"{'e' if before else 'd'}{self.index}_{list(self.columns).index(field)}"

    def placeholder(self, name: str) -> Column | None:
        """Return whether the event leaves a column's value out, None if it never does."""
        field = self._fields[name]
        raw, wire = self.layout.after(field), self.columns[field].wire
        return is_placeholder(wire, raw, self.wire_format, self.decoding.placeholder, self.settings)

    def left_out(self, name: str) -> Column | None:
        """Return whether the value is to be kept as it was; None if that is not asked for, or never is.

        Only an update can leave a value out, and the create of a row that changed its key: in any other event the
        placeholder is the value.
        """
        if not self.decoding.keep_unchanged:
            return None
        shown = self.placeholder(name)
        found = [None if shown is None else shown & self._is_update_or(MAY_BE_KEY_UPDATE), self.unsent(name)]
        conditions = [condition for condition in found if condition is not None]
        return any_or_false(conditions) if conditions else None

    def unsent(self, name: str) -> Column | None:
        """Return whether a NULL may stand for an unchanged value that has no placeholder, None if it never does.

        It does not where the event has the whole row before the change, for then the connector takes it from there.
        """
        field = self._fields[name]
        if not any(field in unsent_of(converter, self.decoding) for _, converter in self.members):
            return None
        is_null, of_update = self.side(field, before=False).isNull(), self._is_update_or(IS_KEY_UPDATE)
        whole = has_whole_before([item for _, item in self.members], self.layout, self._before)
        return F.coalesce(is_null & of_update & ~whole, F.lit(False))

    def is_unread(self, name: str) -> Column | None:
        """Return whether the connector may not have read a value, None if it always does.

        An array of several dimensions is one of nothing but NULLs then.
        """
        field = self._fields[name]
        if any(field in converter.unread for _, converter in self.members):
            return F.coalesce(self.side(field, before=False).isNull() & (self.layout.op() == "c"), F.lit(False))
        if not any(field in unread_of(converter, self.decoding) for _, converter in self.members):
            return None
        raw = self.side(field, before=False)
        nothing = (F.size(raw) > 0) & F.forall(raw, lambda element: element.isNull())
        return F.coalesce(nothing & (self.layout.op() != "d"), F.lit(False))

    def is_overflown(self, name: str) -> Column | None:
        """Return whether a number is negative that is none at its source, None if that is not known of any."""
        field = self._fields[name]
        if not any(field in converter.unsigned for _, converter in self.members):
            return None
        return F.coalesce((self.side(field, before=False) < 0) & (self.layout.op() != "d"), F.lit(False))

    def _is_update_or(self, key_update: str) -> Column:
        """Return whether an event is an update, or the create of a row that changed its key: those leave values out."""
        op = self.layout.op()
        of_update = (op == "u") | ((op == "c") & F.col(key_update))
        return of_update if self.layout.tells_operation else of_update | (op != "d")

    def is_update(self) -> Column:
        """Return whether an event is an update and says so."""
        return F.coalesce(self.layout.op() == "u", F.lit(False)) if self.layout.tells_operation else F.lit(False)

    @property
    def wire_format(self) -> Format:
        """`json` or `avro`."""
        return self.members[0][1].wire_format

    def parsed(self) -> list[Column]:
        """Return the parsed event, and the parsed key if it is needed."""
        event = (self._from_avro() if self.wire_format == "avro" else self._from_json()).alias(f"j{self.index}")
        return [event, self._key().alias(self.key_name)] if self.needs_key else [event]

    def _key(self) -> Column:
        fields = {field: self.columns[field] for field in self.columns if field in self.key_fields}
        return read_key(dict(self.members), self._row(fields), self._members(fields, "k"))

    @property
    def payload(self) -> Column:
        """The text of a JSON record that holds the payload, in a layout of its own all of it; NULL if it is no text."""
        return F.col(f"p{self.index}")

    def cut_out(self) -> list[Column]:
        """Return the bytes of the payload, for `as_text`; those of other groups' records are NULL."""
        if self.wire_format == "avro":
            return []
        prefixes = {
            form: len(item.value_form.text) for form, item in self.members if isinstance(item.value_form, Prefix)
        }
        data = behind(F.col(VALUE), by_index(prefixes)) if prefixes else F.col(VALUE)
        mine = F.col(FORM).isin(*self.forms)
        if self.needs_key:
            # A payload of null is a delete of a flattened table; of all others such records are left out before.
            # Its schema is not the rows' to the byte, so their prefix does not tell where its payload begins.
            mine = mine & value_has_payload()
        return [F.when(mine, data).alias(self._bytes_name)]

    def as_text(self) -> list[Column]:
        """Return the column that `payload` refers to; the parser would put other characters where bytes are no text."""
        if self.wire_format == "avro":
            return []
        data = F.col(self._bytes_name)
        return [F.when(is_text(data), data.cast("string")).alias(f"p{self.index}")]

    @property
    def _bytes_name(self) -> str:
        return f"b{self.index}"

    def _from_json(self) -> Column:
        event_type = self.layout.json_type(self._row(self.columns), self._row(self._before), self._source())
        return F.from_json(self.payload, event_type, {"columnNameOfCorruptRecord": CORRUPT})

    def _from_avro(self) -> Column:
        reader = self.layout.avro_type(
            self._members(self.columns, "a"), self._members(self._before, "b"), self._source()
        )
        forms = {form: item.value_form for form, item in self.members if isinstance(item.value_form, AvroBody)}
        return read_avro(F.col(VALUE), F.col(FORM), forms, reader)

    def _row(self, columns: dict[str, WireColumn]) -> T.StructType:
        return T.StructType(
            [T.StructField(field, raw_type(column.wire, "json", self.settings)) for field, column in columns.items()]
        )

    def _members(self, columns: dict[str, WireColumn], part: str) -> list[dict[str, object]]:
        # A record inside must have a name that no other has, not even that of the same column before the change.
        return [
            {"name": field, "type": avro_reader_type(column.wire, f"{part}{index}"), "default": None}
            for index, (field, column) in enumerate(columns.items())
        ]

    def _source(self) -> bool:
        """Whether all of the source block is wanted, or only what every event is checked by."""
        decoding = self.decoding
        bounded = any(item.from_position or item.to_position for _, item in self.members)
        more = decoding.keep_unchanged or decoding.images or decoding.changelog or decoding.rows_begin is not None
        return bounded or decoding.refuse_ambiguous_null or more


def group(converters: Sequence[Converter], form_of: Sequence[int], decoding: Decoding) -> tuple[Group, ...]:
    """Put converters into as few groups as their types allow; those of one form into one, which parses its records."""
    of_form: dict[int, list[Converter]] = {}
    for converter, form in zip(converters, form_of, strict=True):
        of_form.setdefault(form, []).append(converter)
    groups: list[Group] = []
    for form, members in of_form.items():
        # What one reads and another does not, at other positions, is read for both.
        several = [needed_of(item, decoding) for item in members]
        needed = list(dict.fromkeys(column for columns, _ in several for column in columns))
        before = list(dict.fromkeys(column for _, columns in several for column in columns))
        home = next((item for item in groups if item.takes(members[0], needed, before)), None)
        if home is None:
            home = Group(len(groups), decoding)
            groups.append(home)
        for converter in members:
            home.add(form, converter, needed, before)
    return tuple(groups)
