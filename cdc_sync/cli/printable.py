"""Texts from sources and topics as a terminal may show them: nothing in them is obeyed, and none looks like another."""

from __future__ import annotations

import unicodedata

_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Categories of Unicode: control and format characters (escapes, bidirectional marks, joiners), halves of pairs, and
separators of lines."""


def printable(text: str, *, kept: str = "\n\t") -> str:
    r"""Return a text with every character that shows nothing, or steers a terminal, as `\u001b`.

    Args:
        kept: characters that stay; those of a text of several lines.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if character in kept or unicodedata.category(character) not in _HIDDEN else _escape(character)
        for character in text
    )


def _escape(character: str) -> str:
    """Return it as JSON and Python write it; beyond the 16-bit plane as a pair, which JSON wants."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))
