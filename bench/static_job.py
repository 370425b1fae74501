"""What people write by hand: a fixed schema, `from_json` of the whole message, one MERGE for each batch.

It trusts every record, has no answer to a schema change, and no exactly-once: it is what this project has to beat.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

CATALOG = "plain"
TABLE = f"{CATALOG}.inv.orders"
_ROW = (
    "struct<id:bigint,customer_id:int,status:string,amount:string,created_at:bigint,updated_at:string,day:int,"
    "note:string,score:double,active:boolean,uid:string,doc:string>"
)
_MESSAGE = f"struct<payload:struct<before:{_ROW},after:{_ROW},op:string>>"
_DECIMAL = '{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}'
_AMOUNT = "concat(unhex(lpad(hex(2 * length(unbase64(amount))), 2, '0')), unbase64(amount))"
COLUMNS = (
    *("id", "customer_id", "status", "amount", "created_at", "updated_at", "day", "note", "score", "active", "uid"),
    "doc",
)


class StaticJob:
    """Applies ranges of one topic to one table."""

    def __init__(self, spark: SparkSession, *, bootstrap_servers: str, topic: str) -> None:
        # A session of its own: Spark's defaults but for the number of shuffle partitions.
        self._spark = spark.newSession()
        self._spark.conf.set("spark.sql.shuffle.partitions", "2")
        self._spark.conf.set("spark.sql.session.timeZone", "UTC")
        self._servers = bootstrap_servers
        self._topic = topic

    def create_table(self) -> None:
        self._spark.sql(f"create namespace if not exists {CATALOG}.inv")
        self._spark.sql(
            f"create table {TABLE} (id bigint, customer_id int, status string, amount decimal(12,2), "
            "created_at timestamp_ntz, updated_at timestamp, day date, note string, score double, active boolean, "
            "uid string, doc string) using iceberg tblproperties ('format-version'='2', "
            "'write.merge.mode'='merge-on-read', 'write.update.mode'='merge-on-read', "
            "'write.delete.mode'='merge-on-read')"
        )

    def process(self, starts: Mapping[int, int], ends: Mapping[int, int]) -> None:
        """Apply the records from `starts` to `ends`, both partition -> offset."""
        last = _last_of_each_key(_decoded(self._read(starts, ends)))
        last.createOrReplaceTempView("batch")
        assignments = ", ".join(f"{name} = s.{name}" for name in COLUMNS if name != "id")
        values = ", ".join(f"s.{name}" for name in COLUMNS)
        self._spark.sql(
            f"merge into {TABLE} t using batch s on t.id = s.id "
            f"when matched and s.op = 'd' then delete "
            f"when matched and s.op <> 'd' then update set {assignments} "
            f"when not matched and s.op <> 'd' then insert ({', '.join(COLUMNS)}) values ({values})"
        )

    def _read(self, starts: Mapping[int, int], ends: Mapping[int, int]) -> DataFrame:
        return (
            self._spark.read.format("kafka")
            .option("kafka.bootstrap.servers", self._servers)
            .option("subscribe", self._topic)
            .option("startingOffsets", self._offsets(starts))
            .option("endingOffsets", self._offsets(ends))
            .load()
        )

    def _offsets(self, offsets: Mapping[int, int]) -> str:
        return json.dumps({self._topic: {str(partition): offset for partition, offset in offsets.items()}})


def _decoded(records: DataFrame) -> DataFrame:
    event = F.from_json(F.col("value").cast("string"), _MESSAGE)
    rows = (
        records.select("offset", event.alias("event"))
        .select("offset", "event.payload.op", F.coalesce("event.payload.after", "event.payload.before").alias("row"))
        .select("offset", "op", "row.*")
    )
    return (
        rows.withColumn("amount", from_avro(F.expr(_AMOUNT), _DECIMAL))
        .withColumn("created_at", F.timestamp_micros("created_at").cast("timestamp_ntz"))
        .withColumn("updated_at", F.col("updated_at").cast("timestamp"))
        .withColumn("day", F.expr("date_from_unix_date(day)"))
    )


def _last_of_each_key(events: DataFrame) -> DataFrame:
    others = [name for name in COLUMNS if name != "id"]
    last = F.max_by(F.struct("op", *others), "offset").alias("last")
    return events.groupBy("id").agg(last).select("id", "last.*")
