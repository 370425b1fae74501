"""What a table holds that several source tables share: its columns, and which of them are whose. No I/O.

A source table's part of it is its *share*. The union is stamped on the table beside the version, in the same commit as
the columns, so it is known wherever the table is read from; how far each share has read is in the table's marker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cdc_sync.core.model.positions import TableId
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.serde import schema_from_json, schema_to_json
from cdc_sync.core.schema.types import STRING
from cdc_sync.errors import HistoryError, TargetError

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMoves:
    """What changes in the rows of one share, in one commit; ids are the union's.

    Attributes:
        moved: (from, to) of values that go into another column; all are taken from the row as it was.
        emptied: columns that become NULL, those that values are moved out of included.
        key: what rows are found by afterwards, the source column first.
    """

    moved: tuple[tuple[int, int], ...]
    emptied: tuple[int, ...]
    key: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """The version that a share is on its way to: the table has its columns, the rows are as `moves` says or as before.

    The rows are done once the share's marker says so; what nobody holds any more goes after that.
    """

    version: int
    columns: Mapping[int, int]
    key: tuple[int, ...]
    moves: RowMoves


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one source table has of the union.

    Attributes:
        table: which one; its name is the value of the source column in its rows.
        begun: the version it came with: a marker of an older one is of a share that was taken away.
        version: the version whose columns it has.
        columns: the union's id of each of its own, those of members of structs included.
        key: its own ids of what rows are found by.
        moved: the version since which its values stand where they do.
        coming: where it is on its way to, if that takes more than one commit.
    """

    table: TableId
    begun: int
    version: int
    columns: Mapping[int, int]
    key: tuple[int, ...]
    moved: int
    coming: Coming | None = None

    @property
    def label(self) -> str:
        """What the source column holds in its rows."""
        return str(self.table)

    @property
    def arrived(self) -> Share:
        """The share as it is once it is where it was on its way to."""
        coming = self.coming
        if coming is None:
            return self
        return replace(
            self,
            version=coming.version,
            columns=coming.columns,
            key=coming.key,
            moved=coming.version,
            coming=None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """The columns of a shared table, and its shares.

    Attributes:
        revision: the table's version: how often its stamp was changed.
        schema: the columns; their ids live as long as they do and are not given out twice. The first is the source
            column, which is also the schema's key, for what rows are found by beside it is each share's own affair.
        shares: in the order they came.
    """

    revision: int = 0
    schema: InternalSchema
    shares: tuple[Share, ...] = field(default=())

    @property
    def source(self) -> Column:
        """The column that says which source table a row is of."""
        return self.schema.columns[0]

    def find(self, table: TableId) -> Share | None:
        """Return a source table's share, None if it has none."""
        return next((share for share in self.shares if share.table == table), None)

    def with_share(self, share: Share) -> Union:
        """Return the union with a share in place of the one its table had, or behind all others."""
        if self.find(share.table) is None:
            return replace(self, shares=(*self.shares, share))
        return replace(self, shares=tuple(share if item.table == share.table else item for item in self.shares))

    def held(self, *, but: TableId | None = None) -> frozenset[int]:
        """Return the ids of the columns, and of what is inside, that shares have, but for one table's."""
        found = {id_ for share in self.shares if share.table != but for id_ in share.columns.values()}
        return frozenset(found | {id_ for share in self.shares if share.table != but for id_ in _coming(share)})

    @property
    def pruned(self) -> Union:
        """The union without columns that no share has."""
        held = self.held()
        kept = tuple(column for column in self.schema.columns if column.id in held or column.id == self.source.id)
        return replace(self, schema=replace(self.schema, columns=kept))

    @property
    def next(self) -> Union:
        """The same as the next revision."""
        return replace(self, revision=self.revision + 1)

    def to_text(self) -> str:
        """Return the union as one line of JSON, the same for equal unions."""
        shares = [_share_to_json(share) for share in self.shares]
        data = {"format": _FORMAT, "revision": self.revision, "schema": schema_to_json(self.schema), "shares": shares}
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def empty_union(source_column: str) -> Union:
    """Return the union of no share: the source column alone."""
    column = Column(id=1, name=source_column, type=STRING)
    return Union(schema=InternalSchema(columns=(column,), primary_key=(1,), last_column_id=1))


def parse_union(text: str) -> Union:
    """Read what `Union.to_text` wrote.

    Raises:
        TargetError: if the text is damaged or of a later format.
    """
    try:
        data = json.loads(text)
        if data["format"] != _FORMAT:
            raise TargetError(f"Cannot read what tables share: format {data['format']} is later than this program")
        return Union(
            revision=data["revision"],
            schema=schema_from_json(data["schema"]),
            shares=tuple(_share_from_json(share) for share in data["shares"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, HistoryError) as error:
        raise TargetError(f"Cannot read what tables share from {text!r}: {error}") from error


def _coming(share: Share) -> tuple[int, ...]:
    return () if share.coming is None else tuple(share.coming.columns.values())


def _share_to_json(share: Share) -> dict[str, Any]:
    data: dict[str, Any] = {
        "table": [share.table.database, share.table.schema, share.table.table],
        "begun": share.begun,
        "version": share.version,
        "columns": _pairs(share.columns),
        "key": list(share.key),
        "moved": share.moved,
    }
    coming = share.coming
    if coming is not None:
        data["coming"] = {
            "version": coming.version,
            "columns": _pairs(coming.columns),
            "key": list(coming.key),
            "moves": {
                "moved": [list(pair) for pair in coming.moves.moved],
                "emptied": list(coming.moves.emptied),
                "key": list(coming.moves.key),
            },
        }
    return data


def _share_from_json(data: Mapping[str, Any]) -> Share:
    database, schema, table = data["table"]
    return Share(
        table=TableId(database=database, schema=schema, table=table),
        begun=data["begun"],
        version=data["version"],
        columns=dict(data["columns"]),
        key=tuple(data["key"]),
        moved=data["moved"],
        coming=_coming_from_json(data["coming"]) if "coming" in data else None,
    )


def _coming_from_json(data: Mapping[str, Any]) -> Coming:
    moves = data["moves"]
    return Coming(
        version=data["version"],
        columns=dict(data["columns"]),
        key=tuple(data["key"]),
        moves=RowMoves(
            moved=tuple((from_, to) for from_, to in moves["moved"]),
            emptied=tuple(moves["emptied"]),
            key=tuple(moves["key"]),
        ),
    )


def _pairs(columns: Mapping[int, int]) -> list[list[int]]:
    return [[own, union] for own, union in sorted(columns.items())]
