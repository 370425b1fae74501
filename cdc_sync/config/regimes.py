"""How tables are kept, and who reads them: checked of the target, and of each rule that says something of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cdc_sync.config.fields import problem
from cdc_sync.core.migration.capabilities import SchemaEvolution
from cdc_sync.core.migration.readers import regime_of, right_for, why_not

Readers: TypeAlias = tuple[
    Literal[
        "spark",
        "trino",
        "presto",
        "pyiceberg",
        "duckdb",
        "delta-rs",
        "hudi-rs",
        "polars",
        "daft",
        "clickhouse",
        "arrow",
    ],
    ...,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is said of some tables.

    Attributes:
        place: of the section that says it.
        inherits: what of it stands in the target's section and not in this one.
    """

    format: str
    table_properties: Mapping[str, str]
    evolution: SchemaEvolution
    readers: Readers
    partitioned: bool = False
    place: tuple[str | int, ...] = ()
    inherits: frozenset[str] = frozenset()

    def check(self) -> None:
        """Refuse what the format has not, and readers that would not show what the tables hold.

        Raises:
            PydanticCustomError: placed at the key that says it.
        """
        if self.evolution == "on_read":
            self._check_on_read()
        regime = regime_of(self.format, self.table_properties, self.evolution, partitioned=self.partitioned)
        for index, name in enumerate(self.readers):
            reason = why_not(name, regime)
            if reason is None:
                continue
            why = f"names {name}, which is not to read {regime} tables: it {reason}"
            right = f"{_of(right_for(name))} it shows every value (`cdc-sync docs readers`)"
            if "readers" not in self.inherits:
                problem(f"{why}; {right}", *self.place, "readers", index)
            if "schema_evolution" in self.inherits:
                problem(
                    f"makes {regime} tables, and target.readers {why}; {right}; where it does not read this one, say "
                    "in the rule's readers who does",
                    *(*self.place, "partition_by"),
                )
            problem(
                f"is {self.evolution}, and target.readers {why}; {right}; where it does not read this one, say in the "
                "rule's readers who does",
                *(*self.place, "schema_evolution"),
            )

    def _check_on_read(self) -> None:
        says = "readers" if "schema_evolution" in self.inherits else "schema_evolution"
        if self.format != "hudi":
            problem(
                f"has no use with format {self.format}, of which there is one kind of table; remove it",
                *self.place,
                says,
            )
        if not self.readers:
            is_said = "is empty beside target.schema_evolution: on_read" if says == "readers" else "is on_read"
            problem(
                f"{is_said}, so that most engines would read old columns under new names, without an error; say with "
                "readers: [spark] that none of them reads the tables (`cdc-sync docs hudi`)",
                *self.place,
                says,
            )


def _of(regimes: Sequence[str]) -> str:
    return f"of {', '.join(regimes)} tables" if regimes else "there are no tables of which"
