"""From what a source says of its columns to what is proven about a change: tokens compared at two positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.lineage.column_log import ColumnLog, Structure, Token
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.core.schema.alignment import Proof
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.members import changes_shape_only, named_as
from cdc_sync.core.schema.observed import ObservedSchema

_COORDINATES = {"ddl": "binlog", "message": "postgresql"}
"""Kind of log -> the kind of source position it can be joined on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A log does not tell yet how an event's columns came about; it may be late, or have a gap.

    Attributes:
        kind: the log's.
        reason: what is missing from it, in words.
    """

    kind: str
    reason: str


def prove(history: History, seen: ObservedSchema, log: ColumnLog, position: SourcePosition) -> Proof | Behind | None:
    """Say what a log proves about the columns of an event against those of the newest version.

    Law: a pair is proven only if the column has one token at both positions, and refuted only by two tokens of one
    era. Columns the log does not know, or knows only before or after something it did not understand, are left out.

    Args:
        history: the versions so far; the head is what the event is compared with.
        seen: what the event shows.
        position: the event's.

    Returns:
        None if the log is about another kind of source, or about another log of it.
    """
    if position.kind != _COORDINATES[log.kind] or position.incarnation:
        return None
    after = log.at(history.table, position)
    if after is None:
        return Behind(kind=log.kind, reason="it holds nothing about the table up to this event")
    missing = _missing(after, seen)
    if missing is not None:
        log = log.with_avro_names()
        after = log.at(history.table, position)
        if after is None or _missing(after, seen) is not None:
            return Behind(kind=log.kind, reason=missing)
    known = known_tokens(history, log)
    unchanged = _unexplained_type(history, seen, log, after, known)
    if unchanged is not None:
        return Behind(kind=log.kind, reason=unchanged)
    return _compared(history, seen, log, position, known)


def known_tokens(history: History, log: ColumnLog) -> dict[int, Token]:
    """Return the token of each column of the newest version, retired ones included, where the log has it."""
    found: dict[int, Token] = {}
    before: dict[int, Mapping[str, Token]] = {}
    for column in history.head.schema.columns:
        version = next((version for version in reversed(history.versions) if _shows(version, column.id)), None)
        if version is None:
            continue  # gone before the table had this name
        if version.number not in before:
            before[version.number] = tokens_at(version, log)
        token = before[version.number].get(version.schema.column(column.id).name)
        if token is not None:
            found[column.id] = token
    return found


def tokens_at(version: Version, log: ColumnLog) -> Mapping[str, Token]:
    """Return the tokens of a version's columns by name, as far as the log has them."""
    shown = [column.name for column in version.schema.live]
    table, position = _shown_at(version)
    structure = log.at(table, position)
    if structure is None:
        return log.before(table, tuple(shown))
    if not _is_within(shown, [column.name for column in structure.columns]):
        return {}  # something is missing from the log before the version
    return {column.name: column.token for column in structure.columns}


def _shown_at(version: Version) -> tuple[TableId, SourcePosition]:
    """Return under which name, and where, an event showed the columns of a version."""
    former = version.renamed_from
    return (version.table, version.position) if former is None else (former.shown_as, former.shown_at)


def is_interrupted(history: History, log: ColumnLog, position: SourcePosition) -> bool:
    """Whether a log knows the columns of the newest version only from this event on, or by tokens of another era.

    The event shows these columns, so their names were taken for the same, as everywhere where nothing else is proven.
    """
    structure = log.at(history.table, position)
    if position.kind != _COORDINATES[log.kind] or structure is None:
        return False
    now = {column.id: structure.token(column.name) for column in history.head.schema.live}
    known = known_tokens(history, log)
    return all(now.values()) and any(
        id_ not in known or (token is not None and known[id_].era != token.era) for id_, token in now.items()
    )


def was_made_anew(log: ColumnLog, table: TableId, after: SourcePosition, upto: SourcePosition) -> bool:
    """Whether another table took the place of this one between two positions: places of columns prove nothing then."""
    before = log.at(table, after)
    return _is_broken([*([] if before is None else [before]), *log.between(table, after, upto)])


def created_at(log: ColumnLog, table: TableId, after: SourcePosition, upto: SourcePosition) -> SourcePosition | None:
    """Return where the table that has the name at the second position was created, if that was behind the first.

    None as well if it was created under another name, or by something that was not understood: it may have rows then
    that no event behind the position shows.
    """
    steps = log.between(table, after, upto)
    last = next((place for place in reversed(range(len(steps))) if steps[place].created), None)
    if last is None or _is_broken(steps[last:]):
        return None
    return steps[last].position


def _is_broken(steps: Sequence[Structure]) -> bool:
    """Whether not all of these, one after the other, are of one table: one is unknown or gone, or shares no column."""
    tokens = [{column.token for column in structure.columns} for structure in steps]
    return not all(tokens) or any(one.isdisjoint(other) for one, other in pairwise(tokens))


def _shows(version: Version, id_: int) -> bool:
    """Whether an event showed the column at the version; none shows the end of a table."""
    return version.dropped is None and any(column.id == id_ for column in version.schema.live)


