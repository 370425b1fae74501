"""Three versions of one table: first sight, an added column, a rename."""

from __future__ import annotations

from cdc_sync.core.history.version import Version
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.schema.alignment import Evidence
from cdc_sync.core.schema.changes import AddColumn, RenameColumn, SchemaChange
from cdc_sync.core.schema.evolve import apply_all
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT64, STRING, DecimalType, ListType

ORDERS = TableId(database="shop", schema="public", table="orders")


def at(lsn: int) -> SourcePosition:
    return SourcePosition(kind="postgresql", parts=(lsn, lsn))


def versions(table: TableId = ORDERS) -> tuple[Version, Version, Version]:
    first = InternalSchema(
        columns=(
            Column(id=1, name="id", type=INT64, optional=False),
            Column(id=2, name="note", type=STRING, comment="nach Maß"),
            Column(id=3, name="tags", type=ListType(element_id=4, element=STRING)),
        ),
        primary_key=(1,),
        last_column_id=4,
    )
    price = Column(id=5, name="price", type=DecimalType(precision=10, scale=2), default="1.50", initial="1.50")
    added = _version(
        table, 2, first, (AddColumn(column=price, after=3),), Evidence(subject="price", kind="position", text="added")
    )
    renamed = _version(
        table,
        3,
        added.schema,
        (RenameColumn(id=2, old="note", new="remark"),),
        Evidence(subject="note", kind="declared", text="renamed"),
    )
    sighted = Evidence(subject=str(table), kind="first sight", text="first event of this table")
    return _version(table, 1, first, (), sighted), added, renamed


def _version(
    table: TableId, number: int, before: InternalSchema, changes: tuple[SchemaChange, ...], evidence: Evidence
) -> Version:
    return Version(
        table=table,
        number=number,
        fingerprint=f"{number:016x}",
        schema=apply_all(before, changes),
        changes=changes,
        evidence=(evidence,),
        position=at(number * 10),
        kafka=KafkaPosition(topic="pg.public.orders", partition=0, offset=number),
        snapshot=number == 1,
        append_only=True,
    )
