"""Which name changes of one table are followed, by what the source tells and the configuration says."""

from __future__ import annotations

from collections.abc import Collection

from cdc_sync.config import route
from cdc_sync.core.history.history import History
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.table_renames import NO_NAME_CHANGES, NameChanges
from cdc_sync.errors import RefusedError
from cdc_sync.runtime.context import Context


def name_changes(
    context: Context, wanted: Route, history: History | None, strangers: Collection[TableId] = ()
) -> NameChanges:
    """Return the name changes of a table behind its newest version.

    What becomes of it is up to the policy of its old name; a name that no rule matches is as good as none, and so is
    one under which no row ever came (`strangers`).
    """
    told = [item for item in context.evidence.renames if wanted.table in (item.old, item.new)]
    if not told:
        return NO_NAME_CHANGES
    head = None if history is None else history.head.position
    told = [item for item in told if head is None or item.position > head]
    away = [item for item in told if item.old == wanted.table and _answer(context, item.new) is not None]
    here = tuple(item for item in told if item.new == wanted.table and item.old not in strangers)
    return NameChanges(
        away=tuple(away) if wanted.policy.rename_table != "stay" else (),
        here=tuple(item for item in here if _answer(context, item.old) == "follow"),
    )


def _answer(context: Context, table: TableId) -> str | None:
    try:
        found = route(context.config, table)
    except RefusedError:
        return None
    return None if found is None else found.policy.rename_table
