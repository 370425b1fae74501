"""The steps of a migration on one Delta table; each is one commit and is skipped when it is in effect already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from cdc_sync.core.migration.capabilities import DELTA
from cdc_sync.core.migration.derived import held_partitioning
from cdc_sync.core.migration.migration import (
    AlterTable,
    Backfill,
    CreateTable,
    JoinValues,
    Migration,
    Repartition,
    RewriteTable,
    Step,
)
from cdc_sync.core.migration.modes import Mode, metadata_names
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.typechange import rewrites
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.schema.identifiers import quoted
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.errors import TargetError
from cdc_sync.targets.common.backfill import backfill_statement
from cdc_sync.targets.common.commits import progress_of
from cdc_sync.targets.common.merge import viewed
from cdc_sync.targets.common.merge_columns import join_columns_statement, join_said_statement
from cdc_sync.targets.common.partition_values import Division
from cdc_sync.targets.common.properties import MODE_PROPERTY, PARTITION_PROPERTY, is_stamped, stamps
from cdc_sync.targets.common.rewritten_rows import converted_rows
from cdc_sync.targets.delta.fields import delta_type
from cdc_sync.targets.delta.layout import Layout, divided, new_layout, relabelled, rewritten
from cdc_sync.targets.delta.log import DeltaTable, there
from cdc_sync.targets.protocol import check_held, marker_after_join

_BEFORE_PROPERTY = "cdc_sync.before-rewrite"
_MODE = "delta.columnMapping.mode"
_TABLE_PROPERTIES = {_MODE: "name"}
_MAPPING_VERSIONS = {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
"""The least that a table is of which columns are mapped; a higher one stays. Source: Delta docs, "Column mapping"."""


def mode_of(properties: Mapping[str, str]) -> Mode:
    """Return what a table was made to hold."""
    return "append" if properties.get(MODE_PROPERTY) == "append" else "upsert"


def kept_before(properties: Mapping[str, str]) -> dict[str, int]:
    """Return the version and the commit that a rollback leads to, nothing if nothing is kept."""
    kept: dict[str, int] = json.loads(properties.get(_BEFORE_PROPERTY, "{}"))
    return kept


def division_of(layout: Layout, schema: InternalSchema) -> Division:
    """Return what rows of a table are divided by; `schema` is in the target's names."""
    derived = layout.derived(schema, mode_of(layout.properties))
    return Division(derived=derived, left=layout.left(derived))


