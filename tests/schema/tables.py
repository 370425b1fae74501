"""Small tables written as names, and alignments read as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cdc_sync.core.schema.align import align
from cdc_sync.core.schema.alignment import Alignment, Facts
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.observed import ObservedColumn, ObservedSchema
from cdc_sync.core.schema.types import INT32, DataType


def known(names: str, *, retired: str = "", types: Mapping[str, DataType] | None = None) -> InternalSchema:
    """A version with these columns, ids from 1, all INT32 but for `types`, keyed by the first."""
    columns = tuple(
        Column(id=id_, name=name, type=(types or {}).get(name, INT32), retired=name in retired.split())
        for id_, name in enumerate(names.split(), 1)
    )
    return InternalSchema(columns=columns, primary_key=(1,) if columns else (), last_column_id=len(columns))


def seen(names: str, *, types: Mapping[str, DataType] | None = None) -> ObservedSchema:
    """An event with these columns, all INT32 but for `types`, keyed by the first."""
    words = names.split()
    columns = tuple(ObservedColumn(name=name, type=(types or {}).get(name, INT32)) for name in words)
    return ObservedSchema(columns=columns, key=tuple(words[:1]))


POSTGRES = Facts(append_only=True)
MYSQL = Facts(append_only=False)
FIRST_FROM_THE_LOG = replace(POSTGRES, snapshot_boundary=True)


def told(before: InternalSchema, observed: ObservedSchema, facts: Facts = POSTGRES) -> list[str]:
    """What `align` says besides the columns that kept their names, as short sentences in a fixed order."""
    return sentences(before, observed, align(before, observed, facts))


def sentences(before: InternalSchema, observed: ObservedSchema, alignment: Alignment) -> list[str]:
    kinds = {item.subject: item.kind for item in alignment.evidence}
    name = {column.id: column.name for column in before.columns}
    new = [column.name for column in observed.columns]
    said = [
        f"{name[id_]} became {new[index]} ({kinds[name[id_]]})"
        for id_, index in alignment.same
        if name[id_] != new[index]
    ]
    said += [f"{name[id_]} dropped ({kinds[name[id_]]})" for id_ in alignment.dropped]
    said += [f"{new[index]} added ({kinds[new[index]]})" for index in alignment.added]
    for case in alignment.unproven:
        gone = " ".join(name[id_] for id_ in case.vanished) or "nothing"
        said.append(f"{gone} or {' '.join(new[index] for index in case.appeared) or 'nothing'}: unproven")
    return said
