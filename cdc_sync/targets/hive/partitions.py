"""Partitions of one table in Hive's metastore: which files have the rows of which values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from py4j.protocol import Py4JJavaError

from cdc_sync.core.migration.routes import TargetName
from cdc_sync.targets.hive.metastore import Entry, Metastore, is_problem

Values: TypeAlias = tuple[str, ...]
"""One text for each key of a partitioned table, in order, as the metastore has them."""
_AT_ONCE = 500
"""So many partitions are added in one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """What the metastore says of a partition.

    Attributes:
        values: what its rows have in the table's keys.
        location: the folder of its data files.
        parameters: the partition's.
    """

    values: Values
    location: str
    parameters: Mapping[str, str] = field(default_factory=dict)


class Partitions:
    """The partitions of one table, which has to be there. Thread-safe."""

    def __init__(self, metastore: Metastore, name: TargetName) -> None:
        self._metastore = metastore
        self._name = name

    def find(self, values: Values) -> Partition | None:
        """Return a partition, None if there is none of these values."""
        place = (self._name.namespace, self._name.name)
        with self._metastore.client() as client:
            try:
                found = client.getPartition(*place, self._metastore.listed(values))
            except Py4JJavaError as error:
                if is_problem(error, "NoSuchObjectException"):
                    return None
                raise
        return _partition(found)

    def values(self) -> frozenset[Values]:
        """Return the values of all partitions."""
        with self._metastore.client() as client:
            names = client.listPartitionNames(self._name.namespace, self._name.name, -1)
        return frozenset(values_of(str(name)) for name in names)

    def add(self, partitions: Sequence[Partition], entry: Entry) -> None:
        """Make partitions that are not there yet; those that are stay as they are.

        Args:
            partitions: in any number.
            entry: the table's, whose columns they get.
        """
        with self._metastore.client() as client:
            for start in range(0, len(partitions), _AT_ONCE):
                made = self._made(partitions[start : start + _AT_ONCE], entry)
                client.add_partitions(made, True, False)

    def replace(self, partitions: Sequence[Partition], entry: Entry) -> None:
        """Put others in the place of partitions that are there, all in one call and one transaction."""
        # Else the metastore looks at the files of each of them, to count them.
        silently = self._metastore.asking("DO_NOT_UPDATE_STATS")
        with self._metastore.client() as client:
            client.alter_partitions(self._name.namespace, self._name.name, self._made(partitions, entry), silently)

    def drop(self, values: Iterable[Values]) -> None:
        """Take partitions away, one after the other, and no file; nothing happens to those that are not there."""
        with self._metastore.client() as client:
            for item in values:
                try:
                    client.dropPartition(self._name.namespace, self._name.name, self._metastore.listed(item), False)
                except Py4JJavaError as error:
                    if not is_problem(error, "NoSuchObjectException"):
                        raise

    def _made(self, partitions: Iterable[Partition], entry: Entry) -> Any:
        api, listed, mapped = self._metastore.api, self._metastore.listed, self._metastore.mapped
        like = self._metastore.place(entry)
        # The path of a table is for Spark; a partition has its location alone.
        like.getSerdeInfo().getParameters().remove("path")

        def made(partition: Partition) -> Any:
            place = api.StorageDescriptor(like)
            place.setLocation(partition.location)
            place_of = (self._name.namespace, self._name.name)
            return api.Partition(listed(partition.values), *place_of, 0, 0, place, mapped(partition.parameters))

        return listed(made(partition) for partition in partitions)


def values_of(name: str) -> Values:
    """Return the values that the name of a partition says, which is also the folder that Spark writes one to.

    Source: Hive 2.3, `FileUtils.unescapePathName`.
    """
    return tuple(_unescaped(part.partition("=")[2]) for part in name.split("/"))


def _unescaped(text: str) -> str:
    return re.sub(r"%([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), text)


def _partition(found: Any) -> Partition:
    return Partition(
        values=tuple(str(value) for value in found.getValues()),
        location=str(found.getSd().getLocation()),
        parameters=dict(found.getParameters()),
    )
