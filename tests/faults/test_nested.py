"""Structs whose members come, go, widen and move while rows are written: in a struct, a list and a map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdc_sync.api import commands
from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.testing import INT32, INT64, TEXT, Record, SourceTable, array, column, struct
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.fuzz.twins import Twins
from tests.registry.ccompat import SmallRegistry

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_PLACES = ("one", "all", "by_name")


def _columns(*members: ConnectSchema) -> list[ConnectSchema]:
    """A struct of these members by itself, in a list and in a map."""
    inner = struct("shop.Line", *members)
    keyed = ConnectSchema(type="map", keys=TEXT, values=replace(inner, optional=True))
    return [column("one", inner), column("all", array(inner)), column("by_name", keyed)]


def _values(**members: object) -> dict[str, Any]:
    return {"one": members, "all": [members, None], "by_name": {"k": members}}


class Source:
    """The table, whose structs change; rows that are there have what a reader of the new members sees."""

    def __init__(self, prefix: str) -> None:
        start = [column("id", INT32, optional=False), *_columns(column("sku", TEXT), column("qty", INT32))]
        self.table = SourceTable("orders", start, prefix=prefix, null_is_default=False)

    def alter(self, *members: ConnectSchema) -> None:
        types = {member.field or "": member.type for member in members}

        def member(value: Any, type_: str) -> Any:
            is_text = type_ == "int32" and isinstance(value, str)
            return (int(value) if value.isdigit() else None) if is_text else value

        def inside(value: Any) -> Any:
            match value:
                case {"k": held}:
                    return {"k": inside(held)}
                case dict():
                    return {name: member(value.get(name), type_) for name, type_ in types.items()}
                case list():
                    return [inside(item) for item in value]
                case _:
                    return value

        for changed in _columns(*members):
            self.table.alter_column(changed.field or "", lambda _, new=changed: new, convert=inside)  # type: ignore[misc]

    def open(self) -> list[Record]:
        """Write rows, and return two of them that are to come late."""
        for number in range(1, 4):
            self.table.insert(id=number, **_values(sku="a", qty=number))
        late = list(self.table.insert(id=30, **_values(sku="late", qty=7)))
        # PyIceberg reads a list or map of structs that is NULL as an empty one, so only the struct is.
        late += self.table.insert(id=31, **{**_values(sku=None, qty=8), "one": None})
        del self.table.records[-2:]
        return late

    def change(self) -> None:
        """Change the members twice within a batch: one widens and one comes, then one goes and one has another type."""
        table = self.table
        table.update({"id": 1}, **_values(sku="b", qty=2))
        self.alter(column("note", TEXT), column("sku", TEXT), column("qty", INT64))
        table.insert(id=4, **_values(note="77", sku="d", qty=1 << 40))
        table.insert(id=5, **_values(note="n", sku="d", qty=5))
        table.update({"id": 2}, one=None)
        self.alter(column("sku", TEXT), column("note", INT32))
        table.insert(id=6, **_values(sku="e", note=5))
        table.delete({"id": 3})


@contextmanager
def _as(format: str, records: Sequence[Record]) -> Iterator[tuple[list[Record], str]]:
    """Give records as a converter writes them, and what a pipeline is told of it."""
    if format == "json":
        yield list(records), ""
        return
    twins = Twins()
    found = [Record(key=twins.of(record.key), value=twins.of(record.value)) for record in records]
    with SmallRegistry(twins.texts) as registry:
        yield found, f"registry: {{url: '{registry.confluent_url}'}}"


def _plain(value: Any) -> Any:
    """A value as Arrow has it: a map is a list of pairs."""
    return [("k", value["k"])] if isinstance(value, dict) and "k" in value else value


@pytest.mark.parametrize("format", ["json", "avro"])
def test_members_change_in_the_middle_of_a_batch_and_rows_of_before_come_late(
    pipeline: NewPipeline, produce: Produce, tmp_path: Path, format: str
) -> None:
    source = Source(f"nested_{format}")
    late = source.open()
    count = len(source.table.records)
    source.change()
    table = source.table
    with _as(format, [*table.records, *late]) as (records, settings):
        lake = pipeline(f"nested_{format}", settings=settings)

        def run(sent: list[Record]) -> None:
            produce(table.topic, sent)
            lake.run()

        run(records[:count])
        run(records[count : len(table.records)])
        run(records[len(table.records) :])

        status = lake.statuses()["orders"]
        assert (status.state, status.version, lake.set_aside()) == ("running", 3, [])
        lost = {f"values of {name!r} that version 3 has no place for": 1 for name in _PLACES}
        assert status.counts == lost
        expected = [{name: _plain(value) for name, value in row.items()} for row in table.rows]
        rows = lake.read(table.id).to_pylist()
        assert sorted(rows, key=lambda row: row["id"]) == sorted(expected, key=lambda row: row["id"])
        texts = [
            change.text for version in commands.history(lake.config, "orders")[0].versions for change in version.changes
        ]
        assert (
            "change column all: change type of all.element.qty from INT to BIGINT, add all.element.note STRING first"
            in texts
        )

        if format == "avro":
            return  # all at once is the same for both once they are parsed
        again = replace(lake, folder=tmp_path / "again")
        again.folder.mkdir()
        again.run()
        assert again.history_files() == lake.history_files()
        found = again.read(table.id).to_pylist()
        assert sorted(found, key=lambda row: row["id"]) == sorted(rows, key=lambda row: row["id"])
