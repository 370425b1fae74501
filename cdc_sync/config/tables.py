"""Which tables are followed, where to, and by which policies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator
from regex import Match

from cdc_sync.config.fields import Regex, Scalar, Text, problem
from cdc_sync.config.regimes import Readers
from cdc_sync.config.section import Section
from cdc_sync.config.template import Template, TemplateError
from cdc_sync.core.migration.capabilities import SchemaEvolution
from cdc_sync.core.patterns import full_match
from cdc_sync.core.schema.partitioning import Partitioning, PartitioningError
from cdc_sync.core.schema.policy import Mode


class PolicyOverride(Section):
    """A table's own answers; None leaves the answer of the policy section."""

    mode: Mode | None = None
    add_column: Literal["apply", "ignore", "pause"] | None = None
    drop_column: Literal["apply", "keep", "pause"] | None = None
    rename_column: Literal["apply", "pause"] | None = None
    change_type: Literal["apply", "pause"] | None = None
    change_key: Literal["apply", "pause"] | None = None
    unproven_rename: Literal["add", "pause"] | None = None
    ambiguous_null: Literal["warn", "pause"] | None = None
    missing_rows: Literal["pause", "insert"] | None = None
    unsent_values: Literal["keep", "null", "pause"] | None = None
    out_of_range: Literal["quarantine", "null", "clamp"] | None = None
    truncate: Literal["apply", "ignore", "pause"] | None = None
    recreate: Literal["apply", "pause"] | None = None
    drop_table: Literal["keep", "drop", "archive", "pause"] | None = None
    rename_table: Literal["stay", "follow", "pause"] | None = None
    incompatible_types: Literal["rewrite", "side_column", "pause"] | None = None
    unknown_values: Literal["mark", "trust", "pause"] | None = None
    second_snapshot: Literal["mark", "apply", "pause"] | None = None
    rewrite_limit: Annotated[int, Field(ge=0)] | None = None


class PolicyDefaults(Section):
    """What to do where nothing is proven, for tables that say nothing of their own."""

    mode: Mode = "evolve"
    add_column: Literal["apply", "ignore", "pause"] = "apply"
    drop_column: Literal["apply", "keep", "pause"] = "apply"
    rename_column: Literal["apply", "pause"] = "apply"
    change_type: Literal["apply", "pause"] = "apply"
    change_key: Literal["apply", "pause"] = "apply"
    unproven_rename: Literal["add", "pause"] = "add"
    ambiguous_null: Literal["warn", "pause"] = "warn"
    missing_rows: Literal["pause", "insert"] = "pause"
    unsent_values: Literal["keep", "null", "pause"] = "keep"
    out_of_range: Literal["quarantine", "null", "clamp"] = "quarantine"
    truncate: Literal["apply", "ignore", "pause"] = "apply"
    recreate: Literal["apply", "pause"] = "apply"
    drop_table: Literal["keep", "drop", "archive", "pause"] = "keep"
    rename_table: Literal["stay", "follow", "pause"] = "stay"
    incompatible_types: Literal["rewrite", "side_column", "pause"] = "rewrite"
    unknown_values: Literal["mark", "trust", "pause"] = "mark"
    second_snapshot: Literal["mark", "apply", "pause"] = "mark"
    rewrite_limit: Annotated[int, Field(ge=0)] = 10 * 1024**3


class Merge(Section):
    """Several source tables in one target."""

    source_column: Text = "_source_table"


class TableRule(Section):
    """One rule of the tables section; the first that matches a table wins."""

    table: Text | None = None
    pattern: Regex | None = None
    exclude: tuple[Regex, ...] = ()
    target: Text = "{schema}.{table}"
    mode: Literal["upsert", "append"] = "upsert"
    key: tuple[Text, ...] | None = None
    renames: Mapping[str, Text] = {}
    drops: tuple[Text, ...] = ()
    initial_values: Mapping[str, Scalar] = {}
    partition_by: tuple[Text, ...] | None = None
    schema_evolution: SchemaEvolution | None = None
    readers: Readers | None = None
    merge: Merge | None = None
    policy: PolicyOverride = PolicyOverride()

    @model_validator(mode="after")
    def _one_way_to_match(self) -> TableRule:
        if self.table is not None and self.pattern is not None:
            problem("stands beside table; keep one of the two", "pattern")
        if self.table is None and self.pattern is None:
            problem("matches nothing; add table (an exact name) or pattern (a regular expression)")
        if self.table is not None and self.exclude:
            problem("has no use beside table, which matches one table only; remove it", "exclude")
        if self.table is not None and "." not in self.table:
            problem("must be database.schema.table, or database.table where there are no schemas", "table")
        return self

    @model_validator(mode="after")
    def _target_is_a_template(self) -> TableRule:
        try:
            Template.parse(self.target, groups=frozenset(re.compile(self.pattern or "").groupindex))
        except TemplateError as error:
            problem(str(error), "target")
        return self

    @model_validator(mode="after")
    def _declarations_agree(self) -> TableRule:
        news: dict[str, str] = {}
        for old, new in self.renames.items():
            if old == new:
                problem("renames a column to its own name; remove it", "renames", old)
            if new in news:
                problem(f"is the new name of column {news[new]!r} already; keep one of the two", "renames", old)
            news[new] = old
        for index, name in enumerate(self.drops):
            if name in self.renames:
                problem(
                    f"is renamed to {self.renames[name]!r} in the same rule; keep one of the two",
                    "drops",
                    index,
                )
        return self

    @model_validator(mode="after")
    def _partitioning_can_be_read(self) -> TableRule:
        try:
            Partitioning.parse(self.partition_by or ())
        except PartitioningError as error:
            problem(error.reason, "partition_by", error.index)
        return self

    @model_validator(mode="after")
    def _merge_leaves_rows_of_others_alone(self) -> TableRule:
        if self.merge is None:
            return self
        if self.mode == "append":
            problem("stands beside mode: append, and changelogs are not merged; remove one of the two", "merge")
        if self.partition_by is not None:
            problem(
                "stands beside merge, and targets of several source tables are not partitioned; remove it",
                "partition_by",
            )
        if self.policy.incompatible_types == "rewrite":
            problem(
                "would rewrite rows of other tables, for the rule has merge; choose side_column or pause",
                *("policy", "incompatible_types"),
            )
        return self

    def matches(self, name: str) -> Match[str] | None:
        """Match a dotted table name; exact names and patterns alike must cover all of it.

        Raises:
            ConfigError: if a pattern takes too long on it.
        """
        if self.table is not None:
            return full_match(re.escape(self.table), name)
        if any(full_match(exclude, name) for exclude in self.exclude):
            return None
        return full_match(self.pattern or "", name)
