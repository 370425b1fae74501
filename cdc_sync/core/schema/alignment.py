"""What is known about columns from one event schema to the next, and what was decided about each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DECIDED = "decided"
"""Kind of what the operator said of one change while the table stood before it; nothing contradicts it."""

SIDE_COLUMN = "side column"
"""Kind of what planning says of a column that is kept beside the one that took its name with another type."""

NEEDS_RESYNC = "needs resync"
"""Kind of what planning says of a column whose values in existing rows no event tells."""

RETYPED = "retyped"
"""Kind of what planning says of a column whose type changed at the source, or in events, and not in the target."""

UNSHOWN = "not shown"
"""Kind of what planning says of a new column that the source has, and that events do not show."""

UNPROVEN = "unproven"
"""Kind of what is said of columns and members of which nothing proves what became of them."""

KEPT = "kept"
"""Kind of what planning says of a column or member that is kept although the source dropped it."""

IGNORED = "ignored"
"""Kind of what planning says of a column that the source has, and whose values the operator wants left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What one source of evidence proves about columns; what it does not name, it knows nothing of.

    Attributes:
        kind: `decided`, `ddl`, `message`, `catalogue` or `values`.
        same: column id -> index of the observed column that it is; retired columns may be among them.
        gone: column id -> why no observed column is this one.
        hidden: column id -> why it is no observed column although the source still has it.
        new: index of an observed column -> why no known column is this one.
        reasons: column id -> why the pair in `same` is one column.
        late: indexes of observed columns that the table had when an earlier event did not show them.
        unshown: name -> why it is a column that the source has had since the newest version, and no event shows.
    """

    kind: str
    same: Mapping[int, int] = field(default_factory=dict)
    gone: Mapping[int, str] = field(default_factory=dict)
    hidden: Mapping[int, str] = field(default_factory=dict)
    new: Mapping[int, str] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)
    late: frozenset[int] = frozenset()
    unshown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known besides the two column lists.

    Attributes:
        append_only: the source puts new columns last and never moves one.
        snapshot_boundary: the version before was only ever seen in snapshot events (op `r`), and the observed one is
            the first from the log. Snapshots show generated and excluded columns that the stream leaves out.
        renames: declared by the operator, old to new name.
        drops: declared by the operator. Declarations stay in the configuration after the fact, so one that does not
            fit is ignored.
        proofs: what the source itself says, the strongest first.
    """

    append_only: bool
    snapshot_boundary: bool = False
    renames: Mapping[str, str] = field(default_factory=dict)
    drops: frozenset[str] = frozenset()
    proofs: tuple[Proof, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why something was decided about a column.

    Attributes:
        subject: the column's name; the old one for a rename.
        kind: `declared`, a proof's kind, `position` or `name` from `align`; planning adds kinds of its own.
        text: the reason in words.
    """

    subject: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unproven:
    """Columns of which nothing proves what became of them.

    Attributes:
        vanished: ids of known columns, in source order.
        appeared: indexes of observed columns, in source order. A name may stand on both sides, if the order proves
            that the two cannot be one column, or not both of two can.
        explanations: what may have happened, in words, likeliest kinds first; at most ten.
        reason: why nothing is decided.
    """

    vanished: tuple[int, ...]
    appeared: tuple[int, ...]
    explanations: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two kinds of evidence that cannot both be true of one column; `claims` are what they say."""

    subject: str
    claims: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """Every live known column and every observed column, each in exactly one place.

    Attributes:
        same: pairs of column id and index in the observed columns, in observed order, renames and retired columns
            that are back included.
        added: indexes in the observed columns.
        dropped: ids, in source order; retired columns too, if their drop is declared.
        unproven: what nobody knows.
        evidence: one item for every rename, drop and addition decided, and one where names may deceive.
        conflicts: what declarations and proofs contradict each other in; nothing here is to be believed then.
    """

    same: tuple[tuple[int, int], ...]
    added: tuple[int, ...]
    dropped: tuple[int, ...]
    unproven: tuple[Unproven, ...]
    evidence: tuple[Evidence, ...]
    conflicts: tuple[Conflict, ...] = ()
