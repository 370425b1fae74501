"""docs/formats.md is what the program prints."""

from __future__ import annotations

from pathlib import Path

from scripts.pages.formats import render


def test_the_page_is_printed_from_what_the_program_acts_by() -> None:
    assert (Path(__file__).parents[2] / "docs" / "formats.md").read_text() == render()
