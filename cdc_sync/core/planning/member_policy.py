"""What the operator wants of members of structs that come and go: the answers for columns, inside a column.

Which member is which is told by the name alone. So where one is gone and another came in the same struct, the new one
may be the old one renamed, and is never left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cdc_sync.core.planning.refusals import Refused
from cdc_sync.core.schema.members import Path, path_text
from cdc_sync.core.schema.policy import Policy
from cdc_sync.core.schema.types import DataType, Field, ListType, MapType, StructType


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
            reason=f"member {found.doubtful[0][1]!r} is new or another one's new name, so it cannot be ignored without "
            "losing values, perhaps of a member that is wanted",
            remedy="set policy.add_column: apply and start the job again",
        )
    if found.doubtful and policy.unproven_rename == "pause":
        old, new = found.doubtful[0]
        return Refused(
            reason=f"it cannot be proven what happened to members: {old!r} is gone and {new!r} is new",
            remedy="set policy.unproven_rename: add, which drops the one and adds the other, and start the job again",
        )
    split = () if policy.drop_column == "keep" else tuple(dict.fromkeys(old for old, _ in found.doubtful))
    return WantedMembers(type=type_, kept=tuple(found.kept), ignored=tuple(found.ignored), split=split)


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
