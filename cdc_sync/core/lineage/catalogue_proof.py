"""From readings of the catalogue to what is proven about a change: columns told at the newest version and an event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdc_sync.core.history.history import History
from cdc_sync.core.history.version import Version
from cdc_sync.core.lineage.catalogue import Moment
from cdc_sync.core.lineage.column_log import Token
from cdc_sync.core.lineage.kept import Kept
from cdc_sync.core.lineage.sight import Sight, sight
from cdc_sync.core.migration.routes import LeftOut
from cdc_sync.core.model.positions import SourcePosition
from cdc_sync.core.schema.alignment import IGNORED, Proof
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.observed import ObservedSchema

KIND = "catalogue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What readings prove about an event.

    Attributes:
        proof: about its columns against those of the newest version.
        made_anew: another table has the name now, so that places of columns prove nothing.
        renewed: from this event on columns are known that were not, or were other ones, although all names are the
            same; known only if nothing else changed.
    """

    proof: Proof
    made_anew: bool
    renewed: bool


def prove_by_readings(
    history: History,
    seen: ObservedSchema,
    kept: Kept,
    position: SourcePosition,
    moment: Moment,
    left_out: LeftOut | None = None,
) -> Told | None:
    """Say what the readings of a table prove about the columns of an event against those of the newest version.

    Law: a pair is proven only if each of the two can stand for one column only, and it is the same; a column is gone
    only if it was dropped by then, or its table was; it is new only if no known column can be it.

    Returns:
        None if they prove nothing.
    """
    now = _sight(kept, [column.name for column in seen.columns], moment, left_out)
    if now is None:
        return None
    sights = dict(_sights(history, kept, left_out if _holds_all_shown(history.versions) else None))
    known = {
        column.id: tokens
        for column in history.head.schema.columns
        if (tokens := _last_known(history, sights, column.id)) is not None
    }
    head = sights.get(history.head.number)
    anew = head is not None and head.after.relid != now.after.relid
    comparison = _Comparison(history.head.schema, seen, now, known)
    renewed = kept.is_told_from(history.head.position, position, moment) and comparison.is_renewed()
    return Told(proof=comparison.proof(anew=anew, head=head), made_anew=anew, renewed=renewed)


def refuted(history: History, since: int, kept: Kept, left_out: LeftOut | None) -> tuple[str, ...]:
    """Return a warning if what is stated of columns left out is refuted by the first event of a version.

    Args:
        history: up to the newest version.
        since: the first version that is looked at.
        kept: the table's readings.
        left_out: what is stated.
    """
    shown = [version for version in history.versions[since - 1 :] if version.dropped is None]
    sights = (_sight_of(version, kept, left_out) for version in shown)
    if not _holds_all_shown(history.versions) or not any(found is not None and found.refutes for found in sights):
        return ()
    return (
        "events leave out columns that connector.excluded_columns does not name, so that less is proven by readings of "
        "the source's catalogue, and a rename might be proven wrongly; name them there",
    )


def moment_of(version: Version) -> Moment:
    """Return when the first event of a version was written."""
    return Moment(lsn=version.position.parts[-1], commit=version.commit, snapshot=version.snapshot)


def _holds_all_shown(versions: Iterable[Version]) -> bool:
    """Whether a version has all columns that its events show: none whose values the operator wants left out."""
    return not any(item.kind == IGNORED for version in versions for item in version.evidence)


def _sights(history: History, kept: Kept, left_out: LeftOut | None) -> Iterator[tuple[int, Sight]]:
    """Yield the number of each version in which a column of the newest one was live last, as readings tell it."""
    last = (_last_live(history, column.id) for column in history.head.schema.columns)
    wanted = {version.number for version in last if version is not None}
    for version in history.versions:
        if version.number in wanted | {history.head.number}:
            found = _sight_of(version, kept, left_out)
            if found is not None:
                yield version.number, found


def _sight_of(version: Version, kept: Kept, left_out: LeftOut | None) -> Sight | None:
    """Return the first event of a version as readings tell it."""
    position = version.position
    if version.renamed_from is not None or position.kind != "postgresql" or position.incarnation:
        return None  # its columns were shown under another name, perhaps long before; or it is of another log
    names = [column.name for column in version.schema.live if column.name]
    return _sight(kept, names, moment_of(version), left_out)


def _sight(kept: Kept, names: Sequence[str], moment: Moment, left_out: LeftOut | None) -> Sight | None:
    around = kept.around(moment)
    return None if around is None else sight(*around, names, moment, left_out)


def _last_live(history: History, id_: int) -> Version | None:
    """Return the last version that shows a column; None if it was gone before the table had its present name."""
    shown = (version for version in reversed(history.versions) if version.dropped is None)
    return next((version for version in shown if any(item.id == id_ for item in version.schema.live)), None)


def _last_known(history: History, sights: Mapping[int, Sight], id_: int) -> frozenset[Token] | None:
    version = _last_live(history, id_)
    sight = None if version is None else sights.get(version.number)
    return None if version is None or sight is None else sight.tokens.get(version.schema.column(id_).name)


