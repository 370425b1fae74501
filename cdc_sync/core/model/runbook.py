"""What the runbook says of each code: what has happened, where to look, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdc_sync.core.model.codes import Code


@dataclass(frozen=True, slots=True)
class Entry:
    """What the runbook says of one cause.

    Attributes:
        cause: what has happened.
        look: where more is to be seen.
        act: what lets the table go on.
    """

    cause: str
    look: str
    act: str


_STATUS = "`cdc-sync status CONFIG`: the reason names the column, record or file."
_HISTORY = "`cdc-sync history CONFIG TABLE`: what each version changed, and on what evidence."
_RECORD = "The record that `paused_at` names (`cdc-sync status CONFIG --json`), in its topic."
_CONNECTOR = "The connector's configuration, and `cdc-sync validate CONFIG --check`."
_LETTER = "`cdc-sync dead-letters list CONFIG`, and `cdc-sync dead-letters show CONFIG PLACE`."
_REDRIVE = "`cdc-sync dead-letters redrive CONFIG`"
_NEW_TARGET = "Give the table another target in its rule and have the connector snapshot it again."
_RESUME = "`cdc-sync resume CONFIG TABLE`"

RUNBOOK: Mapping[Code, Entry] = {
    Code.PAUSED: Entry(
        "Somebody paused the table with `cdc-sync pause`.", "The reason says who, and why.", f"{_RESUME}."
    ),
    Code.ROLLED_BACK: Entry(
        "Somebody undid the table's last rewrite with `cdc-sync rollback`; it stays at the version before.",
        _HISTORY,
        "`cdc-sync rollback CONFIG TABLE --undo` carries the rewrite out again.",
    ),
    Code.POLICY: Entry(
        "The source changed in a way that `policy` says to pause before.",
        _STATUS,
        "Set the policy that the remedy names to what you want.",
    ),
    Code.UNPROVEN: Entry(
        "Columns vanished and others came at once, and nothing proves whether they were renamed.",
        "`cdc-sync plan CONFIG` shows what would follow; `cdc-sync docs evidence` what would prove it by itself.",
        "`cdc-sync decide CONFIG TABLE --rename OLD=NEW`, `--drop OLD` or `--not-same NEW`.",
    ),
    Code.CONTRADICTION: Entry(
        "Two sources of evidence say different things of the same change.",
        _STATUS,
        "Remove the declaration that is wrong from `renames` or `drops` of the table, or the topic under `evidence` "
        "that is not this source's.",
    ),
    Code.TOLD_LATE: Entry(
        "Rows were written as if nothing had changed, and the source told of the change afterwards.",
        "Why the evidence topic is late: the connector's lag, and its heartbeat in `cdc-sync status CONFIG`.",
        _NEW_TARGET,
    ),
    Code.NOT_IGNORABLE: Entry(
        "`policy.add_column: ignore` is to leave out a column that may be another one's new name, or is of the key.",
        _STATUS,
        "`cdc-sync decide CONFIG TABLE` with what happened; or `policy.add_column: apply`.",
    ),
    Code.INITIAL: Entry(
        "A column is new, what rows of before hold in it is not known, and `policy.unknown_values` is pause.",
        _HISTORY,
        "Set `initial_values` of the table.",
    ),
    Code.TYPE: Entry(
        "A column's type changed, and `policy.incompatible_types` does not let the target follow.",
        "`cdc-sync docs type-changes`.",
        "Set the policy that the remedy names.",
    ),
    Code.COLUMN_TYPE: Entry(
        "A column is of a type that no target column can hold without loss.",
        "`cdc-sync docs types`.",
        "Exclude the column in the connector (`column.exclude.list`), or change its representation there.",
    ),
    Code.COLUMN_NAME: Entry(
        "A column has a name that the target cannot hold, or that stands for something else there.",
        _STATUS,
        "Rename the column at the source; where it is that of a kept column, `cdc-sync decide CONFIG TABLE "
        "--drop NAME` lets that one go.",
    ),
    Code.JOIN: Entry(
        "Two columns were declared one, and the rows of before cannot be joined.",
        _HISTORY,
        "Leave them as they are, or give the table another target with the rename declared, and snapshot it again.",
    ),
    Code.KEY: Entry(
        "Rows cannot be told apart: there is no key, or none that holds.",
        _CONNECTOR,
        "Give the table a primary key, or declare `key` or `mode: append` in its rule.",
    ),
    Code.KEY_SPREAD: Entry(
        "Rows of one key come in several partitions of the topic, in no order.",
        "The producer's partitioner, and whether partitions were added to the topic.",
        "Give the topic one partition; then another target, and a snapshot.",
    ),
    Code.KEY_MADE_UP: Entry(
        "A delete names a key that the connector may have made up, as it does under REPLICA IDENTITY USING INDEX.",
        _RECORD,
        "Declare the columns of the replica identity's index as `key` of the table.",
    ),
    Code.ROW_MISSING: Entry(
        "An update names a row that the target never had: the topic does not hold the table's beginning.",
        _RECORD,
        "Have the connector snapshot the table (`cdc-sync resync CONFIG TABLE`); or set `policy.missing_rows: insert`.",
    ),
    Code.VALUE_UNKNOWN: Entry(
        "An event leaves out a large value that did not change, and the target has no row to keep it from.",
        _RECORD,
        "Set REPLICA IDENTITY FULL and snapshot the table; or set `policy.missing_rows: insert`.",
    ),
    Code.VALUE_UNSENT: Entry(
        "An update shows NULL where the row has a large value: the connector has no placeholder for this type.",
        _RECORD,
        "Set REPLICA IDENTITY FULL at the source, and `policy.unsent_values: keep` or `null`.",
    ),
    Code.NULL: Entry(
        "A value equals its column's default, and this connector sends NULL as the default too.",
        _CONNECTOR,
        "Set `value.converter.replace.null.with.default=false` in the connector, or `policy.ambiguous_null: warn`.",
    ),
    Code.NO_IMAGE: Entry(
        "An event does not hold what the row was before, by which it is found.",
        _RECORD,
        "Set REPLICA IDENTITY FULL at the source, or declare `key` or `mode: append`; then another target and a "
        "snapshot.",
    ),
    Code.RECREATED: Entry(
        "The source table was dropped and created again: its rows are not those of before.",
        _HISTORY,
        f"{_NEW_TARGET} `policy.recreate: apply` follows, where evidence tells of it.",
    ),
    Code.AFTER_DROP: Entry(
        "The source table was dropped or renamed, and rows come under its name of a table that was not created as it.",
        _STATUS,
        _NEW_TARGET,
    ),
    Code.NAME_TAKEN: Entry(
        "The target is to be renamed or archived, and there is a table of that name.",
        _STATUS,
        f"Move that table away, then {_RESUME}.",
    ),
    Code.RENAME: Entry(
        "The source table was renamed, and its target cannot follow.",
        _HISTORY,
        "Set `policy.rename_table: stay` for the table.",
    ),
    Code.TRUNCATE: Entry(
        "The source table was emptied, and which rows were there before is not known.",
        _RECORD,
        "Give the topic one partition, and have the connector snapshot the table again.",
    ),
    Code.OFFSETS_DELETED: Entry(
        "The topic deleted records before the table had read them.",
        "`retention.ms` and `retention.bytes` of the topic, and for how long the job or the table stood.",
        "Raise the topic's retention; then another target, and a snapshot.",
    ),
    Code.BEGINNING: Entry(
        "The target is not there, and the topic does not begin with the table's first event any more.",
        _STATUS,
        f"Bring the target back, then {_RESUME}; or snapshot the table, with `policy.missing_rows: insert`.",
    ),
    Code.TOPIC_RECREATED: Entry(
        "The topic was deleted and made again, or it is that of another cluster: offsets mean something else now.",
        "The topic's id: `kafka-topics.sh --describe`.",
        _NEW_TARGET,
    ),
    Code.TOPIC_SHARED: Entry(
        "Flattened events of several tables are in one topic, and a delete does not say whose it is.",
        _CONNECTOR,
        "Give each table a topic of its own, or do not flatten the events.",
    ),
    Code.ALTERED: Entry(
        "Another program altered the target's columns.",
        _STATUS,
        f"Undo it with the statements that the remedy gives, then {_RESUME}.",
    ),
    Code.FILES_GONE: Entry(
        "Files that belong to the target were deleted.",
        "What removes files below the warehouse: expiry, vacuum, lifecycle rules of the store.",
        f"Bring them back from a backup or the store's versions, then {_RESUME}.",
    ),
    Code.NOT_OURS: Entry(
        "A table that this program did not make for this source table has the target's name.",
        _STATUS,
        f"Move it away, then {_RESUME}; or give the table another target.",
    ),
    Code.UNREADABLE: Entry(
        "The target does not say any more what it holds: its commits have expired, or its log was deleted.",
        "What expires snapshots or cleans the log of the table, beside `cdc-sync maintain`.",
        f"Bring the log back, or drop the table to have it built anew, then {_RESUME}.",
    ),
    Code.ABSENT: Entry(
        "The table came under this name by a rename, and the target of its former name is not there.",
        _HISTORY,
        f"Bring it back under the new name, then {_RESUME}; or snapshot the table.",
    ),
    Code.CLASH: Entry(
        "Two source tables are routed to one target.",
        "`tables` in the configuration.",
        "Give one of them another target, or both the same `merge`.",
    ),
    Code.SHARED: Entry(
        "Several tables share the target, and a change of one does not fit the others.",
        _STATUS,
        f"Undo it at the source, then {_RESUME}; or give the table a target of its own.",
    ),
    Code.OTHER_MODE: Entry(
        "The target was made in another mode or regime than the configuration says now.",
        _STATUS,
        "Set it back; or `cdc-sync regime CONFIG TABLE` for a Hudi table.",
    ),
    Code.UNREAD: Entry(
        "The target is kept in a way that a reader which the configuration names does not read right.",
        "`cdc-sync docs readers`.",
        "Say in the rule's `readers` who reads it; or give the table another target.",
    ),
    Code.PARTITIONS: Entry(
        "The target cannot be partitioned as `partition_by` says.",
        "`cdc-sync docs partitions`.",
        "Name columns and transforms that the table has.",
    ),
    Code.BEHIND: Entry(
        "The target has versions that the history does not have, and the topic does not tell them any more.",
        "Whether the pipeline's state folder is an older copy.",
        "Stop the job, restore the newest copy of the state folder, and start the job.",
    ),
    Code.MANY_VERSIONS: Entry(
        "The table's schema changed more often within an hour than `limits.max_versions_per_hour`.",
        "Whether two connectors write to one topic; " + _HISTORY,
        f"{_RESUME}, or raise the limit.",
    ),
    Code.MANY_TABLES: Entry(
        "More tables came up for the first time within an hour than `limits.max_new_tables_per_hour`.",
        "Whether the topics are those you want (`kafka.topics`, `tables`).",
        f"{_RESUME}, or raise the limit.",
    ),
    Code.MANY_LETTERS: Entry(
        "More records of the table could not be applied within an hour than `limits.max_dead_letters_per_hour`.",
        _LETTER,
        f"Mend what is wrong with them, then {_RESUME}; or raise the limit, and all of them become dead letters.",
    ),
    Code.REWRITE: Entry(
        "A change writes all rows anew, and the target is larger than `policy.rewrite_limit`.",
        "`cdc-sync plan CONFIG`: bytes and minutes.",
        "Raise `policy.rewrite_limit` for the table.",
    ),
    Code.SCHEMA_SIZE: Entry(
        "The table has more columns, deeper ones or longer names than `limits` allows.",
        _STATUS,
        "Raise the limit that the reason names, if it is meant.",
    ),
    Code.EVIDENCE: Entry(
        "A change was seen that the evidence does not tell of yet. The table goes on by itself.",
        "Whether the evidence topic gets records: the connector's heartbeat in `cdc-sync status CONFIG`.",
        "Nothing; after `evidence.wait` it goes on, or pauses.",
    ),
    Code.OTHER_TABLE: Entry(
        "Another table has to be renamed or emptied first. The table goes on by itself.",
        "`cdc-sync status CONFIG` of the table that the reason names.",
        "Nothing, unless that one is paused.",
    ),
    Code.AWAY: Entry(
        "Kafka, the registry, the store or the catalog did not answer. It is tried again.",
        "The service that the reason names.",
        "Nothing; the table goes on once it is back.",
    ),
    Code.TARGET: Entry(
        "The target could not be read or written. It is tried again.",
        "The log line `table failed`; with `--verbose` where it came from.",
        "What the reason says; the table goes on by itself once it is done.",
    ),
    Code.HISTORY: Entry(
        "A file of the pipeline's state is damaged.",
        "The file that the reason names.",
        "What the reason says; the table goes on by itself once it is done.",
    ),
    Code.OTHER: Entry(
        "Something that nobody thought of. It is tried again.",
        "The log line `table failed`, with the place where it happened.",
        "Report it, please; other tables are not affected.",
    ),
    Code.RECORD_FOREIGN: Entry(
        "The record is no change of a table that can be read: another tool, converter or transform wrote it.",
        _LETTER,
        "What the reason says, in the connector or in `kafka.topics`; what is of no use goes with "
        "`cdc-sync dead-letters discard CONFIG --code record-not-a-change`.",
    ),
    Code.RECORD_STRANGER: Entry(
        "The record tells of another table than its topic is named after, and `kafka.bound_topics` is set.",
        _LETTER,
        "Find out who writes to the topic; if it is meant, leave `kafka.bound_topics` out, and have the source write "
        "the row once more.",
    ),
    Code.RECORD_SCHEMA: Entry(
        "The record's schema, or the frame around it, cannot be read.",
        _LETTER,
        "What the reason says, in the connector's converters.",
    ),
    Code.RECORD_MALFORMED: Entry(
        "The payload does not fit the schema that the record itself carries.",
        _LETTER,
        "Find out what wrote it, or what damaged it; have the source write the row once more.",
    ),
    Code.RECORD_SIZE: Entry(
        "The record is larger than `limits.max_message_bytes`.",
        _LETTER,
        f"Raise the limit, then {_REDRIVE}.",
    ),
    Code.RECORD_OPERATION: Entry(
        "The record's operation is none that Debezium has.",
        _LETTER,
        "Find out what wrote it.",
    ),
    Code.RECORD_KEY: Entry(
        "The record's key is NULL, missing or damaged, and the table's rows are found by it.",
        _LETTER,
        "Find out what changed the key on its way; have the source write the row once more.",
    ),
    Code.RECORD_TEXT: Entry(
        "A text in the record holds half of a surrogate pair, which is no character; a table would hold another one.",
        _LETTER,
        "Mend the text at the source, which writes the row once more.",
    ),
    Code.RECORD_VALUE: Entry(
        "A value has no place in the type of its column: too large, too precise, or outside the years 1 to 9999.",
        _LETTER,
        f"`policy.out_of_range` for dates, then {_REDRIVE}; else mend the value at the source, which writes the row "
        "once more.",
    ),
    Code.RECORD_SKIPPED: Entry(
        "Somebody let a paused table pass this record, with `cdc-sync skip`.",
        _LETTER,
        f"Once its cause is mended, {_REDRIVE}; or have the source write the row once more.",
    ),
}
"""What the runbook says, in the order of the codes; `docs/runbook.md` is printed from it."""
