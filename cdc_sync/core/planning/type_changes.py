"""What planning makes of the type changes of one event: what is rewritten, kept aside, or refused, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from typing_extensions import assert_never

from cdc_sync.core.lineage.retold import Retold, retold, switched
from cdc_sync.core.lineage.retyping import TypeStep
from cdc_sync.core.migration.capabilities import Capabilities
from cdc_sync.core.migration.routes import Route
from cdc_sync.core.migration.typechange import InPlace, Rewrite, SideColumn, Stop, TypeChange, decide_type_change
from cdc_sync.core.migration.wording import type_text
from cdc_sync.core.model.codes import Code
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.alignment import NEEDS_RESYNC, RETYPED, SIDE_COLUMN, Evidence
from cdc_sync.core.schema.casts import cast_between, needs_cast
from cdc_sync.core.schema.changes import SchemaChange, UpdateColumnType
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.members import UpdateKeyType, UpdatePartType, changes_shape_only, member_changes, path_text
from cdc_sync.core.schema.retyping import By, Retyping
from cdc_sync.core.schema.types import StringType


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChanges:
    """The type changes of one event.

    Attributes:
        sides: by column id, why the old column is kept beside a new one.
        evidence: what the history says of those that are not done in place.
        refused: the first that stops the table, None if none does.
    """

    sides: dict[int, str]
    evidence: tuple[Evidence, ...]
    refused: Refused | None = None


def type_changes(
    changes: Iterable[SchemaChange],
    before: InternalSchema,
    after: InternalSchema,
    route: Route,
    capabilities: Capabilities,
    *,
    kind: str,
    told: Callable[[int], Retyping | None] = lambda _: None,
    steps: Callable[[int], Sequence[TypeStep] | None] = lambda _: None,
) -> TypeChanges:
    """Decide about all type changes among `changes`, which lead from `before` to `after`.

    Args:
        changes: the difference of the two.
        before: the version in effect.
        after: what an event shows.
        route: the table's rules.
        capabilities: of its target.
        kind: of the source's positions, which tells the database.
        told: what the source says of how a column, by its id, came to its type.
        steps: which types it says the column had in between.
    """
    sides: dict[int, str] = {}
    evidence: list[Evidence] = []
    marked: list[tuple[int, str]] = []
    for change, decided in _decided(changes, before, route, capabilities):
        name = before.column(change.id).name
        types = f"{type_text(change.old)} to {type_text(change.new)}"
        setting = switched(before.column(change.id).sent, after.column(change.id).sent, steps(change.id), kind)
        match decided:
            case InPlace():
                retyping = told(change.id)
                if retyping is not None and retyping.by is By.EXPRESSION:
                    marked.append((change.id, f"existing values were widened, {types}; {_by_expression(retyping)}"))
                elif setting is not None and setting.marks:
                    marked.append((change.id, f"existing values were widened, {types}; {setting.text}"))
            case Rewrite():
                rules = tuple(_rules(name, change))
                rule = "; ".join(rules) or "each has the same value"
                evidence.append(
                    Evidence(subject=name, kind="rewrite", text=f"existing values are converted, {types}: {rule}")
                )
                retyping = told(change.id)
                if retyping is not None and retyping.by is By.EXPRESSION:
                    reason = f"existing values were converted by rule, {types}; {_by_expression(retyping)}"
                    marked.append((change.id, reason))
                elif setting is not None and setting.marks:
                    marked.append((change.id, f"existing values were converted by rule, {types}; {setting.text}"))
                elif (
                    rules
                    and kind == "postgresql"
                    and not (setting is not None and setting.by_connector)
                    and (retyping is None or retyping.by is By.UNKNOWN)
                ):
                    marked.append((change.id, f"existing values were converted by rule, {types}; {_USING}"))
            case SideColumn(reason=reason):
                sides[change.id] = reason
                text = (
                    f"changed from {types} ({reason}): kept with its data, and existing rows read NULL in the new one"
                )
                evidence.append(Evidence(subject=name, kind=SIDE_COLUMN, text=text))
                said = "" if setting is None else f"; {setting.text}"
                marked.append((change.id, f"existing rows read NULL; the column changed from {types}{said}"))
            case Stop(reason=reason):
                refused = Refused(
                    code=Code.TYPE,
                    reason=f"column {name!r} changed from {types}, {reason}",
                    remedy=_remedy(route),
                )
                return TypeChanges(sides={}, evidence=(), refused=refused)
            case _:
                assert_never(decided)
    if not route.append:  # a changelog's rows are what the events said
        evidence += (Evidence(subject=after.column(id_).name, kind=NEEDS_RESYNC, text=text) for id_, text in marked)
    return TypeChanges(sides=sides, evidence=tuple(evidence))


def same_types(
    before: InternalSchema,
    after: InternalSchema,
    steps: Callable[[int], Sequence[TypeStep] | None],
    *,
    is_written: bool,
) -> tuple[Evidence, ...]:
    """Say which columns keep their type in the target, while that at the source, or how events show it, is another.

    Args:
        before: the version in effect.
        after: what an event shows.
        steps: which types the source says that a column, by its id, had in between; None where it does not.
        is_written: rows that were there stay as they are; false where a snapshot brings all of them, or the target
            holds what events said.
    """
    columns = {column.id: column for column in before.columns}
    found = []
    for now in after.live:
        then = columns.get(now.id)
        if then is None or then.type != now.type:
            continue
        said: Retold | None = retold(then.sent, now.sent, steps(now.id), as_text=isinstance(now.type, StringType))
        if said is not None:
            kind = NEEDS_RESYNC if said.marks and is_written else RETYPED
            found.append(Evidence(subject=now.name, kind=kind, text=said.text))
    return tuple(found)


def _by_expression(retyping: Retyping) -> str:
    return f"the source changed them by an expression of its own: {retyping.statement}"


def _rules(column: str, change: UpdateColumnType) -> Iterator[str]:
    """Say what becomes of the values that do not just widen; which part they are of, if it is not the whole column."""
    for part in member_changes(change.old, change.new):
        if isinstance(part, (UpdatePartType, UpdateKeyType)) and needs_cast(part.old, part.new):
            cast = cast_between(part.old, part.new)
            rule = "part by part" if cast is None else cast.rule
            yield f"{path_text(column, part.path)}: {rule}" if part.path else rule


_USING = "no event tells whether the source did so by an expression of its own (USING)"


def _decided(
    changes: Iterable[SchemaChange], before: InternalSchema, route: Route, capabilities: Capabilities
) -> Iterator[tuple[UpdateColumnType, TypeChange]]:
    for change in changes:
        if isinstance(change, UpdateColumnType):
            key = before.primary_key
            # Without a key, rows that differ in a member that went are copies of one row, at the source too.
            whole = not key and not changes_shape_only(change.old, change.new)
            identifies = not route.append and (change.id in key or whole)
            policy = route.policy.incompatible_types
            yield change, decide_type_change(capabilities, policy, change.old, change.new, identifies=identifies)


def _remedy(route: Route) -> str:
    remedy = "change the type back at the source, or snapshot the table again into a new target"
    if route.policy.incompatible_types == "pause":
        return f"{remedy}, or set policy.incompatible_types: rewrite for the table"
    return remedy
