"""How a source gave a column another type."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class By(Enum):
    """What the values of rows that were there come from."""

    RULE = "rule"
    EXPRESSION = "expression"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retyping:
    """One change of a column's type, or several as one.

    Attributes:
        by: the database's own rule, an expression of whoever changed it (USING), or nobody knows.
        statement: what was done, in the source's words.
    """

    by: By
    statement: str
