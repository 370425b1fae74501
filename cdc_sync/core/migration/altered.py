"""What somebody else did to a target's columns, by the numbers that its format knows them by; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cdc_sync.core.schema.identifiers import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldColumns:
    """The columns of a target as they were when the job left or read it last.

    Attributes:
        identity: what tells the table from another one of its name, and from itself before it was divided anew.
        version: the schema version that the target is stamped with.
        numbers: by name, the number that lasts as long as the column: another column of the name has another one.
    """

    identity: str
    version: int
    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered:
    """How columns differ from those that were held; names are the target's.

    Attributes:
        renamed: old and new name.
        replaced: another column has the name now, in which rows of before read NULL.
    """

    dropped: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    replaced: tuple[str, ...] = ()

    @property
    def must_be_undone(self) -> bool:
        """Whether rows cannot be written until somebody has put the columns right."""
        return bool(self.dropped or self.added or self.renamed)


def altered(before: HeldColumns, now: HeldColumns) -> Altered:
    """Compare a target's columns with those that were held.

    Nothing is told of a table that was made anew or migrated since: those are changes of ours, or of another job's.
    """
    if (before.identity, before.version) != (now.identity, now.version):
        return Altered()
    then, present = before.numbers, now.numbers
    names = {number: name for name, number in present.items() if name not in then}
    renamed = {name: names[number] for name, number in then.items() if name not in present and number in names}
    return Altered(
        dropped=tuple(name for name in then if name not in present and name not in renamed),
        added=tuple(name for name in present if name not in then and name not in renamed.values()),
        renamed=tuple(renamed.items()),
        replaced=tuple(name for name, number in present.items() if then.get(name, number) != number),
    )


def undoing(found: Altered, target: str) -> tuple[str, str]:
    """Say what was done, and the statements that undo it.

    Args:
        target: the table as SQL calls it.
    """
    done, statements = [], []
    for name in found.added:
        done.append(f"column {name} was added")
        statements.append(f"ALTER TABLE {target} DROP COLUMN {quoted(name)}")
    for old, new in found.renamed:
        done.append(f"column {old} was renamed to {new}")
        statements.append(f"ALTER TABLE {target} RENAME COLUMN {quoted(new)} TO {quoted(old)}")
    for name in found.dropped:
        done.append(f"column {name} was dropped")
        statements.append(f"ALTER TABLE {target} ADD COLUMN {quoted(name)} <its type>")
    return ", ".join(done), "; ".join(statements)
