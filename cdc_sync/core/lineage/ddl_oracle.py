"""The clauses of ALTER TABLE and the elements of CREATE TABLE in Oracle, which stand in a row without commas.

Source: Oracle Database SQL Language Reference 19c, "ALTER TABLE", "CREATE TABLE".
"""

from __future__ import annotations

from cdc_sync.core.lineage.ddl_pieces import Unreadable
from cdc_sync.core.lineage.ddl_reader import AlterClauses, Place, Reader, listed_columns, refuse_hidden
from cdc_sync.core.lineage.ddl_statements import Add, Clause, Drop, Modify, Rename
from cdc_sync.core.lineage.stated import Stated
from cdc_sync.core.model.positions import TableId

_COLUMN_VERBS = frozenset(("ADD", "DROP", "MODIFY", "RENAME", "UNUSED"))
_NO_COLUMN = frozenset(("CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "SUPPLEMENTAL"))
_PARTS = frozenset(("PARTITION", "SUBPARTITION", "OVERFLOW"))
_HARMLESS = frozenset(
    (
        *("ENABLE", "DISABLE", "MOVE", "SHRINK", "LOGGING", "NOLOGGING", "CACHE", "NOCACHE", "PARALLEL", "NOPARALLEL"),
        *("INITRANS", "PCTFREE", "PCTUSED", "COMPRESS", "NOCOMPRESS", "STORAGE", "MONITORING", "NOMONITORING"),
        *("ALLOCATE", "DEALLOCATE", "READ", "TRUNCATE", "COALESCE", "ROW", "RESULT_CACHE", "INMEMORY", "EXCHANGE"),
        *("SPLIT", "MERGE", "ILM", "NO", "MEMOPTIMIZE"),
    )
)


def alter_clauses(reader: Reader, table: TableId) -> AlterClauses:
    """Read everything behind the name of the table.

    Raises:
        Unreadable: if a clause is not understood.
    """
    clauses: list[Clause] = []
    rename_to: TableId | None = None
    while not reader.at_end:
        verb = reader.take_any("ADD", "DROP", "MODIFY", "RENAME", "SET")
        match verb:
            case "ADD":
                clauses.extend(_add(reader))
            case "DROP":
                clauses.extend(_drop(reader))
            case "MODIFY":
                clauses.extend(_modify(reader))
            case "SET":
                clauses.extend(_set(reader))
            case "RENAME":
                if reader.take("TO"):
                    place = Place(database=table.database, schema=table.schema, has_schemas=True)
                    rename_to = reader.table(place)
                else:
                    clauses.extend(_rename(reader))
            case _:
                if reader.word() not in _HARMLESS:
                    raise Unreadable(f"the clause is not known {reader.where()}")
                _rest(reader)
    return AlterClauses(tuple(clauses), rename_to)


def created_columns(elements: Reader) -> tuple[str, ...]:
    """Read what stands in the parentheses of CREATE TABLE or ADD; constraints are left out.

    Raises:
        Unreadable: if an element is not understood.
    """
    return tuple(name for name, _ in listed_columns(elements, _is_other_element, _stated))


def _stated(reader: Reader) -> Stated:
    """Take all that follows a column's name; return what it gives to rows that are there."""
    first = reader.at
    reader.outer()
    return reader.stated(first)


def _is_other_element(reader: Reader) -> bool:
    return reader.word() in _NO_COLUMN or (reader.word(), reader.word(1)) == ("PERIOD", "FOR")


def _add(reader: Reader) -> list[Clause]:
    if _is_other_element(reader) or reader.word() in _PARTS:
        _rest(reader)
        return []
    if reader.word() == "(":
        columns = listed_columns(reader.group(), _is_other_element, _stated)
        _tail(reader)
        return [Add(name=name, stated=stated) for name, stated in columns]
    name = reader.name()
    first = reader.at
    _rest(reader)
    return [Add(name=name, stated=reader.stated(first))]


def _drop(reader: Reader) -> list[Clause]:
    if reader.take("COLUMN"):
        return _dropped([reader.name()], reader)
    if reader.word() == "(":
        return _dropped(_only_names(reader.group()), reader)
    # What was set unused is gone since then; constraints and partitions are no columns.
    if reader.word() in _NO_COLUMN | {"PARTITION", "SUBPARTITION"} or (reader.word(), reader.word(1)) in (
        ("UNUSED", "COLUMNS"),
        ("COLUMNS", "CONTINUE"),
    ):
        if reader.take("UNUSED"):
            reader.need("COLUMNS")
        _rest(reader)
        return []
    raise Unreadable(f"DROP is not understood {reader.where()}")


def _set(reader: Reader) -> list[Clause]:
    if not reader.take("UNUSED"):
        if reader.word() != "INTERVAL":
            raise Unreadable(f"SET is not understood {reader.where()}")
        _rest(reader)
        return []
    if reader.take("COLUMN"):
        return _dropped([reader.name()], reader)
    return _dropped(_only_names(reader.group()), reader)


def _dropped(names: list[str], reader: Reader) -> list[Clause]:
    while reader.take("CASCADE", "CONSTRAINTS") or reader.take_any("INVALIDATE", "ONLINE"):
        pass
    if reader.take("CHECKPOINT"):
        reader.at += 1
    return [Drop(name=name) for name in names]


def _modify(reader: Reader) -> list[Clause]:
    # A column that was invisible stands last once it is visible.
    if reader.word() in ("CONSTRAINT", "PRIMARY", "UNIQUE", "PARTITION", "SUBPARTITION", "DEFAULT", "NESTED", "LOB"):
        _rest(reader)
        return []
    if reader.word() == "(":
        columns = created_columns(reader.group())
        _tail(reader)
        return [Modify(name=name, moved=True) for name in columns]
    name = reader.name()
    _rest(reader)
    return [Modify(name=name, moved=True)]


def _rename(reader: Reader) -> list[Clause]:
    kind = reader.take_any("COLUMN", "CONSTRAINT", "PARTITION", "SUBPARTITION")
    if not kind:
        raise Unreadable(f"RENAME is not understood {reader.where()}")
    old = reader.name()
    reader.need("TO")
    new = reader.name()
    return [Rename(old=old, new=new)] if kind == "COLUMN" else []


def _only_names(group: Reader) -> list[str]:
    names = group.names()
    if not group.at_end:
        raise Unreadable(f"a name is not understood {group.where()}")
    return names


def _tail(reader: Reader) -> None:
    """Take what may follow columns in parentheses, up to the next clause about columns."""
    if reader.word() not in _COLUMN_VERBS | {"SET", ""}:
        _rest(reader)


def _rest(reader: Reader) -> None:
    """Take everything, and be sure that no clause about columns is in it."""
    words: list[str] = reader.outer()
    while reader.take(","):
        words.extend(reader.outer())
    refuse_hidden(_COLUMN_VERBS, words)
