"""What single messages say, and what a log makes of those that are strange."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from cdc_sync.core.lineage.column_log import Structure
from cdc_sync.core.lineage.message_forms import split_identity
from cdc_sync.core.lineage.messages import MessageLog, logical_message
from cdc_sync.core.lineage.records import LogicalMessage
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.errors import WireError

KAFKA = KafkaPosition(topic="shop.message", partition=0, offset=3)
ORDERS = TableId(database="shop", schema="inv", table="orders")
ITEMS = TableId(database="shop", schema="inv", table="items")


def payload(content: object = "", **changes: object) -> dict[str, object]:
    source = {"connector": "postgresql", "db": "shop", "sequence": '["100","120"]', "lsn": 120}
    return {"op": "m", "source": source, "message": {"prefix": "cdc_sync", "content": content}, **changes}


@pytest.mark.parametrize(
    "content", [b'{"a": ">>>???"}', base64.b64encode(b'{"a": ">>>???"}').decode(), b'{"a": ">>>???"}'.hex()]
)
def test_content_is_read_as_bytes_base64_and_hex(content: object) -> None:
    message = logical_message(payload(content), KAFKA)
    assert message.content == b'{"a": ">>>???"}'
    assert message.position == SourcePosition(kind="postgresql", parts=(100, 120))
    assert (message.database, message.prefix, message.kafka) == ("shop", "cdc_sync", KAFKA)


def test_content_in_url_safe_base64_is_read() -> None:
    text = base64.urlsafe_b64encode(b'{"a": ">>>???\xc3\xbf"}').decode()
    assert set("-_") & set(text)
    assert logical_message(payload(text), KAFKA).content == b'{"a": ">>>???\xc3\xbf"}'


def test_a_message_without_content_is_empty() -> None:
    assert logical_message(payload(None), KAFKA).content == b""


@pytest.mark.parametrize(
    "broken",
    [
        payload(op="c"),
        payload(source=None),
        payload(message=None),
        payload(message={"prefix": None, "content": ""}),
        payload(source={"connector": "postgresql", "db": "shop"}),
        payload(source={"connector": "postgresql", "lsn": 5}),
        payload(source={"connector": "mysql", "db": "shop", "lsn": 5}),
        payload("not base64!"),
        payload(7),
    ],
)
def test_what_is_no_logical_message_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises(WireError, match=r"Cannot read logical message shop\.message\[0\]@3"):
        logical_message(broken, KAFKA)


class Topic:
    """Messages of our form and of the plain one, one after the other."""

    def __init__(self) -> None:
        self.log = MessageLog()
        self.lsn = 1000

    def raw(self, content: bytes, prefix: str = "cdc_sync", lsn: int | None = None) -> None:
        self.lsn += 10
        at = SourcePosition(kind="postgresql", parts=(self.lsn - 5, self.lsn)) if lsn is None else position(lsn)
        self.log.add(LogicalMessage(position=at, kafka=KAFKA, database="shop", prefix=prefix, content=content))

    def own(self, kind: str = "command", lsn: int | None = None, **fields: Any) -> None:
        body = {"v": 1, "kind": kind, "cluster": "71", "tag": "ALTER TABLE", "schema": "inv", "table": "orders"}
        body |= {"relid": 16409, "columns": columns({1: "id", 2: "a"}), "query": "alter …", **fields}
        self.raw(json.dumps(body).encode(), lsn=lsn)

    def plain(self, **fields: Any) -> None:
        body = {"tag": "ALTER TABLE", "object": "inv.orders", "relid": "16409", "cols": columns({1: "id", 2: "a"})}
        self.raw(json.dumps({**body, "query": "alter …", **fields}).encode(), prefix="ddl")

    def of(self, table: TableId = ORDERS) -> list[list[str]]:
        return [[column.name for column in structure.columns] for structure in self.log.log().of(table)]

    def last(self, table: TableId = ORDERS) -> Structure:
        return self.log.log().of(table)[-1]

    def reasons(self) -> list[tuple[tuple[TableId, ...], str]]:
        return [(unread.tables, unread.reason) for unread in self.log.log().unread]


def position(lsn: int) -> SourcePosition:
    return SourcePosition(kind="postgresql", parts=(lsn - 5, lsn))


def columns(names: dict[int, str]) -> list[dict[str, object]]:
    return [{"attnum": number, "name": name, "type": "integer", "notnull": False} for number, name in names.items()]


@pytest.fixture
def topic() -> Topic:
    return Topic()


def test_a_command_tells_the_columns_in_the_order_of_their_numbers(topic: Topic) -> None:
    topic.own(columns=columns({4: "z", 1: "id"}), query="x" * 400)
    assert [(c.name, c.token.era, c.token.number) for c in topic.last().columns] == [
        ("id", ("pg", "shop", "71"), (16409, 1)),
        ("z", ("pg", "shop", "71"), (16409, 4)),
    ]
    assert len(topic.last().statement) == 300
    assert topic.log.log().kind == "message"


def test_a_renamed_table_has_no_columns_under_its_old_name(topic: Topic) -> None:
    topic.own()
    topic.own(table="items")
    assert (topic.of(ORDERS), topic.of(ITEMS)) == ([["id", "a"], []], [["id", "a"]])
    assert topic.last(ORDERS).position == topic.last(ITEMS).position


@pytest.mark.parametrize(
    ("query", "former"),
    [
        ("alter table inv.items rename to orders", "inv.items"),
        ('insert into t values (1); ALTER TABLE IF EXISTS "It""ems" RENAME TO orders', 'inv.It"ems'),
        ("alter table old.orders set schema inv", "old.orders"),
        ("alter table inv.orders rename to old; alter table inv.items rename to orders", "inv.items"),
        ("alter table inv.items rename to orders; alter table inv.orders add b int", None),
        ("alter table inv.a rename to orders; alter table other.b rename to orders", None),
        ("alter table other.items rename to orders", None),
        ("alter table orders set schema inv", None),
        ("alter table orders rename a to b", None),
        ("select exchange('items'); alter table items rename to orders", None),
        ("", None),
    ],
)
def test_the_text_of_a_first_message_tells_the_name_a_table_had(query: str, former: str | None, topic: Topic) -> None:
    topic.plain(query=query)
    changes = topic.log.log().name_changes
    assert [f"{change.old.schema}.{change.old.table}" for change in changes] == ([] if former is None else [former])
    assert [change.new for change in changes] == ([] if former is None else [ORDERS])


def test_a_name_that_another_table_has_is_not_taken_from_it_by_a_text(topic: Topic) -> None:
    topic.plain(relid="1", object="inv.items")
    topic.plain(relid="2", query="alter table inv.items rename to orders")
    assert (topic.log.log().name_changes, topic.of(ITEMS)) == ((), [["id", "a"]])


def test_tables_that_change_places_keep_their_numbers(topic: Topic) -> None:
    topic.own(relid=1)
    topic.own(relid=2, table="items", columns=columns({1: "id"}))
    topic.own(relid=1, table="old")
    topic.own(relid=2, table="orders", columns=columns({1: "id"}))
    topic.own(relid=1, table="items")
    assert (topic.of(ORDERS), topic.of(ITEMS)) == ([["id", "a"], [], ["id"]], [["id"], [], ["id", "a"]])
    assert topic.last(ORDERS).columns[0].token.number == (2, 1)


def test_a_table_whose_name_was_taken_meanwhile_takes_nothing_away_when_it_moves(topic: Topic) -> None:
    topic.plain(relid="1")
    topic.plain(relid="2", cols=columns({1: "id"}))
    topic.plain(relid="1", object="inv.items")
    assert topic.of(ORDERS) == [["id", "a"], ["id"]]


def test_a_dropped_table_has_no_columns_and_a_new_one_other_tokens(topic: Topic) -> None:
    topic.own()
    before = topic.last().columns[0].token
    topic.own("drop", tag="DROP TABLE")
    assert topic.of() == [["id", "a"], []]
    topic.own(relid=16500, tag="CREATE TABLE")
    assert topic.of() == [["id", "a"], [], ["id", "a"]]
    assert topic.last().columns[0].token.era == before.era
    assert topic.last().columns[0].token != before


def test_messages_sent_again_change_nothing(topic: Topic) -> None:
    topic.own(lsn=10)
    topic.own(lsn=20, columns=columns({1: "id", 2: "b"}))
    once = topic.log.log().of(ORDERS)
    topic.own(lsn=10)
    topic.own(lsn=20, columns=columns({1: "id", 2: "b"}))
    assert topic.log.log().of(ORDERS) == once


def test_messages_whose_first_copy_is_lost_go_where_they_belong(topic: Topic) -> None:
    topic.own(lsn=20, table="items")
    topic.own(lsn=10)
    topic.own(lsn=20, table="items")
    assert (topic.of(ORDERS), topic.of(ITEMS)) == ([["id", "a"], []], [["id", "a"]])


def test_a_message_of_another_server_ends_what_was_known(topic: Topic) -> None:
    topic.own()
    topic.own(relid=2, table="items")
    topic.own(cluster="72", relid=2, table="items")
    assert topic.of(ORDERS) == [["id", "a"], []]
    assert topic.last(ITEMS).columns[0].token.era == ("pg", "shop", "72")


def test_messages_of_others_are_ignored(topic: Topic) -> None:
    for prefix, content in (("outbox", b"{}"), ("ddl", b"\xff\x00"), ("ddl", b"[]"), ("ddl", b'{"tag": "x"}')):
        topic.raw(content, prefix)
    topic.raw(json.dumps({"relid": 1, "cols": [], "object": "inv.orders"}).encode(), "elsewhere")
    assert topic.log.log().tables == ()
    assert topic.log.log().unread == ()


def test_temporary_tables_are_ignored(topic: Topic) -> None:
    topic.plain(object="pg_temp.orders")
    assert topic.log.log().tables == ()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff", "it is not UTF-8 JSON"),
        (b"[" * 100_000, "it is not UTF-8 JSON"),
        (b"[]", "it is not a JSON object"),
        (b'{"v": 2, "kind": "command"}', "version 2 is not known"),
        (b'{"v": 1, "kind": "dance"}', "kind 'dance' is not known"),
        (b'{"v": 1, "kind": "command", "relid": true}', "relid True"),
        (b'{"v": 1, "kind": "command", "relid": 0}', "relid 0"),
    ],
)
def test_messages_that_claim_to_be_ours_and_cannot_be_read_are_reported_and_end_all_that_was_known(
    topic: Topic, content: bytes, reason: str
) -> None:
    topic.own()
    topic.raw(content)
    ((tables, told),) = topic.reasons()
    assert reason in told
    assert tables == ()
    assert topic.of() == [["id", "a"], []]
    topic.own()
    assert topic.of() == [["id", "a"], [], ["id", "a"]]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"v": 2}, "version 2"),
        ({"schema": None}, "it has no schema"),
        ({"table": ""}, "it has no table"),
        ({"columns": None}, "not a list"),
        ({"columns": [1]}, "not a list"),
        ({"columns": [{"attnum": "1", "name": "id", "type": "x"}]}, "attnum '1'"),
        ({"columns": [{"attnum": 0, "name": "id", "type": "x"}]}, "attnum 0"),
        ({"columns": [{"attnum": 1, "name": 7, "type": "x"}]}, "no name"),
        ({"columns": columns({1: "a", 2: "a"})}, "named twice"),
        ({"columns": [*columns({1: "a"}), *columns({1: "b"})]}, "named twice"),
    ],
)
def test_a_broken_message_about_one_table_ends_what_was_known_of_that_one(
    topic: Topic, fields: dict[str, Any], reason: str
) -> None:
    topic.own()
    topic.own(relid=2, table="items")
    topic.own(**fields)
    ((tables, told),) = topic.reasons()
    assert reason in told
    assert tables == (ORDERS,)
    assert (topic.of(ORDERS), topic.of(ITEMS)) == ([["id", "a"], []], [["id", "a"]])


def test_a_plain_message_with_a_strange_identity_is_reported(topic: Topic) -> None:
    topic.plain()
    topic.plain(object="trg on inv.orders", query="create trigger")
    ((tables, told),) = topic.reasons()
    assert (tables, topic.of()) == ((ORDERS,), [["id", "a"], []])
    assert "'trg on inv.orders' is not the name of a table" in told


def test_a_failure_that_the_trigger_reports_ends_what_was_known_of_its_tables(topic: Topic) -> None:
    topic.own()
    topic.own(relid=2, table="items")
    topic.own("failed", relids=[2, 3], reason="disk full")
    assert topic.reasons() == [((ITEMS,), "The event trigger failed: disk full")]
    assert (topic.of(ORDERS), topic.of(ITEMS)) == ([["id", "a"]], [["id", "a"], []])
    topic.own("failed", relids=None, reason="disk full")
    assert topic.of(ORDERS) == [["id", "a"], []]


def test_removal_of_the_trigger_ends_all_that_was_known(topic: Topic) -> None:
    topic.own()
    topic.raw(b'{"v": 1, "kind": "uninstalled"}')
    assert topic.of() == [["id", "a"], []]
    assert len(topic.log.log().unread) == 1


def test_a_baseline_says_nothing_of_the_time_before_it(topic: Topic) -> None:
    topic.own("baseline")
    assert topic.of() == [["id", "a"]]
    assert topic.log.before_first(ORDERS, ("id", "a")) is None


def before(names: dict[int, str], **fields: str) -> dict[str, object]:
    return {"schema": "inv", "table": "orders", "columns": columns(names), **fields}


def test_what_a_first_message_says_of_before_is_what_was_there(topic: Topic) -> None:
    topic.own(columns=columns({1: "id", 3: "b"}), before=before({1: "id", 3: "a"}))
    assert topic.of() == [["id", "a"], ["id", "b"]]
    reading, command = topic.log.log().of(ORDERS)
    assert (reading.reading, command.reading) == (True, False)
    assert reading.position < command.position
    told = topic.log.log().before(ORDERS, ("id", "a"))
    assert {name: token.number for name, token in told.items()} == {"id": (16409, 1), "a": (16409, 3)}


def test_columns_of_before_are_found_under_the_names_that_avro_allows(topic: Topic) -> None:
    topic.own(columns=columns({1: "id", 2: "b"}), before=before({1: "id", 2: "a-a"}))
    told = topic.log.log().with_avro_names().before(ORDERS, ("id", "a_a"))
    assert told["a_a"].number == (16409, 2)


def test_a_first_message_tells_which_name_the_table_had(topic: Topic) -> None:
    topic.own(before=before({1: "id", 2: "a"}, table="items"))
    assert (topic.of(ITEMS), topic.of(ORDERS)) == ([["id", "a"], []], [["id", "a"]])
    assert [(change.old, change.new) for change in topic.log.log().name_changes] == [(ITEMS, ORDERS)]


def test_what_a_message_says_of_before_and_was_told_already_is_not_told_twice(topic: Topic) -> None:
    topic.own("baseline")
    topic.own(columns=columns({1: "id", 2: "b", 3: "c"}), before=before({1: "id", 2: "a"}))
    for lsn in (2000, 2010):  # DROP COLUMN fires both triggers
        topic.own(lsn=lsn, columns=columns({1: "id", 2: "b"}), before=before({1: "id", 2: "b", 3: "c"}))
    topic.own(lsn=2020, before=before({1: "id", 2: "b"}))
    assert topic.of() == [["id", "a"], ["id", "b", "c"], ["id", "b"], ["id", "b"], ["id", "a"]]
    assert topic.reasons() == []


@pytest.mark.parametrize("again", ["command", "baseline"])
def test_a_change_that_no_message_told_of_is_reported_by_the_next_one(topic: Topic, again: str) -> None:
    topic.own("baseline")
    topic.own(relid=2, table="items")
    now = columns({1: "id", 3: "c"})
    topic.own(again, columns=now, before=before({1: "id", 3: "b"}) if again == "command" else None)
    ((tables, told),) = topic.reasons()
    assert tables == (ORDERS,)
    assert "no message tells how" in told
    assert topic.of()[-1] == ["id", "c"]
    assert topic.of(ITEMS) == [["id", "a"]]


def test_columns_that_only_have_another_type_by_name_did_not_change(topic: Topic) -> None:
    topic.own("baseline")
    topic.own(before={**before({1: "id"}), "columns": [{**one, "type": "mood"} for one in columns({1: "id", 2: "a"})]})
    assert topic.reasons() == []


def test_a_table_is_known_again_right_before_the_first_message_behind_a_gap(topic: Topic) -> None:
    topic.own("baseline")
    topic.own("failed", relids=[16409], reason="disk full")
    topic.own(columns=columns({1: "id", 2: "c"}), before=before({1: "id", 2: "b"}))
    assert topic.of() == [["id", "a"], [], ["id", "b"], ["id", "c"]]
    assert len(topic.reasons()) == 1


def test_what_rows_read_of_before_a_column_is_the_same_before_a_command_as_behind_it(topic: Topic) -> None:
    ((one, other), was) = columns({1: "id", 2: "b"}), before({1: "id", 2: "a"})
    topic.own(columns=[one, {**other, "missing": "7"}], before=was)
    assert [structure.columns[1].missing for structure in topic.log.log().of(ORDERS)] == ["7", "7"]


@pytest.mark.parametrize("told", [7, [], {"schema": "inv"}, {"schema": "inv", "table": "t", "columns": [1]}])
def test_a_message_whose_word_of_before_is_broken_is_reported(topic: Topic, told: object) -> None:
    topic.own(before=told)
    ((_, reason),) = topic.reasons()
    assert "Cannot read a message about DDL" in reason


def test_columns_of_a_table_that_was_there_before_the_one_created_are_others(topic: Topic) -> None:
    topic.own(tag="CREATE TABLE")
    told = topic.log.before_first(ORDERS, ("id", "a"))
    assert told is not None
    tokens = {column.token for column in topic.last().columns}
    assert not tokens & set(told.values())
    assert {token.era for token in told.values()} == {token.era for token in tokens}
    assert topic.log.before_first(ITEMS, ("id",)) is None


@pytest.mark.parametrize(
    ("identity", "names"),
    [
        ("inv.orders", ("inv", "orders")),
        ("inv.orders.total", ("inv", "orders", "total")),
        ('"Odd Schema"."Odd.Table é"."A ""B"', ("Odd Schema", "Odd.Table é", 'A "B')),
        ('"with\nnewline".t', ("with\nnewline", "t")),
        ("inv.f(integer)", None),
        ("trg on inv.orders", None),
        ("Inv.orders", None),
        ("inv.", None),
        ('"inv.orders', None),
        ("", None),
    ],
)
def test_identities_are_split_where_postgres_joins_them(identity: str, names: tuple[str, ...] | None) -> None:
    assert split_identity(identity) == names
