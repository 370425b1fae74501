"""Rows of a Delta table that are filled file by file: a unit of files is written anew, and takes their place.

Which files are left is told by the log alone. A file is left unless it was added behind the commit that added the
columns, by a commit that fills rows or by one that only appends, or has no NULL in the columns. What others have
updated meanwhile may hold rows of before, and is left, too: rows get values only where they read NULL. The commit of a
unit removes the files that it was made from, so a unit that is done twice fails.

Source: Delta Transaction Log Protocol, "Actions" (`txn`, `commitInfo.isBlindAppend`) and "Per-file Statistics".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.revisions.fills import DataFile, Fill
from cdc_sync.errors import TargetMoved
from cdc_sync.spark.expressions import filled_rows, strict_casts
from cdc_sync.targets.common.properties import VERSION_PROPERTY
from cdc_sync.targets.delta.failures import telling
from cdc_sync.targets.delta.fields import PHYSICAL_NAME
from cdc_sync.targets.delta.log import APPLICATION, DeltaTable, there


class DeltaFilling:
    """One version of a table whose rows are being filled.

    Attributes:
        files: in which there may be rows that are not filled yet, by their paths.
    """

    def __init__(self, spark: SparkSession, table: DeltaTable, name: TargetName, fill: Fill) -> None:
        """Look which files are left.

        Args:
            fill: in the target's names.

        Raises:
            TargetMoved: if the columns are of another entry by now.
        """
        self._spark = spark
        self._table = table
        self._name = name
        self._fill = fill
        self._on = there(table)
        if table.properties(self._on).get(VERSION_PROPERTY) != str(fill.number):
            raise TargetMoved(f"Cannot fill {name}: another revision was applied to it meanwhile")
        self._adds: dict[str, Any] | None = None
        self.files = self._left()

    def _left(self) -> dict[str, DataFile]:
        done = done_files(self._table.all_actions(self._on.version()), self._fill.number)
        fields = {field["name"]: field for field in self._table.fields(self._on)}
        filled = [fields[self._fill.schema.column(id_).name] for id_, _ in self._fill.values]
        names = [field["metadata"].get(PHYSICAL_NAME, field["name"]) for field in filled]
        files = DataFrame(self._on.allFiles().toDF(), self._spark)
        found = files.select("path", "size", F.to_json("partitionValues"), "stats").collect()
        return {
            path: DataFile(path=path, size=size, group=group)
            for path, size, group, stats in found
            if path not in done and may_have_nulls(stats, names)
        }

    def run(self, paths: Sequence[str]) -> None:
        """Write the files anew, and put what was written in their place."""
        if self._adds is None:
            self._adds = {add.path(): add for add in self._on.allFiles().collectAsList()}
        files = [self._adds[path] for path in paths]
        with telling("fill", self._name), strict_casts(self._spark):
            self._table.replace(
                files, self._on, _filled_for(self._fill.number), lambda rows: filled_rows(rows, self._fill)
            )


def done_files(commits: Iterable[Sequence[Mapping[str, Any]]], number: int) -> set[str]:
    """Return the files that were added behind a commit of columns, and whose rows are as they are to be.

    Args:
        commits: newest first, each with its actions as the log has them. Where they do not go back to the commit of
            columns any more, nobody knows what an append is older than.
        number: of the entry that the columns are stamped with.
    """
    filled, appended = set[str](), set[str]()
    for actions in commits:
        adds = {action["add"]["path"] for action in actions if "add" in action}
        applications = {action["txn"]["appId"] for action in actions if "txn" in action}
        if _filled_for(number) in applications:
            filled |= adds
        elif any(action.get("commitInfo", {}).get("isBlindAppend") for action in actions):
            appended |= adds
        stamps = (action["metaData"]["configuration"] for action in actions if "metaData" in action)
        if APPLICATION in applications and any(stamp.get(VERSION_PROPERTY) == str(number) for stamp in stamps):
            return filled | appended
    return filled


def may_have_nulls(stats: str | None, names: Sequence[str]) -> bool:
    """Whether a file may have NULL in one of the columns, which are called as data files know them."""
    nulls = json.loads(stats).get("nullCount", {}) if stats else {}
    return any(nulls.get(name) != 0 for name in names)


def _filled_for(number: int) -> str:
    """Return the application that a commit says it is of, in which rows are filled for an entry."""
    return f"{APPLICATION}.filled-for.{number}"
