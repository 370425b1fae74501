"""What becomes of a column's stored values where its type stays in the target, and changes at the source or on the way.

The source's statements come first, then the type that the connector propagates, then how the events are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_sync.core.lineage.retyping import TypeStep
from cdc_sync.core.lineage.source_types import may_differ as types_may_differ
from cdc_sync.core.lineage.spellings import converts_otherwise, is_respelled, may_differ, setting_between
from cdc_sync.core.schema.retyping import By
from cdc_sync.core.schema.sent import Sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Retold:
    """What is said of a column.

    Attributes:
        marks: rows of before may hold other values than the source.
        by_connector: it is certain that the source changed nothing.
    """

    text: str
    marks: bool
    by_connector: bool = False


def retold(
    old: Sent | None, new: Sent | None, steps: Sequence[TypeStep] | None, *, as_text: bool = False
) -> Retold | None:
    """Compare how a column was told of before with how it is now; None if nothing changed, or nothing is known.

    Args:
        old, new: what events show; None where it is not known.
        steps: how its type changed at the source, None where nothing tells.
        as_text: its values are texts.
    """
    steps = _propagated(old, new) if steps is None else steps
    for step in steps or ():
        by_expression = step.retyping is not None and step.retyping.by is By.EXPRESSION
        if by_expression or types_may_differ(step.old, step.new, as_text=as_text):
            return Retold(text=f"existing values may differ: {_said(step)}", marks=True)
    if steps:
        return Retold(text=f"no value changes: {'; '.join(map(_said, steps))}", marks=False)
    if old is None or new is None or not _differ(old, new):
        return None
    way = f"the connector writes {new} where it wrote {old}" if is_respelled(old, new) else _parameters(old, new)
    if not may_differ(old, new):
        return Retold(text=f"no value changes: {way}", marks=False)
    return Retold(text=f"existing values may differ: {way}; {_why(old, new, steps)}", marks=True)


def _why(old: Sent, new: Sent, steps: Sequence[TypeStep] | None) -> str:
    """Say what leads from one way of writing values to another."""
    setting = setting_between(old, new)
    if setting is None:
        return "no event tells what the source did"
    if steps is None:
        return f"either {setting} of the connector was switched, or the source changed the type; no event tells which"
    return f"{setting} of the connector was switched, for the source's type is the same"


def switched(old: Sent | None, new: Sent | None, steps: Sequence[TypeStep] | None, kind: str) -> Retold | None:
    """Say that the connector may write values in another way by its settings; None where the source changed the type.

    Args:
        old, new, steps: those of `retold`.
        kind: of the source's positions.
    """
    steps = _propagated(old, new) if steps is None else steps
    if steps or old is None or new is None or setting_between(old, new) is None:
        return None
    text = f"the connector writes {new} where it wrote {old}: {_why(old, new, steps)}"
    return Retold(text=text, marks=converts_otherwise(old, new, kind), by_connector=steps is not None)


def _parameters(old: Sent, new: Sent) -> str:
    names = {name: (old.parameter(name), new.parameter(name)) for sent in (old, new) for name, _ in sent.parameters}
    told = (f"{name} is {now} and was {then}" for name, (then, now) in sorted(names.items()) if then != now)
    return f"of {new}, " + ", ".join(told)


def _propagated(old: Sent | None, new: Sent | None) -> tuple[TypeStep, ...] | None:
    if old is None or new is None or not old.source or not new.source:
        return None
    return () if old.source == new.source else (TypeStep(old=old.source, new=new.source),)


def _differ(old: Sent, new: Sent) -> bool:
    return (old.type, old.name, old.parameters) != (new.type, new.name, new.parameters)


def _said(step: TypeStep) -> str:
    types = f"the source changed the type from {step.old} to {step.new}"
    statement = "" if step.retyping is None else step.retyping.statement
    if step.retyping is not None and step.retyping.by is By.EXPRESSION:
        return f"{types} by an expression of its own: {statement}"
    return f"{types}: {statement}" if statement else types
