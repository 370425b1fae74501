"""What the operator wants of each kind of change, before a version is made of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from cdc_sync.core.model.codes import Code
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.alignment import DECIDED, IGNORED, KEPT, UNPROVEN, Alignment, Evidence, Unproven
from cdc_sync.core.schema.changes import (
    AddColumn,
    ChangePrimaryKey,
    DropColumn,
    RenameColumn,
    RetireColumn,
    ReviveColumn,
    SchemaChange,
    UpdateColumnType,
)
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.members import (
    AddMember,
    DropMember,
    Path,
    RenameMember,
    UpdateKeyType,
    UpdatePartType,
    member_changes,
    path_text,
)
from cdc_sync.core.schema.observed import ObservedSchema
from cdc_sync.core.schema.policy import Policy
from cdc_sync.core.schema.types import DataType, Field, ListType, MapType, StructType

_SAID = ("declared", DECIDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedMembers:
    """What is left of a column's change.

    Attributes:
        type: what the event shows, with the members that are kept and without those that are left out.
        kept, ignored: where they are, as `path_text` writes it.
        split: the same of members that go with their data although each may be one that came in its struct.
    """

    type: DataType
    kept: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    split: tuple[str, ...] = ()


class _Found:
    """What was met on the way through a type."""

    def __init__(self, *, column: str, policy: Policy) -> None:
        self._column = column
        self._keeps, self._ignores = policy.drop_column == "keep", policy.add_column == "ignore"
        self.kept: list[str] = []
        self.ignored: list[str] = []
        self.doubtful: list[tuple[str, str]] = []

    def of(self, path: Path, before: DataType, seen: DataType) -> DataType:
        match before, seen:
            case StructType(), StructType():
                return StructType(fields=self._members(path, before.fields, seen.fields))
            case ListType(), ListType():
                return replace(seen, element=self.of((*path, "element"), before.element, seen.element))
            case MapType(), MapType():
                return replace(seen, value=self.of((*path, "value"), before.value, seen.value))
            case _:
                return seen

    def _members(self, path: Path, before: tuple[Field, ...], seen: tuple[Field, ...]) -> tuple[Field, ...]:
        known = {field.name: field for field in before}
        gone = [field for field in before if all(field.name != other.name for other in seen)]
        new = [field.name for field in seen if field.name not in known]
        self.doubtful += (
            (path_text(self._column, (*path, field.name)), path_text(self._column, (*path, new[0])))
            for field in gone
            if new
        )
        members: list[Field] = []
        for field in seen:
            place = (*path, field.name)
            if field.name in known:
                members.append(replace(field, type=self.of(place, known[field.name].type, field.type)))
            elif not self._ignores:
                members.append(field)
            else:
                self.ignored.append(path_text(self._column, place))
        for field in gone if self._keeps else ():
            names = [other.name for other in members]
            left = [other.name for other in before[: before.index(field)] if other.name in names]
            members.insert(names.index(left[-1]) + 1 if left else 0, field)
            self.kept.append(path_text(self._column, (*path, field.name)))
        return tuple(members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is left of a change.

    Attributes:
        seen: what the event shows, without columns that are not wanted.
        alignment: about `seen`; columns that are to be kept stand among the unproven ones.
        ignored: names that are not in `seen`; of members of structs, their paths.
        kept: paths of members that only `seen` still has.
        evidence: why columns and members are kept or left out.
    """

    seen: ObservedSchema
    alignment: Alignment
    ignored: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()


