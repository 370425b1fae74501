"""Postgres' own account of its columns: the logical messages an event trigger wrote, as a log of structures.

Source of the record's form: Debezium, "Events of type message" (Postgres connector): op `m`, topic `<prefix>.message`,
`message.content` in the form that `binary.handling.mode` sets.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

from cdc_sync.core.debezium.position import position_of
from cdc_sync.core.lineage.column_log import ColumnLog, LoggedColumn, NameChange, Structure, Token, Unread
from cdc_sync.core.lineage.message_first import before_first
from cdc_sync.core.lineage.message_forms import Gap, Notice, TableDropped, TableState, read_content
from cdc_sync.core.lineage.message_query import moved_from
from cdc_sync.core.lineage.records import LogicalMessage
from cdc_sync.core.model.positions import NO_POSITION, KafkaPosition, SourcePosition, TableId
from cdc_sync.errors import WireError

TEXT_LIMIT = 300


def logical_message(payload: Mapping[str, object], kafka: KafkaPosition) -> LogicalMessage:
    """Read the decoded value of a logical message's record.

    Args:
        payload: the value as JSON or Avro gives it; `message.content` is bytes, or text in base64 or hex.
        kafka: where the record stands.

    Raises:
        WireError: if it is no logical message, or its place in the source's log is not told.
    """
    source, message = payload.get("source"), payload.get("message")
    if payload.get("op") != "m" or not isinstance(source, Mapping) or not isinstance(message, Mapping):
        raise WireError(f"Cannot read logical message {kafka}: it is not an event of op 'm' with source and message")
    database, prefix = source.get("db"), message.get("prefix")
    if not isinstance(database, str) or not isinstance(prefix, str):
        raise WireError(f"Cannot read logical message {kafka}: it names no database or no prefix")
    position = position_of(source)
    if position == NO_POSITION:
        raise WireError(f"Cannot read logical message {kafka}: its source block has no LSN")
    content = _content(message.get("content"), kafka)
    return LogicalMessage(position=position, kafka=kafka, database=database, prefix=prefix, content=content)


def _content(value: object, kafka: KafkaPosition) -> bytes:
    if isinstance(value, bytes):
        return value
    if value is None:
        return b""
    if isinstance(value, str):
        # JSON text begins with "{", which is "7b" in hex and "e" in base64, so the two cannot be taken for each other.
        if re.fullmatch(r"7b(?:[0-9a-f]{2})*", value):
            return bytes.fromhex(value)
        try:
            return base64.b64decode(value.translate({ord("-"): "+", ord("_"): "/"}), validate=True)
        except (binascii.Error, ValueError):
            pass
    raise WireError(f"Cannot read logical message {kafka}: its content is neither bytes nor base64 nor hex")


@dataclass(frozen=True, slots=True)
class _Read:
    position: SourcePosition
    kafka: KafkaPosition
    database: str
    notice: Notice


class MessageLog:
    """Gathers the messages of a topic and tells what they say about columns.

    Token: era `("pg", database)`, or `("pg", database, cluster)` where the message names the server, because a restored
    dump may give the numbers of old columns to others; number `(relid, attnum)`.
    """

    def __init__(self) -> None:
        self._read: dict[tuple[SourcePosition, str, bytes], _Read] = {}
        self._replayed: _Replay | None = None

    def add(self, message: LogicalMessage) -> None:
        """Take the next message in Kafka's order; repeats, which connectors send after a restart, change nothing."""
        notice = read_content(message.prefix, message.content)
        if notice is None:
            return
        key = (message.position, message.database, sha256(message.content).digest())
        if key not in self._read:
            self._read[key] = _Read(message.position, message.kafka, message.database, notice)
            self._replayed = None

    def log(self) -> ColumnLog:
        """Return all that the messages so far say.

        A table that was dropped, renamed or moved away, or whose state a message failed to tell, has a structure
        without columns from there on, until a message tells its columns again.
        """
        replay = self._replay()
        return ColumnLog(
            "message",
            replay.structures,
            replay.unread,
            name_changes=replay.name_changes,
            before_first=replay.before_first,
        )

    def before_first(
        self, table: TableId, names: tuple[str, ...], *, complete: bool = False
    ) -> dict[str, Token] | None:
        """Return what is certain of the columns that a table had before its first message; see `before_first`.

        None as well where the first message is a baseline, or where the table had another name before.
        """
        return self._replay().before_first(table, names, complete=complete)

    def _replay(self) -> _Replay:
        if self._replayed is None:
            self._replayed = _Replay()
            # Resent records stand behind later ones in the topic; their source position is where they belong.
            for read in sorted(self._read.values(), key=lambda read: read.position):
                self._replayed.take(read)
        return self._replayed


