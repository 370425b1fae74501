"""Rows that are filled behind a revision: what they get, and the files that are written anew together, a unit."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from cdc_sync.core.schema.expressions import Expression
from cdc_sync.core.schema.internal import InternalSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """The value of another column of the row, in the type of this one.

    Attributes:
        id: of the other column.
        refuses_lost: a value that has no place in the type fails the fill; else it is NULL.
    """

    id: int
    refuses_lost: bool = True

    @property
    def ids(self) -> frozenset[int]:
        """The columns that it reads."""
        return frozenset((self.id,))


Value: TypeAlias = Expression | Converted


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """What rows get in new columns, where they read NULL.

    Attributes:
        number: the entry of the table's log that the rows are complete for afterwards.
        schema: behind it.
        values: by the id of each column, in the order in which they are computed: what is made of a row in which the
            columns before are filled already, or None for the column's own initial value.
    """

    number: int
    schema: InternalSchema
    values: tuple[tuple[int, Value | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file of a table.

    Attributes:
        group: the partition that it is in, and how that is divided: files of two groups are in no unit together.
        size: bytes.
    """

    path: str
    size: int
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Files that are written anew together, in one commit.

    Attributes:
        number: 1 for the first of its plan.
        size: bytes.
    """

    number: int
    files: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FillPlan:
    """How the files of a table were divided into units, once for all processes.

    Attributes:
        number: 1 for the first; files that others have written anew meanwhile need another one.
    """

    number: int
    units: tuple[Unit, ...]

    def left(self, files: Collection[str]) -> tuple[Unit, ...]:
        """Return the units of which files are still to be filled, each with those only."""
        found = (
            Unit(number=unit.number, size=unit.size, files=tuple(path for path in unit.files if path in files))
            for unit in self.units
        )
        return tuple(unit for unit in found if unit.files)


def units(files: Iterable[DataFile], size: int) -> tuple[Unit, ...]:
    """Divide files into units of about a size, the newest partitions first as far as their names say it.

    The result depends on the files alone, not on their order.

    Args:
        size: bytes; a file that is larger is a unit by itself.
    """
    found: list[list[DataFile]] = []
    ordered = sorted(sorted(files, key=lambda file: file.path), key=lambda file: file.group, reverse=True)
    for _, group in groupby(ordered, key=lambda file: file.group):
        unit: list[DataFile] = []
        for file in group:
            if unit and sum(other.size for other in unit) + file.size > size:
                found.append(unit)
                unit = []
            unit.append(file)
        found.append(unit)
    return tuple(
        Unit(number=number, files=tuple(file.path for file in unit), size=sum(file.size for file in unit))
        for number, unit in enumerate(found, 1)
    )
