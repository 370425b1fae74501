"""One batch in a Parquet table: the rows of what it touches are worked out and written anew, with its progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.spark.columns import DELETED
from cdc_sync.targets.common.keyless import Writer, write_whole_rows
from cdc_sync.targets.hive.partitions import Values
from cdc_sync.targets.parquet.commits import Snapshot, following
from cdc_sync.targets.parquet.partitions import partitions_of, touched
from cdc_sync.targets.parquet.rows import merged, new_rows, value_of, without
from cdc_sync.targets.parquet.table import ParquetTable
from cdc_sync.targets.protocol import Batch


def write_batch(name: TargetName, table: ParquetTable, now: Snapshot, batch: Batch) -> None:
    """Commit a batch.

    Args:
        name: the table's, for messages.
        now: the present state.
        batch: its schema has the names of the table.
    """
    with _read_once(batch, now) as given:
        writing = _Writing(table=table, now=now, batch=given)
        if given.append or given.mode == "append":
            writing.append(given.rows)
        elif given.schema.primary_key:
            writing.merge_by_key()
        else:
            copies = Writer(append=writing.append, merge=writing.merge_copies)
            write_whole_rows(name, given, writing.present(), copies)


@contextmanager
def _read_once(batch: Batch, now: Snapshot) -> Iterator[Batch]:
    """Keep the rows of a batch, if they are asked for their partitions before they are written."""
    if not now.is_partitioned:
        yield batch
        return
    rows = batch.rows.persist()
    try:
        yield replace(batch, rows=rows)
    finally:
        rows.unpersist()


class _Writing:
    """One batch and the state that it is applied to."""

    def __init__(self, *, table: ParquetTable, now: Snapshot, batch: Batch) -> None:
        self._table = table
        self._now = now
        self._batch = batch
        self._struct = now.stamp.struct

    def append(self, rows: DataFrame) -> None:
        """Add rows of `value_column(id)`, and a changelog's own columns."""
        added = new_rows(rows, self._batch.schema, self._struct)
        only = self._partitions_of(added)
        self._commit(self._table.rows(self._now, only).unionByName(added), only)

    def merge_by_key(self) -> None:
        """Insert, change and delete rows by the key."""
        now = self._now
        only = touched(self._batch, self._table.rows(now), now.stamp) if now.is_partitioned else None
        self._commit(merged(self._batch, self._table.rows(now, only), self._struct), only)

    def present(self) -> DataFrame:
        """Return `value_column(id)` of all rows that may be copies of one in the batch."""
        columns = self._batch.schema.columns
        rows = self._table.rows(self._now, self._of_copies(self._batch.rows))
        return rows.select(*(value_of(self._now.stamp, column) for column in columns))

    def merge_copies(self, source: DataFrame) -> None:
        """Do what `Writer.merge` is to do."""
        gone, added = source.where(F.col(DELETED)), source.where(~F.col(DELETED))
        only = self._of_copies(source)
        rows = without(self._table.rows(self._now, only), gone, self._batch.schema)
        self._commit(rows.unionByName(new_rows(added, self._batch.schema, self._struct)), only)

    def _of_copies(self, rows: DataFrame) -> frozenset[Values] | None:
        """Return where copies of rows of `value_column(id)` are; what retired columns have there, they do not say."""
        sources = {item.column for item in self._now.stamp.partitioning.fields}
        if any(column.retired and column.name in sources for column in self._batch.schema.columns):
            return None
        return self._partitions_of(new_rows(rows, self._batch.schema, self._struct))

    def _partitions_of(self, rows: DataFrame) -> frozenset[Values] | None:
        return partitions_of(rows, self._now.stamp) if self._now.is_partitioned else None

    def _commit(self, rows: DataFrame, only: frozenset[Values] | None) -> None:
        after = replace(following(self._now), progress=self._batch.progress)
        self._table.commit(self._now, after, rows, only)
