"""The clauses of ALTER TABLE and the elements of CREATE TABLE in MySQL and MariaDB.

A clause that is not understood in full makes the statement unreadable, unless it is certainly not about columns.

Source: MySQL Reference Manual, "ALTER TABLE Statement"; MariaDB Knowledge Base, "ALTER TABLE".
"""

from __future__ import annotations

from cdc_sync.core.lineage.ddl_pieces import Unreadable
from cdc_sync.core.lineage.ddl_reader import AlterClauses, Reader, listed_columns, refuse_hidden
from cdc_sync.core.lineage.ddl_statements import Add, Clause, Drop, Modify, Rename
from cdc_sync.core.lineage.stated import Stated
from cdc_sync.core.model.positions import TableId

_COLUMN_VERBS = frozenset(("ADD", "DROP", "CHANGE", "MODIFY", "RENAME"))
_NO_COLUMN = frozenset(("CONSTRAINT", "PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"))
_OTHER_ELEMENTS = (("PERIOD", "FOR"), ("SYSTEM", "VERSIONING"), ("VECTOR", "INDEX"), ("VECTOR", "KEY"))
_PARTITION_VERBS = frozenset(
    (
        *("REORGANIZE", "COALESCE", "TRUNCATE", "ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR", "EXCHANGE"),
        *("DISCARD", "IMPORT", "REMOVE", "UPGRADE"),
    )
)
_PARTITION_WORDS = ("PARTITION", "PARTITIONING")
_HARMLESS_PAIRS = (("DISCARD", "TABLESPACE"), ("IMPORT", "TABLESPACE"), ("CONVERT", "TO"))
_MOVING = (
    ("TRUNCATE", "PARTITION"),
    *((verb, what) for verb in ("DISCARD", "IMPORT") for what in ("PARTITION", "TABLESPACE")),
)
"""Clauses that take rows away, or bring some, without an event for each, beside those read on their own."""
_HARMLESS = frozenset(
    (
        *("ALGORITHM", "LOCK", "FORCE", "ENGINE", "TYPE", "COMMENT", "CHARSET", "CHARACTER", "COLLATE", "DEFAULT"),
        *("AUTO_INCREMENT", "AUTOEXTEND_SIZE", "AVG_ROW_LENGTH", "CHECKSUM", "COMPRESSION", "CONNECTION", "DATA"),
        *("DELAY_KEY_WRITE", "ENCRYPTION", "INSERT_METHOD", "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS"),
        *("PASSWORD", "ROW_FORMAT", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "TABLESPACE"),
        *("UNION", "PAGE_CHECKSUM", "TRANSACTIONAL", "SEQUENCE", "SECONDARY_ENGINE", "SECONDARY_LOAD", "INDEX"),
        *("SECONDARY_UNLOAD", "WITH", "WITHOUT", "ENABLE", "DISABLE", "READ", "NODEGROUP", "STORAGE"),
    )
)


def alter_clauses(reader: Reader) -> AlterClauses:
    """Read everything behind the name of the table.

    Raises:
        Unreadable: if a clause is not understood.
    """
    reader.waiting()
    clauses: list[Clause] = []
    rename_to: TableId | None = None
    moved: list[TableId | None] = []
    while not reader.at_end:
        match reader.word():
            case "ADD":
                clauses.extend(_add(reader))
            case "DROP":
                moved += [None] if _is_drop_of_partitions(reader) else []
                clauses.extend(_drop(reader))
            case "CHANGE":
                clauses.append(_change(reader))
            case "MODIFY":
                clauses.append(_modify(reader))
            case "RENAME":
                renamed = _rename(reader)
                if isinstance(renamed, TableId):
                    rename_to = renamed
                elif renamed is not None:
                    clauses.append(renamed)
            case "EXCHANGE" | "CONVERT" if reader.word(1) in ("PARTITION", "TABLE"):
                moved += [None, _other_table(reader)]
            case _:
                moved += [None] if (reader.word(), reader.word(1)) in _MOVING else []
                _harmless(reader)
        if not reader.at_end:
            reader.need(",")
            if reader.at_end:
                raise Unreadable("a clause is missing at the end")
    return AlterClauses(tuple(clauses), rename_to, tuple(moved))


def created_columns(elements: Reader) -> tuple[str, ...]:
    """Read what stands in the parentheses of CREATE TABLE; keys and constraints are left out.

    Raises:
        Unreadable: if an element is not understood.
    """
    return tuple(name for name, _ in listed_columns(elements, _is_other_element, _definition))


def _is_other_element(reader: Reader) -> bool:
    return reader.word() in _NO_COLUMN or (reader.word(), reader.word(1)) in _OTHER_ELEMENTS


def _add(reader: Reader) -> list[Clause]:
    reader.need("ADD")
    if _is_other_element(reader) or (reader.word() == "PARTITION" and reader.word(1) in ("(", "IF", "PARTITIONS")):
        _no_verbs(reader.outer())
        return []
    reader.take("COLUMN")
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    if reader.word() == "(":
        columns = listed_columns(reader.group(), _is_other_element, _stated)
        _end_of_clause(reader)
        return [Add(name=name, if_not_exists=if_not_exists, stated=stated) for name, stated in columns]
    name = reader.name()
    return [Add(name=name, if_not_exists=if_not_exists, stated=_stated(reader))]


def _stated(reader: Reader) -> Stated:
    """Take a column's type and all that follows it; return what it gives to rows that are there."""
    first = reader.at
    _defined(reader)
    return reader.stated(first, implicit=True)


