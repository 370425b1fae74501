"""Which event comes later, and which columns the names of an event schema stand for."""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.debezium.wire import EventSchema
from cdc_sync.core.model.positions import NO_POSITION, KafkaPosition, SourcePosition
from cdc_sync.core.planning.column_mappings import readings
from cdc_sync.core.planning.plan import is_later
from cdc_sync.core.schema.projection import Constant, FromColumn, Projection
from cdc_sync.testing import INT32, JSON, TEXT, column
from tests.plan.model import Event
from tests.plan.tables import Table


def at(*parts: int) -> SourcePosition:
    return SourcePosition(kind="postgresql", parts=parts)


class TestLater:
    def test_positions_decide(self) -> None:
        head = replace(Table().history().head, position=at(5, 5))
        assert is_later(at(5, 6), head.kafka, head)
        assert not is_later(at(4, 9), replace(head.kafka, offset=99), head)

    def test_without_positions_the_offset_does_but_only_in_one_partition(self) -> None:
        kafka = KafkaPosition(topic="t", partition=0, offset=7)
        head = replace(Table().history().head, position=NO_POSITION, kafka=kafka)
        assert is_later(NO_POSITION, replace(kafka, offset=8), head)
        assert not is_later(NO_POSITION, replace(kafka, offset=7), head)
        assert not is_later(NO_POSITION, replace(kafka, offset=8, partition=1), head)


def reads(projection: Projection) -> dict[int, str | None]:
    """Head column id -> the event's column that is read, None for a constant."""
    return {entry.id: entry.name if isinstance(entry, FromColumn) else None for entry in projection.columns}


class TestReadings:
    def schema(self, event: Event) -> tuple[EventSchema, str]:
        assert event.known.schema is not None
        assert event.known.fingerprint is not None
        return event.known.schema, event.known.fingerprint

    def test_an_old_schema_is_read_by_what_its_columns_became(self) -> None:
        t = Table()
        t.rename_column("a", "b")
        t.row().add_column(column("n", INT32, default=7), initial=7)
        history = t.row().history()
        first = t.events()[0]
        (reading,) = readings(history, *self.schema(first), first.source.position)
        assert reads(reading.projection) == {1: "id", 2: "a", 3: "z", 4: None}
        assert reading.projection.columns[3] == Constant(id=4, value=7, target=history.head.schema.columns[3].type)
        assert (reading.from_position, reading.to_position) == (None, None)

    def test_one_text_that_stood_for_two_columns_is_read_by_position(self) -> None:
        t = Table()
        t.drop_column("z")
        t.row().add_column(column("z", TEXT))
        history = t.row().history()
        first, _, last = t.events()
        assert first.known.digest == last.known.digest
        early, late = readings(history, *self.schema(last), last.source.position)
        assert (reads(early.projection), reads(late.projection)) == (
            {1: "id", 2: "a", 4: None},
            {1: "id", 2: "a", 4: "z"},
        )
        assert (early.from_position, early.to_position) == (None, last.source.position)
        assert (late.from_position, late.to_position) == (last.source.position, None)

    def test_another_text_of_the_same_columns_is_read_as_they_are(self) -> None:
        t = Table()
        t.alter_column("z", lambda _: column("z", JSON))
        history = t.row().history()
        last = t.events()[-1]
        (reading,) = readings(history, *self.schema(last), last.source.position)
        assert reads(reading.projection) == {1: "id", 2: "a", 3: "z"}

    def test_a_text_that_came_back_for_a_new_column_reads_the_new_one(self) -> None:
        t = Table()
        t.drop_column("z")
        t.row().add_column(column("z", JSON))
        t.row().alter_column("z", lambda _: column("z", TEXT))
        history = t.row().history()
        first, *_, last = t.events()
        assert (first.known.digest, len(history.versions)) == (last.known.digest, 4)
        early, late = readings(history, *self.schema(last), last.source.position)
        assert reads(early.projection)[4] is None
        assert reads(late.projection)[4] == "z"
        assert early.to_position == late.from_position == t.events()[2].source.position

    def test_a_text_no_version_has_is_read_by_the_version_in_effect_and_by_name(self) -> None:
        t = Table()
        t.add_column(column("n", INT32))
        history = t.row().history()
        schema, _ = self.schema(t.events()[0])
        late = replace(schema, columns=schema.columns[:2])
        (reading,) = readings(history, late, "unknown", history.head.position)
        assert reads(reading.projection) == {1: "id", 2: "a", 3: None, 4: None}
        (reading,) = readings(history, late, "unknown", at(0, 0))
        assert reads(reading.projection) == {1: "id", 2: "a", 3: None, 4: None}
