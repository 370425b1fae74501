"""What DDL messages say: the form our own event trigger writes, and the one of a plain home-made trigger.

Our form, prefix `cdc_sync`, UTF-8 JSON, written by `sources/databases/ddl_capture.sql`::

    {"v": 1, "kind": "command" | "baseline", "cluster": "7123…" | null, "tag": "ALTER TABLE", "schema": "inv",
     "table": "orders", "relid": 16409, "file": 16409, "columns": [{"attnum": 1, "name": "id", "type": "integer",
     "notnull": true, "default": true, "missing": "5"}], "before": {"schema": "inv", "table": "orders", "file": 16409,
     "columns": […]} | null, "query": "alter table …"}
    {"v": 1, "kind": "drop", "cluster": …, "tag": "DROP TABLE", "schema": "inv", "table": "orders", "relid": 16409, …}
    {"v": 1, "kind": "failed", "cluster": …, "tag": …, "relids": [16409], "reason": "…", …}
    {"v": 1, "kind": "uninstalled", "cluster": …}

The plain form, prefix `ddl`, as in the project's captures::

    {"tag": "ALTER TABLE", "object": "inv.orders.total", "relid": "16409", "cols": [{"attnum": 1, …}], "query": "…"}

`default` (whether rows that come get a value by themselves), `missing` (what rows from before the column read in it,
`pg_attribute.attmissingval` as JSON text, null if it is not kept, and no JSON if it is too long), `file`
(`pg_relation_filenode`, null for partitioned tables) and `before` (what the table was before the command, null if it
was not there, or another transaction may have changed it meanwhile) are not in messages of triggers installed earlier.

`object` is Postgres' `object_identity`; it has a third part if the command renamed a column or commented on one. The
plain form does not tell of dropped tables, nor of tables that changed because another one did (inheritance, CASCADE).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

PREFIX = "cdc_sync"
PLAIN_PREFIX = "ddl"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeEntry:
    """A live column as pg_attribute has it; `number` is its attnum, the others as in `LoggedColumn`."""

    number: int
    name: str
    type: str
    default: bool | None = None
    missing: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableBefore:
    """The name and the columns of a table right before a command."""

    schema: str
    table: str
    columns: tuple[AttributeEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A table's columns behind a command, or at a baseline, in the order of their numbers.

    Attributes:
        before: what the table was before the command, None if it is not told.
        cluster: the server's system identifier, None if it is not told.
        baseline: nothing was done; this is what there was when the trigger was installed.
        column: the column that the command was about, if it was about one.
        query: all text that the client had sent, perhaps cut (`cut`).
        file: see `Structure`.
    """

    relid: int
    schema: str
    table: str
    columns: tuple[AttributeEntry, ...]
    before: TableBefore | None = None
    cluster: str | None = None
    baseline: bool = False
    tag: str = ""
    column: str | None = None
    query: str = ""
    cut: bool = False
    file: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDropped:
    """A table is gone."""

    relid: int
    schema: str
    table: str
    cluster: str | None
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Something was done that nobody described.

    Attributes:
        relids: the tables it was done to, empty if nobody knows.
        text: the statement, or what stands for it.
    """

    relids: tuple[int, ...]
    text: str
    reason: str


Notice: TypeAlias = TableState | TableDropped | Gap


def read_content(prefix: str, content: bytes) -> Notice | None:
    """Return what a logical message says about tables, None if it is not about that.

    A message that claims to be one of ours and cannot be read is a `Gap`.
    """
    if prefix not in (PREFIX, PLAIN_PREFIX):
        return None
    try:
        body = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return _gap({}, content, f"it is not UTF-8 JSON: {error}") if prefix == PREFIX else None
    if prefix == PLAIN_PREFIX and not (isinstance(body, dict) and {"relid", "cols"} <= body.keys()):
        return None
    if not isinstance(body, dict):
        return _gap({}, content, "it is not a JSON object")
    try:
        return _own(body) if prefix == PREFIX else _plain(body)
    except _Misshapen as error:
        return _gap(body, content, str(error))


class _Misshapen(Exception):
    """A message has our name and not our form."""


def _gap(body: Mapping[str, object], content: bytes, reason: str) -> Gap:
    query = body.get("query")
    text = query if isinstance(query, str) else content.decode("utf-8", "replace")
    try:
        relids: tuple[int, ...] = (_relid(body.get("relid")),)
    except _Misshapen:
        relids = ()
    return Gap(relids=relids, text=text, reason=f"Cannot read a message about DDL: {reason}")


def _own(body: Mapping[str, object]) -> Notice:
    if body.get("v") != VERSION:
        raise _Misshapen(f"version {body.get('v')!r} is not known; a newer cdc_sync may have installed the trigger")
    tag, query = _text(body, "tag"), _text(body, "query")
    cluster = body.get("cluster")
    cluster = cluster if isinstance(cluster, str) else None
    match body.get("kind"):
        case "command" | "baseline" as kind:
            return TableState(
                relid=_relid(body.get("relid")),
                schema=_name(body, "schema"),
                table=_name(body, "table"),
                columns=_columns(body.get("columns")),
                before=_before(body.get("before")),
                cluster=cluster,
                baseline=kind == "baseline",
                tag=tag,
                query=query,
                cut=True,
                file=_relid(body["file"]) if body.get("file") is not None else None,
            )
        case "drop":
            return TableDropped(
                relid=_relid(body.get("relid")),
                schema=_name(body, "schema"),
                table=_name(body, "table"),
                cluster=cluster,
                query=query or tag,
            )
        case "failed":
            relids = body.get("relids")
            found = tuple(_relid(one) for one in relids) if isinstance(relids, list) else ()
            return Gap(relids=found, text=query or tag, reason=f"The event trigger failed: {_text(body, 'reason')}")
        case "uninstalled":
            return Gap(relids=(), text="uninstalled", reason="The event trigger was removed: later DDL is not told")
        case kind:
            raise _Misshapen(f"kind {kind!r} is not known")


def _before(told: object) -> TableBefore | None:
    if told is None:
        return None
    if not isinstance(told, dict):
        raise _Misshapen("what was there before is not an object")
    return TableBefore(schema=_name(told, "schema"), table=_name(told, "table"), columns=_columns(told.get("columns")))


def _plain(body: Mapping[str, object]) -> Notice | None:
    identity = body.get("object")
    parts = split_identity(identity) if isinstance(identity, str) else None
    if parts is None or not 2 <= len(parts) <= 3:
        raise _Misshapen(f"{identity!r} is not the name of a table or column")
    if parts[0] == "pg_temp":
        return None
    cols = body.get("cols")
    return TableState(
        relid=_relid(body.get("relid")),
        schema=parts[0],
        table=parts[1],
        columns=_columns([] if cols is None else cols),
        tag=_text(body, "tag"),
        column=parts[2] if len(parts) == 3 else None,
        query=_text(body, "query"),
    )


_PART = r'[a-z_][a-z0-9_]*|"(?:[^"]|"")+"'


def split_identity(identity: str) -> tuple[str, ...] | None:
    """Return the names in Postgres' `object_identity` of a table or column, None if it is of something else.

    Source: Postgres, `quote_identifier`: names other than `[a-z_][a-z0-9_]*` are quoted.
    """
    if not re.fullmatch(rf"(?:{_PART})(?:\.(?:{_PART}))*", identity):
        return None
    return tuple(
        part[1:-1].replace('""', '"') if part.startswith('"') else part for part in re.findall(_PART, identity)
    )


def _columns(entries: object) -> tuple[AttributeEntry, ...]:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _Misshapen("its columns are not a list of objects")
    columns = []
    for entry in entries:
        number, name, type_ = (entry.get(key) for key in ("attnum", "name", "type"))
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise _Misshapen(f"attnum {number!r} is not a column's number")
        if not (isinstance(name, str) and isinstance(type_, str)):
            raise _Misshapen("a column has no name or no type")
        default, missing = entry.get("default"), entry.get("missing")
        default = default if isinstance(default, bool) else None
        missing = missing if isinstance(missing, str) else None
        columns.append(AttributeEntry(number=number, name=name, type=type_, default=default, missing=missing))
    if len({column.number for column in columns}) != len(columns) or len({c.name for c in columns}) != len(columns):
        raise _Misshapen("a column is named twice")
    return tuple(sorted(columns, key=lambda column: column.number))


def _relid(value: object) -> int:
    if isinstance(value, str) and re.fullmatch(r"\d{1,10}", value, re.ASCII):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _Misshapen(f"relid {value!r} is not a table's number")
    return value


def _name(body: Mapping[str, object], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value:
        raise _Misshapen(f"it has no {key}")
    return value


def _text(body: Mapping[str, object], key: str) -> str:
    value = body.get(key)
    return value if isinstance(value, str) else ""
