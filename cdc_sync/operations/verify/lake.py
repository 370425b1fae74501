"""The target: one commit at a time, read through the same door as the job reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.errors import TargetError, TransientError
from cdc_sync.spark.session import activate
from cdc_sync.targets.protocol import Target

VIEW = "cdc_sync_verify"
"""The session's own name for the table."""


class TargetTable:
    """One table of the target, as it was after one commit."""

    def __init__(self, spark: SparkSession, target: Target, name: TargetName, version: int, schema: InternalSchema):
        """Begin with the newest commit.

        Args:
            version: what the table's columns are stamped with.
            schema: that version's.
        """
        self._spark = spark
        self._target = target
        self._name = name
        self._version = version
        self._schema = schema
        self.renew()

    def ask(self, query: str) -> Sequence[Sequence[Any]]:
        """Run a query on the commit, of `VIEW` and `value_column(id)`.

        Raises:
            TargetError: it cannot be read, for its files are gone or the catalog is away.
        """
        activate(self._spark)
        try:
            return [tuple(row) for row in self._spark.sql(query).collect()]
        except PySparkException as error:
            said = str(error).strip().partition("\n")[0]
            raise TargetError(f"Cannot read {self._name}: {said}") from error

    def renew(self) -> None:
        """Go on to the newest commit.

        Raises:
            TransientError: the table has other columns now.
        """
        activate(self._spark)
        state = self._target.state(self._name)
        if state is None or state.version != self._version:
            raise TransientError(f"Cannot verify {self._name}: its columns changed meanwhile; run it again")
        commit = self._target.commits(self._name, 1)[0]
        ids = [column.id for column in self._schema.columns]
        self._target.read(self._name, self._schema, ids, commit).createOrReplaceTempView(VIEW)