def _drop(reader: Reader) -> list[Clause]:
    reader.need("DROP")
    if reader.word() in _NO_COLUMN or (reader.word(), reader.word(1)) in _OTHER_ELEMENTS:
        _no_verbs(reader.outer())
        return []
    if reader.word() == "PARTITION" and _has_names(reader, 1):
        reader.need("PARTITION")
        reader.take("IF", "EXISTS")
        reader.names()
        _end_of_clause(reader)
        return []
    reader.take("COLUMN")
    if_exists = reader.take("IF", "EXISTS")
    name = reader.name()
    reader.take_any("RESTRICT", "CASCADE")
    _end_of_clause(reader)
    return [Drop(name=name, if_exists=if_exists)]


def _is_drop_of_partitions(reader: Reader) -> bool:
    return (reader.word(), reader.word(1)) == ("DROP", "PARTITION") and _has_names(reader, 2)


def _has_names(reader: Reader, place: int) -> bool:
    """Whether something stands behind PARTITION, which is a column's name otherwise."""
    piece = reader.peek(place)
    return piece is not None and piece.text != ","


def _other_table(reader: Reader) -> TableId:
    """Take EXCHANGE PARTITION p WITH TABLE t, or MariaDB's CONVERT PARTITION p TO TABLE t or CONVERT TABLE t TO ...."""
    reader.take_any("EXCHANGE", "CONVERT")
    if reader.take("TABLE"):
        table = reader.table()
    else:
        reader.need("PARTITION")
        reader.name()
        if not reader.take("TO", "TABLE"):
            reader.need("WITH", "TABLE")
        table = reader.table()
    if not reader.at_end and reader.word() != ",":
        _no_verbs(reader.outer())
    return table


def _change(reader: Reader) -> Clause:
    reader.need("CHANGE")
    reader.take("COLUMN")
    if_exists = reader.take("IF", "EXISTS")
    old, new = reader.name(), reader.name()
    return Rename(old=old, new=new, if_exists=if_exists, moved=_definition(reader))


def _modify(reader: Reader) -> Clause:
    reader.need("MODIFY")
    reader.take("COLUMN")
    if_exists = reader.take("IF", "EXISTS")
    name = reader.name()
    return Modify(name=name, if_exists=if_exists, moved=_definition(reader))


def _rename(reader: Reader) -> Clause | TableId | None:
    reader.need("RENAME")
    if reader.take("COLUMN"):
        if_exists = reader.take("IF", "EXISTS")
        old = reader.name()
        reader.need("TO")
        new = reader.name()
        _end_of_clause(reader)
        return Rename(old=old, new=new, if_exists=if_exists)
    if reader.take_any("INDEX", "KEY"):
        reader.take("IF", "EXISTS")
        reader.name()
        reader.need("TO")
        reader.name()
        _end_of_clause(reader)
        return None
    reader.take_any("TO", "AS", "=")
    table = reader.table()
    _end_of_clause(reader)
    return table


def _harmless(reader: Reader) -> None:
    first, second = reader.word(), reader.word(1)
    if first == "ALTER":
        # ALTER COLUMN a DROP DEFAULT
        words = reader.outer()
        _no_verbs([word for word, after in zip(words, [*words[1:], ""], strict=True) if after != "DEFAULT"])
    elif (first, second) == ("ORDER", "BY"):
        _order_by(reader)
    elif (first, second) == ("PARTITION", "BY") or (first in _PARTITION_VERBS and second in _PARTITION_WORDS):
        words = reader.outer()
        while reader.take(","):
            words.extend(reader.outer())
        _no_verbs(words)
    elif (first, second) in _HARMLESS_PAIRS or first in _HARMLESS or (first.isidentifier() and second == "="):
        _no_verbs(reader.outer())
    else:
        raise Unreadable(f"the clause is not known {reader.where()}")


def _order_by(reader: Reader) -> None:
    reader.need("ORDER", "BY")
    while True:
        reader.name()
        while reader.take("."):
            reader.name()
        reader.take_any("ASC", "DESC")
        following = reader.word(2)
        if reader.word() != "," or following not in (",", ".", "ASC", "DESC", "") or reader.word(1) in _COLUMN_VERBS:
            break
        reader.need(",")
    if not reader.at_end and reader.word() != ",":
        raise Unreadable(f"ORDER BY is not understood {reader.where()}")


def _definition(reader: Reader) -> bool:
    """Take a column's type and all that follows it; tell whether that gives the column a place."""
    return not {"FIRST", "AFTER"}.isdisjoint(_defined(reader))


def _defined(reader: Reader) -> list[str]:
    """Take a column's type and all that follows it, and return the words outside of parentheses."""
    piece = reader.peek()
    if piece is None or piece.kind != "word":
        raise Unreadable(f"a type is missing {reader.where()}")
    words = reader.outer()
    _no_verbs(words)
    return words


def _end_of_clause(reader: Reader) -> None:
    """Take partition options, which need no comma, and be sure that nothing else follows."""
    if reader.word() in ("PARTITION", "REMOVE"):
        _no_verbs(reader.outer())
    if not reader.at_end and reader.word() != ",":
        raise Unreadable(f"a comma is missing {reader.where()}")


def _no_verbs(words: list[str]) -> None:
    """Be sure that no clause about columns hides behind another one."""
    refuse_hidden(_COLUMN_VERBS, words[1:])