_CREATING = ("CREATE TABLE", "CREATE TABLE AS", "SELECT INTO")
"""Command tags after which a relation's first rows come as events of their own."""


class _Replay:
    """Which table each number stands for, followed through renames."""

    def __init__(self) -> None:
        self.structures: list[Structure] = []
        self.unread: list[Unread] = []
        self.name_changes: list[NameChange] = []
        self.openings: dict[TableId, tuple[Structure, TableState] | None] = {}
        self._last: dict[tuple[str, int], TableState] = {}
        self._name: dict[tuple[str, int], TableId] = {}
        self._holder: dict[TableId, tuple[str, int]] = {}
        self._cluster: dict[str, str | None] = {}

    def before_first(
        self, table: TableId, names: tuple[str, ...], *, complete: bool = False
    ) -> dict[str, Token] | None:
        opening = self.openings.get(table)
        if opening is None:
            return None
        structure, state = opening
        query = "" if state.cut else state.query
        return before_first(structure, query, names, tag=state.tag, column=state.column, complete=complete)

    def take(self, read: _Read) -> None:
        match read.notice:
            case TableState() as state:
                self._settle(read, state.cluster)
                self._look_before(read, state)
                self._state(read, state)
            case TableDropped() as dropped:
                self._settle(read, dropped.cluster)
                table = TableId(database=read.database, schema=dropped.schema, table=dropped.table)
                self._forget(read, table, dropped.query, dropped=True)
                self._name.pop((read.database, dropped.relid), None)
            case Gap() as gap:
                self._gap(read, gap)

    def _settle(self, read: _Read, cluster: str | None) -> None:
        """Forget everything if another server speaks: its numbers mean other tables."""
        if self._cluster.setdefault(read.database, cluster) != cluster:
            for table in self._known(read.database):
                self._forget(read, table, "the messages come from another server now")
            self._name = {key: table for key, table in self._name.items() if key[0] != read.database}
            self._cluster[read.database] = cluster

    def _look_before(self, read: _Read, state: TableState) -> None:
        """Take what the table was right before a command for a baseline there, unless it was told before.

        A command that drops columns writes two messages, of which the second one tells nothing new.
        """
        known = self._last.get((read.database, state.relid))
        if known == state:
            return
        before = _as_baseline(state)
        if before is None or (known is not None and _shape(known) == _shape(before)):
            return
        if known is not None:
            table = TableId(database=read.database, schema=state.schema, table=state.table)
            was, now = (", ".join(entry.name for entry in item.columns) for item in (known, before))
            text = f"{known.schema}.{known.table} ({was}) became {before.schema}.{before.table} ({now})"
            self.unread.append(Unread(position=read.position, tables=(table,), text=_shortened(text), reason=_UNTOLD))
        if not state.baseline:
            *transaction, lsn = read.position.parts
            at = replace(read.position, parts=(*transaction, lsn - 1))
            self._state(replace(read, position=at), before)

    def _state(self, read: _Read, state: TableState) -> None:
        key = (read.database, state.relid)
        table = TableId(database=read.database, schema=state.schema, table=state.table)
        statement = _shortened(state.query or state.tag)
        columns = _columns(read, state)
        known = self._name.get(key)
        former = _former_by_query(read, state) if known is None else known
        holder = None if former is None else self._holder.get(former)
        if former is not None and former != table and holder == (None if known is None else key):
            if known is None:
                # The rename leaves the columns alone, as a comment does.
                before = Structure(table=former, position=read.position, columns=columns, statement=statement)
                self.openings.setdefault(former, (before, replace(state, tag="COMMENT")))
            self._forget(read, former, statement)
            if not state.baseline:
                self.name_changes.append(
                    NameChange(old=former, new=table, position=read.position, kafka=read.kafka, statement=statement)
                )
        self._name[key] = table
        self._holder[table] = key
        if state.cut:  # of our own form
            self._last[key] = state
        structure = Structure(
            table=table,
            position=read.position,
            columns=columns,
            statement=statement,
            reading=state.baseline,
            created=known is None and state.tag in _CREATING,
            file=state.file,
        )
        self.structures.append(structure)
        opens = known is None and not state.baseline
        self.openings.setdefault(table, (structure, state) if opens else None)

    def _gap(self, read: _Read, gap: Gap) -> None:
        known = [self._name.get((read.database, relid)) for relid in gap.relids]
        named = tuple(table for table in known if table is not None)
        text = _shortened(gap.text)
        for table in named if gap.relids else self._known(read.database):
            self._forget(read, table, text)
        self.unread.append(Unread(position=read.position, tables=named, text=text, reason=gap.reason))

    def _forget(self, read: _Read, table: TableId, statement: str, *, dropped: bool = False) -> None:
        holder = self._holder.pop(table, None)
        if holder is not None:
            self._last.pop(holder, None)
        self.openings.setdefault(table, None)
        self.structures.append(
            Structure(
                table=table,
                position=read.position,
                columns=(),
                statement=_shortened(statement),
                dropped=dropped,
                kafka=read.kafka if dropped else None,
            )
        )

    def _known(self, database: str) -> tuple[TableId, ...]:
        return tuple(sorted(table for table in self._holder if table.database == database))


