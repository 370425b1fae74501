"""One Parquet table: states, each a folder that nothing is added to, and the metastore's entry that names the present.

`<warehouse>/<database>.db/<table>-<random>/<commit>-<random>/` holds the data files of a state. A commit writes a new
folder, or other columns over the folder that is there, and then replaces the entry, in one call: location, columns and
stamp together. Whoever asks the metastore finds the state before or the state after.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from structlog import get_logger

from cdc_sync.errors import TargetError
from cdc_sync.naming import TargetName
from cdc_sync.targets.failures import first_line
from cdc_sync.targets.files import Files
from cdc_sync.targets.metastore import Entry, Metastore
from cdc_sync.targets.parquet_schema import hive_columns, spark_parameters
from cdc_sync.targets.parquet_stamp import Past, Stamp, parse_stamp, remembered
from cdc_sync.targets.past import Beginning, Lineage
from cdc_sync.targets.past import Entry as Commit

STAMP = "cdc_sync.stamp"
"""The table's parameter that says which state it has, as `Past.reference`; no two states have the same."""
FOLDER = "cdc_sync.folder"
"""The one that names the table's own folder, in which those of its states lie."""
_TABLE = "cdc_sync.table"
"""The one that holds the table's name as it is written: the metastore folds it to lower case."""
_VERSION, _MODE = "cdc_sync.schema-version", "cdc_sync.mode"
_LEAVING = "__dropping"
"""What is put behind the name of a table whose files are being deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A state of a table.

    Attributes:
        folder: the table's own.
        reference: of the state, as in `Past`.
        stamp: what it says.
    """

    folder: str
    reference: str
    stamp: Stamp

    @property
    def location(self) -> str:
        """The folder of its data files."""
        return f"{self.folder}/{self.data}"

    @property
    def data(self) -> str:
        """The name of that folder."""
        return self.reference.partition("/")[0]

    @property
    def as_past(self) -> Past:
        """The state as those after it remember it."""
        return Past(reference=self.reference, marker=self.stamp.marker)


