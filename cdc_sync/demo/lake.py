"""Reads Iceberg tables from an embedded catalog without Spark."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from sqlalchemy.exc import OperationalError

from cdc_sync.demo.compare import ColumnImage, TableImage, plain
from cdc_sync.errors import ConfigError

_JDBC = "jdbc:sqlite:"


class Lake:
    """The tables of one catalog, read only.

    Args:
        name: the catalog's name, part of every table's entry.
        service: the catalog's address, `jdbc:sqlite:` and a path; the file may come later.
    """

    def __init__(self, *, name: str, service: str) -> None:
        if not service.startswith(_JDBC):
            raise ConfigError(f"Cannot read the catalog {service}: only an SQLite file can be read without a server")
        self._name = name
        self._file = Path(service.removeprefix(_JDBC))
        self._catalog: SqlCatalog | None = None

    @property
    def uri(self) -> str:
        """Return what SQLAlchemy opens: read only, so that the reader cannot stand in the writer's way."""
        return f"sqlite:///file:{self._file}?mode=ro&uri=true"

    def stamp(self) -> int | None:
        """Return a number that every commit to any table changes; None while there is no catalog."""
        return self._file.stat().st_mtime_ns if self._file.is_file() else None

    def table(self, name: str) -> Table | None:
        """Load a table's newest metadata; None if there is no such table (yet)."""
        if self._catalog is None:
            if not self._file.is_file():
                return None
            # v1: the job makes the catalog's tables in two steps, and this may look between them.
            self._catalog = SqlCatalog(self._name, uri=self.uri, init_catalog_tables="false", schema_version="v1")
        try:
            return self._catalog.load_table(name)
        except (NoSuchTableError, OperationalError):
            # The latter while the job makes the catalog's own tables, or is committing for longer than SQLite waits.
            return None

    def close(self) -> None:
        """Close the catalog's file."""
        if self._catalog is not None:
            self._catalog.close()


def columns(table: Table) -> TableImage:
    """Return a table's image without its rows, which costs no look at data."""
    return TableImage(
        name=".".join(table.name()),
        columns=tuple(ColumnImage(name=field.name, type=str(field.field_type)) for field in table.schema().fields),
        rows=(),
    )


def image(table: Table) -> TableImage:
    """Read a whole table."""
    empty = columns(table)
    data = table.scan().to_arrow()
    values = [data.column(column.name).to_pylist() for column in empty.columns]
    rows = tuple(tuple(plain(value) for value in row) for row in zip(*values, strict=True))
    return TableImage(name=empty.name, columns=empty.columns, rows=rows)
