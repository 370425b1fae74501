"""How the metastore names the present state of a Parquet table, and how another one becomes the present one.

Without partitions the table's entry names the state, and `alter_table` replaces it. With partitions:

- One partition is always there, that of rows with NULL in every key. Its parameter names the state, so one
  `alter_partitions` shows all changed partitions and the state's name: the metastore makes that one transaction.
  Partitions that come are made before, empty; those that go are empty first.
- Columns that are added last and comments are one `alter_table`, which the metastore carries on to all partitions. The
  table's own parameter names the state then; of the two the one of the later commit counts.
- Other columns and other keys cannot come together with other files in one call. So a second entry is filled under
  another name, and two calls give it the table's name. In between, readers find no table; they never find a half one.
  Who crashes there leaves the old entry under its third name, by which `settle` knows to end it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.errors import TargetError
from cdc_sync.targets.common.files import Files
from cdc_sync.targets.hive.columns import hive_columns, spark_parameters
from cdc_sync.targets.hive.metastore import Entry, Metastore
from cdc_sync.targets.hive.partitions import Partition, Partitions, Values
from cdc_sync.targets.parquet.commits import Snapshot
from cdc_sync.targets.parquet.leftovers import EMPTY
from cdc_sync.targets.parquet.properties import NULL, Stamp, number_of

STAMP = "cdc_sync.stamp"
"""The parameter that says which state there is, as `Past.reference`; no two states have the same."""
FOLDER = "cdc_sync.folder"
"""The table's one that names its own folder, in which those of its states lie."""
TABLE = "cdc_sync.table"
"""The one that holds the table's name as it is written: the metastore folds it to lower case."""
_VERSION, _MODE, _PARTITION_BY = "cdc_sync.schema-version", "cdc_sync.mode", "cdc_sync.partition-by"
_COMING, _REPLACED = "__coming", "__replaced"
"""What is put behind the name of a table that is being filled, and of the one whose place it takes."""


