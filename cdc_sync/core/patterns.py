"""Regular expressions of the configuration, against names that others choose: none runs for ever.

They are Python's, as `re` has them. The module `regex` matches them, because it can stop.
"""

from __future__ import annotations

import regex

from cdc_sync.errors import ConfigError

_SECONDS = 1.0


def full_match(pattern: str, name: str, *, as_java: bool = False) -> regex.Match[str] | None:
    """Match all of a name.

    Args:
        pattern: one that `re` compiles.
        name: of a topic, a table or a column.
        as_java: whatever the case, and with ASCII's classes of characters, as connectors match columns.

    Raises:
        ConfigError: if that takes longer than any pattern for names should.
    """
    flags = regex.VERSION0 | (regex.IGNORECASE | regex.ASCII if as_java else 0)
    try:
        return regex.fullmatch(pattern, name, flags=flags, timeout=_SECONDS)
    except TimeoutError:
        raise ConfigError(
            f"Cannot match {name!r} with the pattern {pattern!r}: it takes longer than {_SECONDS:g} s; write it "
            "without a repetition inside a repetition, and without alternatives that begin alike inside one"
        ) from None
