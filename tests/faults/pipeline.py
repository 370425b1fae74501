"""One pipeline of a test: its configuration, its runs, and a reader of its lake that is not Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from hudi import HudiTableBuilder
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from cdc_sync.config import Config, parse_config
from cdc_sync.core.migration.namerules import DERIVED_PREFIX
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.dead_letters import DeadLetter
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.model.progress import PROPERTY, parse_progress
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.demo.lake import Lake
from cdc_sync.runtime.reports import RunReport
from cdc_sync.storage.state import StateStore
from cdc_sync.targets.hudi.settings import ON_READ
from cdc_sync.targets.parquet.target import ParquetTarget
from cdc_sync.testing import SourceTable

_HUDIS_AND_OURS = ("_hoodie_", DERIVED_PREFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Reads the topics of one prefix into a lake of its own.

    Attributes:
        rules: what is said of tables, as YAML; all tables by default.
        settings: further sections, as YAML.
        kafka: further settings of that section, as YAML.
        format: of the tables; `hudi_on_read` is Hudi's other regime.
        uri: of the catalog; the embedded one if there is none.
    """

    folder: Path
    servers: str
    prefix: str
    run_once: Callable[[Config], RunReport]
    name: str = "faults"
    rules: str = "[{pattern: '.*'}]"
    settings: str = ""
    format: str = "iceberg"
    kafka: str = ""
    uri: str = ""

    @property
    def config(self) -> Config:
        return parse_config(self.text)

    @property
    def text(self) -> str:
        return f"""
pipeline: {{name: {self.name}, state: '{self.folder}/state'}}
kafka: {{bootstrap_servers: '{self.servers}', topic_pattern: '{self.prefix}\\..*', {self.kafka}}}
tables: {self.rules}
target: {{{self.kind}, catalog: {{{self.place}}}}}
{self.settings}
"""

    @property
    def kind(self) -> str:
        if self.format == "hudi_on_read":
            return "format: hudi, schema_evolution: on_read, readers: [spark]"
        return f"format: {self.format}"

    @property
    def place(self) -> str:
        """What the configuration says of the catalog."""
        return f"warehouse: '{self.folder}/warehouse'" + (f", uri: '{self.uri}'" if self.uri else "")

    def run(self) -> RunReport:
        return self.run_once(self.config)

    def named(self, name: str) -> Pipeline:
        return replace(self, name=name)

    def statuses(self) -> dict[str, TableStatus]:
        """By table name."""
        return {status.table.table: status for status in StateStore(self.config.pipeline.root).tables()}

    def set_aside(self) -> list[DeadLetter]:
        return list(StateStore(self.config.pipeline.root).dead_letters.letters())

    def history_files(self) -> dict[str, bytes]:
        return files(Path(self.config.pipeline.root) / "history")

    def table(self, table: TableId) -> Table:
        settings = self.config.target.catalog
        uri = Lake(name=settings.name, service=settings.service or "").uri
        # A tuple, for names may hold dots, which `Lake.table` takes for separators.
        return SqlCatalog(settings.name, uri=uri, init_catalog_tables="false", schema_version="v1").load_table(
            (table.schema, table.table)
        )

    def read(self, table: TableId) -> Any:
        """All of a table, as Arrow's; the reader is not Spark, but where only Spark reads it right."""
        if self.format == "iceberg":
            return self.table(table).scan().to_arrow()
        path = f"{self.config.target.catalog.warehouse}/{table.schema}/{table.table}"
        if self.format == "hudi":
            rows = pa.Table.from_batches(HudiTableBuilder.from_base_uri(path).build().read())
            return rows.select([name for name in rows.column_names if not name.startswith(_HUDIS_AND_OURS)])
        if self.format == "hudi_on_read":
            return self.read_by_spark(path)
        if self.format == "parquet":
            return self.read_parquet(table)
        found = DeltaTable(path)
        rows = pa.table(QueryBuilder().register("t", found).execute("SELECT * FROM t").read_all())
        return rows.select([name for name in rows.column_names if not name.startswith(DERIVED_PREFIX)])

    def read_by_spark(self, path: str) -> Any:
        session = SparkSession.getActiveSession()
        assert session is not None
        frame = session.read.format("hudi").options(**ON_READ).load(path)
        names = [name for name in frame.columns if not name.startswith(_HUDIS_AND_OURS)]
        rows = frame.select(*names).collect()
        return pa.table({name: [row[name] for row in rows] for name in names})

    def read_parquet(self, table: TableId) -> Any:
        """What lies in the folders that the metastore names."""
        places = [place.removeprefix("file:") for place in self.places_of_parquet(table).values()]
        found = [pq.read_table(place) for place in places if any(Path(place).glob("*.parquet"))]
        return pa.concat_tables(found)

    def places_of_parquet(self, table: TableId) -> dict[str, str]:
        """The table's folder under "", or that of each partition under its name."""
        session = SparkSession.getActiveSession()
        assert session is not None
        target = ParquetTarget(config=self.config.target, spark=session)
        entry = target.table(TargetName(namespace=table.schema, name=table.table)).entry()
        assert entry is not None
        if not entry.keys:
            return {"": entry.location}
        names = [key.name.removeprefix(DERIVED_PREFIX) for key in entry.keys]
        with target._metastore.client() as client:
            return {
                ", ".join(f"{name}={value}" for name, value in zip(names, it.getValues(), strict=True)): str(
                    it.getSd().getLocation()
                )
                for it in client.listPartitions(table.schema, table.table, -1)
            }

    def commits(self, *tables: SourceTable) -> list[str]:
        """The newest metadata file of each table: another one for every commit of any kind."""
        return [str(self.table(table.id).metadata_location) for table in tables]

    def progress_of_snapshots(self, table: SourceTable) -> list[Mapping[int, int]]:
        """What each snapshot, oldest first, says it contains of the table's topic."""
        summaries = [snapshot.summary for snapshot in self.table(table.id).snapshots()]
        markers = [summary[PROPERTY] for summary in summaries if summary is not None]
        return [parse_progress(str(marker)).offsets[table.topic] for marker in markers]


def writable(lake: Pipeline) -> SqlCatalog:
    """Return the catalogue as somebody else writes to it."""
    uri = f"sqlite:///{lake.config.target.catalog.warehouse}/catalog.db"
    return SqlCatalog(lake.config.target.catalog.name, uri=uri, init_catalog_tables="false", schema_version="v1")


def files(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def assert_equal(pipeline: Pipeline, *sources: SourceTable) -> None:
    """Columns in order and all rows, duplicates included, are those of the source."""
    for source in sources:
        data = pipeline.read(source.id)
        names = [column.field for column in source.columns]
        assert data.column_names == names, f"{source.id}: columns"
        assert _sorted(data.to_pylist(), source) == _sorted(source.rows, source), f"{source.id}: rows"


def _sorted(rows: list[dict[str, Any]], source: SourceTable) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: repr([row[name] for name in source.key]))
