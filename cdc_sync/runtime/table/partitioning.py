"""Dividing one table's target as the configuration says, at its making and whenever that changes."""

from __future__ import annotations

from structlog import get_logger

from cdc_sync.core.history.history import History
from cdc_sync.core.migration.derived import held_partitioning
from cdc_sync.core.migration.migration import Migration, Repartition
from cdc_sync.core.migration.modes import Mode
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.limits import Exceeded, too_large_to_divide
from cdc_sync.core.planning.partition_fit import misfit
from cdc_sync.core.planning.refusals import Refused
from cdc_sync.core.planning.stops import Pause
from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.table.reading import TableReading

_FOR_GOOD = (
    "a hudi table is partitioned as it was made: let partition_by say what it said, or drop the table and have it "
    "built anew, from its topic or a snapshot"
)


class TablePartitioning(TableReading):
    """The partitions of one target. One thread at a time.

    A new target waits for a partitioning that fits it: there is nothing yet that could go on. One that has rows is
    never held up by it: it goes on as it is partitioned, with a warning, until what is configured fits its columns.
    """

    def __init__(self, context: Context, route: Route) -> None:
        super().__init__(context, route)
        self._stamped: int | None = None
        self._divided = UNPARTITIONED
        self._divided_as: str | None = None
        # Begun and not known to have ended: it failed, or the reply was lost.
        self._is_dividing = False
        self._asked: Exceeded | None = None

    @property
    def _mode(self) -> Mode:
        return "append" if self.route.append else "upsert"

    def _take_partitioning(self, state: TargetState | None) -> None:
        """Take note of how the target is partitioned."""
        self._divided = state.partitioning if state is not None else UNPARTITIONED
        self._divided_as = state.partition_by if state is not None else None

    def _partitioning_to_make(self, history: History) -> Partitioning | Pause | None:
        """Return how to partition a target that is made with the columns of a history's head.

        Returns:
            None where nothing is configured, or what is fits columns that come later in this very batch.
        """
        wanted = self.route.partition_by
        if wanted is None:
            return None
        why = misfit(wanted, history.head.schema, self._mode)
        if why is None:
            return wanted
        if self.route.capabilities.partitions_stay:
            return Pause(reason=f"{why.reason}, so its target is not made", remedy=f"{why.remedy}; {_FOR_GOOD}")
        recorded = self._context.history.find(self.table) or history
        if misfit(wanted, recorded.head.schema, self._mode) is None:
            return None
        return Pause(reason=f"{why.reason}, so its target is not made", remedy=why.remedy)

    @property
    def is_to_be_partitioned(self) -> bool:
        """Whether the target is not partitioned as configured, and no migration of it is under way."""
        wanted, history = self.route.partition_by, self.history
        if wanted is None or history is None or self._stamped is None or self._divided_as == str(wanted):
            return False
        settled = self.progress is None or self.progress.version == self._stamped
        at_head = self._stamped == history.head.number and history.head.dropped is None
        sound = self.failing is None or self._is_dividing
        return at_head and settled and sound and self.pause is None and self.waiting is None

    def follow_partitioning(self) -> None:
        """Bring the target's partitioning to what is configured, between two batches, if the table has the columns."""
        wanted, history = self.route.partition_by, self.history
        if not self.is_to_be_partitioned or wanted is None or history is None:
            return
        step = self._step_to(wanted)
        why = misfit(wanted, history.head.schema, self._mode) or self._stays(step) or self._too_large(step)
        if why is not None:
            now = f"partitioned by {self._divided}" if self._divided.fields else "not partitioned"
            if self._warn(f"{why.reason}; the target stays {now}; {why.remedy}"):
                self.save_status()
            return
        if self._is_dividing:
            self._take_partitioning(self._context.target.state(self.route.target))
        if self._divided_as != str(wanted):
            self._is_dividing = True
            step = self._step_to(wanted)  # what the target says may be another now
            steps = Migration(version=history.head.number, schema=history.head.schema, steps=(step,))
            progress = self.progress or Progress(version=history.head.number)
            self._context.target.migrate(self.route.target, steps, progress)
            self._divided, self._divided_as = wanted, str(wanted)
            get_logger().info("target partitioned", table=str(self.table), by=str(wanted))
        self._is_dividing = False
        self.recovered()

    def _step_to(self, wanted: Partitioning) -> Repartition:
        able = self.route.capabilities
        held = held_partitioning(wanted, able.columns)
        same = set(held.fields) == set(self._divided.fields)
        return Repartition(
            before=wanted if same else self._divided, after=wanted, partitions=able.partitions or "hidden"
        )

    def _stays(self, step: Repartition) -> Refused | None:
        """Refuse to partition a target in another way that is partitioned for good."""
        if not (self.route.capabilities.partitions_stay and step.rewrites):
            return None
        return Refused(reason=f"partition_by says {str(step.after) or 'nothing'}", remedy=_FOR_GOOD)

    def _too_large(self, step: Repartition) -> Exceeded | None:
        """Ask before a new partitioning writes all rows of a large target anew; the answer takes another start."""
        if not step.rewrites:
            return None
        if self._asked is None:
            state = self._context.target.state(self.route.target)
            if state is not None:
                self._asked = too_large_to_divide(self.route.policy, rows=state.rows, size=state.size)
        return self._asked
