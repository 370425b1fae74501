"""All targets behind one face: the target itself, and how a reader sees its tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from cdc_sync.config import Catalog
from cdc_sync.config import Target as TargetConfig
from cdc_sync.core.migration.capabilities import HUDI_ON_READ
from cdc_sync.core.migration.migration import Migration, migration
from cdc_sync.core.migration.names import held_name
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import DataType, ListType, MapType, StructType
from cdc_sync.targets.delta.target import DeltaTarget
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.hudi.settings import ON_READ, TABLE_TYPE
from cdc_sync.targets.hudi.target import HudiTarget
from cdc_sync.targets.memory.target import MemoryTarget
from cdc_sync.targets.parquet.target import ParquetTarget
from cdc_sync.targets.protocol import Batch, Target
from cdc_sync.testing.targets import frame_of, version

_numbers = count(1)


@pytest.fixture(scope="session")
def session(_spark: SparkSession) -> SparkSession:
    return _spark


@pytest.fixture(scope="session")
def ordinary(session: SparkSession) -> SparkSession:
    """A session as Spark makes one: a reader of the tables has their catalogs, and none of the job's settings."""
    other = session.newSession()
    for setting in other.sql("SET").collect():
        if other.conf.isModifiable(setting.key) and not setting.key.startswith("spark.sql.catalog."):
            other.conf.unset(setting.key)
    assert other.conf.get("spark.sql.optimizer.nestedSchemaPruning.enabled") == "true"
    assert other.conf.get("spark.sql.caseSensitive") == "false"
    return other


@dataclass
class Lake:
    """A target, with one table that a test works on."""

    target: Target
    session: SparkSession
    name: TargetName
    _sources: dict[str, str] = field(default_factory=dict)

    @property
    def held(self) -> Progress | None:
        """What the table holds now."""
        return held(self.target, self.name)

    def _learn(self, schema: InternalSchema) -> None:
        """Remember what the source calls the columns whose names the target cannot hold."""
        rules = self.target.capabilities.columns
        self._sources |= {held_name(column.name, rules): column.name for column in schema.columns}

    def create(self, schema: InternalSchema) -> None:
        self.migrate(migration(None, None, version(1, schema), capabilities=self.target.capabilities))

    def migrate(self, steps: Migration, progress: Progress | None = None) -> None:
        self._learn(steps.schema)
        held = self.held
        found = Progress(version=steps.version) if held is None else replace(held, version=steps.version)
        self.target.migrate(self.name, steps, progress or found)

    def change(
        self, before: InternalSchema, after: InternalSchema, *, rows: bool = True, progress: Progress | None = None
    ) -> Migration:
        """Migrate from version 1 to version 2, and return the steps."""
        first = version(1, before)
        steps = migration(first, first if rows else None, version(2, after), capabilities=self.target.capabilities)
        self.migrate(steps, progress)
        return steps

    def write(self, schema: InternalSchema, rows: Iterable[Mapping[str, Any]], **options: Any) -> None:
        """Apply rows by column name; `deleted` and `created` are false and true where they are not given.

        With the option `unchanged`, ids of columns, a row keeps the values of those that it does not name. What is
        given as `through` makes other rows of these.
        """
        frame = frame_of(self.session, schema, rows, options.get("unchanged", ()))
        through = options.pop("through", None)
        batch = Batch(
            rows=frame if through is None else through(frame), schema=schema, progress=Progress(version=1), behind=None
        )
        if "behind" not in options:  # a target that only writes is not asked
            options["behind"] = self.held
        self.target.write(self.name, replace(batch, **options))

    def rows(self) -> list[dict[str, Any]]:
        """What a reader sees, under the source's names, ordered by the first column."""
        if isinstance(self.target, MemoryTarget):
            found = self.target.rows(self.name)
        else:
            rows = (row.asDict(recursive=True) for row in self.frame().collect())
            found = [{self._sources.get(name, name): value for name, value in row.items()} for row in rows]
        return sorted(found, key=lambda row: str(row[next(iter(row))]))

    def frame(self) -> DataFrame:
        """What a reader that knows nothing of us is given."""
        if isinstance(self.target, DeltaTarget):
            return self.session.read.format("delta").load(self.target.path(self.name))
        if isinstance(self.target, HudiTarget):
            regime = ON_READ if self.target.capabilities is HUDI_ON_READ else {}
            frame = self.session.read.format("hudi").options(**regime).load(self.target.path(self.name))
            return frame.select(*(quoted(name) for name in frame.columns if not name.startswith("_hoodie_")))
        if isinstance(self.target, ParquetTarget):
            return as_spark_finds_it(self.session, self.target, self.name)
        return self.session.table(self.sql_name)

    @property
    def sql_name(self) -> str:
        return ".".join(quoted(part) for part in ("lake", self.name.namespace, self.name.name))


