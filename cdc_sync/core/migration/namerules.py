"""Which names a format can hold, as data; `names` maps those that it cannot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRules:
    """Which names a format cannot hold; by default it holds all but the empty one.

    Attributes:
        forbidden: characters.
        reserved: whole names.
        reserved_prefix: what no name begins with, in whatever case if the format folds it.
        max_bytes: the longest name, in bytes of UTF-8; None if there is no limit.
        folds_case: the format does not tell names apart that differ only in case.
        joins_nested: the format finds nested fields by names joined with dots, so that a column `a.b` and a field `b`
            of the column `a` are one.
        plain: names are ASCII letters, digits and `_`, and do not begin with a digit; nested fields' too.
    """

    forbidden: frozenset[str] = frozenset()
    reserved: frozenset[str] = frozenset()
    reserved_prefix: str | None = None
    max_bytes: int | None = None
    folds_case: bool = False
    joins_nested: bool = False
    plain: bool = False


ANY_NAME = NameRules()
DERIVED_PREFIX = "cdc_sync_by_"
"""What names of columns begin with that cdc_sync computes for partitions (`derived`), and a source's there never do."""
