"""Which columns of a source table are compared with which of its target, in which form, and which are not and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.operations.verify.dialect import Dialect, Templates, Value, value
from cdc_sync.operations.verify.forms import ListForm, forms_of
from cdc_sync.operations.verify.spark_sql import SPARK, target_templates
from cdc_sync.spark.columns import value_column


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumn:
    """A column as the source's catalogue has it now.

    Attributes:
        type: the type's name, the key of `SourceTypes.templates`; of a list its element's.
        is_list: it holds a list of that type.
        reason: why it cannot be compared; None if nothing but its type may say so.
    """

    name: str
    type: str
    is_list: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTypes:
    """What a kind of database can write; see the modules of the dialects."""

    dialect: Dialect
    templates: Mapping[str, Templates]
    reasons: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One column that is compared, as SQL of both sides; its name is the source's."""

    id: int
    name: str
    source: Value
    target: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class NotCompared:
    """One column that is not."""

    column: str
    reason: str


def pair_columns(
    schema: InternalSchema, columns: Sequence[SourceColumn], types: SourceTypes
) -> tuple[tuple[Compared, ...], tuple[NotCompared, ...]]:
    """Pair a target's tracked columns with the source's by the source's present names.

    Every column of either side is in one of the two results.
    """
    theirs = {column.name: column for column in columns}
    compared, left = [], []
    for tracked in schema.columns:
        found = None if tracked.retired else theirs.pop(tracked.name, None)
        outcome = _pair(tracked, found, types)
        if isinstance(outcome, Compared):
            compared.append(outcome)
        else:
            left.append(NotCompared(column=tracked.name, reason=outcome))
    left += [
        NotCompared(column=name, reason=column.reason or "the target has no such column")
        for name, column in theirs.items()
    ]
    return tuple(compared), tuple(left)


def _pair(tracked: Column, found: SourceColumn | None, types: SourceTypes) -> Compared | str:
    if tracked.retired:
        return "the source no longer has it; the target keeps what it held"
    if found is None:
        return "the source has no column of this name now; the target follows with the table's next change of a row"
    if found.reason is not None:
        return found.reason
    templates = types.templates.get(found.type, {})
    forms = [form for form in forms_of(tracked.type) if isinstance(form, ListForm) == found.is_list]
    form = next((form for form in forms if _scalar(form) in templates), None)
    if form is None:
        name = f"{found.type}[]" if found.is_list else found.type
        return types.reasons.get(found.type) or f"no common text is known for the source's type {name} and the target's"
    return Compared(
        id=tracked.id,
        name=tracked.name,
        source=value(types.dialect, form, templates, types.dialect.quoted(found.name)),
        target=value(SPARK, form, target_templates(tracked.type), value_column(tracked.id)),
    )


def _scalar(form: object) -> object:
    return form.element if isinstance(form, ListForm) else form
