"""Many revisions of a table as one: new lakes make the table as it is in the end, old ones know that they have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cdc_sync.core.migration.derived import followed
from cdc_sync.core.migration.migration import with_schemas
from cdc_sync.core.revisions.actions import CreateTable, NewColumn
from cdc_sync.core.revisions.applied import Entry, Log
from cdc_sync.core.revisions.compile import WAS_PREFIX, compiled
from cdc_sync.core.revisions.revision import Revision
from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning, field_text
from cdc_sync.core.schema.type_words import type_words
from cdc_sync.errors import RefusedError


def squashed(revisions: Sequence[Revision]) -> Revision:
    """Return the revision that makes a table as a chain of others does.

    Args:
        revisions: of one table, in order, of which nothing is wrong.

    Raises:
        RefusedError: if the table was adopted: only the lake knows its columns.
    """
    first = revisions[0]
    if not isinstance(first.actions[0], CreateTable):
        raise RefusedError(f"Cannot squash {first.table}: {first.id} adopts it, and only the lake knows its columns")
    schema, partitioning = None, UNPARTITIONED
    for revision in revisions:
        made = compiled(revision.actions, schema)
        if made.partitioning is not None:
            partitioning = made.partitioning
        elif schema is not None:
            partitioning = followed(partitioning, with_schemas(schema, made.changes))
        schema = made.schema
    assert schema is not None
    columns = tuple(
        NewColumn(name=column.name, type=column.type, comment=column.comment)
        for column in schema.columns
        if not column.name.startswith(WAS_PREFIX)
    )
    replaced = [id_ for revision in revisions for id_ in (*revision.replaces, revision.id)]
    return replace(
        first, actions=(CreateTable(columns=columns, partitioning=partitioning),), replaces=tuple(replaced), parents=()
    )


def resolved(revisions: Sequence[Revision]) -> tuple[Revision, ...]:
    """Return revisions whose parents, and what they depend on, are those that stand for the ones that are named."""
    stand: Mapping[str, str] = {id_: revision.id for revision in revisions for id_ in revision.replaces}

    def named(ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(stand.get(id_, id_) for id_ in ids))

    return tuple(replace(it, parents=named(it.parents), depends_on=named(it.depends_on)) for it in revisions)


def taken_as_done(revision: Revision, log: Log) -> Entry | None:
    """Return the entry of a table that has all that a revision replaces; None if it has none of it.

    Raises:
        RefusedError: if it has some of it.
    """
    done = {entry.revision for entry in log.in_effect}
    if not done & {*revision.replaces}:
        return None
    lacks = [id_ for id_ in revision.replaces if id_ not in done]
    if lacks:
        raise RefusedError(
            f"Cannot apply {revision.file}: it stands for {len(revision.replaces)} revisions, and {revision.table} has "
            f"some of them, but not {', '.join(lacks)}; apply those first, from the files of before"
        )
    newest = log.entries[-1]
    return Entry(
        table=log.table,
        number=newest.number + 1,
        revision=revision.id,
        digest=revision.digest,
        text=revision.text,
        changes=(),
        schema=newest.schema,
        replaces=revision.replaces,
    )


def written(revision: Revision) -> dict[str, object]:
    """Return what the file of a squashed revision says."""
    (made,) = revision.actions
    assert isinstance(made, CreateTable)
    return {"replaces": list(revision.replaces), "actions": [{"create_table": _table(made.columns, made.partitioning)}]}


def _table(columns: Sequence[NewColumn], partitioning: Partitioning) -> dict[str, object]:
    said = [
        {"name": it.name, "type": type_words(it.type), **({} if it.comment is None else {"comment": it.comment})}
        for it in columns
    ]
    by = [field_text(item) for item in partitioning.fields]
    return {"columns": said, **({"partition_by": by} if by else {})}
