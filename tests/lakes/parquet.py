"""Parquet tables that a Hive metastore names: asked over thrift, files read by Arrow.

The metastore is a server of its own, for the embedded one serves the job's process alone. An entry says a table's
columns twice, in Hive's words and in Spark's, its partitions do again, and its files do; they have to agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import NoSuchObjectException
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from cdc_sync.config import Target
from tests.lakes.files import newest, rows_of, undisturbed
from tests.lakes.table import Misread, Place, Table, held, source_name
from tests.lakes.words import of_spark

_HIVE = {"long": "bigint", "timestamptz": "timestamp"}
_NOTHING: Mapping[str, str] = {}


class ParquetLake:
    """The tables that one metastore names."""

    def __init__(self, target: Target) -> None:
        self._uri = urlsplit(target.catalog.uri or "")
        self._warehouse = Path(target.catalog.warehouse)

    def table(self, place: Place) -> Table | None:
        return undisturbed(lambda: self._read(place))

    def _read(self, place: Place) -> Table | None:
        namespace, name = (held(part).lower() for part in place)
        with self._client() as client:
            try:
                entry = client.get_table(namespace, name)
                places = self._places(client, entry)
            except NoSuchObjectException:
                return None
        columns = _columns(entry)
        rows = [row for file in _files(places) for row in rows_of(file, columns, widened=_NOTHING)]
        names = {name: source_name(name) for name in columns}
        return Table(
            columns=tuple((names[name], type_) for name, type_ in columns.items()),
            rows=[{names[name]: value for name, value in row.items()} for row in rows],
        )

    def partitions(self, place: Place) -> dict[tuple[str, ...], Path]:
        """Return where the rows of each partition lie."""
        namespace, name = (held(part).lower() for part in place)
        with self._client() as client:
            found = client.get_partitions(namespace, name, -1)
        return {tuple(it.values): _folder(it.sd.location) for it in found}

    def _places(self, client: Client, entry: Any) -> list[Path]:
        """Return the folders of a table, all of which the metastore tells in one call."""
        if not entry.partitionKeys:
            return [_folder(entry.sd.location)]
        found = client.get_partitions(entry.dbName, entry.tableName, -1)
        if client.get_table(entry.dbName, entry.tableName) != entry:
            raise FileNotFoundError("the table has become another one meanwhile")
        told = [(column.name, column.type) for column in entry.sd.cols]
        for it in found:
            if [(column.name, column.type) for column in it.sd.cols] != told:
                raise Misread(f"partition {it.values} of {entry.dbName}.{entry.tableName} has other columns than it")
        return [_folder(it.sd.location) for it in found]

    def stamp(self) -> int | None:
        return newest(self._warehouse.glob("*.db/*"))

    def close(self) -> None:
        """Nothing is open."""

    @contextmanager
    def _client(self) -> Iterator[Client]:
        socket = TSocket(self._uri.hostname, self._uri.port)
        socket.setTimeout(60_000)
        transport = TBufferedTransport(socket)
        transport.open()
        try:
            yield Client(TBinaryProtocol(transport))
        finally:
            transport.close()


def _folder(location: str) -> Path:
    # A location is a path, in which Hive has written some signs as `%` and two digits, and not a URI.
    return Path(location.removeprefix("file:"))


def _files(folders: list[Path]) -> list[Path]:
    # A folder that is gone is one that the metastore does not name any more.
    return [
        file
        for folder in folders
        for file in folder.iterdir()
        if file.suffix == ".parquet" and file.name[0] not in "._"
    ]


def _columns(entry: Any) -> dict[str, str]:
    """Return name -> type in Iceberg's words, as Spark finds them in an entry; those of Hive have to be the same."""
    said = entry.parameters
    parts = range(int(said["spark.sql.sources.schema.numParts"]))
    schema = json.loads("".join(said[f"spark.sql.sources.schema.part.{part}"] for part in parts))
    keys = int(said.get("spark.sql.sources.schema.numPartCols", "0"))
    fields, keyed = schema["fields"][: len(schema["fields"]) - keys], schema["fields"][len(schema["fields"]) - keys :]
    if [(it.name, it.type) for it in entry.partitionKeys] != [
        (it["name"].lower(), _in_hive_s_words(it["type"])) for it in keyed
    ]:
        raise Misread(f"the entry of {entry.dbName}.{entry.tableName} has other keys for Hive than for Spark")
    found = {field["name"]: of_spark(field["type"]) for field in fields}
    hive = [(column.name, column.type) for column in entry.sd.cols]
    if hive != (
        wanted := [(name.lower(), _in_hive_s_words(field["type"])) for name, field in zip(found, fields, strict=True)]
    ):
        raise Misread(f"the entry of {entry.dbName}.{entry.tableName} has {hive} for Hive, which is not {wanted}")
    return found


def _in_hive_s_words(type_: Any) -> str:
    """Return Hive's text of a type of Spark's JSON."""
    if isinstance(type_, str):
        text = of_spark(type_).replace(", ", ",")
        return _HIVE.get(text, text)
    match type_["type"]:
        case "struct":
            fields = (f"{field['name']}:{_in_hive_s_words(field['type'])}" for field in type_["fields"])
            return f"struct<{','.join(fields)}>"
        case "array":
            return f"array<{_in_hive_s_words(type_['elementType'])}>"
        case _:
            return f"map<{_in_hive_s_words(type_['keyType'])},{_in_hive_s_words(type_['valueType'])}>"
