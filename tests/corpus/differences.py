"""How a target differs from the truth, cell by cell, and which of the known losses explains each cell.

A loss is one that the README beside the captures names. It explains a cell only if the truth holds exactly what the
loss is about, the row's last event carries exactly what the loss makes of it, and the target holds exactly that.
"""

from __future__ import annotations

import base64
import datetime as dt
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tests.corpus.carried import Carried, Position, last_rows, names_with_defaults
from tests.corpus.images import Image, Truth
from tests.corpus.truth import kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell that differs.

    Attributes:
        default: the column's default, in the source's words.
        shown: whether an event shows a default of the column.
        text: what the source holds, as text.
        found: what the target holds.
        carried: what the row's last event says; None if it does not have the column.
    """

    database: str
    key: tuple[Any, ...]
    column: str
    type: str
    default: str | None
    shown: bool
    text: str | None
    found: Any
    carried: Carried | None

    def __str__(self) -> str:
        sent = self.carried.value if self.carried else "nothing"
        return (
            f"row {self.key}, {self.column} ({self.type}): the source has {self.text!r}, sent {sent!r}, "
            f"found {self.found!r}"
        )


Loss = Callable[[Cell, Carried], bool]


def _null_as_default(cell: Cell, sent: Carried) -> bool:
    return cell.text is None and sent.is_default_of_nullable and cell.found is not None and _says(cell, sent.value)


def _says(cell: Cell, raw: Any) -> bool:
    """Whether the target's value is the one sent, for the types that defaults are of here."""
    return bool(kind(cell.database, cell.type).of_target(cell.found) == raw)


def _special_numeric(cell: Cell, sent: Carried) -> bool:
    specials = ("NaN", "Infinity", "-Infinity")
    return cell.type.startswith("numeric") and cell.text in specials and sent.value is None and cell.found is None


def _infinite(cell: Cell, sent: Carried) -> bool:
    return cell.text in ("infinity", "-infinity") and sent.value is not None and cell.found is None


def _distant(cell: Cell, sent: Carried) -> bool:
    distant = re.search(r" BC$|^\d{5,}-", cell.text or "") is not None
    return distant and sent.value is not None and cell.found is None


def _time_in_utc(cell: Cell, sent: Carried) -> bool:
    if cell.type != "time with time zone" or cell.text is None or cell.found != sent.value:
        return False
    return _utc_time(cell.text) == _utc_time(cell.found)


def _utc_time(text: str) -> dt.time:
    moment = dt.datetime.fromisoformat(f"2000-01-01T{text.replace('Z', '+00:00')}")
    return moment.astimezone(dt.timezone.utc).time()


def _unsigned(cell: Cell, sent: Carried) -> bool:
    if cell.type != "bigint(20) unsigned" or cell.text is None:
        return False
    return int(cell.text) >= 2**63 and cell.found == sent.value == int(cell.text) - 2**64


def _zero_date(cell: Cell, sent: Carried) -> bool:
    text = cell.text or ""
    if cell.type == "year(4)":
        return bool(text == "0000" and cell.found == sent.value == 1900)
    if not text.startswith("0000-00-00"):
        return False
    return cell.found is None if sent.value is None else _epoch(cell.found)


def _epoch(found: Any) -> bool:
    return isinstance(found, dt.date) and found.timetuple()[:6] == (1970, 1, 1, 0, 0, 0)


def _two_digit_year(cell: Cell, sent: Carried) -> bool:
    if cell.type != "date" or cell.database != "mariadb" or not re.match(r"00(?!00)[0-6]\d-", cell.text or ""):
        return False
    shifted = dt.date.fromisoformat(f"20{(cell.text or '')[2:]}")
    return bool(cell.found == shifted == dt.date(1970, 1, 1) + dt.timedelta(days=sent.value))


def _placeholder(cell: Cell, sent: Carried) -> bool:
    return cell.text == sent.value == "__debezium_unavailable_value" and cell.found is None


def _taken_for_moved(cell: Cell, sent: Carried) -> bool:
    """Whether names stand in another order since, and the value stayed with its name.

    A source that puts columns where it likes shows a swap, and a column dropped and added again, just so.
    """
    return cell.database == "mariadb" and sent.moved and _says(cell, sent.value)


