"""A Postgres table whose DDL is told by logical messages, in the form of a plain event trigger."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.testing import INT32, TEXT, Record, SourceTable, Wal, column
from cdc_sync.testing.envelope import source_block

_SCHEMA = {
    "type": "struct",
    "fields": [],
    "optional": False,
    "name": "io.debezium.connector.postgresql.MessageValue",
}


class ToldTable(SourceTable):
    """Columns `id`, `z`, `a`, the numbers they have, and a message for every change of them.

    Attributes:
        numbers: name -> attnum.
        messages: everything told so far, in order; records of the topic `<prefix>.message`.
    """

    def __init__(self, prefix: str, name: str = "t", *, wal: Wal | None = None, relid: int = 16409) -> None:
        columns = [column("id", INT32, optional=False), column("z", TEXT), column("a", TEXT)]
        super().__init__(name, columns, prefix=prefix, wal=wal, null_is_default=False)
        self.numbers = {"id": 1, "z": 2, "a": 3}
        self._types: dict[str, str] = {}
        self._relid = relid
        self.messages: list[Record] = []
        self._next = 4

    def rename_column(self, old: str, new: str) -> None:
        super().rename_column(old, new)
        self.numbers = {new if name == old else name: number for name, number in self.numbers.items()}
        self.tell(f"alter table t rename column {old} to {new}")

    def drop_column(self, name: str) -> None:
        super().drop_column(name)
        del self.numbers[name]
        self.tell(f"alter table t drop column {name}")

    def add_column(self, added: ConnectSchema, *, initial: object = None) -> None:
        super().add_column(added, initial=initial)
        self.numbers[added.field or ""] = self._next
        self._next += 1
        self.tell(f"alter table t add column {added.field} text")

    def rename_and_retype(self, old: str, new: ConnectSchema, type_: str) -> None:
        """RENAME COLUMN and ALTER COLUMN … TYPE in one transaction; values stay as they are."""
        name = new.field or ""
        super().alter_column(old, lambda _: new)
        self.numbers = {name if known == old else known: number for known, number in self.numbers.items()}
        self._types[name] = type_
        self.tell(f"alter table t rename column {old} to {name}; alter table t alter column {name} type {type_}")

    def recreate(self, *columns: ConnectSchema) -> None:
        """DROP TABLE, and CREATE TABLE under its name."""
        self.columns = columns
        self.rows.clear()
        self.numbers = {column.field or "": number for number, column in enumerate(columns, 1)}
        self._next = len(columns) + 1
        self._relid += 10
        self.tell("create table t", tag="CREATE TABLE")

    def drop(self) -> None:
        """DROP TABLE, told as our own event trigger does."""
        self.rows.clear()
        content: dict[str, object] = {
            "v": 1,
            "kind": "drop",
            "cluster": None,
            "tag": "DROP TABLE",
            "schema": "public",
            "table": self.id.table,
            "relid": self._relid,
            "query": f"drop table {self.id.table}",
        }
        self._message("cdc_sync", content)

    def rename_to(self, name: str) -> None:
        """ALTER TABLE … RENAME TO: the same table, whose events have another name and another topic from then on."""
        old, self.id = self.id.table, replace(self.id, table=name)
        self.topic = f"{self.topic.removesuffix(old)}{name}"
        self._written_for = None
        self.tell(f"alter table {old} rename to {name}")

    def tell(self, query: str, *, tag: str = "ALTER TABLE") -> None:
        """Write what the trigger does behind a command: all columns as they are now."""
        content: dict[str, object] = {
            "tag": tag,
            "object": f"public.{self.id.table}",
            "relid": str(self._relid),
            "cols": [
                {"attnum": number, "name": name, "type": self._types.get(name, "text"), "notnull": False}
                for name, number in sorted(self.numbers.items(), key=lambda item: item[1])
            ],
            "query": query,
        }
        self._message("ddl", content)

    def _message(self, prefix: str, content: dict[str, object]) -> None:
        with self.wal.transaction():
            source = source_block(
                self.id,
                prefix=self._prefix,
                lsn=self.wal.advance(),
                last_commit=self.wal.last_commit,
                tx_id=self.wal.tx_id,
                ts_us=self.wal.now_us,
                snapshot="false",
            )
        message = {"prefix": prefix, "content": base64.b64encode(json.dumps(content).encode()).decode()}
        payload = {"op": "m", "ts_ms": 0, "source": source | {"schema": "", "table": ""}, "message": message}
        value = json.dumps({"schema": _SCHEMA, "payload": payload}, separators=(",", ":"))
        self.messages.append(Record(key=None, value=value.encode()))
