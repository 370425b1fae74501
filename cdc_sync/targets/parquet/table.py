"""One Parquet table: states, each a folder that nothing is added to, and the metastore's entry that names the present.

`<warehouse>/<database>.db/<table>-<random>/<commit>-<random>/` holds the data files of a state. A commit writes a new
folder, or other columns over the folder that is there, and then replaces the entry, in one call: location, columns and
stamp together. Whoever asks the metastore finds the state before or the state after.

Of a table with partitions a commit writes those whose rows change, and `entries` makes them the present ones.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from structlog import get_logger

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.errors import FilesGone, TargetError
from cdc_sync.targets.common.claims import Claims
from cdc_sync.targets.common.commits import Beginning, Lineage
from cdc_sync.targets.common.commits import Entry as Commit
from cdc_sync.targets.common.files import Files
from cdc_sync.targets.common.java import first_line
from cdc_sync.targets.hive.metastore import Entry, Metastore
from cdc_sync.targets.hive.partitions import Values, values_of
from cdc_sync.targets.parquet.commits import Snapshot
from cdc_sync.targets.parquet.entries import FOLDER, TABLE, Entries
from cdc_sync.targets.parquet.leftovers import CLAIMS, let_go
from cdc_sync.targets.parquet.partitions import divided
from cdc_sync.targets.parquet.properties import PartFiles, Stamp, parse_stamp, remembered
from cdc_sync.targets.protocol import moved

_LEAVING = "__dropping"
"""What is put behind the name of a table whose files are being deleted."""


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
        tidied: set[TargetName],
    ) -> None:
        """Look at nothing yet.

        Args:
            tidied: tables that this process looked through for what crashes of others left; of all threads.
        """
        self.name = name
        self._spark = spark
        self._metastore = metastore
        self._files = files
        self._warehouse = warehouse
        self._properties = dict(properties)
        self._kept_states = kept_states
        self._tidied = tidied
        self._entries = Entries(name=name, metastore=metastore, files=files, properties=properties)

    def snapshot(self) -> Snapshot | None:
        """Return the present state; None if there is no table, or one that is not ours.

        Raises:
            TargetError: if the name is another table's that differs only in case, or the stamp is not there.
        """
        shown = self._shown()
        return None if shown is None else self._newest(shown)

    def _shown(self) -> Snapshot | None:
        """Return the state that the metastore names."""
        present = self._entries.present()
        if present is None:
            return None
        folder, reference = present
        found = self.at(folder, reference)
        if found is None:
            raise TargetError(
                f"Cannot use {self.name}: {folder}/{reference} is not there; bring the folder back from a backup, or "
                "drop the table to have it built anew"
            )
        return found

    def _newest(self, shown: Snapshot) -> Snapshot:
        """Return the newest state: the one that the metastore names, or one that was committed behind it since."""
        last = self._claims(shown.folder).last()
        number = shown.stamp.number
        if last is not None and last[0] > number:
            claimed = self.at(shown.folder, last[1])
            return replace(claimed or shown, follows=last[0] + 1)
        return replace(shown, follows=number + 1)

    def _claims(self, folder: str) -> Claims:
        return Claims(self._files, f"{folder}/{CLAIMS}")

    def entry(self) -> Entry | None:
        """Return what the metastore has under the name, whoever made it.

        Raises:
            TargetError: if it is one of ours whose name differs only in case.
        """
        return self._entries.entry()

    def settle(self) -> Snapshot | None:
        """End what a crash left half done, and return the present state; every change of a table begins with it."""
        self._entries.settle()
        shown = self._shown()
        if shown is None:
            return None
        newest = self._newest(shown)
        if newest.reference != shown.reference:
            self._show(shown, newest)
        return newest

    def at(self, folder: str, reference: str) -> Snapshot | None:
        """Return a state of the table whose own folder is given, None if it is not kept any more."""
        text = self._files.read(f"{folder}/{reference}")
        return None if text is None else Snapshot(folder=folder, reference=reference, stamp=parse_stamp(text))

    def rows(self, snapshot: Snapshot, only: frozenset[Values] | None = None) -> DataFrame:
        """Return the rows of a state, with its columns; one that the files are older than reads NULL.

        Args:
            only: the partitions to read, those that there are of them; None stands for all.

        Raises:
            FilesGone: if some of its files are not there; Spark would read the rest.
        """
        stamp = snapshot.stamp
        if not stamp.keys:
            self._check_files(snapshot.location, self._files.size(snapshot.location), stamp.size)
            return self._spark.read.schema(stamp.struct).parquet(snapshot.location)
        read = [it for it in stamp.partitions if only is None or it.values in only]
        if not read:
            return self._spark.createDataFrame([], stamp.struct)
        for it in read:
            folder = f"{snapshot.folder}/{it.folder}"
            self._check_files(folder, sum(self._files.sizes(folder).values()), it.size)
        # Nothing is read out of the names of folders: all that is of the table stands in its files.
        reader = self._spark.read.schema(stamp.struct).option("recursiveFileLookup", True)
        return reader.parquet(*(f"{snapshot.folder}/{it.folder}" for it in read))

    def _check_files(self, folder: str, found: int, written: int) -> None:
        if found < written:
            raise FilesGone(f"Cannot read {self.name}: {found} of {written} bytes of its files are there in {folder}")

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
        if self._entries.create(made):
            return
        # A server that makes an entry and does not hear its own database tries again, and then finds this very entry.
        there = self._metastore.entry(self.name)
        if there is None or there.parameters.get(FOLDER) != folder:
            self._files.delete(folder)

    def commit(
        self,
        now: Snapshot,
        stamp: Stamp,
        rows: DataFrame | None,
        only: frozenset[Values] | None = None,
        *,
        as_many: bool = False,
    ) -> None:
        """Replace all rows, columns and stamp in one step.

        Args:
            now: the present state.
            stamp: of the one after; its number, size, past and partitions are filled in here.
            rows: with the columns of `stamp.struct`; none are left if it is None.
            only: the partitions whose rows are replaced, and the only ones that `rows` may have rows of; the others
                stay. None stands for all.
            as_many: count what was written before it becomes the table: there must be as many rows as before.

        Raises:
            TargetError: if there is a row of another partition, or not as many; nothing is changed then.
            TargetMoved: if another commit was made on the same state.
        """
        number = now.follows
        past = remembered((now.as_past, *now.stamp.past), self._kept_states - 1)
        staying = () if only is None else tuple(it for it in now.stamp.partitions if it.values not in only)
        made = self._written(now.folder, rows, replace(stamp, number=number, past=past), staying)
        if as_many:
            self._check_count(now, made)
        self._replace(now, made, made.data)

    def restamp(self, now: Snapshot, stamp: Stamp, *, data: str | None = None) -> None:
        """Say something else of data files that are there, in one step.

        Args:
            now: the present state.
            stamp: of the one after; its number is filled in here, its past as well unless `data` is given.
            data: the name of the folder of the data files; the present one if it is not given.
        """
        stamp = replace(stamp, number=now.follows)
        if data is None:
            stamp = replace(stamp, past=remembered((now.as_past, *now.stamp.past), self._kept_states))
        else:
            there = self._files.children(now.folder)
            stamp = replace(stamp, past=tuple(state for state in stamp.past if state.folder in there))
        made = self._stamped(now.folder, data or now.data, stamp)
        self._replace(now, made, made.reference)

    def drop(self) -> None:
        """Give the table another name, which readers do not look for, then delete its files and that entry."""
        leaving = replace(self.name, name=f"{self.name.name}{_LEAVING}")
        self._end_drop(leaving)
        self.settle()
        self._entries.clear()
        entry = self.entry()
        if entry is not None:
            if FOLDER not in entry.parameters:
                raise TargetError(f"Cannot drop {self.name}: it was not made by cdc_sync")
            self._metastore.replace(self.name, entry, into=leaving)
            self._end_drop(leaving)

    def archive(self, into: TargetName) -> None:
        """Give the table another name; its files stay where they are."""
        self.settle()
        entry = self.entry()
        if entry is None:
            return
        if self._metastore.entry(into) is not None:
            raise TargetError(f"Cannot archive {self.name}: table {into} exists")
        self._entries.clear()
        named = replace(entry, parameters={**entry.parameters, TABLE: str(into)})
        self._metastore.replace(self.name, named, into=into)

    def _end_drop(self, leaving: TargetName) -> None:
        entry = self._metastore.entry(leaving)
        if entry is not None and FOLDER in entry.parameters:
            self._files.delete(entry.parameters[FOLDER])
            self._metastore.drop(leaving)

    def _written(
        self, folder: str, rows: DataFrame | None, stamp: Stamp, staying: tuple[PartFiles, ...] = ()
    ) -> Snapshot:
        """Write a folder that nobody knows of yet."""
        data = f"{stamp.number:08}-{uuid.uuid4().hex[:8]}"
        location = f"{folder}/{data}"
        if rows is None:
            self._files.make(location)
            return self._stamped(folder, data, replace(stamp, size=0, partitions=()))
        if not stamp.keys:
            rows.write.options(**self._properties).parquet(location)
            return self._stamped(folder, data, replace(stamp, size=self._files.size(location), partitions=()))
        divided(rows, stamp).write.options(**self._properties).partitionBy(*(key.name for key in stamp.keys)).parquet(
            location
        )
        self._files.make(location)
        written = tuple(
            PartFiles(values=values_of(path), folder=f"{data}/{path}", size=size)
            for path, size in sorted(self._files.sizes(location).items())
        )
        strangers = {it.values for it in written} & {it.values for it in staying}
        if strangers:
            raise TargetError(f"Cannot write {self.name}: rows of partition {min(strangers)} were not looked for")
        partitions = (*staying, *written)
        size = sum(it.size for it in partitions)
        return self._stamped(folder, data, replace(stamp, size=size, partitions=partitions))

    def _check_count(self, before: Snapshot, after: Snapshot) -> None:
        """Compare states of the same rows by the counts in their files."""
        wanted, found = self.rows(before).count(), self.rows(after).count()
        if wanted != found:
            raise TargetError(
                f"Cannot rewrite {self.name}: {found} rows were written in {after.location}, and there are {wanted}; "
                "readers find the table as it was; look at the files of both"
            )

    def _stamped(self, folder: str, data: str, stamp: Stamp) -> Snapshot:
        file = f"_cdc_sync-{stamp.number}-{uuid.uuid4().hex[:8]}.json"
        made = Snapshot(folder=folder, reference=f"{data}/{file}", stamp=stamp)
        self._files.write(f"{folder}/{made.reference}", stamp.to_text())
        return made

    def _replace(self, before: Snapshot, after: Snapshot, written: str) -> None:
        """Make a state the present one, and let go of files that no state needs.

        Args:
            before: the state that the other was made of.
            after: the other.
            written: what was written for it, below the table's folder.

        Raises:
            TargetMoved: if another commit was made on the state before; what was written of this one is deleted.
        """
        if not self._claims(after.folder).take(after.stamp.number, after.reference):
            self._files.delete(f"{after.folder}/{written}")
            raise moved(self.name)
        self._show(before, after)
        thorough = after.is_partitioned and self.name not in self._tidied
        try:
            if thorough:
                self._entries.clear()
            self._entries.drop_partitions(after)
            let_go(self._files, before, after, self.at, thorough=thorough)
            self._tidied.add(self.name)
        except (Py4JJavaError, TargetError) as error:
            # The commit is made; the next one tries again.
            get_logger().warning("files of earlier states stay", table=str(self.name), error=first_line(error))

    def _show(self, before: Snapshot, after: Snapshot) -> None:
        """Have the metastore name a state that was committed, unless it does, or names one that came behind it."""
        shown = self._entries.present()
        if shown is not None and shown != (before.folder, before.reference):
            return  # whoever finds a commit that is not shown shows it
        try:
            self._entries.replace(before, after)
        except Py4JJavaError:
            # The reply may have been lost, not the call.
            if self._entries.present() != (after.folder, after.reference):
                raise
            self._entries.settle()
