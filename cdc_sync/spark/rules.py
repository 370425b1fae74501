"""Rules of Spark's optimizer that the job's queries are planned without, for they cost more than what they find.

Small batches cost little but planning (docs/decisions/0030). Without a rule a plan may cost more; it gives the same.
"""

from __future__ import annotations

from cdc_sync.config import Target

_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
_FILES = "org.apache.spark.sql.execution.datasources"

_DEAR = (
    # Compares both sides of each AND and OR, the events' whole conversion among them, to find conditions said twice.
    f"{_OPTIMIZER}.BooleanSimplification",
    # Compares the branches of each CASE in the same way; those whose condition is constant are few.
    f"{_OPTIMIZER}.SimplifyConditionals",
    # No query of the job has a scalar subquery.
    f"{_OPTIMIZER}.MergeScalarSubqueries",
)
_OF_FILES = (f"{_FILES}.SchemaPruning", f"{_FILES}.PruneFileSourcePartitions")
"""Look for Spark's own readers of files, which Iceberg's tables and Kafka are not read by."""


def rules_left_out(target: Target) -> tuple[str, ...]:
    """Return the classes of the rules, for `spark.sql.optimizer.excludedRules`."""
    return _DEAR + _OF_FILES if target.format == "iceberg" else _DEAR
