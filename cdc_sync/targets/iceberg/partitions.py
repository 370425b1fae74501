"""Partition specs of Iceberg tables: made, evolved, and kept readable when a column they are computed from goes.

Iceberg's specs name columns by id, so renames and types that widen in place need nothing here. Two things about them
are not in its specification and hold for its Java library (1.11; tests/targets/test_partitioning.py tries them):

- The name of a partition field must not be that of another column, in specs of the past either, which nothing can
  change any more: a table partitioned by `region` could never get a new column `region` after a rename of that one. So
  fields get names that no column has.
- A column from which a field of any spec, past ones too, is computed must stay: without it the table can still be read,
  but MERGE and several metadata tables fail ("Cannot find field 1000"). So it stays under a name of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from typing_extensions import assert_never

from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.names import held_name
from cdc_sync.core.schema.partitioning import UNITS, Bucket, Identity, PartitionField, Partitioning, Period, Truncate
from cdc_sync.targets.common.properties import PARTITION_PROPERTY

_LEFT = f"{ICEBERG.reserved_prefix}_dropped_"

_WRITING: Mapping[bool, Mapping[str, str]] = {
    False: {
        "write.distribution-mode": "none",
        "write.merge.distribution-mode": "none",
        "write.spark.fanout.enabled": "true",
    },
    # Rows of one partition in one task make one file of them instead of one for each task. Sorted within the task, they
    # need one open file at a time: with fanout, 400 days in one batch took more than a gigabyte.
    True: {
        "write.distribution-mode": "hash",
        "write.merge.distribution-mode": "hash",
        "write.spark.fanout.enabled": "false",
    },
}
"""How rows are brought to their files, by whether the table is partitioned."""


def new_schema_and_spec(jvm: Any, struct: Any, partitioning: Partitioning) -> tuple[Any, Any]:
    """Return Iceberg's schema of Spark's, with the ids that a new table will have, and the spec for it."""
    schema = jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(struct)
    schema = jvm.org.apache.iceberg.types.TypeUtil.assignIncreasingFreshIds(schema)
    builder = jvm.org.apache.iceberg.PartitionSpec.builderFor(schema)
    for item in partitioning.fields:
        column = held_name(item.column, ICEBERG.columns)
        name = _field_name(item, column, schema.findField(column).fieldId())
        match item:
            case Identity():
                builder.identity(column, name)
            case Period(unit=unit):
                getattr(builder, unit)(column, name)
            case Bucket(count=count):
                builder.bucket(column, count, name)
            case Truncate(width=width):
                builder.truncate(column, width, name)
            case _:
                assert_never(item)
    return schema, builder.build()


def properties_of(partitioning: Partitioning | None) -> dict[str, str]:
    """Return what a new table has as properties; None is one of whose partitions nothing is said."""
    stamp = {} if partitioning is None else {PARTITION_PROPERTY: str(partitioning)}
    return dict(_WRITING[partitioning is not None and bool(partitioning.fields)]) | stamp


def partitioning_of(table: Any) -> Partitioning:
    """Return what new files are divided by, in the table's names; other transforms than ours are left out."""
    schema = table.schema()
    found = (_known(schema, field) for field in _partitioned(table.spec()))
    return Partitioning(fields=tuple(item for item in found if item is not None))


def repartition(jvm: Any, transaction: Any, partitioning: Partitioning, given: Mapping[str, str]) -> None:
    """Change the spec, how rows are brought to their files, and the stamp; nothing happens if that is stamped.

    Args:
        given: table properties that the operator set, which stay.
    """
    table = transaction.table()
    if table.properties().get(PARTITION_PROPERTY) == str(partitioning):
        return
    schema = table.schema()
    held = {(field.sourceId(), field.transform().toString()): field.name() for field in _partitioned(table.spec())}
    wanted: dict[tuple[int, str], PartitionField] = {}
    for item in partitioning.fields:
        column = schema.findField(held_name(item.column, ICEBERG.columns))
        wanted[column.fieldId(), _transform(item)] = item
    if held.keys() != wanted.keys():
        update = transaction.updateSpec()
        for place in held.keys() - wanted.keys():
            update.removeField(held[place])
        for place, item in wanted.items():
            if place not in held:
                name = held_name(item.column, ICEBERG.columns)
                update.addField(_field_name(item, name, place[0]), _term(jvm, item, name))
        update.commit()
    set_before = dict(table.properties())
    properties = transaction.updateProperties()
    former, writing = _WRITING[bool(held)], _WRITING[bool(wanted)]
    for key, value in writing.items():
        # What somebody set by hand meanwhile stays as well.
        if key not in given and set_before.get(key) == former[key]:
            properties.set(key, value)
    properties.set(PARTITION_PROPERTY, str(partitioning)).commit()


def release(transaction: Any, name: str) -> tuple[Any, ...]:
    """Take what is computed from a column out of the current spec, and return it: Iceberg's partition fields."""
    table = transaction.table()
    source = table.schema().findField(name).fieldId()
    fields = tuple(field for field in _partitioned(table.spec()) if field.sourceId() == source)
    if fields:
        update = transaction.updateSpec()
        for field in fields:
            update.removeField(field.name())
        update.commit()
    return fields


