"""The page about types is the table's."""

from __future__ import annotations

from pathlib import Path

from cdc_sync.spark.type_page import render


def test_the_page_about_types_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "types.md"
    assert page.read_text() == render(), "run: python -m cdc_sync.spark.type_page > docs/types.md"
