"""What may be wrong with a record, in words that stay the same: records are counted by them."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_SCHEMA = "unknown_schema"
"""Problem: the record has a schema, a key schema or a source table that no converter is for."""
TRUNCATE = "truncate"
"""Problem: the event is no row; the table is emptied at its place, between two writes."""
PLACEHOLDER_FOUND = "placeholder"
KEY_IS_FALLBACK = "key_is_fallback"
"""Problem: a delete whose record key the connector may have made up."""
KEY_MAY_BE_MADE_UP = "key_may_be_made_up"
"""Problem: a delete whose record key may be made up in part, where no look was taken whether a row has it."""
AMBIGUOUS_NULL = "ambiguous_null"
NO_IMAGE = "no_image"
"""Problem: the event does not hold the row before the change, or not the declared key of it."""
NO_ROWS = (UNKNOWN_SCHEMA, TRUNCATE)
"""Problems of records that hold no row of the table; where they are not known to, the range is surveyed first."""
PAUSING = (KEY_IS_FALLBACK, AMBIGUOUS_NULL, NO_IMAGE)
"""Problems that stop the table; all others set the record aside."""
MALFORMED = "malformed payload"
HALF_OF_A_PAIR = "a text holds half of a surrogate pair, which is no character"
TOO_LARGE = "larger than limits.max_message_bytes"
UNKNOWN_OPERATION = "unknown operation"
NO_KEY = "key is null"
LOST = "does not convert: column "
"""Prefix of the problem of a value that has no place in its column's type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Records of one partition with one problem."""

    partition: int
    problem: str
    first_offset: int
    count: int