def leave_out(transaction: Any, name: str) -> Any:
    """Return the update that takes a column away: it goes, or stays under another name if a spec needs it."""
    release(transaction, name)
    table = transaction.table()
    source = table.schema().findField(name).fieldId()
    update = transaction.updateSchema()
    if source not in _sources(table):
        return update.deleteColumn(name)
    last = table.schema().columns()[len(table.schema().columns()) - 1].name()
    if last != name:
        update.moveAfter(name, last)
    return update.renameColumn(name, _left_name(table.schema().findField(name)))


def needed_by_specs(jvm: Any, table: Any, schema: Any) -> Any:
    """Return a schema of before with the columns that specs made since then are computed from, under names of ours."""
    missing = [table.schema().findField(source) for source in _sources(table) if schema.findField(source) is None]
    if not missing:
        return schema
    fields = jvm.java.util.ArrayList(schema.columns())
    for field in missing:
        name = field.name() if field.name().startswith(_LEFT) else _left_name(field)
        fields.add(jvm.org.apache.iceberg.types.Types.NestedField.optional(field.fieldId(), name, field.type()))
    return jvm.org.apache.iceberg.Schema(fields)


def take_back(jvm: Any, transaction: Any, name: str, fields: tuple[Any, ...]) -> None:
    """Compute released fields from the column that has the name now, those that its type has a place for."""
    column = transaction.table().schema().findField(name)
    fitting = [field for field in fields if field.transform().canTransform(column.type())]
    if not fitting:
        return
    update = transaction.updateSpec()
    for field in fitting:
        item = _field(field.transform().toString(), name)
        if item is not None:
            update.addField(_field_name(item, name, column.fieldId()), _term(jvm, item, name))
    update.commit()


def stamp_what_is_left(transaction: Any, before: Partitioning) -> None:
    """Say in the same transaction that the spec is less than was configured, if columns took a part of it away.

    Args:
        before: what the table was divided by.
    """
    after = transaction.table()
    if PARTITION_PROPERTY in after.properties() and len(partitioning_of(after).fields) < len(before.fields):
        transaction.updateProperties().set(PARTITION_PROPERTY, str(partitioning_of(after))).commit()


def left_columns(table: Any) -> tuple[str, ...]:
    """Return which columns of a table stay only because a spec needs them; new rows have NULL there."""
    schema = table.schema()
    names = [schema.findColumnName(source) for source in _sources(table)]
    return tuple(name for name in names if name is not None and name.startswith(_LEFT))


def _partitioned(spec: Any) -> Iterator[Any]:
    # Asked first, for each look at a list is a dozen calls.
    return (field for field in (() if spec.isUnpartitioned() else spec.fields()) if not field.transform().isVoid())


def _sources(table: Any) -> list[int]:
    """Return the ids of all columns that specs, those of the past too, are computed from."""
    return sorted({field.sourceId() for spec in table.specs().values() for field in _partitioned(spec)})


def _left_name(field: Any) -> str:
    return f"{_LEFT}{_plain(field.name())}_{field.fieldId()}"


def _known(schema: Any, field: Any) -> PartitionField | None:
    return _field(field.transform().toString(), schema.findColumnName(field.sourceId()))


def _field(transform: str, column: str) -> PartitionField | None:
    """Read Iceberg's text of a transform. Source: Iceberg specification, "Partition Specs"."""
    numbered = re.fullmatch(r"(bucket|truncate)\[(\d+)\]", transform)
    unit = next((unit for unit in UNITS if unit == transform), None)
    if numbered is not None and numbered[1] == "bucket":
        return Bucket(count=int(numbered[2]), column=column)
    if numbered is not None:
        return Truncate(width=int(numbered[2]), column=column)
    if unit is not None:
        return Period(unit=unit, column=column)
    return Identity(column=column) if transform == "identity" else None


def _transform(item: PartitionField) -> str:
    match item:
        case Identity():
            return "identity"
        case Period(unit=unit):
            return unit
        case Bucket(count=count):
            return f"bucket[{count}]"
        case Truncate(width=width):
            return f"truncate[{width}]"
        case _:
            assert_never(item)


def _term(jvm: Any, item: PartitionField, column: str) -> Any:
    expressions = jvm.org.apache.iceberg.expressions.Expressions
    match item:
        case Identity():
            return expressions.ref(column)
        case Period(unit=unit):
            return getattr(expressions, unit)(column)
        case Bucket(count=count):
            return expressions.bucket(column, count)
        case Truncate(width=width):
            return expressions.truncate(column, width)
        case _:
            assert_never(item)


def _field_name(item: PartitionField, column: str, source: int) -> str:
    """Return the name of a partition field: no column's, for ours begin so, and no other field's."""
    what = re.sub(r"\W", "", _transform(item))
    return f"{ICEBERG.reserved_prefix}_{_plain(column)}_{what}_{source}"


def _plain(name: str) -> str:
    """Return a name as every reader of files and folders takes it."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name)[:50]
