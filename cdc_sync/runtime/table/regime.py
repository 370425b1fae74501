"""Keeping one table's target in the regime that is configured, which is changed by the operator's word alone."""

from __future__ import annotations

from structlog import get_logger

from cdc_sync.core.migration.migration import ChangeRegime, Migration
from cdc_sync.core.migration.operator_requests import RegimeAsked
from cdc_sync.core.migration.readers import has_logs, regime_of, why_not
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.migration.target_state import TargetState
from cdc_sync.core.model.progress import Progress
from cdc_sync.core.planning.stops import LOGS, Pause, other_regime, unread_partitions
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.runtime.context import Context
from cdc_sync.runtime.table.partitioning import TablePartitioning


class TableRegime(TablePartitioning):
    """How columns are found in the files of one target. One thread at a time.

    Readers have to know it, so that a line of the configuration changes no table that has rows: a table of the other
    regime pauses, until it is asked to be rewritten.
    """

    def __init__(self, context: Context, route: Route) -> None:
        super().__init__(context, route)
        self.regime_asked: RegimeAsked | None = None
        """What was asked when the table was read the last time, and has to wait."""

    def _in_regime(self, state: TargetState | None) -> TargetState | None:
        """Rewrite the target in the configured regime if the operator asks for it; return what the target is then.

        What was asked is forgotten once it is done, so what a crash left is ended by the next that reads the table. It
        waits as long as the configuration says something else: then the job was started before that was changed.
        """
        self.regime_asked = None
        if state is None or state.version is None:
            return state
        asked = self._context.state.regime(self.table)
        if asked is None:
            return state
        wanted, known = self.route.capabilities.evolution, self.history
        if asked.evolution != wanted or known is None or state.version > known.head.number:
            self.regime_asked = asked
            missing = f"the configuration says {wanted}" if asked.evolution != wanted else "its history is not complete"
            self._warn(
                f"all rows are to be rewritten for schema_evolution: {asked.evolution}, and {missing}; `cdc-sync "
                "regime --undo` forgets that"
            )
            return state
        self.pause = None  # if this fails it is tried again, which a table that is paused is not said to be
        self._change_regime(asked, state, known.version(state.version).schema)
        self._context.state.withdraw_regime(self.table)
        return self._context.target.state(self.route.target)

    def _change_regime(self, asked: RegimeAsked, state: TargetState, schema: InternalSchema) -> None:
        assert state.version is not None
        steps = Migration(version=state.version, schema=schema, steps=(ChangeRegime(after=asked.evolution),))
        self._context.target.migrate(self.route.target, steps, state.progress or Progress(version=state.version))
        if state.evolution != asked.evolution:
            get_logger().info("target rewritten", table=str(self.table), schema_evolution=asked.evolution)

    def _other_regime(self, state: TargetState) -> Pause | None:
        """Say why the table cannot go on if its target is of another regime than is configured, or not for its readers.

        Files beside which there are no logs are read right by all that know logs; so a table without goes on.
        """
        wanted, target = self.route.capabilities.evolution, self._context.config.target
        if state.evolution != wanted:
            return other_regime(self.table, has=state.evolution, wanted=wanted)
        if state.logs and not has_logs(target.format, target.table_properties):
            return LOGS
        if not (state.partitioning.fields and self.route.capabilities.partitions_stay):
            return None
        # Readers were looked at when the configuration was read, which need not say how the table was made.
        regime = regime_of(target.format, target.table_properties, wanted, partitioned=True)
        reasons = ((name, why_not(name, regime)) for name in self.route.readers)
        return next((unread_partitions(name, reason) for name, reason in reasons if reason), None)
