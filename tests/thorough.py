"""Which tests try in more ways what others try too: those that `thorough.txt` names, one pattern a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_LIST = Path(__file__).with_suffix(".txt")
_TESTS = Path(__file__).parent


def patterns(text: str) -> tuple[str, ...]:
    """Return the patterns of a list: its lines, without comments and empty ones."""
    return tuple(line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#"))


def matches(pattern: str, node: str) -> bool:
    """Say whether a pattern, in which `*` stands for any text, is of a test or of the function it is a case of."""
    expected = ".*".join(map(re.escape, pattern.split("*")))
    return re.fullmatch(rf"{expected}(\[.*\])?", node) is not None


LISTED = patterns(_LIST.read_text())
_THOROUGH = tuple(pattern for pattern in LISTED if not pattern.startswith("!"))
_ALWAYS = tuple(pattern.removeprefix("!").strip() for pattern in LISTED if pattern.startswith("!"))


def is_thorough(node: str, thorough: Sequence[str] = _THOROUGH, always: Sequence[str] = _ALWAYS) -> bool:
    """Say whether only `scripts/test --thorough` runs a test, named as pytest names it from the project's folder."""
    name = node.removeprefix("tests/")
    return any(matches(it, name) for it in thorough) and not any(matches(it, name) for it in always)


def unknown(pattern: str) -> bool:
    """Say whether there is no such file, or it has no function of that name."""
    file, _, test = pattern.removeprefix("!").strip().partition("::")
    function = test.partition("[")[0].rpartition("::")[2]
    path = _TESTS / file
    if not path.is_file():
        return True
    return "*" not in function and re.search(rf"^ *def {function}\(", path.read_text(), re.MULTILINE) is None
