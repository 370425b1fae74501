"""What may happen to a table next. Each is one effect, and may be carried out again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.migration.migration import Migration
from cdc_sync.core.migration.operator_requests import RegimeAsked, Rollback
from cdc_sync.core.migration.routes import Join, TargetName
from cdc_sync.core.model.offsets import OffsetRange
from cdc_sync.core.model.positions import KafkaPosition
from cdc_sync.core.model.progress import Progress, Truncated
from cdc_sync.core.planning.observation import Refusal, Stretch, Waiting
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.table.questions import Question
from cdc_sync.core.table.state import TableState
from cdc_sync.errors import CdcSyncError


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Nothing is left to do; the table is in this state from now on.

    Attributes:
        done: what the operator asked for is carried out.
    """

    state: TableState
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Become:
    """The state changes before the next effect, so that it holds if that fails."""

    state: TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """The table cannot be worked on as it is."""

    error: CdcSyncError


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A fact is missing."""

    question: Question[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Versions go into the history, in order; there may be none.

    Attributes:
        stop: what stops the table behind them; a version is one that ends its target, recorded once all is written.
    """

    versions: tuple[Version, ...]
    warnings: tuple[str, ...]
    stop: Refusal | Waiting | Version | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrate:
    """The target gets the columns of a history's head.

    Attributes:
        progress: its marker with that version.
    """

    steps: Migration
    history: History
    progress: Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRange:
    """The rows in ranges go into the target, as they are under a history's head."""

    ranges: tuple[OffsetRange, ...]
    history: History


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateTarget:
    """The target is emptied; one commit holds that and where each partition goes on."""

    truncated: Truncated
    version: int
    why: str
    at: KafkaPosition


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRest:
    """What was in the topics before an end is looked at first."""

    ranges: tuple[OffsetRange, ...]
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTable:
    """The version is recorded at which the table ends; everything from before is written."""

    end: Version


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseTarget:
    """The target of a recorded end goes.

    Attributes:
        into: what it is called from now on, None if it is dropped.
        arrival: the version to record first under the table's new name, None if it is recorded or there is none.
    """

    end: Version
    into: TargetName | None
    arrival: Version | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RollBackRewrite:
    """Rows and columns of before a rewrite come back."""

    asked: Rollback


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRollback:
    """What the operator asked for cannot be done: the target keeps no state from before."""

    asked: Rollback


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptTarget:
    """A target that came under this name, and has the marker of the old one, is stamped with an arrival."""

    arrival: Version


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteLayout:
    """All rows are rewritten in the regime that is configured."""

    asked: RegimeAsked
    steps: Migration


@dataclass(frozen=True, slots=True, kw_only=True)
class DropLeftovers:
    """Files may be left of a target that was dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DivideTarget:
    """The target is partitioned as configured."""

    wanted: Partitioning
    steps: Migration
    progress: Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordJoin:
    """The version that joins two columns is recorded.

    Attributes:
        join: with its place in the history, which is part of what was said: a replay puts it there again.
    """

    join: Join
    version: Version


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetJoin:
    """What the operator said of two columns cannot be done, and is taken back."""

    join: Join
    why: str


Effect: TypeAlias = (
    Record
    | Migrate
    | WriteRange
    | TruncateTarget
    | ReadRest
    | EndTable
    | ReleaseTarget
    | DivideTarget
    | RecordJoin
    | ForgetJoin
)
"""What is carried out on history, target or files."""

Step: TypeAlias = Settled | Become | Fail | Ask | Effect
"""What may be next once a table is read."""

LoadEffect: TypeAlias = RollBackRewrite | ForgetRollback | AdoptTarget | RewriteLayout | DropLeftovers
"""What is carried out while it is."""

LoadStep: TypeAlias = Settled | Become | Fail | LoadEffect
"""What may be next while it is."""
