"""What is, or would be, done to lake tables by revisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.wording import Phrase
from cdc_sync.core.revisions.lint import CODES, Finding

Way: TypeAlias = Literal["create", "adopt", "in_place", "fill", "expand", "exchange"]
"""`in_place`: one small commit. `fill`: one, and then the rows are filled, in others. `expand`: the same for a column
of another type, which takes the place of the old one; that one stays until it is finished. `exchange`: all rows are
written anew and take the place of those of before, in one commit: readers see the table before or after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A revision that is to be applied, or taken back.

    Attributes:
        number: what the table is stamped with then.
        way: how it is done.
        rewrites: bytes of files that are read, and written anew; the files of before stay until snapshots expire.
        seconds: that takes for one process, at the rate that was measured last; None if nothing was measured yet.
        statements: SQL that would do the same; none where only a stamp is set.
    """

    table: TargetName
    revision: str
    number: int
    way: Way
    statements: tuple[str, ...]
    rewrites: int = 0
    seconds: float | None = None
    description: str = ""
    undoes: bool = False
    finishes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationPlan:
    """What `up` or `down` would do, in its order.

    Attributes:
        fills: tables whose rows are still to be filled, by what was applied before.
        problems: why a table cannot go on; what comes behind it is not planned.
    """

    name: str
    steps: tuple[PlannedStep, ...] = ()
    fills: tuple[TargetName, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 if there is nothing to do, 2 if there is, 5 if a table cannot go on."""
        return 5 if self.problems else 2 if self.steps or self.fills else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What was done.

    Attributes:
        filled: tables whose rows were filled.
        left: tables whose rows are left to be filled.
    """

    name: str
    steps: tuple[PlannedStep, ...]
    filled: tuple[TargetName, ...] = ()
    left: tuple[TargetName, ...] = ()

    @property
    def exit_code(self) -> int:
        """0, or 4 while rows are left to be filled."""
        return 4 if self.left else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisedTable:
    """How a table stands.

    Attributes:
        number: what it is stamped with; 0 if it is not.
        revision: the newest one in effect.
        pending: revisions that are not applied.
        fill: its rows are still to be filled.
        units, units_left: what those rows were divided into; 0 as long as they are not.
        unfinished: columns that others have taken the place of, which `finish` drops.
        problem: why it cannot go on.
    """

    table: TargetName
    number: int
    revision: str | None
    pending: tuple[str, ...]
    fill: bool
    units: int = 0
    units_left: int = 0
    unfinished: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationStatus:
    """How every table stands that has a revision or a log."""

    name: str
    tables: tuple[RevisedTable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedStep:
    """An entry of a table's log."""

    number: int
    revision: str
    undoes: bool
    finishes: bool
    changes: tuple[Phrase, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionHistory:
    """What was done to a table, oldest first; the last one may only have been begun."""

    table: TargetName
    steps: tuple[LoggedStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Revisions in whose files nothing is wrong.

    Attributes:
        findings: what may not be meant.
    """

    name: str
    revisions: tuple[str, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def sarif(self) -> dict[str, object]:
        """The findings as tools that show them beside a change read them. Source: OASIS SARIF 2.1.0, 3.13 to 3.28."""
        results = [
            {
                "ruleId": it.code,
                "level": "warning",
                "message": {"text": f"{it.text}: {CODES[it.code]}"},
                "locations": [
                    {
                        "physicalLocation": {
                            "artifactLocation": {"uri": it.file},
                            "region": {"startLine": max(it.line, 1)},
                        }
                    }
                ],
            }
            for it in self.findings
        ]
        rules = [{"id": code, "shortDescription": {"text": text}} for code, text in CODES.items()]
        driver = {"name": "cdc-sync migrate check", "rules": rules}
        return {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "results": results}],
        }
