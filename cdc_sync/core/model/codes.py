"""Why tables pause, wait or fail, and records become dead letters: a stable code for each cause.

Codes go into statuses, logs and whatever counts by them; texts beside them may change, codes do not. What the runbook
says of each is in `runbook`.
"""

from __future__ import annotations

from enum import Enum


class Code(str, Enum):
    """A cause. Its value is what is written down."""

    # What the operator said.
    PAUSED = "paused-by-operator"
    ROLLED_BACK = "rolled-back"
    POLICY = "policy-pause"
    # Which column is which, and what it holds.
    UNPROVEN = "unproven-change"
    CONTRADICTION = "evidence-contradicts"
    TOLD_LATE = "change-told-too-late"
    NOT_IGNORABLE = "column-not-ignorable"
    INITIAL = "initial-value-unknown"
    TYPE = "type-change-refused"
    COLUMN_TYPE = "column-type-unsupported"
    COLUMN_NAME = "column-name-taken"
    JOIN = "join-refused"
    # What rows are found by.
    KEY = "no-usable-key"
    KEY_SPREAD = "key-in-several-partitions"
    KEY_MADE_UP = "key-made-up"
    # What events leave out.
    ROW_MISSING = "row-missing"
    VALUE_UNKNOWN = "value-unknown"
    VALUE_UNSENT = "value-unsent"
    NULL = "null-or-default"
    NO_IMAGE = "row-before-unknown"
    # The source table.
    RECREATED = "table-recreated"
    AFTER_DROP = "rows-after-drop"
    NAME_TAKEN = "target-name-taken"
    RENAME = "rename-not-followed"
    TRUNCATE = "truncate-unplaced"
    # The topic.
    OFFSETS_DELETED = "offsets-deleted"
    BEGINNING = "beginning-deleted"
    TOPIC_RECREATED = "topic-recreated"
    TOPIC_SHARED = "topic-shared"
    # The target.
    ALTERED = "target-altered"
    FILES_GONE = "target-files-gone"
    NOT_OURS = "target-not-ours"
    UNREADABLE = "target-state-unknown"
    ABSENT = "target-absent"
    CLASH = "target-of-another-table"
    SHARED = "shared-target-refused"
    OTHER_MODE = "target-of-another-kind"
    UNREAD = "reader-not-fit"
    PARTITIONS = "partitioning-refused"
    BEHIND = "history-behind"
    # Limits.
    MANY_VERSIONS = "limit-versions"
    MANY_TABLES = "limit-new-tables"
    MANY_LETTERS = "limit-dead-letters"
    REWRITE = "limit-rewrite"
    SCHEMA_SIZE = "limit-schema"
    # What passes by itself.
    EVIDENCE = "waits-for-evidence"
    OTHER_TABLE = "waits-for-table"
    AWAY = "service-away"
    TARGET = "target-failed"
    HISTORY = "history-damaged"
    OTHER = "failed"
    # What is wrong with one record, which becomes a dead letter.
    RECORD_FOREIGN = "record-not-a-change"
    RECORD_STRANGER = "record-of-another-table"
    RECORD_SCHEMA = "record-schema-unreadable"
    RECORD_MALFORMED = "record-malformed"
    RECORD_SIZE = "record-too-large"
    RECORD_OPERATION = "record-operation-unknown"
    RECORD_KEY = "record-key-unusable"
    RECORD_TEXT = "record-text-broken"
    RECORD_VALUE = "record-value-without-place"
    RECORD_SKIPPED = "record-skipped"

    def __str__(self) -> str:
        return self.value