class _Comparison:
    """The columns of a schema, as far as they are known, against those of an event."""

    def __init__(
        self, schema: InternalSchema, seen: ObservedSchema, now: Sight, known: Mapping[int, frozenset[Token]]
    ) -> None:
        self._schema = schema
        self._names = [column.name for column in seen.columns]
        self._now = now
        self._known = known
        self._one = {id_: next(iter(tokens)) for id_, tokens in known.items() if len(tokens) == 1}

    def is_renewed(self) -> bool:
        """Whether a name stands for a column of which it was not known that it is this one."""
        return any(
            (token := self._now.one(column.name)) is not None and self._one.get(column.id) != token
            for column in self._schema.live
        )

    def proof(self, *, anew: bool, head: Sight | None) -> Proof:
        place = {token: index for index, name in enumerate(self._names) if (token := self._now.one(name)) is not None}
        owner = {self._one[column.id]: column.id for column in self._oldest_first() if column.id in self._one}
        same = {
            id_: place[token]
            for id_, token in self._one.items()
            if token in place
            # A column that history holds as two is the live one; `decide` joins the two.
            and owner[token] == id_
            and not self._is_held(id_, self._names[place[token]], token)
        }
        gone = {id_ for id_, token in self._one.items() if anew or token in self._now.gone}
        hidden = {
            id_
            for id_, token in self._one.items()
            if token in self._now.hidden and not self._schema.column(id_).retired
        }
        new = {index for index in range(len(self._names)) if self._is_new(index, head)}
        for id_ in () if anew else tuple(gone):
            if self._may_have_been_before(id_, same):
                # Rows written before may hold its values under the old column: by name they stay together.
                gone.discard(id_)
                new.discard(self._names.index(self._schema.column(id_).name))
        relid = self._now.after.relid
        had = frozenset() if head is None else head.hidden
        return Proof(
            kind=KIND,
            same=same,
            late=frozenset(index for index, name in enumerate(self._names) if self._now.tokens[name] <= had),
            reasons={id_: self._why(id_) for id_ in same},
            gone={id_: self._why_gone(id_, anew=anew) for id_ in sorted(gone)},
            hidden={id_: f"{self._column(id_)} is still there, and events no longer show it" for id_ in sorted(hidden)},
            new={
                index: f"read from the catalogue: {self._numbers(self._names[index])} of relation {relid}, "
                "which no known column is"
                for index in sorted(new)
            },
        )

    def _oldest_first(self) -> list[Column]:
        """Return all columns, retired ones before live ones."""
        return sorted(self._schema.columns, key=lambda column: (not column.retired, column.id))

    def _is_held(self, id_: int, name: str, token: Token) -> bool:
        """Whether a retired column would come back where a live one has its name, perhaps rightly."""
        holder = self._schema.find(name)
        return (
            self._schema.column(id_).retired
            and holder is not None
            and not holder.retired
            and self._one.get(holder.id, token) == token
        )

    def _is_new(self, index: int, head: Sight | None) -> bool:
        """Whether no known column can be this one."""
        tokens = self._now.tokens[self._names[index]]
        if head is not None and head.after.relid == self._now.after.relid:
            highest = head.after.highest
            if all(_number(token) > highest for token in tokens):
                return True
        whole = len(self._known) == len(self._schema.columns)
        return whole and all(tokens.isdisjoint(known) for known in self._known.values())

    def _may_have_been_before(self, id_: int, same: Mapping[int, int]) -> bool:
        """Whether events before this one may have shown the column that has a gone one's name now.

        Numbers only grow, so it stood behind all columns of before; if it stood where the old one did, with nothing
        behind, nobody saw the difference.
        """
        column = self._schema.column(id_)
        if column.retired or column.name not in self._names:
            return False
        live = list(self._schema.live)
        index = self._names.index(column.name)
        if index in same.values():
            return False
        behind = live[live.index(column) + 1 :]
        return not any(
            other.id in same and same[other.id] < index and self._names[same[other.id]] == other.name
            for other in behind
        )

    def _why(self, id_: int) -> str:
        return f"read from the catalogue: {self._column(id_)}, before and after"

    def _why_gone(self, id_: int, *, anew: bool) -> str:
        if anew:
            return f"read from the catalogue: {self._column(id_)}; relation {self._now.after.relid} has its name now"
        return f"read from the catalogue: {self._column(id_)} was dropped"

    def _column(self, id_: int) -> str:
        token = self._one[id_]
        return f"attribute {_number(token)} of relation {_relid(token)}"

    def _numbers(self, name: str) -> str:
        numbers = sorted(map(_number, self._now.tokens[name]))
        return f"attribute {' or '.join(map(str, numbers))}"


def _relid(token: Token) -> int:
    match token.number:
        case (int() as relid, int()):
            return relid
    raise AssertionError(token)


def _number(token: Token) -> int:
    match token.number:
        case (int(), int() as number):
            return number
    raise AssertionError(token)
