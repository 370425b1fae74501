"""Counts rows that differ, and shows some of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from cdc_sync.operations.verify.columns import Compared
from cdc_sync.operations.verify.compare import Row, both
from cdc_sync.operations.verify.report import ColumnDifference, Counts, RowDifference
from cdc_sync.operations.verify.sides import Shown, Side


def count(rows: Mapping[str, Row], unsettled: Collection[str], *, keyed: bool) -> Counts:
    """Count rows that differ.

    Args:
        keyed: rows are told apart by a key; else whole rows are, and what differs is how many copies there are.
    """
    source = target = different = 0
    for key, row in rows.items():
        if key in unsettled:
            continue
        ours, theirs = row.source.total(), row.target.total()
        if not keyed or not ours or not theirs:
            source += max(0, ours - theirs)
            target += max(0, theirs - ours)
        else:
            different += 1
    return Counts(
        only_in_source=source,
        only_in_target=target,
        different=different,
        unsettled=len({*rows}.intersection(unsettled)),
    )


def show(
    source: Side,
    target: Side,
    rows: Mapping[str, Row],
    unsettled: Collection[str],
    columns: Sequence[Compared],
    key: Sequence[int],
    limit: int,
) -> tuple[RowDifference, ...]:
    """Return the first rows that differ as they are shown, those that have settled before the others.

    Args:
        columns: in the order of both sides' relations.
        key: ids of the key's columns; without any the whole row is shown as the key.
    """
    chosen = sorted(rows, key=lambda item: (item in unsettled, item))[:limit]
    if not chosen:
        return ()
    ours, theirs = both(lambda side: side.shown(chosen), source, target)
    return tuple(
        _difference(rows[item], ours.get(item, []), theirs.get(item, []), columns, key, settled=item not in unsettled)
        for item in chosen
    )


def _difference(
    row: Row,
    ours: Sequence[Shown],
    theirs: Sequence[Shown],
    columns: Sequence[Compared],
    key: Sequence[int],
    *,
    settled: bool,
) -> RowDifference:
    some = [*ours, *theirs][:1]
    differing = [
        ColumnDifference(column=column.name, source=mine.texts[place], target=yours.texts[place])
        for mine, yours in zip(ours[:1], theirs[:1], strict=False)
        for place, column in enumerate(columns)
        if mine.parts[place] != yours.parts[place]
    ]
    return RowDifference(
        key={
            column.name: shown.texts[place]
            for shown in some
            for place, column in enumerate(columns)
            if not key or column.id in key
        },
        source_rows=row.source.total(),
        target_rows=row.target.total(),
        columns=tuple(differing),
        settled=settled,
    )
