"""Every way cdc_sync can fail, in one tree.

::

    CdcSyncError                 exit code 1   the root; catch this one
    ├── ConfigError              exit code 2   the configuration cannot be used (file, line, column, remedy)
    ├── SetupError               exit code 3   Java, jars or a local server are missing or wrong
    ├── TransientError           exit code 4   may succeed when repeated: broker away, commit lost a race
    │   ├── LeaseHeld                          another job of the pipeline runs
    │   ├── LeaseLost                          another job has taken this one's place
    │   ├── KafkaUnavailable                   no broker answered within the bounded retries
    │   └── RegistryUnavailable                the registry of Avro schemas did not answer; known schemas are kept
    ├── RefusedError             exit code 5   a table cannot go on until somebody decides; other tables go on
    ├── SchemaError              exit code 1   an operation on a schema that the schema does not allow
    ├── WireError                exit code 1   bytes that are not what Debezium writes
    ├── HistoryError             exit code 1   the schema history is missing, damaged or contradicts the target
    │   ├── VersionExists                      another writer recorded this version first
    │   └── HistoryBehind                      the target has versions that the history lacks; the table pauses
    └── TargetError              exit code 1   the table format refused an operation
        ├── UnfitTarget                        the table that is there is none to go on with; the source table pauses
        ├── TargetMoved                        another commit came first; nothing was done, and the table is read anew
        └── ShareRefused                       rows of other source tables stand in a change's way; the table pauses

Messages read "Cannot <verb> <thing>: <detail>" and end with what to do next, where there is something to do.
"""

from __future__ import annotations


class CdcSyncError(Exception):
    """Root of all errors raised by cdc_sync; `exit_code` is what the command line exits with."""

    exit_code = 1


class ConfigError(CdcSyncError):
    """The configuration cannot be used.

    Args:
        message: what is wrong and how to fix it, without the place.
        path: the file, if the configuration came from one.
        line, column: one-based place in the file, if known.

    Attributes:
        others: what else is wrong in the same file, in its order.
    """

    exit_code = 2

    def __init__(
        self, message: str, *, path: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.path = path
        self.line = line
        self.column = column
        self.others: tuple[ConfigError, ...] = ()


class SetupError(CdcSyncError):
    """Something that must be installed or running on this machine is not."""

    exit_code = 3


class TransientError(CdcSyncError):
    """The same call may succeed later; nothing was lost."""

    exit_code = 4


class LeaseHeld(TransientError):
    """Another job writes the pipeline's tables."""


class LeaseLost(TransientError):
    """This job is not the one any more that writes the pipeline's tables."""


class KafkaUnavailable(TransientError):
    """No Kafka broker answered within the bounded retries."""


class RegistryUnavailable(TransientError):
    """The registry gave no usable answer for a schema this pipeline has never seen."""


class RefusedError(CdcSyncError):
    """A table is paused until somebody decides."""

    exit_code = 5


class SchemaError(CdcSyncError):
    """An operation does not fit the schema it was applied to."""


class WireError(CdcSyncError):
    """Bytes that are not what Debezium's converters write."""


class CannotPass(CdcSyncError):
    """What trying again does not fix: the source table pauses.

    Args:
        code: the cause, as `core.model.codes` has it.
        message: what is wrong.
        remedy: what lets the table go on.
    """

    def __init__(self, code: str, message: str, remedy: str) -> None:
        super().__init__(f"{message}; {remedy}")
        self.code = code
        self.reason = message
        self.remedy = remedy


class HistoryError(CdcSyncError):
    """The recorded schema history cannot be used as it is."""


class VersionExists(HistoryError):
    """Another writer recorded this version first; reload and plan again."""


class HistoryBehind(CannotPass, HistoryError):
    """The target has rows of versions that the history does not have, nor the topic all events to tell them."""


class TargetError(CdcSyncError):
    """A target refused an operation, or is in a state this pipeline did not make."""


class UnfitTarget(CannotPass, TargetError):
    """What is under a target's name was not made for this source table, or does not tell any more what it holds."""


class FilesGone(TargetError):
    """Files that a target names are not there."""


class TargetMoved(TargetError):
    """A table does not hold what a change was made for, when that is committed; nothing of the change was done."""


class ShareRefused(TargetError):
    """A source table cannot change a target that others share; nothing of the change was done.

    Args:
        table, target: what is written where.
        reason, remedy: why not, and what would let it, without the end of a sentence.
    """

    def __init__(self, *, table: object, target: object, reason: str, remedy: str) -> None:
        super().__init__(f"Cannot change {target} for {table}: {reason}; {remedy}")
        self.reason = reason
        self.remedy = remedy
