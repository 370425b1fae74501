"""Expressions are made once, and no more of them are kept than fit."""

from __future__ import annotations

from cdc_sync.spark.kept import Kept


def test_what_was_made_is_returned_until_others_take_its_place() -> None:
    kept, made = Kept(most=5), []

    def make(name: str, size: int) -> str:
        def build() -> str:
            made.append(name)
            return name * size

        return kept(name, build, len)

    make("a", 2)
    make("b", 2)
    make("a", 2)
    assert made == ["a", "b"]
    make("c", 2)  # with it they are six
    make("a", 2)
    assert made == ["a", "b", "c"]
    make("b", 2)
    assert made == ["a", "b", "c", "b"]
    make("d", 9)  # more than fit, and kept alone
    make("d", 9)
    make("b", 2)
    assert made == ["a", "b", "c", "b", "d", "b"]