def refused_by_policy(
    changes: Collection[SchemaChange], before: InternalSchema, after: InternalSchema, policy: Policy
) -> Refused | None:
    """Refuse the first change of a kind that the operator wants to be asked about."""
    for change in changes:
        match change:
            case AddColumn(column=column) if policy.add_column == "pause":
                return _asked(f"column {column.name!r} was added", "add_column")
            case ReviveColumn(name=name) if policy.add_column == "pause":
                return _asked(f"column {name!r} is back", "add_column")
            case DropColumn(column=column) if policy.drop_column == "pause":
                return _asked(f"column {column.name!r} was dropped", "drop_column")
            case RetireColumn(name=name) if policy.drop_column == "pause":
                return _asked(f"column {name!r} is gone", "drop_column")
            case RenameColumn(old=old, new=new) if policy.rename_column == "pause":
                return _asked(f"column {old!r} was renamed to {new!r}", "rename_column")
            case UpdateColumnType(id=id_):
                asked = _asked_inside(before.column(id_).name, change, policy)
                if asked is not None:
                    return asked
            case ChangePrimaryKey(new=new) if policy.change_key == "pause":
                names = ", ".join(after.column(id_).name for id_ in new)
                return _asked(f"the key is ({names}) now", "change_key")
            case _:
                continue
    return None


def _asked_inside(column: str, change: UpdateColumnType, policy: Policy) -> Refused | None:
    """Refuse the first change inside a column: of members as of columns."""
    for part in member_changes(change.old, change.new):
        match part:
            case AddMember(parent=parent, field=field) if policy.add_column == "pause":
                return _asked(f"member {path_text(column, (*parent, field.name))!r} was added", "add_column")
            case DropMember(parent=parent, field=field) if policy.drop_column == "pause":
                return _asked(f"member {path_text(column, (*parent, field.name))!r} was dropped", "drop_column")
            case RenameMember(parent=parent, old=old, new=new) if policy.rename_column == "pause":
                return _asked(f"member {path_text(column, (*parent, old))!r} was renamed to {new!r}", "rename_column")
            case UpdatePartType(path=path) | UpdateKeyType(path=path) if policy.change_type == "pause":
                what = f"part {path_text(column, path)!r}" if path else f"column {column!r}"
                return _asked(f"{what} has another type", "change_type")
            case _:
                continue
    return None


def _asked(what: str, setting: str) -> Refused:
    return Refused(
        code=Code.POLICY,
        reason=f"{what}, and policy.{setting} is pause",
        remedy=f"set policy.{setting}: apply, for this table or for all",
    )


def wanted(before: InternalSchema, seen: ObservedSchema, alignment: Alignment, policy: Policy) -> Wanted | Refused:
    """Keep columns that the source dropped, and leave out those it added, where the operator wants it; members too."""
    kept = _inside(before, seen, alignment, policy)
    if isinstance(kept, Refused):
        return kept
    if policy.drop_column == "keep":
        kept = _with_dropped(kept, before)
    if policy.add_column != "ignore":
        return kept
    doubtful = [seen.columns[index].name for case in alignment.unproven for index in case.appeared]
    if doubtful:
        return Refused(
            code=Code.NOT_IGNORABLE,
            reason=f"column {doubtful[0]!r} is new or another one's new name, so it cannot be ignored without losing "
            "values, perhaps of a column that is wanted",
            remedy="say what happened: `cdc-sync decide` with --rename OLD=NEW, or with --drop of the old one; or set "
            "policy.add_column: apply",
        )
    names = [seen.columns[index].name for index in alignment.added]
    in_key = [name for name in names if name in seen.key]
    if in_key:
        return Refused(
            code=Code.NOT_IGNORABLE,
            reason=f"column {in_key[0]!r} is new and of the key, so it cannot be ignored",
            remedy="set policy.add_column: apply",
        )
    return _without(kept, frozenset(alignment.added), tuple(names))


def _inside(before: InternalSchema, seen: ObservedSchema, alignment: Alignment, policy: Policy) -> Wanted | Refused:
    """Do for members of structs what `wanted` does for columns."""
    columns = list(seen.columns)
    found = Wanted(seen=seen, alignment=alignment)
    for id_, index in alignment.same:
        column = seen.columns[index]
        members = wanted_members(column.name, before.column(id_).type, column.type, policy)
        if isinstance(members, Refused):
            return members
        columns[index] = replace(column, type=members.type)
        evidence = (
            *(Evidence(subject=path, kind=KEPT, text=_MEMBER_KEPT) for path in members.kept),
            *(Evidence(subject=path, kind=IGNORED, text=_LEFT_OUT) for path in members.ignored),
            *(Evidence(subject=path, kind=UNPROVEN, text=_MEMBER_SPLIT) for path in members.split),
        )
        found = replace(
            found,
            ignored=(*found.ignored, *members.ignored),
            kept=(*found.kept, *members.kept),
            evidence=(*found.evidence, *evidence),
        )
    return replace(found, seen=replace(seen, columns=tuple(columns)))


