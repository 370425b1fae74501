"""A few rows that the driver knows, as a frame."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T


def local_rows(spark: SparkSession, rows: Iterable[tuple[int | None, ...]], struct: T.StructType) -> DataFrame:
    """Return rows of whole numbers as a frame of this type.

    As one text: `createDataFrame` has Python workers started to read them, and many literals are planned for seconds.
    """
    text = json.dumps([dict(zip(struct.names, row, strict=True)) for row in rows])
    return spark.range(1).select(F.inline(F.from_json(F.lit(text), T.ArrayType(struct))))
