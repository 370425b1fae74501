"""Pages and configurations that belong to the program: inside an installed package, beside the package in a clone."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

_PACKAGE = Path(__file__).parents[1]
REFERENCE = "reference"
"""The page with every key of a configuration."""


def folder(name: Literal["conf", "docs"]) -> Path:
    """Return a folder of files that are not Python's."""
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def pages() -> tuple[str, ...]:
    """Return the names of all pages."""
    return (REFERENCE, *sorted(path.stem for path in folder("docs").glob("*.md")))


def page(name: str) -> str:
    """Return a page's text; `name` is one of `pages`."""
    place = folder("conf") / "reference.yaml" if name == REFERENCE else folder("docs") / f"{name}.md"
    return place.read_text(encoding="utf-8")
