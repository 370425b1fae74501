"""Which schemas the records of a range may have, and the converters for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdc_sync.core.debezium.forms import KnownSchema
from cdc_sync.core.history.history import History
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.planning.observation import Stretch
from cdc_sync.core.table.state import TableState
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.observe import events_in, flattened_before
from cdc_sync.runtime.write_plan import converters_for
from cdc_sync.spark.converter import Converter
from cdc_sync.spark.observe import schemas

_FEW_SCHEMAS = 3


def converters_of(
    context: Context,
    state: TableState,
    history: History,
    ranges: tuple[OffsetRange, ...],
    stretches: Sequence[Stretch],
) -> tuple[TableState, tuple[Converter, ...]]:
    """Return the converters of ranges that were surveyed, to a history's head; none where nothing of the table is."""
    shown = _shown_in(context, ranges, frozenset(stretch.digest for stretch in stretches))
    if not shown:
        state = _for_deletes(context, state, ranges)
        shown = state.hints.current if context.config.connector.flattened is not None else frozenset()
    return state, converters_to(context, state, history, shown, stretches)


def converters_to(
    context: Context,
    state: TableState,
    history: History,
    digests: frozenset[str],
    stretches: Sequence[Stretch] = (),
) -> tuple[Converter, ...]:
    """Return how records of some schemas become rows of a history's head."""
    found = (context.book.get(digest) for digest in sorted(digests))
    known: list[KnownSchema] = [item for item in found if item is not None and item.schema is not None]
    return converters_for(history, state.route, known, stretches, context.evidence.logs)


def _shown_in(context: Context, ranges: tuple[OffsetRange, ...], digests: frozenset[str]) -> frozenset[str]:
    """Return which of the schemas a part of the surveyed ranges shows.

    Where each of many versions rewrites the rows, each is written with a converter for its own schema only: with those
    of all, a table of 28 versions took ten minutes instead of one. Few are not worth another look. A flattened event's
    delete has no schema of its own, so all may tell its key.
    """
    if len(digests) <= _FEW_SCHEMAS or context.config.connector.flattened is not None:
        return digests
    records = context.read(ranges)
    return (digests & schemas(records, events_in(context, records)).keys()) or digests


def _for_deletes(context: Context, state: TableState, ranges: tuple[OffsetRange, ...]) -> TableState:
    """Know the schemas that tell the keys of ranges without rows: of flattened events, deletes have no more."""
    if context.config.connector.flattened is None or state.hints.current:
        return state
    found = (flattened_before(context, item) for item in ranges)
    current = frozenset(digest for digest in found if digest is not None)
    return replace(state, hints=replace(state.hints, current=current))