_UNTOLD = (
    "The table changed and no message tells how: the event triggers were off, or their messages did not reach the topic"
)


def _as_baseline(state: TableState) -> TableState | None:
    """Return what a message says that the table was before it, which for a baseline is the same as behind it."""
    if state.baseline or state.before is None:
        return state if state.baseline else None
    missing = {(entry.number, entry.type): entry.missing for entry in state.columns}
    columns = (replace(entry, missing=missing.get((entry.number, entry.type))) for entry in state.before.columns)
    schema, table = state.before.schema, state.before.table
    return replace(
        state, schema=schema, table=table, columns=tuple(columns), before=None, baseline=True, tag="", query=""
    )


def _shape(state: TableState) -> tuple[str, str, tuple[tuple[int, str], ...]]:
    """Return what only commands on the table change: a type may get another name, too."""
    return state.schema, state.table, tuple((entry.number, entry.name) for entry in state.columns)


def _columns(read: _Read, state: TableState) -> tuple[LoggedColumn, ...]:
    era = ("pg", read.database) if state.cluster is None else ("pg", read.database, state.cluster)
    return tuple(
        LoggedColumn(
            name=entry.name,
            token=Token(era=era, number=(state.relid, entry.number)),
            type=entry.type,
            default=entry.default,
            missing=entry.missing,
        )
        for entry in state.columns
    )


def _former_by_query(read: _Read, state: TableState) -> TableId | None:
    """Return the name that the command of a table's first message took from it, where its text says so."""
    if state.baseline or state.cut or state.tag != "ALTER TABLE":
        return None
    found = moved_from(state.query, state.schema, state.table)
    return None if found is None else TableId(database=read.database, schema=found[0], table=found[1])


def _shortened(text: str) -> str:
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…"
