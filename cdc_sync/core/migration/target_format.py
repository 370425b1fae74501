"""A table format that targets can be of, as whoever adds one describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cdc_sync.core.migration.capabilities import Capabilities, SchemaEvolution


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFormat:
    """What tables of a format are able to do, and where they are opened.

    Attributes:
        opens: `module:function`; called with the configuration's `target` section and the Spark session, it returns a
            `cdc_sync.targets.protocol.Target`. The module is imported when a job of this format starts.
        kinds: what its tables are able to do; the first is what they are where nothing is said, one more may be of
            tables with `schema_evolution: on_read`.
        spark: settings that the session has to be built with.
        packages: Maven coordinates of what Spark needs on its class path.
    """

    opens: str
    kinds: tuple[Capabilities, ...]
    spark: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()

    @property
    def usual(self) -> Capabilities:
        """What tables are able to do where nothing is said of how they are kept."""
        return self.kinds[0]

    def capabilities(self, evolution: SchemaEvolution) -> Capabilities:
        """Return what tables are able to do that are kept so."""
        return next((kind for kind in self.kinds if kind.evolution == evolution), self.usual)
