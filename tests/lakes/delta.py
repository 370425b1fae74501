"""Delta tables, found by their path and read by delta-rs; columns that only divide them are left out."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from cdc_sync.config import Catalog, Target
from cdc_sync.core.migration.namerules import DERIVED_PREFIX
from tests.lakes.files import newest
from tests.lakes.table import Place, Table
from tests.lakes.words import of_spark


class DeltaLake:
    """The tables below one folder."""

    def __init__(self, target: Target) -> None:
        self._warehouse = Path(target.catalog.warehouse)

    @staticmethod
    def at(warehouse: Path) -> DeltaLake:
        return DeltaLake(Target(format="delta", catalog=Catalog(warehouse=str(warehouse))))

    def table(self, place: Place) -> Table | None:
        folder = self._warehouse.joinpath(*place)
        if not any((folder / "_delta_log").glob("*.json")):
            return None
        found = DeltaTable(str(folder))
        schema = json.loads(found.schema().to_json())
        rows = pa.table(QueryBuilder().register("t", found).execute("SELECT * FROM t").read_all())
        own = [field for field in schema["fields"] if not field["name"].startswith(DERIVED_PREFIX)]
        return Table(
            columns=tuple((field["name"], of_spark(field["type"])) for field in own),
            rows=rows.select([field["name"] for field in own]).to_pylist(),
        )

    def stamp(self) -> int | None:
        return newest(self._warehouse.glob("*/*/_delta_log"))

    def close(self) -> None:
        """Nothing is open."""
