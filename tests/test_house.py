"""How the package is built, as figures that may fall and must not rise; import contracts are in pyproject.toml."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

import grimp

PACKAGE = Path(__file__).parents[1] / "cdc_sync"
DEEPEST = 2
"""Classes of ours in one line, errors apart."""


def sources() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), path.read_text(encoding="utf-8")


def test_the_root_holds_packages_and_few_files() -> None:
    entries = [path for path in PACKAGE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 16
    assert {path.name for path in entries if path.is_file()} == {"__init__.py", "__main__.py", "errors.py"}


def test_files_are_short() -> None:
    lengths = {name: len(text.splitlines()) for name, text in sources()}
    assert {name: length for name, length in lengths.items() if length > 400} == {}
    assert median(lengths.values()) <= 150


def test_functions_are_short() -> None:
    lengths = sorted(
        (node.end_lineno or 0) - node.lineno + 1
        for _, text in sources()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert lengths[int(len(lengths) * 0.95)] <= 40


def test_no_class_stands_on_a_long_ladder() -> None:
    above: dict[str, list[str]] = {}
    for _, text in sources():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                above[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]

    def depth(name: str) -> int:
        return 1 + max((depth(base) for base in above.get(name, ()) if base in above and base != name), default=0)

    errors = {name for name in above if name.endswith("Error") or "Error" in str(above[name])}
    assert max(depth(name) for name in above if name not in errors) <= DEEPEST


def test_no_chain_of_imports_is_long() -> None:
    """What a module needs, down to one that needs none of ours; imports for types alone count as others do."""
    graph = grimp.build_graph("cdc_sync", exclude_type_checking_imports=False, cache_dir=None)

    @cache
    def height(module: str) -> int:
        # A package runs before its modules; that is no import of theirs.
        below = (it for it in graph.find_modules_directly_imported_by(module) if not module.startswith(f"{it}."))
        return 1 + max(map(height, below), default=0)

    assert max(map(height, graph.modules)) <= 22
