"""DDL texts read into values: what happened to which table and column, or that it was not understood.

sqlglot cuts a text into pieces in the source's dialect. Its parser (30.30) knows many clauses of ALTER TABLE (CHANGE,
MODIFY, IF EXISTS, several at once), and refuses others or falls back to an opaque command: RENAME TABLE, lists of
columns in parentheses, partitions, MariaDB's WAIT. A clause that is not read hides what it does, so all are read here.
"""

from __future__ import annotations

from collections.abc import Iterator

from cdc_sync.core.lineage import ddl_mysql, ddl_oracle
from cdc_sync.core.lineage.ddl_pieces import (
    Pieces,
    Unreadable,
    read,
    read_as_older_server,
    read_without_escapes,
    shortened,
)
from cdc_sync.core.lineage.ddl_reader import Place, Reader
from cdc_sync.core.lineage.ddl_statements import (
    AlterTable,
    CreateTable,
    DropDatabase,
    DropTables,
    Noise,
    NotParsed,
    RenameTables,
    Statement,
)
from cdc_sync.core.model.positions import TableId

MAX_LENGTH = 1_000_000
"""Texts longer than this, in characters, are not read."""

_CONNECTORS = ("mysql", "mariadb", "oracle")
_PROGRAMS = frozenset(("PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE", "TYPE", "LIBRARY", "JAVA"))
_OBJECTS = frozenset(
    (
        *("DATABASE", "SCHEMA", "INDEX", "VIEW", "USER", "ROLE", "SERVER", "TABLESPACE", "LOGFILE", "INSTANCE"),
        *("SEQUENCE", "RESOURCE", "UNDO", "SYNONYM", "DIRECTORY", "PROFILE", "SESSION", "SYSTEM", "CLUSTER", "MASKING"),
        *("REFERENCE", "CONTEXT", "DIMENSION", "CONTROLFILE", "DISKGROUP", "PLUGGABLE", "OPERATOR", "ROLLBACK"),
    )
)
_HARMLESS = frozenset(
    (
        *("SET", "GRANT", "REVOKE", "TRUNCATE", "ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "CHECKSUM", "FLUSH"),
        *("RESET", "COMMENT", "INSERT", "UPDATE", "DELETE", "REPLACE", "SELECT", "COMMIT", "ROLLBACK", "START"),
        *("SAVEPOINT", "RELEASE", "XA", "LOCK", "UNLOCK", "INSTALL", "UNINSTALL", "LOAD", "SHOW", "PURGE", "AUDIT"),
        *("NOAUDIT", "HELP", "KILL", "CACHE", "ASSOCIATE", "DISASSOCIATE"),
    )
)


def parse(text: str, connector: str, database: str | None, schema: str | None) -> tuple[Statement, ...]:
    """Read one text, which may hold several statements.

    Args:
        connector: `mysql`, `mariadb` or `oracle`; texts of others are not understood.
        database: what unqualified names are in.
        schema: the same, for sources with schemas.

    Returns:
        The statements in order; empty if there is none. Never raises: what is not understood is a `NotParsed`.
    """
    if not text.strip():
        return ()
    if connector not in _CONNECTORS:
        return (NotParsed(text=shortened(text), reason=f"statements of connector {connector!r} are not read"),)
    if len(text) > MAX_LENGTH:
        return (NotParsed(text=shortened(text), reason=f"it is longer than {MAX_LENGTH} characters"),)
    place = Place(database=database, schema=schema, has_schemas=connector == "oracle")
    try:
        found = _statements(read(text, connector), connector, place)
        older = read_as_older_server(text, connector)
        plain = read_without_escapes(text, connector)
    except Unreadable as error:
        return (NotParsed(text=shortened(text), reason=str(error)),)
    if older is not None and _statements(older, connector, place) != found:
        return (NotParsed(text=shortened(text), reason="it depends on the server's version what is a comment"),)
    if plain is not None:
        otherwise = _statements(plain, connector, place)
        if otherwise != found and not any(isinstance(statement, NotParsed) for statement in otherwise):
            return (NotParsed(text=shortened(text), reason="it depends on sql_mode where its strings end"),)
    return found


def _statements(text: Pieces, connector: str, place: Place) -> tuple[Statement, ...]:
    found: list[Statement] = []
    for first, last in _between_semicolons(text):
        words = text.source(first, last)
        reader = Reader(text, first, last, place, str.upper if connector == "oracle" else str)
        try:
            statement = _statement(reader, words, connector)
        except Unreadable as error:
            statement = NotParsed(text=words, reason=str(error))
        found.append(statement)
        if isinstance(statement, Noise) and statement.is_program:
            break
        place = _used(text, first, last, place)
    return tuple(found)


def _between_semicolons(text: Pieces) -> Iterator[tuple[int, int]]:
    first = 0
    for index, piece in enumerate(text.pieces):
        if piece.kind == "sign" and piece.text == ";":
            if index > first:
                yield first, index
            first = index + 1
    if first < len(text.pieces):
        yield first, len(text.pieces)


def _used(text: Pieces, first: int, last: int, place: Place) -> Place:
    """Return where unqualified names are after a statement, which may be `USE name`."""
    pieces = text.pieces[first:last]
    if place.has_schemas or len(pieces) != 2 or pieces[0].text.upper() != "USE" or pieces[0].kind != "word":
        return place
    return Place(database=pieces[1].text, schema=None, has_schemas=False)


def _statement(reader: Reader, text: str, connector: str) -> Statement:
    # MariaDB: SET STATEMENT max_statement_time=10 FOR ALTER TABLE ...
    if reader.take("SET", "STATEMENT"):
        while not reader.at_end and not reader.take("FOR"):
            reader.at += 1
    verb = reader.take_any("ALTER", "RENAME", "CREATE", "DROP", "USE", "BEGIN", *_HARMLESS)
    match verb:
        case "ALTER":
            return _alter(reader, text, connector)
        case "RENAME":
            return _rename(reader, text, connector)
        case "CREATE":
            return _create(reader, text, connector)
        case "DROP":
            return _drop(reader, text, connector)
        case "BEGIN":
            return Noise(is_program=not (reader.at_end or reader.take("WORK")), text=text)
        case "":
            raise Unreadable(f"the statement is not known {reader.where()}")
        case _:
            return Noise(text=text)


def _alter(reader: Reader, text: str, connector: str) -> Statement:
    reader.take_any("ONLINE", "OFFLINE")
    reader.take("IGNORE")
    if not reader.take("TABLE"):
        return _other_object(reader, text)
    reader.take("IF", "EXISTS")
    table = reader.table()
    found = ddl_oracle.alter_clauses(reader, table) if connector == "oracle" else ddl_mysql.alter_clauses(reader)
    moved = tuple(dict.fromkeys(table if other is None else other for other in found.moves_rows))
    return AlterTable(table=table, clauses=found.clauses, rename_to=found.rename_to, moves_rows=moved, text=text)


def _rename(reader: Reader, text: str, connector: str) -> Statement:
    if connector == "oracle":
        old = reader.table()
        reader.need("TO")
        new = reader.table(Place(database=old.database, schema=old.schema, has_schemas=True))
        _end(reader)
        return RenameTables(pairs=((old, new),), text=text)
    if reader.take("USER"):
        return Noise(text=text)
    if not reader.take_any("TABLE", "TABLES"):
        raise Unreadable(f"RENAME is not understood {reader.where()}")
    reader.take("IF", "EXISTS")
    pairs: list[tuple[TableId, TableId]] = []
    while True:
        old = reader.table()
        reader.waiting()
        reader.need("TO")
        pairs.append((old, reader.table()))
        if not reader.take(","):
            break
    _end(reader)
    return RenameTables(pairs=tuple(pairs), text=text)


def _create(reader: Reader, text: str, connector: str) -> Statement:
    or_replace = reader.take("OR", "REPLACE")
    if reader.take("TEMPORARY", "TABLE") or (reader.take_any("GLOBAL", "PRIVATE") and reader.take("TEMPORARY")):
        return Noise(text=text)
    if not reader.take("TABLE"):
        return _other_object(reader, text)
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    table = reader.table()

    def created(columns: tuple[str, ...] | None, like: TableId | None = None, as_select: bool = False) -> CreateTable:
        return CreateTable(
            table=table,
            columns=columns,
            like=like,
            if_not_exists=if_not_exists,
            or_replace=or_replace,
            as_select=as_select,
            text=text,
        )

    if connector != "oracle" and reader.take("LIKE"):
        like = reader.table()
        _end(reader)
        return created(None, like=like)
    columns: tuple[str, ...] | None = None
    if reader.word() == "(" and reader.word(1) not in ("SELECT", "WITH", "("):
        elements = reader.group()
        if connector != "oracle" and elements.take("LIKE"):
            like = elements.table()
            _end(elements)
            return created(None, like=like)
        grammar = ddl_oracle if connector == "oracle" else ddl_mysql
        columns = grammar.created_columns(elements)
    if _has_query(reader):
        return created(None, as_select=True)
    if not columns:
        raise Unreadable("the columns of the new table are missing")
    return created(columns)


def _has_query(reader: Reader) -> bool:
    """Take everything that is left; tell whether there is a query in it."""
    if reader.word() == "(":
        return True
    words = reader.outer()
    while reader.take(","):
        words.extend(reader.outer())
    return bool({"SELECT", "AS", "TABLE", "VALUES"} & set(words))


def _drop(reader: Reader, text: str, connector: str) -> Statement:
    if reader.take("TEMPORARY"):
        return Noise(text=text)
    if connector != "oracle" and reader.take_any("DATABASE", "SCHEMA"):
        reader.take("IF", "EXISTS")
        database = reader.name()
        _end(reader)
        return DropDatabase(database=database, text=text)
    if not reader.take_any("TABLE", "TABLES"):
        if connector == "oracle" and reader.take("USER"):
            raise Unreadable("it may drop all tables of a user")
        return Noise(text=text)
    if_exists = reader.take("IF", "EXISTS")
    tables = [reader.table()]
    while reader.take(","):
        tables.append(reader.table())
    if connector == "oracle":
        # DROP TABLE t CASCADE CONSTRAINTS PURGE AS "BIN$..."
        reader.outer()
    else:
        reader.waiting()
        reader.take_any("RESTRICT", "CASCADE")
    _end(reader)
    return DropTables(tables=tuple(tables), if_exists=if_exists, text=text)


def _other_object(reader: Reader, text: str) -> Statement:
    """Read CREATE or ALTER of what is no table: the first word that names a kind of object tells which it is."""
    while not reader.at_end:
        word = reader.word()
        if word in _PROGRAMS:
            return Noise(is_program=True, text=text)
        if word in _OBJECTS:
            return Noise(text=text)
        if word in ("TABLE", "TABLES"):
            break
        reader.at += 1
    raise Unreadable("it is not known what kind of object this is about")


def _end(reader: Reader) -> None:
    if not reader.at_end:
        raise Unreadable(f"the statement does not end {reader.where()}")
