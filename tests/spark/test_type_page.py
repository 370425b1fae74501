"""The page about types is the table's."""

from __future__ import annotations

from pathlib import Path

from scripts.pages.types import render


def test_the_page_about_types_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "types.md"
    assert page.read_text() == render(), "run: python -m scripts.pages.types > docs/types.md"
