"""The version at which a source table goes on under another name, and the one at which it comes there. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Former, Version
from cdc_sync.core.lineage.renames import ToldRename
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.positions import SourcePosition
from cdc_sync.core.planning.end_of_table import Awaited
from cdc_sync.core.planning.resync import ALL_ROWS
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.alignment import IGNORED, NEEDS_RESYNC, Evidence
from cdc_sync.core.schema.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class NameChanges:
    """The name changes of one table that are followed.

    Attributes:
        away: from this name to one that a rule of the configuration matches.
        here: from a name that a rule matches to this one.
    """

    away: tuple[ToldRename, ...] = ()
    here: tuple[ToldRename, ...] = ()

    def first_away(self, after: SourcePosition, upto: SourcePosition | None) -> ToldRename | None:
        """Return the first that takes this name away behind one position, and not behind the other if there is one."""
        found = (told for told in self.away if _is_behind(told, after) and (upto is None or told.position <= upto))
        return min(found, key=lambda told: told.position, default=None)

    def due_here(self, after: SourcePosition | None, upto: SourcePosition) -> ToldRename | None:
        """Return the last that brings a table here behind one position (None is before all), up to another one."""
        found = (told for told in self.here if told.position.kind == upto.kind and told.position <= upto)
        behind = (told for told in found if after is None or _is_behind(told, after))
        return max(behind, key=lambda told: told.position, default=None)


NO_NAME_CHANGES = NameChanges()


def _is_behind(told: ToldRename, position: SourcePosition) -> bool:
    return told.position.kind == position.kind and told.position > position


def departure_of(history: History, told: ToldRename, policy: Policy, *, patient: bool) -> Version | Refused | Awaited:
    """Decide what a name change does to the table of the old name.

    Args:
        history: up to the newest version before.
        told: what the source says.
        policy: the operator's answer for the table under its old name.
        patient: the source may still say that a copy took the old name.
    """
    if policy.rename_table == "pause":
        return Refused(
            code=Code.POLICY,
            reason=f"the source table was renamed to {told.new} ({told.statement}), and policy.rename_table is pause",
            remedy="set policy.rename_table: stay, which leaves the target as it is, or follow, which renames it",
        )
    if patient and not told.settled:
        return Awaited(
            reason=f"the source table was renamed to {told.new} ({told.statement}), and a copy may yet take its name"
        )
    head, name = history.head, history.table.table
    text = f"the target goes on as that of {told.new}, for policy.rename_table is follow"
    return Version(
        table=history.table,
        number=head.number + 1,
        fingerprint=head.fingerprint,
        schema=head.schema,
        changes=(),
        evidence=(
            Evidence(subject=name, kind=told.kind, text=f"{told.statement} ({told.position})"),
            Evidence(subject=name, kind="policy", text=text),
        ),
        position=told.position,
        kafka=told.kafka,
        snapshot=False,
        append_only=head.append_only,
        dropped="rename",
        renamed_to=told.new,
    )


def arrival_of(left: History, end: Version, own: History | None) -> Version | Refused:
    """Derive the version at which a table comes under a new name, with the columns and ids it has.

    Args:
        left: the history under the old name.
        end: the version in it at which the table got the new one.
        own: what is recorded under the new name; only the same table's own time under it can be gone on with, for the
            ids of another table's columns would be given out twice.
    """
    assert end.renamed_to is not None
    before = History(table=left.table, versions=left.versions[: end.number - 1])
    head = before.head
    former = before.arrival.renamed_from if before.arrival is not None else None
    names = (*(() if former is None else former.names), left.table)
    if own is not None and not (own.head.dropped == "rename" and own.table in names):
        return Refused(
            code=Code.RENAME,
            reason=f"the source table was renamed to {end.renamed_to}, which was another table before, and the two "
            "histories cannot be joined",
            remedy=f"set policy.rename_table: stay for {left.table}; snapshot the table under "
            "its new name into a new target",
        )
    shown = former if head.renamed_from is not None and former is not None else None
    text = f"renamed from {left.table}, where it was version {head.number}: columns, their ids and rows go on"
    return Version(
        table=end.renamed_to,
        number=1 if own is None else own.head.number + 1,
        fingerprint=head.fingerprint,
        schema=head.schema,
        changes=(),
        evidence=(
            end.evidence[0],
            Evidence(subject=end.renamed_to.table, kind="policy", text=text),
            *_carried(before),
        ),
        position=end.position,
        kafka=end.kafka,
        snapshot=head.snapshot,
        append_only=head.append_only,
        renamed_from=Former(
            names=names,
            version=head.number,
            shown_as=left.table if shown is None else shown.shown_as,
            shown_at=head.position if shown is None else shown.shown_at,
        ),
    )


def _carried(history: History) -> tuple[Evidence, ...]:
    """Return what was said of columns before and still counts, by the names they have now."""
    begins = history.arrival.number if history.arrival is not None else 1
    names = {column.id: column.name for column in history.head.schema.columns}
    found = []
    for version in history.versions[begins - 1 :]:
        for item in version.evidence:
            column = version.schema.find(item.subject)
            if item.kind == NEEDS_RESYNC and column is not None and column.id in names:
                found.append(Evidence(subject=names[column.id], kind=item.kind, text=item.text))
            elif item.kind == IGNORED or (item.kind, item.subject) == (NEEDS_RESYNC, ALL_ROWS):
                found.append(item)
    return tuple(dict.fromkeys(found))
