"""What messages tell people to do can be done: the commands exist, and what is cited is installed with the program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from cdc_sync.config import installed
from tests.cli.runner import options_of

_PACKAGE = Path(installed.__file__).parents[1]
_COMMAND = re.compile(r"`cdc-sync ([^`]*)`")


def messages() -> Iterator[tuple[str, str]]:
    """All texts of the program but docstrings, with their places; what is filled in stands as `{}`."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        silent |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            place = f"{path.relative_to(_PACKAGE)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.JoinedStr):
                yield (
                    place,
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
                yield place, node.value


def test_every_command_that_a_message_names_exists() -> None:
    wrong, seen = [], 0
    for place, text in messages():
        for named in _COMMAND.findall(text):
            seen += 1
            name, *rest = named.split()
            options = options_of(named.split())
            if options is None or any(word.startswith("--") and word not in options for word in rest):
                wrong.append(f"{place}: cdc-sync {named}")
            elif name == "docs" and rest and rest[0] not in (*installed.pages(), "{}"):
                wrong.append(f"{place}: there is no page {rest[0]}")
    assert wrong == []
    assert seen > 20


def test_no_message_cites_what_is_not_installed() -> None:
    cited = re.compile(r"\b(?:docs|conf|scripts|docker|bench)/|\bREADME\b|\b[a-z_-]+\.md\b")

    found = [f"{place}: {text[:80]}" for place, text in messages() if cited.search(text)]

    assert [item for item in found if not item.startswith("config/installed.py")] == []


def test_pages_are_found_beside_the_package_and_inside_it() -> None:
    assert {"reference", "modes", "readers"} <= set(installed.pages())
    assert installed.page("reference").startswith("# Every key")
    project = (_PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert '"conf" = "cdc_sync/conf"\n"docs" = "cdc_sync/docs"\n' in project
