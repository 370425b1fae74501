"""Which observed column is which known column: by declaration, by proof, by name, by position; never by guessing.

Sources that only append columns (Postgres, SQL Server, Oracle) prove much by position. A column that kept its name is
an *anchor*: nothing can have been inserted before the last anchor, and what stands between two anchors is what is left
of the columns that stood there. Sources that place columns anywhere (MySQL, MariaDB) prove nothing by position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, combinations, islice
from typing import TypeAlias

from cdc_sync.core.schema.alignment import UNPROVEN, Alignment, Conflict, Evidence, Facts, Unproven
from cdc_sync.core.schema.claims import combine, contradicted
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.observed import ObservedSchema

_Pairs: TypeAlias = Mapping[int, int]
"""Place among the live columns -> index in the observed columns."""
LIMIT = 10


def align(before: InternalSchema, observed: ObservedSchema, facts: Facts) -> Alignment:
    """Find every known column among the observed ones.

    Only live columns take part; a retired one can only be dropped, by declaration, or be back, by proof.

    Law: what is decided is true, provided that declarations and proofs are true, and that columns of one name are one
    column wherever their order allows it and nothing else is proven.
    """
    found = _Finding(before, observed, facts)
    _prove(found)
    _declare(found)
    if facts.append_only:
        _untangle(found)
        _by_position(found)
    else:
        _by_name(found)
    return found.alignment()


class _Finding:
    """The columns not decided yet, as places in two lists of names, and what was decided so far."""

    def __init__(self, before: InternalSchema, observed: ObservedSchema, facts: Facts) -> None:
        self.before = before
        self.facts = facts
        self.ids = [column.id for column in before.live]
        self.old = [column.name for column in before.live]
        self.new = [column.name for column in observed.columns]
        self.retired = {column.name: column.id for column in before.columns if column.retired}
        self.back: dict[int, int] = {}
        self.pinned: set[int] = set()
        self.hidden: set[int] = set()
        self.conflicts: list[Conflict] = []
        place = {name: index for index, name in enumerate(self.new)}
        self.same = {index: place[name] for index, name in enumerate(self.old) if name in place}
        self.added: list[int] = []
        self.dropped: list[int] = []
        self.dropped_retired: list[int] = []
        self.unproven: list[Unproven] = []
        self.evidence: list[Evidence] = []

    def namesakes(self) -> dict[int, int]:
        return {old: new for old, new in self.same.items() if self.old[old] == self.new[new]}

    def vanished(self) -> list[int]:
        taken = {*self.same, *self.dropped, *self.hidden}
        return [index for index in range(len(self.old)) if index not in taken]

    def appeared(self) -> list[int]:
        taken = {*self.same.values(), *self.added, *self.back.values()}
        return [index for index in range(len(self.new)) if index not in taken]

    def rename(self, old: int, new: int, kind: str, text: str) -> None:
        self.same[old] = new
        self.evidence.append(Evidence(subject=self.old[old], kind=kind, text=f"renamed to {self.new[new]!r}: {text}"))

    def drop(self, old: int, kind: str, text: str) -> None:
        self.dropped.append(old)
        self.evidence.append(Evidence(subject=self.old[old], kind=kind, text=f"dropped: {text}"))

    def add(self, new: int, kind: str, text: str) -> None:
        self.added.append(new)
        self.evidence.append(Evidence(subject=self.new[new], kind=kind, text=f"added: {text}"))

    def leave(self, old: Iterable[int], new: Iterable[int], explanations: tuple[str, ...], reason: str) -> None:
        self.unproven.append(
            Unproven(
                vanished=tuple(self.ids[index] for index in old),
                appeared=tuple(new),
                explanations=explanations,
                reason=reason,
            )
        )

    def alignment(self) -> Alignment:
        same = [*((self.ids[old], new) for old, new in self.same.items()), *self.back.items()]
        return Alignment(
            same=tuple(sorted(same, key=lambda pair: pair[1])),
            added=tuple(sorted(self.added)),
            dropped=(*(self.ids[index] for index in sorted(self.dropped)), *self.dropped_retired),
            unproven=tuple(self.unproven),
            evidence=tuple(self.evidence),
            conflicts=tuple(self.conflicts),
        )


def _prove(found: _Finding) -> None:
    """Take over what the proofs say, whatever names and places look like."""
    names = {column.id: column.name for column in found.before.columns}
    claims = combine(found.facts.proofs, names, found.new)
    by_name = dict(zip(found.old, found.ids, strict=True))
    found.conflicts += [*claims.conflicts, *contradicted(found.facts, claims, by_name, found.new)]
    place = {id_: index for index, id_ in enumerate(found.ids)}
    found.pinned = {place[id_] for id_ in (*claims.same, *claims.gone, *claims.hidden) if id_ in place}
    taken = {*claims.same.values(), *claims.new}
    found.same = {old: new for old, new in found.same.items() if old not in found.pinned and new not in taken}
    for id_, new in claims.same.items():
        if id_ not in place:
            found.back[id_] = new
            found.evidence.append(claims.evidence[id_])
            continue
        old = place[id_]
        found.same[old] = new
        if found.old[old] != found.new[new]:
            found.evidence.append(claims.evidence[id_])
    for id_ in claims.gone:
        if id_ in place:
            found.dropped.append(place[id_])
        else:
            found.dropped_retired.append(id_)
        found.evidence.append(claims.evidence[id_])
    for id_, text in claims.hidden.items():
        if id_ in place and found.old[place[id_]] not in found.facts.drops:
            found.hidden.add(place[id_])
            found.leave([place[id_]], (), (), text)
    for new in claims.new:
        found.added.append(new)
        found.evidence.append(claims.evidence_of_new[new])


DECLARED = "the operator declared it"
MOVED = (
    "taken for the same columns in another order, by their names; a swap of names, or a drop and an addition under the "
    "same name, would look the same"
)
CAME_BACK = "a name is back that the source had lost, and nothing proves whether its column is the one that was kept"


def _declare(found: _Finding) -> None:
    vanished = {found.old[index]: index for index in found.vanished()}
    appeared = {found.new[index]: index for index in found.appeared()}
    for old, new in found.facts.renames.items():
        if old in vanished and new in appeared:
            found.rename(vanished.pop(old), appeared.pop(new), "declared", DECLARED)
    for index in found.vanished():
        if found.old[index] in found.facts.drops:
            found.drop(index, "declared", DECLARED)
    for name, id_ in found.retired.items():
        if name in found.facts.drops and id_ not in (*found.back, *found.dropped_retired):
            found.dropped_retired.append(id_)
            found.evidence.append(Evidence(subject=name, kind="declared", text=f"dropped: {DECLARED}"))


def _untangle(found: _Finding) -> None:
    """Use declarations about names that stand on both sides, where the order proves that names were used again."""
    tangled = _inverted(found.namesakes()) - found.pinned
    drops = {old for old in tangled if found.old[old] in found.facts.drops}
    place = {found.new[new]: new for new in (*found.appeared(), *(found.same[old] for old in tangled))}
    declared = {old: place.get(found.facts.renames.get(found.old[old], "")) for old in tangled - drops}
    renames = {old: new for old, new in declared.items() if new is not None and new != found.same[old]}
    kept = {old: new for old, new in found.same.items() if old not in drops | renames.keys()}
    tried = {**kept, **renames}
    if not drops | renames.keys() or len(set(tried.values())) != len(tried) or _inverted(tried):
        return
    found.same = kept
    for old in sorted(drops):
        found.drop(old, "declared", DECLARED)
    for old, new in sorted(renames.items()):
        found.rename(old, new, "declared", DECLARED)


def _inverted(pairs: _Pairs) -> set[int]:
    """Return the places of all columns that overtook another one, or were overtaken."""
    old = sorted(pairs)
    new = [pairs[place] for place in old]
    highest = accumulate(new, max)
    lowest = [*accumulate(reversed(new), min)][::-1]
    return {
        place for place, index, high, low in zip(old, new, highest, lowest, strict=True) if not high <= index <= low
    }


def _by_position(found: _Finding) -> None:
    # A source that never reorders has used one of these names again; which, nobody knows.
    tangled = _inverted(found.namesakes()) - found.pinned
    for old in tangled:
        del found.same[old]
    anchors = _anchors(found)
    vanished, appeared = found.vanished(), found.appeared()
    if vanished and not anchors and not tangled:
        text = "no column kept its name; the table may have been created anew"
        found.leave(vanished, appeared, (), text)
        return
    if found.facts.snapshot_boundary and vanished and not appeared and found.same == found.namesakes():
        text = "may be a generated or excluded column, which snapshots show and the stream does not"
        found.leave(vanished, (), dropped_or_hidden([found.old[old] for old in vanished]), text)
        return
    left = (-1, -1)
    for right in (*anchors, None):
        end = right or (len(found.old), len(found.new))
        gone = [old for old in vanished if left[0] < old < end[0]]
        came = [new for new in appeared if left[1] < new < end[1]]
        if tangled & set(gone):
            _leave_tangled(found, gone, came)
        elif any(found.new[new] in found.retired for new in came):
            found.leave(gone, came, (), CAME_BACK)
        elif right is None:
            _last_gap(found, gone, came)
        else:
            _middle_gap(found, gone, came)
        left = end


def _anchors(found: _Finding) -> list[tuple[int, int]]:
    """Return the pairs that prove something about what stands between them, in order.

    A declared rename against the order is believed all the same, but proves nothing about its neighbours.
    """
    against = _inverted(found.same) - found.namesakes().keys()
    return sorted((old, new) for old, new in found.same.items() if old not in against)


def _leave_tangled(found: _Finding, gone: list[int], came: list[int]) -> None:
    explanations = swapped([found.old[old] for old in gone], [found.new[new] for new in came])
    found.leave(gone, came, explanations, "the source never reorders columns, so a name now stands for another column")


def _middle_gap(found: _Finding, gone: list[int], came: list[int]) -> None:
    between = "columns are never inserted before others"
    if not came:
        for old in gone:
            found.drop(old, "position", "the columns after it moved to the left")
    elif len(came) == len(gone):
        for old, new in zip(gone, came, strict=True):
            found.rename(old, new, "position", f"it stands in the same place, and {between}")
    elif len(came) < len(gone):
        explanations = dropped_or_renamed([found.old[old] for old in gone], [found.new[new] for new in came])
        found.leave(gone, came, explanations, "some were dropped and some renamed, in one step")
    else:
        text = f"{between}; the table was created anew, or other columns are captured now"
        found.leave(gone, came, (), text)


def _last_gap(found: _Finding, gone: list[int], came: list[int]) -> None:
    if not gone:
        for new in came:
            found.add(new, "position", "it stands behind all known columns")
    elif not came:
        for old in gone:
            found.drop(old, "position", "nothing stands in its place")
    else:
        explanations = renamed_or_added([found.old[old] for old in gone], [found.new[new] for new in came])
        found.leave(gone, came, explanations, "the last columns may be renamed, or dropped and others added")


def _by_name(found: _Finding) -> None:
    moved = _inverted(found.namesakes()) - found.pinned
    if moved:
        names = ", ".join(found.old[old] for old in sorted(moved))
        found.evidence.append(Evidence(subject=names, kind=UNPROVEN, text=MOVED))
    vanished, appeared = found.vanished(), found.appeared()
    if vanished and appeared:
        explanations = renamed_or_replaced([found.old[old] for old in vanished], [found.new[new] for new in appeared])
        reason = "this source may put a new column anywhere, so its place proves nothing"
        found.leave(vanished, appeared, explanations, reason)
        return
    for old in vanished:
        found.drop(old, "name", "its name is gone and no new name came")
    for new in appeared:
        found.add(new, "name", "its name is new and no name is gone")


def dropped_or_renamed(gone: Sequence[str], came: Sequence[str]) -> tuple[str, ...]:
    """Explain fewer columns than before between two others: some were dropped, the rest renamed in their order."""
    kept = combinations(range(len(gone)), len(came))
    return tuple(islice((_sentence(gone, came, choice) for choice in kept), LIMIT))


def renamed_or_added(gone: Sequence[str], came: Sequence[str]) -> tuple[str, ...]:
    """Explain the columns after the last known one: those that are left come first, under any name; then new ones."""

    def all_() -> Iterator[str]:
        for count in range(min(len(gone), len(came)), -1, -1):
            for choice in combinations(range(len(gone)), count):
                yield _sentence(gone, came, choice)

    return tuple(islice(all_(), LIMIT))


def swapped(gone: Sequence[str], came: Sequence[str]) -> tuple[str, ...]:
    """Explain names in an impossible order, where the same names stand on both sides."""
    places = [_sentence(gone, came, range(len(gone)))] if len(gone) == len(came) else []
    back = [name for name in came if name in gone]
    again = [f"{name!r} was dropped and added again" for name in back]
    return tuple([*places, *again][:LIMIT])


def renamed_or_replaced(gone: Sequence[str], came: Sequence[str]) -> tuple[str, ...]:
    """Explain columns of a source that places columns anywhere: every pair may be a rename, or none is."""
    renames = (f"{old!r} was renamed to {new!r}" for old in gone for new in came)
    return (*islice(renames, LIMIT - 1), f"{_all(gone, 'dropped')} and {', '.join(map(repr, came))} added")


def dropped_or_hidden(gone: Sequence[str]) -> tuple[str, ...]:
    """Explain columns that the log does not show and the snapshot did."""
    return (_all(gone, "dropped"), _all(gone, "left out of the stream"))


def _all(names: Sequence[str], what: str) -> str:
    return f"{', '.join(map(repr, names))} {'was' if len(names) == 1 else 'were'} {what}"


def _sentence(gone: Sequence[str], came: Sequence[str], kept: Sequence[int]) -> str:
    """Say that the columns at the places `kept` are, in order, the first that came; all others are gone or new."""
    clauses = [f"{gone[old]!r} was renamed to {came[new]!r}" for new, old in enumerate(kept) if gone[old] != came[new]]
    clauses += [f"{name!r} was dropped" for place, name in enumerate(gone) if place not in kept]
    clauses += [f"{name!r} was added" for name in came[len(kept) :]]
    return ", ".join(clauses)