_LEFT_OUT = "its values are left out: policy.add_column is ignore"
_MEMBER_KEPT = "kept, and NULL in rows that are written from now on; gone at the source: policy.drop_column is keep"
_MEMBER_SPLIT = "dropped with its data; another one came in the same struct, and nothing proves a rename inside of one"


def _with_dropped(given: Wanted, before: InternalSchema) -> Wanted:
    """Keep what the source dropped, unless the operator said of just that column that it goes."""
    said = {item.subject for item in given.alignment.evidence if item.kind in _SAID}
    live = {column.id: column.name for column in before.live}
    kept = tuple(id_ for id_ in given.alignment.dropped if id_ in live and live[id_] not in said)
    # What was kept before is proven to be gone at every later event.
    before_too = tuple(column.id for column in before.columns if column.retired and column.name not in said)
    dropped = tuple(id_ for id_ in given.alignment.dropped if id_ not in (*kept, *before_too))
    if not kept:
        return replace(given, alignment=replace(given.alignment, dropped=dropped))
    reason = "policy.drop_column is keep"
    case = Unproven(vanished=kept, appeared=(), explanations=(), reason=reason)
    alignment = replace(
        given.alignment,
        dropped=dropped,
        unproven=(*given.alignment.unproven, case),
    )
    evidence = tuple(
        Evidence(subject=live[id_], kind=KEPT, text=f"kept with its data, gone at the source: {reason}") for id_ in kept
    )
    return replace(given, alignment=alignment, evidence=(*given.evidence, *evidence))


def _without(given: Wanted, indexes: frozenset[int], names: tuple[str, ...]) -> Wanted:
    if not indexes:
        return given
    left = [index for index in range(len(given.seen.columns)) if index not in indexes]
    place = {index: number for number, index in enumerate(left)}
    alignment = replace(
        given.alignment,
        same=tuple((id_, place[index]) for id_, index in given.alignment.same),
        added=(),
        evidence=tuple(item for item in given.alignment.evidence if item.subject not in names),
    )
    seen = replace(given.seen, columns=tuple(given.seen.columns[index] for index in left))
    evidence = tuple(Evidence(subject=name, kind=IGNORED, text=_LEFT_OUT) for name in names)
    return replace(
        given,
        seen=seen,
        alignment=alignment,
        ignored=(*given.ignored, *names),
        evidence=(*given.evidence, *evidence),
    )


def wanted_members(column: str, before: DataType, seen: DataType, policy: Policy) -> WantedMembers | Refused:
    """Keep members that the source dropped, and leave out those it added, where the operator wants it so.

    Args:
        column: its name, for messages.
        before: the type in effect.
        seen: what the event shows; ids do not count.
        policy: `drop_column` and `add_column` are said of members too.
    """
    found = _Found(column=column, policy=policy)
    type_ = found.of((), before, seen)
    if found.doubtful and policy.add_column == "ignore":
        return Refused(
            code=Code.NOT_IGNORABLE,
            reason=f"member {found.doubtful[0][1]!r} is new or another one's new name, so it cannot be ignored without "
            "losing values, perhaps of a member that is wanted",
            remedy="set policy.add_column: apply",
        )
    if found.doubtful and policy.unproven_rename == "pause":
        old, new = found.doubtful[0]
        return Refused(
            code=Code.UNPROVEN,
            reason=f"it cannot be proven what happened to members: {old!r} is gone and {new!r} is new",
            remedy="set policy.unproven_rename: add, which drops the one and adds the other",
        )
    split = () if policy.drop_column == "keep" else tuple(dict.fromkeys(old for old, _ in found.doubtful))
    return WantedMembers(type=type_, kept=tuple(found.kept), ignored=tuple(found.ignored), split=split)
