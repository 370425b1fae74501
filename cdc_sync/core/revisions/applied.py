"""What was done to a table: its log, of which the table's own stamp says how much is in effect."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.revisions.fills import Converted, Value
from cdc_sync.core.revisions.revision import Revision
from cdc_sync.core.schema import serde
from cdc_sync.core.schema.changes import SchemaChange
from cdc_sync.core.schema.expressions import Expression
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning
from cdc_sync.errors import HistoryError


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One step of a table's columns. It is written before the table is changed; the table's stamp says that it was.

    Attributes:
        number: 1 for the first, then one more each; what the table is stamped with.
        revision: whose step it is.
        undoes: it takes the revision back.
        digest, text: of what the revision did then.
        changes: of the columns; empty for the first.
        schema: after them.
        partitioning: what the table's files are divided by from then on, None if nothing changed about that.
        divided_before: the same before.
        computed: by the ids of columns, what the rows that were there get in them, in that order.
        casts_to_null: what has no place in a column's new type became NULL.
        properties: of the table, which were set, or taken away where there is None; `properties_before` undoes it.
        replaces: revisions in effect that the one of this entry stands for from now on; nothing was changed by it.
        finishes: what earlier revisions left of columns is dropped; it is no revision's own.
        created: the table was made by it.
    """

    table: TargetName
    number: int
    revision: str
    digest: str
    text: str
    changes: tuple[SchemaChange, ...]
    schema: InternalSchema
    undoes: bool = False
    created: bool = False
    partitioning: Partitioning | None = None
    divided_before: Partitioning = UNPARTITIONED
    computed: tuple[tuple[int, Value], ...] = ()
    casts_to_null: bool = False
    finishes: bool = False
    replaces: tuple[str, ...] = ()
    properties: tuple[tuple[str, str | None], ...] = ()
    properties_before: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """All entries of one table.

    Raises:
        HistoryError: if one is missing.
    """

    table: TargetName
    entries: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        for number, entry in enumerate(self.entries, 1):
            if (entry.number, entry.table) != (number, self.table):
                raise HistoryError(
                    f"Cannot read the log of {self.table}: entry {entry.number} of {entry.table} is at place {number}"
                )

    def upto(self, number: int | None) -> Log:
        """Return the log of what is in effect in a table that is stamped so; None for one that has no stamp.

        Raises:
            HistoryError: if the table was stamped with more than the log knows.
        """
        if number is not None and number > len(self.entries):
            raise HistoryError(
                f"Cannot go on with {self.table}: it is stamped with {number}, and its log ends with "
                f"{len(self.entries)}; a log of before was restored, or another one is configured (name, state)"
            )
        return Log(table=self.table, entries=self.entries[: number or 0])

    @property
    def schema(self) -> InternalSchema | None:
        """The columns after the last entry."""
        return self.entries[-1].schema if self.entries else None

    @property
    def in_effect(self) -> tuple[Entry, ...]:
        """The entries of revisions that were not taken back, in the order in which they were applied."""
        found: list[Entry] = []
        for entry in self.entries:
            if entry.finishes:
                continue
            if entry.undoes:
                found = [other for other in found if other.revision != entry.revision]
            elif entry.replaces:
                # In their place: what was applied behind them is still behind it.
                place = next(number for number, other in enumerate(found) if other.revision in entry.replaces)
                found.insert(place, entry)
                found = [other for other in found if other.revision not in entry.replaces]
            else:
                found.append(entry)
        return tuple(found)


def differences(log: Log, revisions: Mapping[str, Revision]) -> tuple[str, ...]:
    """Return what was changed in the files of revisions since they were applied, each in some lines."""
    found = []
    replaced = {id_ for revision in revisions.values() for id_ in revision.replaces}
    for entry in log.in_effect:
        revision = revisions.get(entry.revision)
        if revision is None and entry.revision in replaced:
            continue
        if revision is None:
            found.append(f"{entry.revision} was applied to {entry.table}, and its file is gone")
        elif revision.digest != entry.digest:
            lines = difflib.unified_diff(
                entry.text.splitlines(), revision.text.splitlines(), "applied", revision.file, lineterm="", n=1
            )
            found.append("\n".join((f"{revision.id} does something else than when it was applied:", *lines)))
    return tuple(found)


def to_json(entry: Entry) -> dict[str, Any]:
    """Return what the file of an entry holds."""
    return {
        "table": [entry.table.namespace, entry.table.name],
        "number": entry.number,
        "revision": entry.revision,
        "digest": entry.digest,
        "text": entry.text,
        "changes": [serde.change_to_json(change) for change in entry.changes],
        "columns_and_key": serde.schema_to_json(entry.schema),
        "undoes": entry.undoes,
        "created": entry.created,
        "partition_by": None if entry.partitioning is None else str(entry.partitioning),
        "divided_before": str(entry.divided_before),
        "computed": [[id_, _value_to_json(value)] for id_, value in entry.computed],
        "casts_to_null": entry.casts_to_null,
        "finishes": entry.finishes,
        "replaces": list(entry.replaces),
        "properties": [list(pair) for pair in entry.properties],
        "properties_before": [list(pair) for pair in entry.properties_before],
    }


def from_json(data: Mapping[str, Any], place: str) -> Entry:
    """Read what `to_json` wrote.

    Raises:
        HistoryError: if it is something else.
    """
    try:
        divided = data["partition_by"]
        return Entry(
            table=TargetName(namespace=data["table"][0], name=data["table"][1]),
            number=data["number"],
            revision=data["revision"],
            digest=data["digest"],
            text=data["text"],
            changes=tuple(serde.change_from_json(change) for change in data["changes"]),
            schema=serde.schema_from_json(data["columns_and_key"]),
            undoes=data["undoes"],
            created=data["created"],
            partitioning=None if divided is None else Partitioning.parse(_parts(divided)),
            divided_before=Partitioning.parse(_parts(data.get("divided_before", ""))),
            computed=tuple((id_, _value_from_json(value)) for id_, value in data["computed"]),
            casts_to_null=data["casts_to_null"],
            finishes=data.get("finishes", False),
            replaces=tuple(data.get("replaces", ())),
            properties=tuple((name, value) for name, value in data.get("properties", ())),
            properties_before=tuple((name, value) for name, value in data.get("properties_before", ())),
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise HistoryError(f"Cannot read {place}: {error!r}") from error


def _value_to_json(value: Value) -> Any:
    return list(value.parts) if isinstance(value, Expression) else asdict(value)


def _value_from_json(data: Any) -> Value:
    return Converted(**data) if isinstance(data, dict) else Expression(parts=tuple(data))


def _parts(text: str) -> Sequence[str]:
    return [text] if text else []
