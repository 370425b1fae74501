"""Which names a format can hold, as data; `names` maps those that it cannot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRules:
    """Which names a format cannot hold; by default it holds all but the empty one.

    Attributes:
        forbidden: characters.
        reserved: whole names.
        max_bytes: the longest name, in bytes of UTF-8; None if there is no limit.
        folds_case: the format does not tell names apart that differ only in case.
        joins_nested: the format finds nested fields by names joined with dots, so that a column `a.b` and a field `b`
            of the column `a` are one.
        plain: names are ASCII letters, digits and `_`, and do not begin with a digit; nested fields' too.
    """

    forbidden: frozenset[str] = frozenset()
    reserved: frozenset[str] = frozenset()
    max_bytes: int | None = None
    folds_case: bool = False
    joins_nested: bool = False
    plain: bool = False


ANY_NAME = NameRules()