def held(target: Target, name: TargetName) -> Progress | None:
    state = target.state(name)
    return None if state is None else state.progress


def as_spark_finds_it(session: SparkSession, target: ParquetTarget, name: TargetName) -> DataFrame:
    """What the metastore says, read as Spark does with a metastore; Hive's columns are the same, in lower case."""
    entry = target.table(name).entry()
    assert entry is not None
    parts = range(int(entry.parameters["spark.sql.sources.schema.numParts"]))
    text = "".join(entry.parameters[f"spark.sql.sources.schema.part.{part}"] for part in parts)
    struct = T.StructType.fromJson(json.loads(text))
    columns = T.StructType(struct.fields[: len(struct) - len(entry.keys)])
    told = [column.name for column in entry.columns]
    assert told == [field.name.lower() for field in columns]
    if not entry.keys:
        return session.read.schema(struct).parquet(entry.location)
    assert [key.name for key in entry.keys] == [field.name.lower() for field in struct.fields[len(columns) :]]
    held = target.table(name).name
    with target._metastore.client() as client:
        partitions = list(client.listPartitions(held.namespace, held.name, -1))
    assert all([column.getName() for column in it.getSd().getCols()] == told for it in partitions)
    places = [str(it.getSd().getLocation()) for it in partitions]
    return session.read.schema(columns).option("recursiveFileLookup", True).parquet(*places)


def fresh_name(namespace: str = "db") -> TargetName:
    return TargetName(namespace=namespace, name=f"t{next(_numbers)}")


@pytest.fixture(scope="session")
def iceberg(session: SparkSession) -> Target:
    warehouse = session.conf.get("spark.sql.catalog.lake.warehouse")
    assert warehouse is not None
    return open_target(TargetConfig(catalog=Catalog(warehouse=warehouse)), session)


@pytest.fixture(scope="session")
def delta(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Target:
    warehouse = str(tmp_path_factory.mktemp("delta"))
    return open_target(TargetConfig(format="delta", catalog=Catalog(warehouse=warehouse)), session)


@pytest.fixture(scope="session")
def hudi(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Target:
    warehouse = str(tmp_path_factory.mktemp("hudi"))
    return open_target(TargetConfig(format="hudi", catalog=Catalog(warehouse=warehouse)), session)


@pytest.fixture(scope="session")
def hudi_on_read(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Target:
    catalog = Catalog(warehouse=str(tmp_path_factory.mktemp("hudi_on_read")))
    config = TargetConfig(format="hudi", schema_evolution="on_read", readers=("spark",), catalog=catalog)
    return open_target(config, session)


@pytest.fixture(scope="session")
def hudi_merge_on_read(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Target:
    """Changed and deleted rows lie in logs while a test looks: none writes so often that they are merged by the way."""
    catalog = Catalog(warehouse=str(tmp_path_factory.mktemp("hudi_merge_on_read")))
    config = TargetConfig(format="hudi", catalog=catalog, table_properties={TABLE_TYPE: "MERGE_ON_READ"})
    return open_target(config, session)


@pytest.fixture(scope="session")
def parquet(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Target:
    warehouse = str(tmp_path_factory.mktemp("parquet"))
    # The embedded metastore's database waits for the disk at every commit otherwise.
    session._jvm.java.lang.System.setProperty("derby.system.durability", "test")  # type: ignore[union-attr]
    return open_target(TargetConfig(format="parquet", catalog=Catalog(warehouse=warehouse)), session)


_LAKES = {
    "iceberg": "iceberg",
    "delta": "delta",
    "hudi": "hudi",
    "hudi_on_read": "hudi",
    "hudi_merge_on_read": "hudi",
    "parquet": "parquet",
}
"""What tables are kept as, and the mark of the jars that this needs."""
_FORMATS = ["memory", *(pytest.param(name, marks=getattr(pytest.mark, mark)) for name, mark in _LAKES.items())]


@pytest.fixture(params=_FORMATS)
def lake(request: pytest.FixtureRequest, session: SparkSession) -> Lake:
    target = MemoryTarget() if request.param == "memory" else request.getfixturevalue(request.param)
    return Lake(target=target, session=session, name=fresh_name())


def shown(value: Any, type_: DataType) -> Any:
    """A value whose members are told by ids, as a reader shows it."""
    match type_:
        case StructType(fields=fields):
            return None if value is None else {it.name: shown(value.get(it.id), it.type) for it in fields}
        case ListType(element=element):
            return None if value is None else [shown(it, element) for it in value]
        case MapType(value=part):
            return None if value is None else {key: shown(it, part) for key, it in value.items()}
        case _:
            return value


def schema_of(*columns: Column, key: tuple[int, ...] = (1,)) -> InternalSchema:
    return InternalSchema(columns=columns, primary_key=key, last_column_id=max(c.id for c in columns))
