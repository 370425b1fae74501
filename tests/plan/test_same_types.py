"""A type that changes at the source, or in events, and stays the same in the target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.history.history import History
from cdc_sync.core.lineage.column_log import ColumnLog, LoggedColumn, SourceKind, Structure, Token
from cdc_sync.core.lineage.spellings import converts_otherwise
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.model.positions import SourcePosition
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.core.schema.alignment import Evidence
from cdc_sync.core.schema.sent import Sent
from cdc_sync.core.schema.serde import schema_from_json, schema_to_json
from cdc_sync.testing import BYTES, INT32, INT64, JSON, TEXT, TIMESTAMP, TIMESTAMP_MILLIS, array, column, decimal
from tests.plan.model import ROUTE, observations
from tests.plan.tables import Table

LOG = replace(ROUTE, append=True)
DECIMAL = Sent(type="bytes", name="org.apache.kafka.connect.data.Decimal")
ISO_TIME = ConnectSchema(type="string", name="io.debezium.time.IsoTime", version=1)
TIME = ConnectSchema(type="int64", name="io.debezium.time.MicroTime", version=1)
DURATION = ConnectSchema(type="int64", name="io.debezium.time.MicroDuration", version=1)
INTERVAL = ConnectSchema(type="string", name="io.debezium.time.Interval", version=1)


def bits(length: int) -> ConnectSchema:
    return ConnectSchema(type="bytes", name="io.debezium.data.Bits", version=1, parameters={"length": str(length)})


def enum(*labels: str) -> ConnectSchema:
    name = "io.debezium.data.Enum"
    return ConnectSchema(type="string", name=name, version=1, parameters={"allowed": ",".join(labels)})


def told_of(source: str, type_: ConnectSchema = TEXT, length: str = "2147483647") -> ConnectSchema:
    parameters = {"__debezium.source.column.type": source, "__debezium.source.column.length": length}
    return replace(type_, parameters=parameters)


class Course:
    """A table with a column `v`, whose type changes between two rows, and perhaps what the source says of it."""

    def __init__(self, old: ConnectSchema, *, type_: str = "", kind: SourceKind = "message") -> None:
        self.table = Table(column("id", INT32, optional=False), column("v", old))
        self._kind = kind
        self._structures: list[Structure] = []
        if type_:
            self._tell(type_, "create table t ()", at=self.table.events()[0].source.position)

    def becomes(
        self, new: ConnectSchema | None, type_: str = "", statement: str = "alter table t alter v type x"
    ) -> Course:
        if type_:
            self._tell(type_, statement)
        if new is not None:
            self.table.alter_column("v", lambda _: column("v", new), convert=lambda value: value)
        return self

    def _tell(self, type_: str, statement: str, at: SourcePosition | None = None) -> None:
        if at is None:
            with self.table.wal.transaction():
                lsn = self.table.wal.advance()
                at = SourcePosition(kind="postgresql", parts=(self.table.wal.last_commit or lsn, lsn))
        columns = (
            LoggedColumn(name="id", token=Token(era=1, number=1), type="integer"),
            LoggedColumn(name="v", token=Token(era=1, number=2), type=type_),
        )
        self._structures.append(Structure(table=self.table.id, position=at, columns=columns, statement=statement))

    def said(self, route: Any = ROUTE, *, snapshot: bool = False) -> list[Evidence]:
        """What the versions behind the first one say of `v`."""
        self.table.row()
        events = self.table.events()
        seen = [
            replace(item, snapshot=snapshot and place > 0)
            for place, item in enumerate(observations(None, [events[0], events[-1]], events))
        ]
        logs = [ColumnLog(self._kind, self._structures)] if self._structures else []
        plan = plan_table(None, seen, route, ICEBERG, logs=logs)
        again = plan_table(
            History(table=self.table.id, versions=plan.versions[:1]), seen[1:], route, ICEBERG, logs=logs
        )
        assert plan.refusal is None
        assert again.versions == plan.versions[1:]
        return [item for version in plan.versions[1:] for item in version.evidence if item.subject == "v"]

    def kinds(self, route: Any = ROUTE, *, snapshot: bool = False) -> list[str]:
        return [item.kind for item in self.said(route, snapshot=snapshot)]


@pytest.mark.parametrize("kind", ["message", "ddl"])
def test_a_narrowing_that_only_a_statement_shows_is_marked(kind: SourceKind) -> None:
    course = Course(TEXT, type_="character varying(10)", kind=kind)
    (said,) = course.becomes(None, "character varying(3)", "alter table t alter v type varchar(3)").said()
    assert said.kind == "needs resync"
    assert said.text == (
        "existing values may differ: the source changed the type from character varying(10) to character varying(3): "
        "alter table t alter v type varchar(3)"
    )


def test_an_expression_is_marked_though_the_type_holds_every_value() -> None:
    course = Course(TEXT, type_="character varying(10)")
    (said,) = course.becomes(None, "text", "alter table t alter v type text using upper(v)").said()
    assert (said.kind, "by an expression of its own" in said.text) == ("needs resync", True)


def test_a_type_that_holds_every_value_is_told_and_not_marked() -> None:
    course = Course(TEXT, type_="character varying(10)").becomes(None, "text", "alter table t alter v type text")
    assert course.kinds() == ["retyped"]


def test_a_wider_spelling_after_a_narrowing_hides_nothing() -> None:
    course = Course(TIMESTAMP, type_="timestamp without time zone")
    course.becomes(None, "timestamp(0) without time zone").becomes(None, "timestamp without time zone")
    assert course.kinds() == ["needs resync"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TIMESTAMP, TIMESTAMP_MILLIS),
        (TIME, ISO_TIME),
        (TEXT, JSON),
        (bits(9), bits(12)),
        (enum("a", "b"), enum("a")),
        (array(TIMESTAMP), array(TIMESTAMP_MILLIS)),
        (told_of("VARCHAR", length="10"), told_of("VARCHAR", length="3")),
        (told_of("JSON"), told_of("JSONB")),
    ],
)
def test_events_alone_tell(old: ConnectSchema, new: ConnectSchema) -> None:
    assert Course(old).becomes(new).kinds() == ["needs resync"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TIMESTAMP_MILLIS, TIMESTAMP),
        (JSON, TEXT),
        (enum("a"), enum("a", "b")),
        (told_of("VARCHAR", length="3"), told_of("VARCHAR", length="10")),
    ],
)
def test_what_changes_no_value_is_told_without_a_mark(old: ConnectSchema, new: ConnectSchema) -> None:
    assert Course(old).becomes(new).kinds() == ["retyped"]


def test_a_connector_that_tells_more_says_nothing_of_the_table() -> None:
    assert Course(TEXT).becomes(told_of("VARCHAR", length="10")).kinds() == []


def test_rows_that_are_read_again_or_that_events_said_need_no_mark() -> None:
    assert Course(TIMESTAMP).becomes(TIMESTAMP_MILLIS).kinds(snapshot=True) == ["retyped"]
    assert Course(TIMESTAMP).becomes(TIMESTAMP_MILLIS).kinds(LOG) == ["retyped"]


@pytest.mark.parametrize(
    ("old", "new", "setting"),
    [
        (BYTES, TEXT, "binary.handling.mode"),
        (DURATION, INTERVAL, "interval.handling.mode"),
        (ConnectSchema(type="double"), decimal(10, 2), "decimal.handling.mode"),
        (TIME, ISO_TIME, "time.precision.mode"),
    ],
)
def test_a_setting_that_was_switched_is_named(old: ConnectSchema, new: ConnectSchema, setting: str) -> None:
    mark = Course(old).becomes(new).said()[-1]
    assert mark.kind == "needs resync"
    assert f"either {setting} of the connector was switched, or the source changed the type" in mark.text

    known = Course(old, type_="the same")
    mark = known.becomes(new, "the same").said()[-1]
    assert mark.kind == "needs resync"
    assert f"{setting} of the connector was switched, for the source's type is the same" in mark.text


def test_a_decimal_that_is_text_now_is_the_same_number() -> None:
    course = Course(decimal(10, 2), type_="numeric(10,2)").becomes(TEXT, "numeric(10,2)")
    assert [item.kind for item in course.said()] == ["rewrite"]


def test_whether_a_number_was_unsigned_matters_where_it_can_be() -> None:
    assert Course(INT64).becomes(decimal(20, 0)).kinds() == ["rewrite"]  # Postgres has no such numbers
    assert not converts_otherwise(Sent(type="int64"), DECIMAL, "postgresql")
    assert converts_otherwise(Sent(type="int64"), DECIMAL, "binlog")


def test_a_history_of_before_tells_nothing_and_is_read() -> None:
    first = Course(TIMESTAMP).table.history().head.schema
    data = schema_to_json(first)
    assert schema_from_json(data).columns[1].sent == first.columns[1].sent is not None
    for item in data["columns"]:
        del item["sent"]
    read = schema_from_json(data)
    assert (read, read.columns[1].sent) == (first, None)
