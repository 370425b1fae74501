"""What is done of a table just now, for who looks at the job from outside."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from cdc_sync.core.migration.migration import RewriteTable
from cdc_sync.core.model.lease import Doing
from cdc_sync.core.table.transitions import (
    DivideTarget,
    Effect,
    EndTable,
    ForgetJoin,
    Migrate,
    ReadRest,
    Record,
    RecordJoin,
    ReleaseTarget,
    TruncateTarget,
    WriteRange,
)

WORDS: Mapping[type[object], str] = {
    Record: "records a version",
    Migrate: "changes the target's columns",
    WriteRange: "writes rows",
    TruncateTarget: "empties the target",
    ReadRest: "reads on",
    EndTable: "records the table's end",
    ReleaseTarget: "lets go of the target",
    DivideTarget: "partitions the target",
    RecordJoin: "joins columns",
    ForgetJoin: "does not join columns",
}


class Now:
    """Tells what is carried out; written by one thread, read by any.

    Attributes:
        doing: None between two steps.
    """

    def __init__(self) -> None:
        self.doing: Doing | None = None

    @contextmanager
    def telling(self, step: Effect) -> Iterator[None]:
        """Tell of a step while it is carried out."""
        rewrites = isinstance(step, Migrate) and any(isinstance(it, RewriteTable) for it in step.steps.steps)
        self.doing = Doing(what="rewrites the target" if rewrites else WORDS[type(step)], since=time.time())
        try:
            yield
        finally:
            self.doing = None
