"""The version at which a source table ends, and the one at which another table of its name begins. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Dropped, Version
from cdc_sync.core.lineage.drops import ToldDrop
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.migration.wording import dropped_text
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.progress import Progress, Truncated
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.alignment import Alignment, Evidence
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.observed import ObservedSchema
from cdc_sync.core.schema.policy import Policy

BACK = Evidence(
    subject="all columns",
    kind="name",
    text="the same as before the source table was dropped, by their names; it is there again, and rows are kept",
)
"""Why a version without a change follows a DROP TABLE: events of the name come again, and nothing else is proven."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """A drop that is not acted upon yet, because the source may still say what it was for."""

    reason: str


def end_of_table(
    history: History, drop: ToldDrop, policy: Policy, *, patient: bool, overtaken: bool
) -> Version | Refused | Awaited:
    """Decide what a DROP TABLE of the source does.

    Tools that change a table by way of a copy may drop it and give its name to the copy. Rows of the copy never came
    under the name, so a target that is gone by then could not be made again; hence only a name that nothing took, or
    that a CREATE TABLE made anew, lets a target go.

    Args:
        history: up to the newest version before the drop.
        drop: what the source says.
        policy: the operator's.
        patient: the source may still say what took the name.
        overtaken: events of the name came from behind the drop.
    """
    answer = policy.drop_table
    if answer == "pause":
        return Refused(
            code=Code.POLICY,
            reason=f"the source table was dropped ({drop.statement}), and policy.drop_table is pause",
            remedy="set policy.drop_table: keep, which leaves the target as it is, or drop or archive",
        )
    if answer != "keep" and (drop.follower == "renamed" or (overtaken and drop.follower is None)):
        if patient and drop.follower is None:
            return Awaited(reason="rows came after the source table was dropped, and no CREATE TABLE is told yet")
        return Refused(
            code=Code.AFTER_DROP,
            reason=f"the source table was dropped ({drop.statement}), and what has its name now was not created under "
            "it, so its rows never came, and a target without the old ones would lack them",
            remedy="set policy.drop_table: keep for the table, which goes on with its rows, or snapshot it again",
        )
    if answer != "keep" and patient and drop.follower is None:
        return Awaited(reason=f"the source table was dropped ({drop.statement}), and a copy may yet take its name")
    return _ended(history, drop, answer)


def _ended(history: History, drop: ToldDrop, answer: Dropped) -> Version:
    head = history.head
    name = history.table.table
    return Version(
        table=history.table,
        number=head.number + 1,
        fingerprint=head.fingerprint,
        schema=head.schema,
        changes=(),
        evidence=(
            Evidence(subject=name, kind=drop.kind, text=f"{drop.statement} ({drop.position})"),
            Evidence(subject=name, kind="policy", text=f"{dropped_text(answer)}, for policy.drop_table is {answer}"),
        ),
        position=drop.position,
        kafka=drop.kafka,
        snapshot=False,
        append_only=head.append_only,
        dropped=answer,
    )


def all_new(before: InternalSchema, seen: ObservedSchema, text: str) -> Alignment:
    """Return that no column is one of before, whatever its name: the table that had those is gone, and its target too.

    Args:
        before: the columns of the table that was dropped, those that were kept included.
        seen: those of the new one.
        text: why.
    """
    return Alignment(
        same=(),
        added=tuple(range(len(seen.columns))),
        dropped=tuple(column.id for column in before.columns),
        unproven=(),
        evidence=(Evidence(subject="all columns", kind="made anew", text=text),),
    )


def archive_name(target: TargetName, version: Version) -> TargetName:
    """Return what a target is called after its source table was dropped at a version; the same whenever it is asked."""
    return TargetName(namespace=target.namespace, name=f"{target.name}__dropped_{version.number}")


def last_end(history: History, upto: int | None = None) -> Version | None:
    """Return the newest version that a target did not outlive, of all or of those up to a number."""
    return next((version for version in reversed(history.versions[:upto]) if version.ends_target), None)


def first_of_life(history: History) -> Version:
    """Return the version that a target which is not there begins with: the first, or the one behind the last end."""
    end = last_end(history)
    return history.versions[0 if end is None else min(end.number, len(history.versions) - 1)]


def begun_behind(end: Version, version: int, former: Progress | None = None) -> Progress:
    """Return the marker of a target that begins behind the end of another one, before it holds anything.

    Events from before the end are passed over by their position, wherever they are read from.

    Args:
        end: where the table before was dropped.
        version: that the rows are complete for: there are none.
        former: how far the target that is gone had read, where that is known.
    """
    offsets = {} if former is None else former.offsets
    truncated = Truncated(position=end.position, offsets=offsets, made_anew=True)
    topic_ids = {} if former is None else former.topic_ids
    return Progress(version=version, topic_ids=topic_ids, truncated=truncated)
