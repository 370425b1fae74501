"""One table with a column for each row of the table of conversions, in every target, read without Spark."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdc_sync.config import Catalog
from cdc_sync.config import Target as TargetConfig
from cdc_sync.core.debezium.conversions import logical_type, wire_type
from cdc_sync.core.migration.migration import migration
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT64, DataType, ListType, MapType, StructType
from cdc_sync.demo.lake import Lake
from cdc_sync.spark.columns import CREATED, DELETED, value_column
from cdc_sync.spark.raw import Format
from cdc_sync.spark.types import to_spark
from cdc_sync.targets.formats import open_target
from cdc_sync.targets.memory.target import MemoryTarget
from cdc_sync.targets.protocol import Batch, Target
from cdc_sync.testing.targets import version
from tests.spark.independent import LOST, decode
from tests.spark.reading import converted, parsed, same
from tests.spark.test_types import SCHEMAS, VALUES

pytestmark = [pytest.mark.spark, pytest.mark.iceberg]

TITLES = list(SCHEMAS)
_ids = count(1000)


def identified(type_: DataType) -> DataType:
    """Give every member an id of its own."""
    match type_:
        case StructType(fields=fields):
            return StructType(fields=tuple(replace(f, id=next(_ids), type=identified(f.type)) for f in fields))
        case ListType():
            return replace(type_, element_id=next(_ids), element=identified(type_.element))
        case MapType():
            key, value = identified(type_.key), identified(type_.value)
            return replace(type_, key_id=next(_ids), key=key, value_id=next(_ids), value=value)
        case _:
            return type_


COLUMNS = tuple(
    Column(id=n, name=f"c{n}", type=identified(logical_type(wire_type(SCHEMAS[title]))))
    for n, title in enumerate(TITLES)
)
KEY = Column(id=len(TITLES), name="n", type=INT64, optional=False)
TABLE = InternalSchema(columns=(KEY, *COLUMNS), primary_key=(KEY.id,), last_column_id=next(_ids))
KEPT: dict[str, list[Any]] = {
    title: [value for value in VALUES[title] if decode(SCHEMAS[title], value) is not LOST] for title in TITLES
}


def write(session: SparkSession, target: Target, name: TargetName, form: Format) -> None:
    """Create the table and merge all values into it, as a batch of events does."""
    target.migrate(name, migration(None, None, version(1, TABLE)), Progress(version=1))
    columns = [
        converted(wire_type(SCHEMAS[title]), F.col("r")[f"c{n}"], form)
        .cast(to_spark(COLUMNS[n].type))
        .alias(value_column(n))
        for n, title in enumerate(TITLES)
    ]
    key = F.col("n").cast("long").alias(value_column(KEY.id))
    flags = F.lit(False).alias(DELETED), F.lit(True).alias(CREATED)
    rows = parsed(session, SCHEMAS, KEPT, form).select(*flags, key, *columns)
    target.write(name, Batch(rows=rows, schema=TABLE, progress=Progress(version=1), behind=None))


def wanted(name: str) -> list[Any]:
    title = TITLES[int(name[1:])]
    column = [decode(SCHEMAS[title], value) for value in KEPT[title]]
    return column + [None] * (max(map(len, KEPT.values())) - len(column))


def wrong(rows: list[dict[str, Any]]) -> list[str]:
    """Return what differs; both readers show instants with their zone, Arrow shows maps as lists of pairs."""
    ordered = sorted(rows, key=lambda row: row["n"])
    names = [column.name for column in COLUMNS]
    return [
        f"{TITLES[int(name[1:])]}: {row[name]!r:.80} is not {value!r:.80}"
        for name in names
        for row, value in zip(ordered, wanted(name), strict=True)
        if not same(plain(row[name], value), value)
    ]


def plain(found: Any, like: Any) -> Any:
    """Bring a reader's value into the shape of the wanted one."""
    if isinstance(found, list) and like is None:
        return found or None  # PyIceberg shows NULL as an empty map where it builds the map anew
    if isinstance(like, dict) and isinstance(found, (dict, list)):
        pairs = found.items() if isinstance(found, dict) else found
        return {plain(key, None): plain(value, like.get(plain(key, None))) for key, value in pairs}
    if isinstance(like, list) and isinstance(found, list):
        return [plain(one, other) for one, other in zip(found, like, strict=False)]
    zone = getattr(found, "tzinfo", None)
    return found.replace(tzinfo=None) if zone is not None else found


def test_the_memory_target_holds_every_value_of_json(session: SparkSession) -> None:
    target, name = MemoryTarget(), TargetName(namespace="db", name="types")
    write(session, target, name, "json")
    assert wrong(target.rows(name)) == []


@pytest.mark.parametrize("form", ["json", "avro"])
def test_iceberg_holds_every_value_and_other_readers_see_it(session: SparkSession, form: Format) -> None:
    warehouse, service = (session.conf.get(f"spark.sql.catalog.lake.{key}") for key in ("warehouse", "uri"))
    assert warehouse is not None
    assert service is not None
    name = TargetName(namespace="db", name=f"types_{form}")
    write(session, open_target(TargetConfig(catalog=Catalog(warehouse=warehouse)), session), name, form)
    lake = Lake(name="lake", service=service)
    table = lake.table(f"db.{name.name}")
    assert table is not None
    assert wrong(table.scan().to_arrow().to_pylist()) == []
    null = session.table(f"lake.db.{name.name}").select(*(F.count_if(F.col(c.name).isNull()) for c in COLUMNS))
    assert list(null.collect()[0]) == [wanted(column.name).count(None) for column in COLUMNS]
    lake.close()
