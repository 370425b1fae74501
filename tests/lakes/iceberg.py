"""Iceberg tables of an embedded catalog, read by pyiceberg."""

from __future__ import annotations

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from sqlalchemy.exc import OperationalError

from cdc_sync.config import Target
from cdc_sync.demo import lake
from tests.lakes.table import Place, Table
from tests.lakes.words import of_iceberg


class IcebergLake:
    """The tables that one catalog names."""

    def __init__(self, target: Target) -> None:
        self._lake = lake.Lake(name=target.catalog.name, service=target.catalog.service or "")
        self._name = target.catalog.name
        self._catalog: SqlCatalog | None = None

    def table(self, place: Place) -> Table | None:
        if self._lake.stamp() is None:
            return None
        if self._catalog is None:
            self._catalog = SqlCatalog(self._name, uri=self._lake.uri, init_catalog_tables="false", schema_version="v1")
        try:
            # Not a text, for names may have dots.
            found = self._catalog.load_table(place)
        except (NoSuchTableError, OperationalError):
            # The latter while the job makes the catalog's own tables, or is committing for longer than SQLite waits.
            return None
        return Table(
            columns=tuple((field.name, of_iceberg(field.field_type)) for field in found.schema().fields),
            rows=found.scan().to_arrow().to_pylist(),
        )

    def stamp(self) -> int | None:
        return self._lake.stamp()

    def close(self) -> None:
        if self._catalog is not None:
            self._catalog.close()