def _is_within(part: list[str], whole: list[str]) -> bool:
    """Whether names stand in a list in their order, perhaps with others between."""
    rest = iter(whole)
    return all(name in rest for name in part)


def _missing(after: Structure, seen: ObservedSchema) -> str | None:
    names = [column.name for column in after.columns]
    shown = [column.name for column in seen.columns]
    unknown = [name for name in shown if name not in names]
    if unknown:
        return f"it does not show column {unknown[0]!r} yet"
    if not _is_within(shown, names):
        return "it shows the columns in another order"
    return None


def _unexplained_type(
    history: History, seen: ObservedSchema, log: ColumnLog, after: Structure, known: Mapping[int, Token]
) -> str | None:
    """Find a column whose type changed in the events and not in the log: a statement is missing from it."""
    before = log.at(*_shown_at(history.head))
    if before is None:
        return None
    former = {column.token: column.type for column in before.columns}
    by_token = {token: history.head.schema.column(id_) for id_, token in known.items()}
    for column in seen.columns:
        now = next(entry for entry in after.columns if entry.name == column.name)
        tracked = by_token.get(now.token)
        if (
            tracked is not None
            and not tracked.retired
            and now.type
            and former.get(now.token) == now.type
            # What is inside a struct is the connector's to say, and operators may leave members out, or keep them.
            and not changes_shape_only(tracked.type, named_as(column.type, tracked.type))
        ):
            return f"it shows no change of the type of column {column.name!r}"
    return None


def _compared(
    history: History, seen: ObservedSchema, log: ColumnLog, position: SourcePosition, known: Mapping[int, Token]
) -> Proof:
    table, head = history.table, history.head
    after = log.at(table, position)
    assert after is not None
    index_of = {after.token(column.name): index for index, column in enumerate(seen.columns)}
    there = {column.token for column in after.columns}
    eras = {token.era for token in there}
    told = _Told(log.between(table, head.position, position), log.at(table, head.position))
    same: dict[int, int] = {}
    gone: dict[int, str] = {}
    hidden: dict[int, str] = {}
    reasons: dict[int, str] = {}
    for id_, token in known.items():
        column = head.schema.column(id_)
        if token in index_of:
            if column.retired and _is_held(head.schema, seen.columns[index_of[token]].name, known, token):
                continue  # another id has its place and its newer rows; `decide` joins the two
            same[id_] = index_of[token]
            reasons[id_] = told.of(token, column, seen.columns[same[id_]].name)
        elif token in there:
            if not column.retired:
                hidden[id_] = "the source still has the column, and events no longer show it"
        elif token.era in eras:
            gone[id_] = told.end_of(token)
    known_eras = {token.era for token in known.values()}
    whole = len(known) == len(head.schema.columns)
    new = {
        index: told.beginning_of(token)
        for token, index in index_of.items()
        if token is not None and token not in known.values() and whole and known_eras == {token.era}
    }
    before = log.at(*_shown_at(head))
    had = set() if before is None else {column.token for column in before.columns}
    others = {column.token: column.name for column in after.columns if column.token not in known.values()}
    late = frozenset(index for token, index in index_of.items() if token in had and token in others)
    unshown = {
        name: told.beginning_of(token)
        for token, name in others.items()
        if before is not None and token not in had and token not in index_of
    }
    return Proof(
        kind=log.kind, same=same, gone=gone, hidden=hidden, new=new, reasons=reasons, late=late, unshown=unshown
    )


def _is_held(schema: InternalSchema, name: str, known: Mapping[int, Token], token: Token) -> bool:
    """Whether a live column stands for a name, and nothing proves that it is another one than the token's."""
    holder = schema.find(name)
    return holder is not None and not holder.retired and known.get(holder.id, token) == token


class _Told:
    """The words of a log between two positions, for what they did to a column."""

    def __init__(self, structures: tuple[Structure, ...], before: Structure | None) -> None:
        self._steps = tuple(zip((before, *structures), structures, strict=False))

    def of(self, token: Token, column: Column, name: str) -> str:
        """Return the statements that renamed a column."""
        if column.name == name and not column.retired:
            return ""
        said = [
            _words(now)
            for before, now in self._steps
            if before is not None and _name_of(now, token) not in (None, _name_of(before, token))
        ]
        return ", then ".join(said) or "it is the same column at the source"

    def end_of(self, token: Token) -> str:
        """Return the statement that ended a column."""
        for before, now in self._steps:
            if (before is None or _name_of(before, token) is not None) and _name_of(now, token) is None:
                return _words(now)
        return "the column is not there any more at the source"

    def beginning_of(self, token: Token) -> str:
        """Return the statement that made a column."""
        for before, now in self._steps:
            if (before is None or _name_of(before, token) is None) and _name_of(now, token) is not None:
                return _words(now)
        return "it is another column at the source than all known ones"


def _name_of(structure: Structure, token: Token) -> str | None:
    return next((column.name for column in structure.columns if column.token == token), None)


def _words(structure: Structure) -> str:
    return f"{structure.statement or 'as the source shows it'} ({structure.position})"
