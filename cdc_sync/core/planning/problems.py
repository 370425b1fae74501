"""What may be wrong with a record, in words that stay the same: records are counted by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cdc_sync.core.model.codes import Code

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
"""Problems that stop the table."""
READ_AGAIN = (PLACEHOLDER_FOUND, KEY_MAY_BE_MADE_UP)
"""Problems that are none once the record is read in another way. They come before those that depend on its values."""
NO_LETTERS = (*NO_ROWS, *PAUSING, *READ_AGAIN)
"""All other problems set the record aside."""
MALFORMED = "malformed payload"
HALF_OF_A_PAIR = "a text holds half of a surrogate pair, which is no character"
TOO_LARGE = "larger than limits.max_message_bytes"
UNKNOWN_OPERATION = "unknown operation"
NO_KEY = "key is null"
LOST = "does not convert: column "
"""Prefix of the problem of a value that has no place in its column's type."""
SKIPPED = "skipped by the operator"
KEY_MISSING: Final = "the key is missing, and records before and behind it have one"
KEY_UNREADABLE: Final = "the key cannot be read, and those of records before and behind it can"
STRANGER: Final = "an event of another table than the topic is named after, and kafka.bound_topics is set"
NOT_READABLE: Final = "not JSON with a schema, as Kafka Connect's JsonConverter writes it, nor Avro of a registry"

_CODES = (
    (MALFORMED, Code.RECORD_MALFORMED),
    (HALF_OF_A_PAIR, Code.RECORD_TEXT),
    (TOO_LARGE, Code.RECORD_SIZE),
    (UNKNOWN_OPERATION, Code.RECORD_OPERATION),
    (NO_KEY, Code.RECORD_KEY),
    (KEY_MISSING, Code.RECORD_KEY),
    (KEY_UNREADABLE, Code.RECORD_KEY),
    (LOST, Code.RECORD_VALUE),
    (STRANGER, Code.RECORD_STRANGER),
    (SKIPPED, Code.RECORD_SKIPPED),
    ("Cannot read", Code.RECORD_SCHEMA),
    ("Cannot split", Code.RECORD_SCHEMA),
)


def record_code(reason: str) -> Code:
    """Return the code of what is wrong with a record, by how its text begins."""
    return next((code for begins, code in _CODES if reason.startswith(begins)), Code.RECORD_FOREIGN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Records of one partition with one problem: their offsets in order, at least one."""

    partition: int
    problem: str
    offsets: tuple[int, ...]

    @property
    def first_offset(self) -> int:
        """Where the first of them is."""
        return self.offsets[0]
