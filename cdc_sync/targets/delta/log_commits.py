"""What commits of a Delta table say about themselves; pure.

Source: Delta Transaction Log Protocol, "Commit Provenance Information".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCommit:
    """What a commit says about itself.

    Attributes:
        at: when it was made, in milliseconds since the epoch.
        marker: what the table holds; None if the commit does not say.
        vacuumed_before: files that were part of no state since this moment are gone; None if it is no VACUUM.
    """

    version: int
    at: int
    marker: str | None
    vacuumed_before: int | None = None


def readable(commits: Iterable[LogCommit]) -> Iterator[LogCommit]:
    """Return, of commits newest first, those whose files are there.

    The newest can be read always; an older one if it was made no sooner than a VACUUM since then went back.
    """
    gone_before = 0
    for number, commit in enumerate(commits):
        if number and commit.at < gone_before:
            return
        gone_before = max(gone_before, commit.vacuumed_before or 0)
        yield commit


def log_commit(version: int, info: Mapping[str, Any]) -> LogCommit:
    """Read what the log has as `commitInfo`."""
    at, gone = int(info.get("timestamp", 0)), None
    if info.get("operation") == "VACUUM START":
        given = info.get("operationParameters", {})
        kept = given.get("specifiedRetentionMillis", given.get("defaultRetentionMillis"))
        gone = at if kept is None else at - int(kept)
    return LogCommit(version=version, at=at, marker=info.get("userMetadata"), vacuumed_before=gone)
