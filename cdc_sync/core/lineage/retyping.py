"""Whether the source gave a column its type by its own rule, or by an expression that changes the values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cdc_sync.core.lineage.column_log import ColumnLog, LoggedColumn, Structure, Token
from cdc_sync.core.lineage.message_query import alterations
from cdc_sync.core.lineage.messages import TEXT_LIMIT
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.core.schema.retyping import By, Retyping


def told_retyping(
    logs: Iterable[ColumnLog], table: TableId, after: SourcePosition, upto: SourcePosition, name: str
) -> Retyping | None:
    """Return how a column came to its type, as far as statements show it.

    Args:
        logs: what the source says of its columns.
        table: the column's.
        after: of the last event before the change.
        upto: of the first behind it.
        name: of the column there.

    Returns:
        None where no log shows the change.
    """
    found = [_of_log(log, table, after, upto, name) for log in logs if log.kind == "message"]
    return next((item for item in found if item is not None), None)


def _of_log(log: ColumnLog, table: TableId, after: SourcePosition, upto: SourcePosition, name: str) -> Retyping | None:
    last = log.at(table, upto)
    token = last.token(name) if last is not None else None
    if token is None:
        return None
    before = log.at(table, after)
    is_complete = before is not None
    found: list[Retyping] = []
    for structure in log.between(table, after, upto):
        now = _column(structure, token)
        if before is None:
            found += [] if now is None else [_of_statement(structure, now.name)]
        elif (then := _column(before, token)) is not None and now is not None and then.type != now.type:
            found.append(_of_statement(structure, then.name))
        before = structure
    worst = (By.EXPRESSION, By.UNKNOWN, By.RULE)
    said = min(found, key=lambda item: worst.index(item.by), default=None)
    # A log that begins in between may have missed a statement: of all it could say only the worst is certain.
    return said if is_complete or (said is not None and said.by is By.EXPRESSION) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeStep:
    """A change of a column's type at its source; `retyping` is None where nothing tells what was done."""

    old: str
    new: str
    retyping: Retyping | None = None


def told_types(
    logs: Iterable[ColumnLog], table: TableId, after: SourcePosition, upto: SourcePosition, name: str
) -> tuple[TypeStep, ...] | None:
    """Return how a column's type changed at the source; arguments are those of `told_retyping`.

    Returns:
        None where no log tells of the column all the way. One that begins in between by telling what is there, as DDL
        capture does where it is installed, may have missed a change: only those that it shows are certain.
    """
    found = (_steps(log, table, after, upto, name) for log in logs)
    return next((steps for steps in found if steps is not None), None)


def _steps(
    log: ColumnLog, table: TableId, after: SourcePosition, upto: SourcePosition, name: str
) -> tuple[TypeStep, ...] | None:
    last, before = log.at(table, upto), log.at(table, after)
    token = last.token(name) if last is not None else None
    structures, is_complete = log.between(table, after, upto), before is not None
    if before is None and structures and structures[0].reading:
        before, structures = structures[0], structures[1:]
    then = _column(before, token) if before is not None and token is not None else None
    if token is None or then is None:
        return None
    steps = []
    for structure in structures:
        now = _column(structure, token)
        if now is None:
            return None
        if now.type != then.type:
            retyping = _of_statement(structure, then.name) if log.kind == "message" else None
            said = retyping or Retyping(by=By.RULE, statement=structure.statement)
            steps.append(TypeStep(old=then.type, new=now.type, retyping=said))
        then = now
    return tuple(steps) if steps or is_complete else None


def _column(structure: Structure, token: Token) -> LoggedColumn | None:
    return next((column for column in structure.columns if column.token == token), None)


def _of_statement(structure: Structure, name: str) -> Retyping:
    text = structure.statement
    read = alterations(text) if len(text) < TEXT_LIMIT else None
    if read is None:
        return Retyping(by=By.UNKNOWN, statement=text)
    ways = {
        by_expression
        for item in read
        if item.table == structure.table.table and item.schema in (None, structure.table.schema)
        for column, by_expression in item.retyped
        if column == name
    }
    by = By.UNKNOWN if not ways else By.EXPRESSION if True in ways else By.RULE
    return Retyping(by=by, statement=text)
