"""What several proofs say together about one table, and where they contradict each other or the operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cdc_sync.core.schema.alignment import DECIDED, Conflict, Evidence, Facts, Proof


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What is proven; of two proofs of one thing the first is cited.

    Attributes:
        same: column id -> index of the observed column.
        gone, new: column ids and indexes that are no pair.
        hidden: column id -> why the source has it and events do not show it.
        evidence: for every id in `same` and `gone`.
        evidence_of_new: for every index in `new`.
        conflicts: what cannot all be true.
    """

    same: Mapping[int, int]
    gone: tuple[int, ...]
    new: tuple[int, ...]
    hidden: Mapping[int, str]
    evidence: Mapping[int, Evidence]
    evidence_of_new: Mapping[int, Evidence]
    conflicts: tuple[Conflict, ...]


def combine(proofs: Iterable[Proof], names: Mapping[int, str], observed: Sequence[str]) -> Claims:
    """Put proofs together.

    Args:
        proofs: the strongest first.
        names: column id -> name, of every column the proofs may speak of.
        observed: the names an event shows, in its order.
    """
    same: dict[int, int] = {}
    holder: dict[int, int] = {}
    hidden: dict[int, str] = {}
    evidence: dict[int, Evidence] = {}
    of_new: dict[int, Evidence] = {}
    conflicts: list[Conflict] = []
    for proof in proofs:
        for id_, index in sorted(proof.same.items()):
            said = _said_same(proof, id_, names[id_], observed[index])
            against = _against(id_, index, same, holder, evidence, of_new)
            if against is not None:
                _object(conflicts, names[id_], against, said)
            elif id_ not in same:
                same[id_], holder[index], evidence[id_] = index, id_, said
                hidden.pop(id_, None)
        for id_, text in sorted(proof.gone.items()):
            said = Evidence(subject=names[id_], kind=proof.kind, text=f"dropped: {text}")
            if id_ in same:
                _object(conflicts, names[id_], evidence[id_], said)
            else:
                evidence.setdefault(id_, said)
                hidden.pop(id_, None)
        for index, text in sorted(proof.new.items()):
            said = Evidence(subject=observed[index], kind=proof.kind, text=f"added: {text}")
            if index in holder:
                _object(conflicts, observed[index], evidence[holder[index]], said)
            else:
                of_new.setdefault(index, said)
        for id_, text in proof.hidden.items():
            if id_ not in evidence:
                hidden.setdefault(id_, text)
    return Claims(
        same=same,
        gone=tuple(id_ for id_ in evidence if id_ not in same),
        new=tuple(of_new),
        hidden=hidden,
        evidence=evidence,
        evidence_of_new=of_new,
        conflicts=tuple(conflicts),
    )


def _object(conflicts: list[Conflict], subject: str, first: Evidence, said: Evidence) -> None:
    if first.kind != DECIDED:
        conflicts.append(Conflict(subject=subject, claims=(first, said)))


def _said_same(proof: Proof, id_: int, old: str, new: str) -> Evidence:
    reason = proof.reasons.get(id_, "")
    text = f"still {new!r}" if old == new else f"renamed to {new!r}"
    return Evidence(subject=old, kind=proof.kind, text=f"{text}: {reason}" if reason else text)


def _against(
    id_: int,
    index: int,
    same: Mapping[int, int],
    holder: Mapping[int, int],
    evidence: Mapping[int, Evidence],
    of_new: Mapping[int, Evidence],
) -> Evidence | None:
    """Return what was proven before that forbids a pair."""
    if same.get(id_) == index:
        return None
    if id_ in evidence:
        return evidence[id_]
    if index in holder:
        return evidence[holder[index]]
    return of_new.get(index)


def _objections(claims: Claims, id_: int, index: int, name: str) -> list[Evidence]:
    """Return everything proven that forbids a pair."""
    if claims.same.get(id_) == index:
        return []
    holder = next((other for other, held in claims.same.items() if held == index), None)
    found = [claims.evidence.get(id_), claims.evidence_of_new.get(index)]
    found.append(claims.evidence[holder] if holder is not None else None)
    if id_ in claims.hidden:
        found.append(Evidence(subject=name, kind="hidden", text=claims.hidden[id_]))
    return [item for item in found if item is not None]


def contradicted(facts: Facts, claims: Claims, ids: Mapping[str, int], observed: Sequence[str]) -> tuple[Conflict, ...]:
    """Find declarations that the proofs contradict.

    Declarations stay in the configuration after the fact; only those that fit what happened by its names are looked at.

    Args:
        facts: with the declarations.
        claims: what is proven.
        ids: name -> id of the live columns.
        observed: the names an event shows, in its order.
    """
    place = {name: index for index, name in enumerate(observed)}
    conflicts = []
    for old, new in facts.renames.items():
        if old not in ids or old in place or new not in place or new in ids:
            continue
        said = Evidence(subject=old, kind="declared", text=f"renamed to {new!r}: the operator declared it")
        objections = _objections(claims, ids[old], place[new], old)
        if objections and not any(item.kind == DECIDED for item in objections):
            conflicts.append(Conflict(subject=old, claims=(said, *objections)))
    for name in sorted(facts.drops):
        if name in ids and name not in place and ids[name] in claims.same:
            said = Evidence(subject=name, kind="declared", text="dropped: the operator declared it")
            against = claims.evidence[ids[name]]
            if against.kind != DECIDED:
                conflicts.append(Conflict(subject=name, claims=(said, against)))
    return tuple(conflicts)