class Entries:
    """What the metastore has of one table."""

    def __init__(self, *, name: TargetName, metastore: Metastore, files: Files, properties: Mapping[str, str]) -> None:
        self._name = name
        self._coming = replace(name, name=f"{name.name}{_COMING}")
        self._replaced = replace(name, name=f"{name.name}{_REPLACED}")
        self._metastore = metastore
        self._files = files
        self._properties = dict(properties)

    def entry(self) -> Entry | None:
        """Return what there is under the name, whoever made it; of a table that is just being replaced, the new one.

        Raises:
            TargetError: if it is one of ours whose name differs only in case.
        """
        found = self._found()
        return None if found is None else found[1]

    def present(self) -> tuple[str, str] | None:
        """Return the table's own folder and the reference of its present state; None if there is no table of ours."""
        found = self._found()
        if found is None or STAMP not in found[1].parameters:
            return None
        name, entry = found
        reference = entry.parameters[STAMP]
        if entry.keys:
            first = Partitions(self._metastore, name).find(_first(len(entry.keys)))
            committed = None if first is None else first.parameters.get(STAMP)
            reference = max(reference, committed or reference, key=number_of)
        return entry.parameters[FOLDER], reference

    def create(self, made: Snapshot) -> bool:
        """Make the entry of an empty table; return whether it was made, False if there is one."""
        if not self._metastore.create(self._name, self._entry(made)):
            return False
        if made.is_partitioned:
            self._fill(self._name, made)
        return True

    def replace(self, before: Snapshot, after: Snapshot) -> None:
        """Show another state in the place of one."""
        one, other = before.stamp, after.stamp
        if not before.is_partitioned and not after.is_partitioned:
            self._metastore.replace(self._name, self._entry(after))
            return
        is_told_alike = self._told(before) == self._told(after)
        if one.key_struct == other.key_struct and is_told_alike:
            self._show(before, after)
        elif one.key_struct == other.key_struct and _files(one) == _files(other):
            self._metastore.replace(self._name, self._entry(after))
        else:
            self._exchange(before, after)

    def drop_partitions(self, present: Snapshot) -> None:
        """Take away the partitions that have no rows in a state."""
        if present.is_partitioned:
            partitions = Partitions(self._metastore, self._name)
            partitions.drop(sorted(partitions.values() - _named(present)))

    def settle(self) -> None:
        """Give the table's name to an entry that is to have it, if a crash kept it from that."""
        if self._metastore.entry(self._name) is None:
            coming = self._left_behind()
            if coming is not None:
                self._metastore.replace(self._coming, coming, into=self._name)
                self._metastore.drop(self._replaced)

    def clear(self) -> None:
        """Take away entries that a replacement left, or one that was given up; their files are the table's."""
        for name in (self._coming, self._replaced):
            found = self._metastore.entry(name)
            if found is not None and found.parameters.get(TABLE) == str(self._name):
                self._metastore.drop(name)

    def _found(self) -> tuple[TargetName, Entry] | None:
        """Return the entry of the present state, and the name it is under."""
        found = self._metastore.entry(self._name)
        name = self._name
        if found is None:
            found, name = self._left_behind(), self._coming
        if found is None:
            return None
        holder = found.parameters.get(TABLE, str(self._name))
        if holder != str(self._name):
            raise TargetError(
                f"Cannot use {self._name}: to the metastore it is the same as {holder}, which differs only in case; "
                "give one of them another target"
            )
        return name, found

    def _left_behind(self) -> Entry | None:
        """Return the entry that is to have the name, if that of before has given it up."""
        coming, replaced = self._metastore.entry(self._coming), self._metastore.entry(self._replaced)
        if coming is None or replaced is None or FOLDER not in coming.parameters:
            return None
        return coming if coming.parameters[FOLDER] == replaced.parameters.get(FOLDER) else None

    def _show(self, before: Snapshot, after: Snapshot) -> None:
        """Make all changed partitions those of another state, in one call."""
        partitions, entry = Partitions(self._metastore, self._name), self._entry(after)
        places = _places(after)
        there = partitions.values()
        coming = [values for values in places if values not in there]
        if coming:
            self._files.make(f"{after.folder}/{EMPTY}")
            partitions.add([self._partition(after, values, EMPTY) for values in coming], entry)
        former = _places(before)
        changed = [values for values in {**places, **former} if places.get(values) != former.get(values)]
        changed += [values for values in (_first(len(entry.keys)),) if values not in changed]
        if any(places.get(values, EMPTY) == EMPTY for values in changed):
            self._files.make(f"{after.folder}/{EMPTY}")
        partitions.replace([self._partition(after, values, places.get(values, EMPTY)) for values in changed], entry)

    def _exchange(self, before: Snapshot, after: Snapshot) -> None:
        """Put another entry, whose columns and keys may be others, in the place of one."""
        self.clear()
        for name in (self._coming, self._replaced):
            if self._metastore.entry(name) is not None:
                raise TargetError(
                    f"Cannot change {self._name}: the name {name} is needed for a moment, and the metastore has a "
                    "table of that name; rename that one"
                )
        self._metastore.create(self._coming, self._entry(after))
        if after.is_partitioned:
            self._fill(self._coming, after)
            if Partitions(self._metastore, self._coming).values() != _named(after):
                raise TargetError(f"Cannot change {self._name}: the metastore has not taken all partitions; try again")
        self._metastore.replace(self._name, self._entry(before), into=self._replaced)
        self._metastore.replace(self._coming, self._entry(after), into=self._name)
        self._metastore.drop(self._replaced)

    def _fill(self, name: TargetName, state: Snapshot) -> None:
        """Add all partitions of a state to an entry that has none."""
        places = _places(state)
        if EMPTY in places.values():
            self._files.make(f"{state.folder}/{EMPTY}")
        made = [self._partition(state, values, place) for values, place in places.items()]
        Partitions(self._metastore, name).add(made, self._entry(state))

    def _partition(self, state: Snapshot, values: Values, place: str) -> Partition:
        named = {STAMP: state.reference} if values == _first(len(values)) else {}
        return Partition(values=values, location=f"{state.folder}/{place}", parameters=named)

    def _entry(self, state: Snapshot) -> Entry:
        stamp = state.stamp
        return Entry(
            location=state.folder if state.is_partitioned else state.location,
            columns=hive_columns(stamp.struct),
            parameters=self._told(state) | {STAMP: state.reference},
            keys=hive_columns(stamp.key_struct),
        )

    def _told(self, state: Snapshot) -> dict[str, str]:
        """Return what the table's parameters say of a state, but for its reference."""
        stamp = state.stamp
        own = {FOLDER: state.folder, TABLE: str(self._name), _VERSION: str(stamp.version), _MODE: stamp.mode}
        divided = {} if stamp.partition_by is None else {_PARTITION_BY: stamp.partition_by}
        return self._properties | spark_parameters(stamp.struct, keys=stamp.key_struct) | own | divided


def _first(keys: int) -> Values:
    """Return the values of the partition that is always there."""
    return (NULL,) * keys


def _places(state: Snapshot) -> dict[Values, str]:
    """Return the folders of the partitions that the metastore has, below the table's own."""
    return {_first(len(state.stamp.keys)): EMPTY, **{it.values: it.folder for it in state.stamp.partitions}}


def _named(state: Snapshot) -> frozenset[Values]:
    return frozenset(_places(state))


def _files(stamp: Stamp) -> frozenset[str]:
    return frozenset(it.folder for it in stamp.partitions)