class ParquetTable:
    """One table under a name that the metastore holds; it need not be there yet."""

    def __init__(
        self,
        *,
        name: TargetName,
        spark: SparkSession,
        metastore: Metastore,
        files: Files,
        warehouse: str,
        properties: Mapping[str, str],
        kept_states: int,
    ) -> None:
        self.name = name
        self._spark = spark
        self._metastore = metastore
        self._files = files
        self._warehouse = warehouse
        self._properties = dict(properties)
        self._kept_states = kept_states

    def snapshot(self) -> Snapshot | None:
        """Return the present state; None if there is no table, or one that is not ours.

        Raises:
            TargetError: if the name is another table's that differs only in case, or the stamp is not there.
        """
        entry = self.entry()
        if entry is None or STAMP not in entry.parameters:
            return None
        folder, reference = entry.parameters[FOLDER], entry.parameters[STAMP]
        found = self.at(folder, reference)
        if found is None:
            raise TargetError(
                f"Cannot use {self.name}: {folder}/{reference} is not there; bring the folder back from a backup, or "
                "drop the table to have it built anew"
            )
        return found

    def entry(self) -> Entry | None:
        """Return what the metastore has under the name, whoever made it.

        Raises:
            TargetError: if it is one of ours whose name differs only in case.
        """
        found = self._metastore.entry(self.name)
        holder = str(self.name) if found is None else found.parameters.get(_TABLE, str(self.name))
        if holder != str(self.name):
            raise TargetError(
                f"Cannot use {self.name}: to the metastore it is the same as {holder}, which differs only in case; "
                "give one of them another target"
            )
        return found

    def at(self, folder: str, reference: str) -> Snapshot | None:
        """Return a state of the table whose own folder is given, None if it is not kept any more."""
        text = self._files.read(f"{folder}/{reference}")
        return None if text is None else Snapshot(folder=folder, reference=reference, stamp=parse_stamp(text))

    def rows(self, snapshot: Snapshot) -> DataFrame:
        """Return the rows of a state, with its columns; one that the files are older than reads NULL."""
        return self._spark.read.schema(snapshot.stamp.struct).parquet(snapshot.location)

    def lineage(self, now: Snapshot) -> Lineage:
        """Return the states that can be read, newest first."""
        for state in (now.as_past, *now.stamp.past):
            if state.marker is None:
                yield Beginning()
                return
            yield Commit(reference=state.reference, marker=state.marker)

    def create(self, stamp: Stamp) -> None:
        """Make an empty table; nothing happens if there is one."""
        if self.entry() is not None:
            return
        folder = f"{self._warehouse}/{self.name.namespace}.db/{self.name.name}-{uuid.uuid4().hex[:12]}"
        made = self._written(folder, None, stamp)
        if self._metastore.create(self.name, self._entry(made)):
            return
        # A server that makes an entry and does not hear its own database tries again, and then finds this very entry.
        there = self._metastore.entry(self.name)
        if there is None or there.parameters.get(FOLDER) != folder:
            self._files.delete(folder)

    def commit(self, now: Snapshot, stamp: Stamp, rows: DataFrame | None) -> None:
        """Replace all rows, columns and stamp in one step.

        Args:
            now: the present state.
            stamp: of the one after; its number, size and past are filled in here.
            rows: with the columns of `stamp.struct`; none are left if it is None.
        """
        number = now.stamp.number + 1
        past = remembered((now.as_past, *now.stamp.past), self._kept_states - 1)
        made = self._written(now.folder, rows, replace(stamp, number=number, past=past))
        self._replace(now, made)

    def restamp(self, now: Snapshot, stamp: Stamp, *, data: str | None = None) -> None:
        """Say something else of data files that are there, in one step.

        Args:
            now: the present state.
            stamp: of the one after; its number is filled in here, its past as well unless `data` is given.
            data: the name of the folder of the data files; the present one if it is not given.
        """
        stamp = replace(stamp, number=now.stamp.number + 1)
        if data is None:
            stamp = replace(stamp, past=remembered((now.as_past, *now.stamp.past), self._kept_states))
        else:
            there = self._files.children(now.folder)
            stamp = replace(stamp, past=tuple(state for state in stamp.past if state.folder in there))
        made = self._stamped(now.folder, data or now.data, stamp)
        self._replace(now, made)

    def drop(self) -> None:
        """Give the table another name, which readers do not look for, then delete its files and that entry."""
        leaving = replace(self.name, name=f"{self.name.name}{_LEAVING}")
        self._end_drop(leaving)
        entry = self.entry()
        if entry is not None:
            if FOLDER not in entry.parameters:
                raise TargetError(f"Cannot drop {self.name}: it was not made by cdc_sync")
            self._metastore.replace(self.name, entry, into=leaving)
            self._end_drop(leaving)

    def archive(self, into: TargetName) -> None:
        """Give the table another name; its files stay where they are."""
        entry = self.entry()
        if entry is None:
            return
        if self._metastore.entry(into) is not None:
            raise TargetError(f"Cannot archive {self.name}: table {into} exists")
        named = replace(entry, parameters={**entry.parameters, _TABLE: str(into)})
        self._metastore.replace(self.name, named, into=into)

    def _end_drop(self, leaving: TargetName) -> None:
        entry = self._metastore.entry(leaving)
        if entry is not None and FOLDER in entry.parameters:
            self._files.delete(entry.parameters[FOLDER])
            self._metastore.drop(leaving)

    def _written(self, folder: str, rows: DataFrame | None, stamp: Stamp) -> Snapshot:
        """Write a folder that nobody knows of yet."""
        data = f"{stamp.number:08}-{uuid.uuid4().hex[:8]}"
        location = f"{folder}/{data}"
        if rows is None:
            self._files.make(location)
            return self._stamped(folder, data, replace(stamp, size=0))
        rows.write.options(**self._properties).parquet(location)
        return self._stamped(folder, data, replace(stamp, size=self._files.size(location)))

    def _stamped(self, folder: str, data: str, stamp: Stamp) -> Snapshot:
        file = f"_cdc_sync-{stamp.number}-{uuid.uuid4().hex[:8]}.json"
        made = Snapshot(folder=folder, reference=f"{data}/{file}", stamp=stamp)
        self._files.write(f"{folder}/{made.reference}", stamp.to_text())
        return made

    def _entry(self, snapshot: Snapshot) -> Entry:
        stamp = snapshot.stamp
        own = {
            STAMP: snapshot.reference,
            FOLDER: snapshot.folder,
            _TABLE: str(self.name),
            _VERSION: str(stamp.version),
            _MODE: stamp.mode,
        }
        parameters = self._properties | spark_parameters(stamp.struct) | own
        return Entry(location=snapshot.location, columns=hive_columns(stamp.struct), parameters=parameters)

    def _replace(self, before: Snapshot, after: Snapshot) -> None:
        """Make a state the present one, and let go of folders that no state needs."""
        try:
            self._metastore.replace(self.name, self._entry(after), seen={STAMP: before.reference})
        except Py4JJavaError:
            # The reply may have been lost, not the call.
            entry = self.entry()
            if entry is None or entry.parameters.get(STAMP) != after.reference:
                raise
        self._let_go(before, after)

    def _let_go(self, before: Snapshot, after: Snapshot) -> None:
        """Delete folders, but those that can be read again and the one that whoever reads now may have been given."""
        stamp = after.stamp
        needed = {before.data, after.data, *(state.folder for state in stamp.past)}
        if stamp.kept is not None:
            needed.add(stamp.kept.reference.partition("/")[0])
        try:
            for name in self._files.children(after.folder) - needed:
                self._files.delete(f"{after.folder}/{name}")
        except (Py4JJavaError, TargetError) as error:
            # The commit is made; the next one tries again.
            get_logger().warning("files of earlier states stay", table=str(self.name), error=first_line(error))
