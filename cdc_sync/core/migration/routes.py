"""Which target each source table goes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cdc_sync.core.migration.capabilities import ICEBERG, Capabilities
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.patterns import full_match
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.schema.policy import Policy
from cdc_sync.core.schema.types import Default


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TargetName:
    """A table of the target; each part may hold any character, dots included, so never split the text again."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the operator said of one change at which a table was paused. It stands above all evidence.

    Attributes:
        at: the record the table stood before, as topic[partition]@offset; the decision is about this change only.
        renames: old to new column name.
        not_same: names after the change that are none of the columns known before.
        dropped: names before the change of columns that are gone.
        after: the newest version when it was said, where it is about no change (`at` is empty) but about columns that
            were kept before: those of `dropped` go with the next change. None elsewhere.
    """

    table: TableId
    at: str
    renames: Mapping[str, str]
    not_same: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """What the operator said after the fact: two columns of a table are one that was renamed.

    Attributes:
        kept: id of the older column, which was kept as if the source had lost it.
        joined: id of the newer one.
        old, new: their names, as the operator said them.
        after: the newest version when this was said or, once it is carried out, the one right before it.
    """

    table: TableId
    kept: int
    joined: int
    old: str
    new: str
    after: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The columns that events leave out besides generated ones, as the operator states them, for whatever reason.

    The connector may exclude them, or not know their type (`include.unknown.datatypes`), a publication's list of
    columns, a statement of its own for snapshots or a transform may leave them out. All others are shown, and each
    column is one or the other all its life: none is renamed from a name that is left out to one that is not, or back,
    none gets another type from or to one that the connector does not know, and no generated one loses its expression.

    Attributes:
        patterns: regular expressions over schema.table.column, as in the connector's `column.exclude.list`.
    """

    patterns: tuple[str, ...] = ()

    def holds(self, table: TableId, name: str) -> bool:
        """Whether events of this table leave a column of this name out.

        Source: Debezium, `Predicates.matchedByPattern`: the whole name, whatever the case; and Java's pairs of letters
        and its classes of characters are those of ASCII.
        """
        whole = f"{table.schema}.{table.table}.{name}"
        return any(full_match(pattern, whole, as_java=True) for pattern in self.patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What the operator wants of one source table.

    Attributes:
        table: where the rows come from.
        target: where they go.
        renames: declared renames, old to new column name; evidence, used only where old vanished and new appeared.
        drops: declared drops; evidence in the same sense.
        initials: what rows older than an added column read in it, by column name, as written by the operator.
        policy: what to do where nothing is proven, the table's own overrides included.
        key: the columns that identify a row, as declared; None leaves it to the record key.
        append: every event becomes a row of its own, and no row is ever changed.
        partition_by: what the target's files are divided by; None leaves it as it is.
        capabilities: what its target is able to do, as it is to be kept.
        readers: the engines that read its target, as declared.
        merge: where several source tables share the target, its column that says which one a row is of; None where the
            target is this table's alone.
        decisions: what the operator said while the table was paused.
        left_out: which columns events leave out; None if nobody says.
        joins: what was said after the fact and carried out already: a history that is made again has it at its place.
    """

    table: TableId
    target: TargetName
    renames: Mapping[str, str]
    drops: frozenset[str]
    initials: Mapping[str, Default]
    policy: Policy
    key: tuple[str, ...] | None = None
    append: bool = False
    partition_by: Partitioning | None = None
    capabilities: Capabilities = ICEBERG
    readers: tuple[str, ...] = ()
    merge: str | None = None
    left_out: LeftOut | None = None
    decisions: tuple[Decision, ...] = ()
    joins: tuple[Join, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """Two source tables on one target; `refused` must not be written, `holder` goes on."""

    refused: TableId
    holder: TableId
    target: TargetName

    def __str__(self) -> str:
        return (
            f"Cannot route table {self.refused} to {self.target}: table {self.holder} is already written there; "
            f"give one of them another target in the tables section"
        )


def check_routes(routes: Iterable[Route]) -> tuple[Clash, ...]:
    """Find the tables that must be refused because another table holds their target and does not share it.

    Args:
        routes: in order of right: the first table on a target keeps it, so pass running tables before new ones.

    Returns:
        One clash for every table to refuse, in the order given; empty if all targets differ.
    """
    holders: dict[TargetName, Route] = {}
    clashes = []
    for route in routes:
        holder = holders.setdefault(route.target, route)
        shared = route.merge is not None and route.merge == holder.merge
        if holder.table != route.table and not shared:
            clashes.append(Clash(refused=route.table, holder=holder.table, target=route.target))
    return tuple(clashes)