class DeltaSteps:
    """What a migration, in the target's names, does to a table."""

    def __init__(self, name: TargetName, table: DeltaTable, migration: Migration, properties: Mapping[str, str]):
        """Take up one table.

        Args:
            properties: those that the operator gives tables that are made.
        """
        self._name = name
        self._table = table
        self._migration = migration
        self._given = properties

    def carry_out(self, step: Step, progress: Progress, said: Mapping[int, DataFrame]) -> None:
        """Do one step; `progress` is what the rows contain, unchanged."""
        if isinstance(step, CreateTable):
            self._create(step)
            return
        on = there(self._table)
        layout, held = self._table.layout(on), progress_of(self._name, self._table.lineage(on.version()))
        check_held(self._name, held, progress)
        if isinstance(step, Backfill):
            division = division_of(layout, self._migration.schema)
            self._table.execute(backfill_statement(self._table.sql_name, step, division), progress.to_text(), on)
            return
        if isinstance(step, Repartition):
            if layout.properties.get(PARTITION_PROPERTY) != str(step.after):
                self._repartition(step, layout, on, held)
            return
        if is_stamped(layout.properties, self._migration):
            return
        match step:
            case JoinValues():
                self._join(step, layout, on, held, said.get(step.into))
            case AlterTable():
                self._alter(step, on, held)
            case RewriteTable():
                self._rewrite(step, on, progress)
            case _:
                raise TargetError(f"Cannot migrate {self._name}: Delta tables are of one regime")

    def _create(self, step: CreateTable) -> None:
        partitioning = step.partitioning
        properties = _TABLE_PROPERTIES | dict(self._given) | stamps(self._migration) | {MODE_PROPERTY: step.mode}
        if partitioning is not None:
            properties |= {PARTITION_PROPERTY: str(partitioning)}
            partitioning = held_partitioning(partitioning, DELTA.columns)
        self._table.create(new_layout(step.schema, step.mode, partitioning, properties))

    def _alter(self, step: AlterTable, on: Any, held: Progress | None) -> None:
        migration, changes = self._migration, tuple(change for _, change in step.steps)
        if held is not None and rewrites(changes, DELTA, migration.schema):
            raise TargetError(f"Cannot migrate {self._name}: a type changes, and its rows would lose their values")

        def change(layout: Layout) -> Layout:
            laid = relabelled(layout, step.steps, migration.schema, mode_of(layout.properties))
            # One that others made may find columns by the names that they have just now.
            mapping = {} if step.steps or _MODE in layout.properties else _TABLE_PROPERTIES | _MAPPING_VERSIONS
            given = {key: value for key, value in migration.properties if value is not None}
            gone = [key for key, value in migration.properties if value is None]
            return laid.less(gone).stamped({**mapping, **given, **stamps(migration)})

        self._table.change(None if held is None else held.to_text(), on, change)

    def _rewrite(self, step: RewriteTable, on: Any, progress: Progress) -> None:
        migration = self._migration
        kept = {"version": step.version, "commit": on.version()}
        stamped = {**stamps(migration), _BEFORE_PROPERTY: json.dumps(kept)}

        def change(layout: Layout) -> Layout:
            return rewritten(layout, step.steps, migration.schema, mode_of(layout.properties)).stamped(stamped)

        def rows(version: int, layout: Layout) -> DataFrame:
            metadata = metadata_names(mode_of(layout.properties))
            found = converted_rows(self._table.rows(version), step, migration.schema, metadata)
            types = {column.name: delta_type(column.type) for column in migration.schema.columns}
            found = found.select(
                *(found[quoted(label)].cast(type_).alias(label) for label, type_ in types.items()), *metadata
            )
            return division_of(layout, migration.schema).rows(found)

        self._table.change(progress.to_text(), on, change, rows)

    def _repartition(self, step: Repartition, layout: Layout, on: Any, held: Progress | None) -> None:
        """Write all rows anew, or only stamp the text where it says what there is."""
        schema = self._migration.schema
        wanted = held_partitioning(step.after, DELTA.columns)
        stamped = {PARTITION_PROPERTY: str(step.after)}
        marker = None if held is None else held.to_text()
        if set(wanted.fields) == set(layout.partitioning.fields):
            self._table.change(marker, on, lambda layout: layout.stamped(stamped))
            return

        def change(layout: Layout) -> Layout:
            return divided(layout, wanted, schema, mode_of(layout.properties)).stamped(stamped)

        def rows(version: int, layout: Layout) -> DataFrame:
            own = (quoted(field["name"]) for field in layout.own)
            return division_of(layout, schema).rows(self._table.rows(version).select(*own))

        self._table.change(marker, on, change, rows)

    def _join(self, step: JoinValues, layout: Layout, on: Any, held: Progress | None, said: DataFrame | None) -> None:
        """Fill the column that stays, under the name it was kept under; readers find the new name when all is there."""
        if held is None:
            return  # no rows yet
        table, division = self._table, division_of(layout, step.schema)
        marker = marker_after_join(held, step.version).to_text()
        if not step.schema.primary_key or mode_of(layout.properties) == "append":
            table.execute(join_columns_statement(table.sql_name, step, division), marker, on)
        elif said is not None:
            with viewed(said) as view:
                table.execute(join_said_statement(table.sql_name, view, step, division), marker, on)
