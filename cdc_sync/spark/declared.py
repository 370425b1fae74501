"""JSON values that are not of the type their schema declares, and that Spark's parser takes all the same.

It makes a text of any value, and an infinity of a number beyond a double; a bare NaN is a number to it. The JSON
converter writes all of these between quotes.
"""

from __future__ import annotations

import json

from pyspark.sql import Column
from pyspark.sql import functions as F

from cdc_sync.core.debezium.conversions import WireFloat
from cdc_sync.core.debezium.forms import Prefix
from cdc_sync.core.debezium.wire import WireDateText, WireInstant, WireText, WireTimestampText, WireType
from cdc_sync.spark.groups import Group
from cdc_sync.spark.kept import kept
from cdc_sync.spark.payloads import is_quoted, lost_quotes

_IN_QUOTES = (WireFloat, WireText, WireInstant, WireDateText, WireTimestampText)
_INFINITE = (float("inf"), float("-inf"), float("nan"))


def not_as_declared(group: Group) -> list[tuple[str, Column]]:
    """Return by column the condition under which its value was no text in JSON although it can only be one.

    Looks only at columns of the row itself, not into arrays, structs and maps. Quotes count wherever the event has a
    member of the column's name: the row before the change may lend them to the one after it.
    """
    if group.wire_format != "json":
        return []
    found = []
    for field, column in group.columns.items():
        member = json.dumps(field, ensure_ascii=False)
        # Converters differ in how they escape what has to be escaped in a name.
        if isinstance(column.wire, _IN_QUOTES) and "\\" not in member:
            found += [
                (column.name, _kept_is_bare(group, field, column.wire, member, before=before))
                for before in _sides(group, field)
            ]
    return found


def _sides(group: Group, field: str) -> tuple[bool, ...]:
    if group.layout.needs_key:
        return (False,)  # what was before is in the record's key, which is elsewhere
    return (False, True) if group.decoding.images or field in group.key_fields else (False,)


def _kept_is_bare(group: Group, field: str, wire: WireType, member: str, *, before: bool) -> Column:
    key = ("is bare", group.place(field, before=before), type(wire), member)
    return kept(key, lambda: _is_bare(group, wire, member, group.side(field, before=before)))


def _is_bare(group: Group, wire: WireType, member: str, value: Column) -> Column:
    compact = isinstance(group.members[0][1].value_form, Prefix)
    if isinstance(wire, (WireInstant, WireTimestampText)):
        # What has a colon and was no text is an object or an array, which are no time either.
        plain = F.coalesce(~F.contains(value, F.lit(":")), F.lit(False))
        return plain & lost_quotes(group.payload, member, value, compact=compact)
    if not isinstance(wire, WireFloat):
        return lost_quotes(group.payload, member, value, compact=compact)
    suspect = F.coalesce(value.isin(*_INFINITE), F.lit(False))
    return suspect & ~is_quoted(group.payload, member, F.lit(""), compact=compact)
