"""What a state of a Parquet table says about itself, in a hidden file among its data files.

A state is a folder of data files and one such file; the metastore names both, in one entry that is replaced at once.
Readers pass over files whose name begins with `_`. Source: Hadoop's `FileInputFormat.hiddenFileFilter`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import types as T

from cdc_sync.core.migration.modes import Mode
from cdc_sync.core.model.progress import Progress, parse_progress
from cdc_sync.core.schema.internal import InternalSchema
from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning, PartitioningError
from cdc_sync.errors import TargetError
from cdc_sync.targets.hive.partitions import Values

NULL = "__HIVE_DEFAULT_PARTITION__"
"""What stands there for NULL, and for a text without characters. Source: Hive, `hive.exec.default.partition.name`."""
_FORMAT, _FORMAT_OF_PARTITIONS = 1, 2
"""A program that knows no partitions must not take the files of one for the table's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """An earlier state whose files are still there.

    Attributes:
        reference: `<folder>/<stamp's file>`, below the table's own folder.
        marker: the text of its progress, None before anything was written.
        partitioned: its files lie in folders of partitions, which its stamp names.
    """

    reference: str
    marker: str | None
    partitioned: bool = False

    @property
    def folder(self) -> str:
        """The folder of its stamp, and of all its data files if it has no partitions."""
        return self.reference.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The state before the last rewrite.

    Attributes:
        reference: as in `Past`.
        version: of the schema it has.
        number: of the commit that rewrote it.
        partitioned: as in `Past`.
    """

    reference: str
    version: int
    number: int
    partitioned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A column of the metastore's that tells partitions apart, which no file has.

    Attributes:
        name: its own.
        type: its own.
        sql: how it is computed from a row. It is kept, so that rows are looked for where they were put.
    """

    name: str
    type: T.DataType
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFiles:
    """The files of one partition.

    Attributes:
        values: one text for each key, as the metastore has them.
        folder: below the table's own folder; a newer state has it too, unless it changed a row of the partition.
        size: bytes.
    """

    values: Values
    folder: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """One state of a table.

    Attributes:
        version: the schema version of its columns.
        mode: what it was made to hold.
        number: how many commits there were before it.
        columns: the name of each column by its id, which files know nothing of.
        struct: the columns, a changelog's own among them; files from before a column was added lack it.
        size: bytes of its data files.
        progress: what the rows contain, None before anything was written.
        kept: the state that `Target.roll_back` leads to.
        past: earlier states that can be read, newest first.
        partitioning: what the rows are divided by, in the names of `columns`.
        partition_by: the configured text that this was brought to, less what a column took with it that is gone.
        keys: what tells partitions apart; none if nothing is divided.
        partitions: where rows are, if there are keys; in any order.
    """

    version: int
    mode: Mode
    columns: Mapping[int, str]
    struct: T.StructType
    number: int = 0
    size: int = 0
    progress: Progress | None = None
    kept: Kept | None = None
    past: tuple[Past, ...] = ()
    partitioning: Partitioning = UNPARTITIONED
    partition_by: str | None = None
    keys: tuple[Key, ...] = ()
    partitions: tuple[PartFiles, ...] = ()

    @property
    def marker(self) -> str | None:
        """The text of the progress."""
        return None if self.progress is None else self.progress.to_text()

    @property
    def key_struct(self) -> T.StructType:
        """The keys, as Spark has columns."""
        return T.StructType([T.StructField(key.name, key.type) for key in self.keys])

    def to_text(self) -> str:
        """Return the file's content."""
        data: dict[str, Any] = {
            "format": _FORMAT_OF_PARTITIONS if self.keys else _FORMAT,
            "version": self.version,
            "mode": self.mode,
            "number": self.number,
            "columns": {str(id_): name for id_, name in self.columns.items()},
            "struct": json.loads(self.struct.json()),
            "size": self.size,
            "progress": self.marker,
            "kept": None if self.kept is None else _said(self.kept),
            "past": [_said(state) for state in self.past],
        }
        if self.partition_by is not None:
            data["partition_by"] = self.partition_by
            data["partitioning"] = str(self.partitioning)
            data["keys"] = [[key.name, json.loads(key.type.json()), key.sql] for key in self.keys]
            data["partitions"] = [[list(it.values), it.folder, it.size] for it in self.partitions]
        return json.dumps(data, separators=(",", ":"))


def parse_stamp(text: str) -> Stamp:
    """Read what `Stamp.to_text` wrote.

    Raises:
        TargetError: if it is damaged or of a later format.
    """
    try:
        data = json.loads(text)
        if data["format"] not in (_FORMAT, _FORMAT_OF_PARTITIONS):
            raise TargetError(f"Cannot read the table's stamp: format {data['format']} is later than this program")
        return Stamp(
            version=data["version"],
            mode=data["mode"],
            number=data["number"],
            columns={int(id_): name for id_, name in data["columns"].items()},
            struct=T.StructType.fromJson(data["struct"]),
            size=data["size"],
            progress=None if data["progress"] is None else parse_progress(data["progress"]),
            kept=None if data["kept"] is None else Kept(**data["kept"]),
            past=tuple(Past(**state) for state in data["past"]),
            **_partitions(data),
        )
    except (PartitioningError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TargetError(f"Cannot read the table's stamp {text[:200]!r}: {error}") from error


def _said(state: Past | Kept) -> dict[str, Any]:
    """Return what is written down of a state; nothing of partitions where there are none."""
    said = asdict(state)
    return said if state.partitioned else {key: value for key, value in said.items() if key != "partitioned"}


def _partitions(data: Mapping[str, Any]) -> dict[str, Any]:
    if "partition_by" not in data:
        return {}
    texts = [data["partitioning"]] if data["partitioning"] else []
    return {
        "partition_by": data["partition_by"],
        "partitioning": Partitioning.parse(texts),
        "keys": tuple(Key(name=name, type=_type(type_), sql=sql) for name, type_, sql in data["keys"]),
        "partitions": tuple(
            PartFiles(values=tuple(values), folder=folder, size=size) for values, folder, size in data["partitions"]
        ),
    }


def _type(data: Any) -> T.DataType:
    return T.StructType.fromJson({"fields": [{"name": "it", "type": data, "nullable": True, "metadata": {}}]})[
        "it"
    ].dataType


def number_of(reference: str) -> int:
    """Return the number of the commit that a reference is of."""
    return int(reference.partition("/_cdc_sync-")[2].partition("-")[0])


def names_of(schema: InternalSchema) -> dict[int, str]:
    """Return the name of each column by its id."""
    return {column.id: column.name for column in schema.columns}


def remembered(states: tuple[Past, ...], folders: int) -> tuple[Past, ...]:
    """Return the newest states, as many as lie in so many folders; several may share one."""
    found: list[Past] = []
    seen: set[str] = set()
    for state in states:
        seen.add(state.folder)
        if len(seen) > folders:
            break
        found.append(state)
    return tuple(found)
