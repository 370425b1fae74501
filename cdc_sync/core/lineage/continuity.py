"""Values that go on under another name: rows as they were before a change, against their images behind it.

An update or a delete behind a change brings the row as it was. Where a column's values are, row by row, those that
another column had when the row was last seen, and there are enough different ones, the two are one column. Values that
differ prove nothing: an ALTER may have rewritten them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cdc_sync.core.schema.alignment import Proof, Unproven
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.observed import ObservedSchema

VALUES = "values"
"""The proof's kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a row; the images by column name, None where the event has none."""

    key: bytes
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A column that is gone and one that is new, compared in every row that shows both.

    Attributes:
        equal: rows in which the two have the same value, NULL not counted.
        distinct: how many different values these are.
        different: rows in which they have not.
    """

    old: str
    new: str
    equal: int
    distinct: int
    different: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What the rows around one change say.

    Attributes:
        rows: that were seen on both sides, with whole images.
        least: different values that make a proof.
    """

    rows: int
    least: int
    pairs: tuple[Pair, ...]


def compare(
    earlier: Iterable[Change],
    later: Iterable[Change],
    old: Sequence[str],
    new: Sequence[str],
    *,
    least: int,
    unknown: tuple[str, ...],
) -> Compared:
    """Compare each row's last image before a change with its first one behind it.

    An image counts only if all columns that stayed have the values they had: then nothing in between was missed. What
    shows no more than the key, as without REPLICA IDENTITY FULL, may differ but never agree.

    Args:
        earlier: changes in front of the change of schema, in order.
        later: those behind it, in order.
        old, new: the column names on both sides.
        least: different values that make a proof.
        unknown: what stands for values that an event leaves out.
    """
    rows: dict[bytes, Mapping[str, object]] = {}
    for change in earlier:
        _take(rows, change, old)
    gone, came = [name for name in old if name not in new], [name for name in new if name not in old]
    stayed = [name for name in old if name in new]
    counts = {(x, y): _Count(set()) for x in gone for y in came}
    seen: set[bytes] = set()
    compared = 0
    for change in later:
        shown = change.after if change.before is None else change.before
        if change.key in seen or shown is None:
            continue
        if list(shown) != list(new):
            _take(rows, change, old)  # an older event that came late, or what a later change left
            continue
        seen.add(change.key)
        row, image = rows.pop(change.key, None), change.before
        if row is None or image is None or not _agree(row, image, stayed, unknown):
            continue
        compared += 1
        for (x, y), count in counts.items():
            count.add(row[x], image[y], unknown)
    pairs = (
        Pair(old=x, new=y, equal=count.equal, distinct=len(count.values), different=count.different)
        for (x, y), count in counts.items()
    )
    return Compared(rows=compared, least=least, pairs=tuple(pairs))


def _take(rows: dict[bytes, Mapping[str, object]], change: Change, columns: Sequence[str]) -> None:
    if change.after is None:
        rows.pop(change.key, None)
    elif list(change.after) == list(columns):
        rows[change.key] = change.after


def _agree(
    row: Mapping[str, object], image: Mapping[str, object], columns: Sequence[str], unknown: tuple[str, ...]
) -> bool:
    return all(
        row[name] in unknown or image[name] in unknown or _text(row[name]) == _text(image[name]) for name in columns
    )


@dataclass(slots=True)
class _Count:
    values: set[str]
    equal: int = 0
    different: int = 0

    def add(self, old: object, new: object, unknown: tuple[str, ...]) -> None:
        if old in unknown or new in unknown or old is new is None:
            return
        if _text(old) == _text(new):
            self.equal += 1
            self.values.add(_text(old))
        else:
            self.different += 1


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def is_settled(compared: Compared, before: InternalSchema, seen: ObservedSchema, cases: Sequence[Unproven]) -> bool:
    """Tell whether more rows would not say more: each column that is gone is proven, or no new one can be it."""
    proof = prove_by_values(compared, before, seen, cases)
    proven = frozenset() if proof is None else frozenset(before.column(id_).name for id_ in proof.same)
    possible = {pair.old for pair in compared.pairs if not pair.different}
    gone = {before.column(id_).name for case in cases for id_ in case.vanished}
    return not (gone & possible) - proven


def prove_by_values(
    compared: Compared, before: InternalSchema, seen: ObservedSchema, cases: Sequence[Unproven]
) -> Proof | None:
    """Return which of the columns in doubt go on under another name, None if none is proven.

    Law: a pair is proven only by `least` different values that are the same in every row compared, and only if the
    values of neither column are also those of another one.
    """
    ids = {before.column(id_).name: id_ for case in cases for id_ in case.vanished}
    places = {seen.columns[index].name: index for case in cases for index in case.appeared}
    open_ = [item for item in compared.pairs if item.equal and not item.different]
    same: dict[int, int] = {}
    reasons: dict[int, str] = {}
    for pair in open_:
        rivals = [item for item in open_ if item is not pair and (item.old == pair.old or item.new == pair.new)]
        if rivals or pair.distinct < compared.least or pair.old not in ids or pair.new not in places:
            continue
        same[ids[pair.old]] = places[pair.new]
        reasons[ids[pair.old]] = (
            f"{pair.equal} rows that are known from before have its values there, {pair.distinct} different ones, and "
            "none has another"
        )
    return Proof(kind=VALUES, same=same, reasons=reasons) if same else None
