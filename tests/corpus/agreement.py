"""Whether two runs over the same source ended alike: states, columns, types, rows, cell by cell."""

from __future__ import annotations

import re
from dataclasses import replace

from cdc_sync.core.planning.status import TableStatus
from tests.corpus.images import Image, adjusted, names_adjusted_in
from tests.corpus.runs import Ended

_SHOWN = 5


def disagreements(one: Ended, other: Ended, *, other_is_adjusted: bool = False) -> list[str]:
    """Say in words where two runs differ; empty if they agree on every table.

    Args:
        other_is_adjusted: the other connector wrote names as Avro allows them.
    """
    found = [f"only one of the runs knows {table}" for table in sorted({*one.statuses} ^ {*other.statuses})]
    for table in sorted({*one.statuses} & {*other.statuses}):
        mine, yours = one.statuses[table], other.statuses[table]
        image = one.images.get(table)
        if other_is_adjusted:
            mine, yours = (
                replace(item, reason=item.reason and names_adjusted_in(item.reason)) for item in (mine, yours)
            )
            image = image and replace(image, columns=tuple((adjusted(name), type_) for name, type_ in image.columns))
        if _ending(mine) != _ending(yours):
            found.append(f"{table}: {_ending(mine)} against {_ending(yours)}")
        found += [f"{table}: {text}" for text in _between(image, other.images.get(table))]
    if len(one.aside) != len(other.aside):
        found.append(f"set aside: {one.aside} against {other.aside}")
    return found


def _ending(status: TableStatus) -> tuple[object, ...]:
    """Return what must agree: state, version, reason, the offset a table stands before, and the marks."""
    reason = re.sub(r"which \w+ cannot do", "which the target cannot do", status.reason or "")
    marks = tuple((adjusted(mark.column), mark.version) for mark in status.needs_resync)
    return status.state, status.version, reason, (status.paused_at or "").partition("@")[2], marks


def _between(one: Image | None, other: Image | None) -> list[str]:
    if one is None or other is None:
        return [] if one is other else ["only one of the runs has a target"]
    if one.columns != other.columns:
        return [f"columns {one.columns} against {other.columns}"]
    # NaN is not itself, but it is written alike.
    mine, yours = [sorted(map(repr, image.rows)) for image in (one, other)]
    missing = [row for row in mine if row not in yours]
    extra = [row for row in yours if row not in mine]
    if not missing and not extra and len(mine) != len(yours):
        return [f"{len(mine)} rows against {len(yours)}"]
    return [f"row {row}, against none" for row in missing[:_SHOWN]] + [
        f"none, against row {row}" for row in extra[:_SHOWN]
    ]