def _rewritten(cell: Cell, sent: Carried) -> bool:
    """Whether the target holds what the row's last event says: the source changed the value without an event."""
    match cell.found:
        case bool() | int() | str():
            return bool(cell.found == sent.value)
        case bytes():
            return bool(base64.b64encode(cell.found).decode() == sent.value)
        case dt.datetime() if cell.found.tzinfo is None:
            micros = (cell.found - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
            return bool(sent.value in (micros, micros / 1000))
        case _:
            return False


MOVED = "the same names in another order: moved, for all that events show"

REWRITTEN = "a type change rewrites values without an event"

LOSSES: tuple[tuple[str, Loss], ...] = (
    ("NULL arrives as the column's default", _null_as_default),
    ("numeric NaN and infinities arrive as null", _special_numeric),
    ("infinite dates and timestamps arrive as sentinels, NULL by policy.out_of_range", _infinite),
    ("years outside 1 to 9999 are NULL by policy.out_of_range", _distant),
    ("timetz arrives shifted to UTC", _time_in_utc),
    ("BIGINT UNSIGNED beyond 2^63 arrives negative", _unsigned),
    ("zero dates arrive as null or 1970, year 0 as 1900", _zero_date),
    ("dates of years below 70 arrive as 20xx", _two_digit_year),
    ("a text equal to the placeholder cannot be told from it", _placeholder),
)


MARKED = "needs resync"

UNSENT = "defaults that are expressions do not arrive"


def _unsent_default(cell: Cell) -> bool:
    """Whether the row is older than its column, and took a default that is no constant."""
    expression = "(" in (cell.default or "")
    return expression and cell.carried is None and cell.text is not None and cell.found is None


LATE = "a default that was gone when the connector read the catalogue does not arrive"


def _late_default(cell: Cell) -> bool:
    """Whether the row is older than its column, took its default, and no event shows that there was one."""
    constant = cell.default is not None and cell.default == cell.text
    return constant and not cell.shown and cell.carried is None and cell.found is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What came of comparing.

    Attributes:
        losses: explained differences: the loss, and the columns it met.
        unexplained: what no loss explains, in words.
    """

    losses: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unexplained: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        return not self.losses and not self.unexplained


def compare(
    truth: Truth, image: Image, table: str, *, marked: Collection[str] = (), upto: Position | None = None
) -> Comparison:
    """Compare a target with the truth.

    Args:
        truth: what the source has.
        image: what the target has.
        table: its name there.
        marked: columns of which the target's status says that they need a resync; that explains cells of rows
            behind whose last event the column was shown with another type.
        upto: the last position in the source that the target may know of; None is all.
    """
    structure = truth.structure_differences(image)
    if structure:
        return Comparison(unexplained=tuple(structure))
    wanted, found = truth.values(), truth.of_target(image)
    if sorted(map(repr, wanted)) == sorted(map(repr, found)):
        return Comparison()
    if not truth.key:
        return Comparison(unexplained=tuple(_as_multisets(wanted, found)))
    places = [truth.names.index(name) for name in truth.key]
    by_key = {tuple(row[place] for place in places): (index, row) for index, row in enumerate(found)}
    if sorted(map(repr, by_key)) != sorted(repr(tuple(row[place] for place in places)) for row in wanted):
        return Comparison(unexplained=tuple(_as_multisets(wanted, found)))
    sent = last_rows(truth.database, table, truth.key, upto=upto)
    shown = names_with_defaults(truth.database, table, upto=upto)
    cells = []
    for number, row in enumerate(wanted):
        key = tuple(row[place] for place in places)
        index, other = by_key[key]
        cells += [
            Cell(
                database=truth.database,
                key=key,
                column=name,
                type=type_,
                default=truth.defaults[place],
                shown=name in shown,
                text=truth.rows[number][place],
                found=image.rows[index][place],
                carried=sent.get(key, {}).get(name),
            )
            for place, (name, type_) in enumerate(truth.columns)
            if repr(row[place]) != repr(other[place])
        ]
    return _explained(cells, marked)


def _explained(cells: Sequence[Cell], marked: Collection[str]) -> Comparison:
    losses: dict[str, dict[str, None]] = {}
    unexplained = []
    for cell in cells:
        if cell.column in marked and (cell.carried is None or cell.carried.outdated):
            losses.setdefault(MARKED, {})[cell.column] = None
            continue
        names = [name for name, loss in LOSSES if cell.carried is not None and loss(cell, cell.carried)]
        names += [UNSENT] if _unsent_default(cell) else []
        names += [LATE] if _late_default(cell) else []
        if not names and cell.carried is not None and _taken_for_moved(cell, cell.carried):
            names = [MOVED]
        if not names and cell.carried is not None and _rewritten(cell, cell.carried):
            names = [REWRITTEN]
        if len(names) == 1:
            losses.setdefault(names[0], {})[cell.column] = None
        else:
            unexplained.append(str(cell))
    order = [MARKED, *(name for name, _ in LOSSES), MOVED, REWRITTEN, UNSENT, LATE]
    return Comparison(
        losses=tuple((name, tuple(losses[name])) for name in sorted(losses, key=order.index)),
        unexplained=tuple(unexplained),
    )


def _as_multisets(wanted: Sequence[tuple[Any, ...]], found: Sequence[tuple[Any, ...]]) -> list[str]:
    texts = [repr(row) for row in found]
    missing = []
    for row in wanted:
        if repr(row) in texts:
            texts.remove(repr(row))
        else:
            missing.append(repr(row))
    return [f"row missing: {row}" for row in missing] + [f"row too many: {row}" for row in texts]
