"""What is asked of a table, as SQL of its dialect.

A row is known by the digest of its key, and compared by the digest of all its compared columns: both are MD5 of texts
that two systems write alike. A range is all rows whose key digests begin with the same digits, so ranges are of about
one size whatever the keys are, and no collation has a say. Only names come from outside, and they are quoted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cdc_sync.operations.verify.dialect import Dialect, Value

DIGITS = 32
"""Of a digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """One side of a comparison.

    Attributes:
        table: SQL for the table.
        key: the columns that tell rows apart; without any, whole rows do.
        columns: all that are compared, in the order of the other side.
    """

    dialect: Dialect
    table: str
    key: tuple[Value, ...]
    columns: tuple[Value, ...]

    @property
    def key_digest(self) -> str:
        """SQL for what a row is known by."""
        return self._digest(self.key or self.columns)

    @property
    def row_digest(self) -> str:
        """SQL for what a row is compared by."""
        return self._digest(self.columns)

    def sums(self, digits: int, within: Collection[str] = ()) -> str:
        """Return rows of range, count and sum of digests; ranges are told apart by `digits` digits.

        Args:
            within: the ranges to look at, all of one length; () for the whole table.
        """
        prefix, word = self.dialect.prefix.format(k="k", n=digits), self.dialect.word.format(k="h")
        return f"select {prefix}, count(*), sum({word}) from {self._rows()}{self._within(within)} group by 1"

    def digests(self, within: Collection[str]) -> str:
        """Return rows of key digest, row digest and how many rows have both, in some ranges or of some keys."""
        return f"select k, h, count(*) from {self._rows()}{self._within(within)} group by 1, 2"

    def values(self, keys: Collection[str], first: int, last: int) -> str:
        """Return rows of key digest, row digest, and for columns `first` to `last` part and shown text of each."""
        texts = (text for item in self.columns[first:last] for text in (item.part, item.shown))
        named = "".join(f", {text} as v{place}" for place, text in enumerate(texts))
        return f"select * from {self._rows(named)}{self._within(keys)}"

    def _rows(self, more: str = "") -> str:
        # A query of its own: Spark takes a Java method for one whose result may change, and allows none in a sum.
        return f"(select {self.key_digest} as k, {self.row_digest} as h{more} from {self.table}) as r"

    def _digest(self, values: Sequence[Value]) -> str:
        return self.dialect.md5.format(c=self.dialect.joined([item.part for item in values]))

    def _within(self, prefixes: Collection[str]) -> str:
        if not prefixes:
            return ""
        (length,) = {len(prefix) for prefix in prefixes}
        assert all(set(prefix) <= set("0123456789abcdef") for prefix in prefixes)
        of = "k" if length == DIGITS else self.dialect.prefix.format(k="k", n=length)
        listed = ", ".join(f"'{prefix}'" for prefix in sorted(prefixes))
        return f" where {of} in ({listed})"
