"""Updates that change a declared key, as the two events they would be if the connector knew the key."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.spark.columns import HAS_BEFORE, OP, before_column, value_column
from cdc_sync.spark.conditions import all_of, any_of

_EVENT, _EVENTS = "event", "events"


def split_key_updates(converted: DataFrame, schema: InternalSchema) -> DataFrame:
    """Make of each update that changes its row's key a delete of the old key and a create of the new one.

    A connector does that itself for the key it knows; for a declared one it sends an update whose row before the change
    has the old key, as far as the replica identity holds it.

    Args:
        converted: from `compile.convert` with before images.
        schema: the head; its key is the declared one.

    Returns:
        The same columns but for the before images; both events have the update's offset and different keys.
    """
    kept = [name for name in converted.columns if name != HAS_BEFORE and not name.startswith(before_column(0)[:-1])]
    keys = {value_column(id_): before_column(id_) for id_ in schema.primary_key}
    known = all_of(F.col(old).isNotNull() for old in keys.values())
    changed = any_of(F.col(old) != F.col(new) for new, old in keys.items())
    delete = F.struct(*({OP: F.lit("d")}.get(name, F.col(keys.get(name, name))).alias(name) for name in kept))
    create = F.struct(*({OP: F.lit("c")}.get(name, F.col(name)).alias(name) for name in kept))
    same = F.struct(*(F.col(name) for name in kept))
    is_key_update = (F.col(OP) == "u") & F.col(HAS_BEFORE) & known & changed
    events = F.when(is_key_update, F.array(delete, create)).otherwise(F.array(same))
    exploded = converted.select(events.alias(_EVENTS)).select(F.explode(_EVENTS).alias(_EVENT))
    return exploded.select(f"{_EVENT}.*")
