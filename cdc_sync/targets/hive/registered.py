"""Tables that are found by their path, each with an entry in a Hive metastore that follows it.

The table's own commit is what happened; its entry says so a moment later, and is made anew from what the table says.
So a crash between the two, or a metastore that is away, leaves nothing to remember: the next writing of the table by
any process looks again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from cdc_sync.config.target import Target as TargetConfig
from cdc_sync.core.migration.capabilities import PARQUET, Capabilities
from cdc_sync.core.migration.maintenance import Chores, Holdings, Maintained, Upkeep
from cdc_sync.core.migration.migration import Migration
from cdc_sync.core.migration.names import held_target
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.errors import TargetError
from cdc_sync.targets.common.files import Files
from cdc_sync.targets.common.java import first_line
from cdc_sync.targets.hive.listing import SUFFIXES, Listed, entries
from cdc_sync.targets.hive.metastore import Entry, Metastore
from cdc_sync.targets.protocol import Batch, Commit, Target

TABLE = "cdc_sync.table"
"""The parameter that holds the table's name as it is written: the metastore folds it to lower case."""


class Listing(Target, Protocol):
    """A target whose tables can be listed."""

    def listed(self, name: TargetName) -> Listed | None:
        """Return what readers are to be told of a table, None if there is none."""
        ...


class RegisteredTarget:
    """Another target, whose tables are registered. Thread-safe for different tables."""

    def __init__(self, target: Listing, metastore: Metastore, files: Files) -> None:
        self._target = target
        self._metastore = metastore
        self._files = files
        self._agreed: set[TargetName] = set()

    @property
    def capabilities(self) -> Capabilities:
        """Those of the format: the metastore is told, not asked."""
        return self._target.capabilities

    def state(self, name: TargetName) -> TargetState | None:
        """Ask the table; the metastore has no say."""
        return self._target.state(name)

    def migrate(
        self, name: TargetName, migration: Migration, progress: Progress, said: Mapping[int, DataFrame] | None = None
    ) -> None:
        """Change the table, then its entry."""
        self._target.migrate(name, migration, progress, said)
        self._register(name)

    def roll_back(self, name: TargetName) -> bool:
        """Bring the table back, then its entry."""
        done = self._target.roll_back(name)
        self._register(name)
        return done

    def write(self, name: TargetName, batch: Batch) -> None:
        """Write; the entry is looked at once in a process, for whoever crashed between a change and its entry."""
        self._target.write(name, batch)
        if name not in self._agreed:
            self._register(name)

    def truncate(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Empty the table, which its entry does not show."""
        self._target.truncate(name, progress, behind)

    def mark(self, name: TargetName, progress: Progress, behind: Progress | None) -> None:
        """Commit the progress, which its entry does not show."""
        self._target.mark(name, progress, behind)

    def drop(self, name: TargetName) -> None:
        """Take the entry away before the files, so that nobody is sent where nothing is."""
        self._unregister(name)
        self._target.drop(name)

    def archive(self, name: TargetName, into: TargetName) -> None:
        """Rename the table, then list it under its new name."""
        self._target.archive(name, into)
        self._register(into)
        if self._target.listed(name) is None:
            self._unregister(name)

    def read(
        self, name: TargetName, schema: InternalSchema, ids: Sequence[int], commit: Commit | None = None
    ) -> DataFrame:
        """Read the table by its path."""
        return self._target.read(name, schema, ids, commit)

    def commits(self, name: TargetName, limit: int) -> tuple[Commit, ...]:
        """Ask the table."""
        return self._target.commits(name, limit)

    def holdings(self, name: TargetName, upkeep: Upkeep) -> Holdings:
        """Ask the table."""
        return self._target.holdings(name, upkeep)

    def maintain(self, name: TargetName, chores: Chores) -> Maintained:
        """Maintain the table; its columns stay."""
        return self._target.maintain(name, chores)

    def _register(self, name: TargetName) -> None:
        """Make the entries what the table is, if they are not."""
        listed = self._target.listed(name)
        if listed is None:
            return
        try:
            listed = replace(listed, location=self._files.qualified(listed.location))
            wanted = entries(listed, {TABLE: str(name)})
            for suffix, entry in wanted.items():
                place = _place(name, suffix)
                found = self._metastore.entry(place)
                _check_ours(name, place, found)
                if found is None:
                    self._metastore.create(place, entry)
                elif not _says(found, entry):
                    self._metastore.replace(place, entry)
        except Py4JJavaError as error:
            raise TargetError(f"Cannot register {name} in the metastore: {first_line(error)}") from error
        self._agreed.add(name)

    def _unregister(self, name: TargetName) -> None:
        try:
            for suffix in SUFFIXES:
                place = _place(name, suffix)
                found = self._metastore.entry(place)
                if found is not None and found.parameters.get(TABLE) == str(name):
                    self._metastore.drop(place)
        except Py4JJavaError as error:
            raise TargetError(f"Cannot take {name} off the metastore: {first_line(error)}") from error
        self._agreed.discard(name)


def registered(target: Listing, config: TargetConfig, spark: SparkSession) -> Target:
    """Return the target with its tables registered, where a metastore is configured; else the target.

    Raises:
        TargetError: if the metastore cannot be reached.
    """
    if not config.metastore:
        return target
    try:
        files = Files(spark, config.catalog.warehouse)
        warehouse = files.qualified(config.catalog.warehouse.rstrip("/"))
        return RegisteredTarget(target, Metastore(catalog=config.catalog, warehouse=warehouse, spark=spark), files)
    except Py4JJavaError as error:
        raise TargetError(f"Cannot open {config.catalog.warehouse}: {first_line(error)}") from error


def _place(name: TargetName, suffix: str) -> TargetName:
    held = held_target(name, PARQUET.tables)
    return TargetName(namespace=held.namespace, name=f"{held.name}{suffix}")


def _check_ours(name: TargetName, place: TargetName, found: Entry | None) -> None:
    if found is not None and found.parameters.get(TABLE) != str(name):
        whose = found.parameters.get(TABLE, "not made by cdc_sync")
        raise TargetError(
            f"Cannot register {name}: the metastore has a table {place} already ({whose}); rename or drop that one, or "
            "give this one another target"
        )


def _says(found: Entry, wanted: Entry) -> bool:
    """Whether an entry says what is wanted; the metastore folds names of columns, and adds parameters of its own."""
    columns = tuple((column.name.lower(), column.type, column.comment or "") for column in wanted.columns)
    return (
        found.location == wanted.location
        and found.form == wanted.form
        and tuple((column.name, column.type, column.comment or "") for column in found.columns) == columns
        and wanted.parameters.items() <= found.parameters.items()
    )
