"""The replay claims that two columns are one, or are two, only where it understood everything in between."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.lineage.column_log import ColumnLog, Structure, Token
from cdc_sync.core.lineage.ddl_log import GAP, NO_PLACE, RESTART
from cdc_sync.core.lineage.records import ColumnEntry, SchemaChangeRecord, TableEntry
from cdc_sync.core.model.positions import NO_POSITION, SourcePosition, TableId
from tests.evidence.ddl_schema_changes import at, change, replayed, table

CREATED = change(10, "create table t (a int, b int)", {"t": "a b"})


def structure(log: ColumnLog, place: int, name: str = "t") -> Structure:
    found = log.at(table(name), at(place))
    assert found is not None
    return found


def tokens(log: ColumnLog, place: int, name: str = "t") -> dict[str, Token]:
    return {column.name: column.token for column in structure(log, place, name).columns}


def eras(log: ColumnLog, place: int, name: str = "t") -> set[object]:
    return {token.era for token in tokens(log, place, name).values()}


def logged(*records: SchemaChangeRecord) -> ColumnLog:
    return replayed(*records).log()


def altered(clauses: str, columns: str) -> ColumnLog:
    return logged(CREATED, change(20, f"alter table t {clauses}", {"t": columns}))


@pytest.mark.parametrize(
    ("clauses", "columns", "origins"),
    [
        ("rename column a to c", "c b", {"c": "a", "b": "b"}),
        ("rename column a to b, rename column b to a", "b a", {"b": "a", "a": "b"}),
        ("change a b int, change b a int", "b a", {"b": "a", "a": "b"}),
        ("change a c int after b", "b c", {"c": "a", "b": "b"}),
        ("rename column A to A", "A b", {"A": "a", "b": "b"}),
        ("modify B int first", "b a", {"a": "a", "b": "b"}),
        ("modify B int", "a B", {"a": "a", "B": "b"}),
        ("drop a, add a int", "b a", {"b": "b", "a": None}),
        ("drop a, add a int first", "a b", {"b": "b", "a": None}),
        ("drop a, rename column b to a", "a", {"a": "b"}),
        ("rename column a to c, add a int", "c b a", {"c": "a", "b": "b", "a": None}),
        ("add column if not exists a int", "a b", {"a": "a", "b": "b"}),
        ("drop a, add column if not exists a int", "b", {"b": "b"}),
        ("rename column a to d, add column if not exists a int", "d b", {"d": "a", "b": "b"}),
        ("drop column if exists z, rename column if exists z to y", "a b", {"a": "a", "b": "b"}),
        ("add x int, modify x bigint", "a b x", {"a": "a", "b": "b", "x": None}),
        ("engine=InnoDB", "a b", {"a": "a", "b": "b"}),
    ],
)
def test_names_in_one_alter_table_are_those_from_before_it(
    clauses: str, columns: str, origins: dict[str, str | None]
) -> None:
    """Each row was tried on MariaDB 10.11 with a row in the table."""
    log = altered(clauses, columns)
    before, after = tokens(log, 10), tokens(log, 20)
    assert list(after) == columns.split()
    assert log.unread == ()
    for name, origin in origins.items():
        assert after[name] == before[origin] if origin else after[name] not in before.values()
    assert eras(log, 10) == eras(log, 20)


@pytest.mark.parametrize(
    ("ddl", "columns"),
    [
        ("alter table t rename column a to c", "a b"),
        ("alter table t rename column a to c", "c b d"),
        ("alter table t rename column a to c", "c"),
        ("alter table t rename column a to c", "c c"),
        ("alter table t drop z", "a b"),
        ("alter table t rename column z to y", "a y"),
        ("alter table t rename column a to b", "b"),
        ("alter table t rename column a to b, rename column b to a", "a b"),
        ("alter table t engine=InnoDB", "b a"),
        ("alter table t frobnicate", "a b"),
        ("alter table t drop a,", "b"),
        ("create index i on t (a)", "a c"),
        ("create procedure p() begin alter table t drop a; end", "b"),
        ("create table if not exists t (c int)", "c"),
        ("alter table t comment 'x' rename column a to b", "a b"),
        ("garbage", "a b"),
    ],
)
def test_what_is_contradicted_or_not_understood_ends_the_era_and_is_reported(ddl: str, columns: str) -> None:
    log = logged(CREATED, change(20, ddl, {"t": columns}))
    assert [column.name for column in structure(log, 20).columns] == columns.split()
    assert not eras(log, 10) & eras(log, 20)
    (unread,) = log.unread
    assert (unread.tables, unread.position, unread.text) == ((table("t"),), at(20), ddl)
    assert unread.reason


def test_a_record_without_a_statement_proves_nothing() -> None:
    log = logged(CREATED, change(20, "", {"t": "a b"}))
    assert not eras(log, 10) & eras(log, 20)
    assert log.unread == ()


@pytest.mark.parametrize(("ddl", "lost"), [("alter table t frobnicate", True), ("alter table u frobnicate", False)])
def test_what_is_not_understood_and_names_no_columns_ends_only_what_it_mentions(ddl: str, lost: bool) -> None:
    log = logged(CREATED, change(20, ddl), change(30, "alter table t add c int", {"t": "a b c"}))
    assert log.unread[0].tables == ((table("t"),) if lost else ())
    assert (eras(log, 10) == eras(log, 30)) is not lost


def test_columns_that_nothing_confirms_are_not_known() -> None:
    log = logged(CREATED, change(20, "alter table t drop a, add a int"))
    assert structure(log, 20).columns == ()
    assert log.unread[0].tables == (table("t"),)


def test_statements_about_other_things_change_nothing() -> None:
    log = logged(CREATED, change(20, "create index i on t (a)", {"t": "a b"}), change(30, "truncate table t"))
    assert len(log.of(table("t"))) == 1
    assert log.unread == ()


def test_order_and_types_come_from_the_record() -> None:
    columns = (ColumnEntry(name="b", type="BIGINT"), ColumnEntry(name="a", type="INT"))
    entry = TableEntry(action="ALTER", table=table("t"), columns=columns)
    log = logged(CREATED, replace(change(20, "alter table t modify b bigint first"), tables=(entry,)))
    assert [(column.name, column.type) for column in structure(log, 20).columns] == [("b", "BIGINT"), ("a", "INT")]
    assert eras(log, 10) == eras(log, 20)


def test_several_statements_in_one_record() -> None:
    ddl = "alter table t rename column a to x; /* now */ alter table t rename column b to a;alter table t rename x to b"
    log = logged(CREATED, change(20, ddl.replace("rename x", "rename column x"), {"t": "b a"}))
    before, after = tokens(log, 10), tokens(log, 20)
    assert (after["a"], after["b"]) == (before["b"], before["a"])
    assert structure(log, 20).statement == (
        "alter table t rename column a to x; alter table t rename column b to a; alter table t rename column x to b"
    )


@pytest.mark.parametrize(
    "again",
    [
        [change(20, "drop table t", {"t": None}), change(30, "create table t (a int, b int)", {"t": "a b"})],
        [change(20, "drop database db"), change(30, "create table t (a int, b int)", {"t": "a b"})],
        [change(30, "create or replace table t (a int, b int)", {"t": "a b"})],
        [change(30, "create table t (a int, b int)", {"t": "a b"})],
        [change(30, "create or replace table t as select 1 as a, 2 as b", {"t": "a b"})],
        [change(30, "drop table t; create table t (a int, b int)", {"t": "a b"})],
    ],
)
def test_a_table_created_again_has_other_columns(again: list[SchemaChangeRecord]) -> None:
    log = logged(CREATED, *again)
    before, after = tokens(log, 10), tokens(log, 30)
    assert eras(log, 10) == eras(log, 30)
    assert not set(before.values()) & set(after.values())
    assert log.unread == ()


def test_a_dropped_table_has_no_columns() -> None:
    log = logged(CREATED, change(20, "drop table u, t", {"t": None}))
    assert structure(log, 20).columns == ()


def test_create_if_not_exists_of_what_is_there_changes_nothing() -> None:
    log = logged(CREATED, change(20, "create table if not exists t (a int, b int)", {"t": "a b"}))
    assert len(log.of(table("t"))) == 1


def test_a_renamed_table_takes_its_columns_along() -> None:
    log = logged(
        CREATED, change(20, "rename table t to u", {"u": "a b"}), change(30, "alter table u rename v", {"v": "a b"})
    )
    assert tokens(log, 10) == tokens(log, 20, "u") == tokens(log, 30, "v")
    assert structure(log, 20).columns == structure(log, 30, "u").columns == ()


def test_a_chain_of_renames_swaps_two_tables() -> None:
    other = change(11, "create table u (a int, b int)", {"u": "a b"})
    chain = "rename table t to x, u to t, x to u"
    whole = logged(CREATED, other, change(20, chain, {"x": "a b", "t": "a b", "u": "a b"}))
    parts = [change(20, f"rename table {old} to {new}", {new: "a b"}) for old, new in ("tx", "ut", "xu")]
    for log in (logged(CREATED, other, *parts), logged(CREATED, other, *[*parts, *parts][:2], *parts)):
        assert tokens(log, 11) == tokens(log, 20, "u")
        assert tokens(log, 11, "u") == tokens(log, 20)
    assert tokens(whole, 11) == tokens(whole, 20, "u")


def test_a_rename_done_twice_at_one_place_is_not_mistaken_for_a_repeat() -> None:
    parts = [change(20, f"rename table {old} to {new}", {new: "a b"}) for old, new in ("tu", "ut", "tu")]
    log = logged(CREATED, *parts)
    assert structure(log, 20).columns == structure(log, 20, "u").columns == ()
    assert log.unread[0].tables == (table("t"), table("u"))


def test_an_unknown_table_swapped_in_proves_nothing() -> None:
    log = logged(
        CREATED,
        change(20, "rename table t to old, made_by_hand to t", {"old": "a b", "t": "a b"}),
    )
    assert not eras(log, 10) & eras(log, 20)


def test_a_known_table_swapped_in_proves_nothing() -> None:
    other = change(11, "create table u (a int, b int)", {"u": "a b"})
    log = logged(CREATED, other, change(20, "rename table t to old, u to t", {"old": "a b", "t": "a b"}))
    assert not eras(log, 10) & eras(log, 20)


GHOST = [
    change(20, "create /* gh-ost */ table `db`.`_t_gho` like `db`.`t`", {"_t_gho": "a b"}),
    change(21, "alter /* gh-ost */ table `db`.`_t_gho` rename column a to c, add d int first", {"_t_gho": "d c b"}),
    change(22, "rename table db.t to db._t_del", {"_t_del": "a b"}),
    change(22, "rename table db._t_gho to db.t", {"t": "d c b"}),
    change(23, "DROP TABLE `db`.`_t_del`", {"_t_del": None}),
]
PT_OSC = [
    change(20, "CREATE TABLE `db`.`_t_new` (a int, b int)", {"_t_new": "a b"}),
    change(21, "ALTER TABLE `db`.`_t_new` rename column a to c, add d int first", {"_t_new": "d c b"}),
    change(21, "CREATE TRIGGER pt_osc_db_t_del AFTER DELETE ON db.t FOR EACH ROW BEGIN DELETE FROM x; END"),
    change(22, "RENAME TABLE db.t TO db._t_old, db._t_new TO db.t", {"_t_old": "a b", "t": "d c b"}),
    change(23, "DROP TABLE IF EXISTS `_t_old` /* generated by server */", {"_t_old": None}),
]


@pytest.mark.parametrize("tool", [GHOST, PT_OSC], ids=["gh-ost", "pt-online-schema-change"])
def test_an_online_change_goes_on_with_the_columns_it_copied(tool: list[SchemaChangeRecord]) -> None:
    log = logged(CREATED, *tool)
    before, after = tokens(log, 10), tokens(log, 23)
    assert (after["c"], after["b"]) == (before["a"], before["b"])
    assert after["d"] not in before.values()
    assert eras(log, 10) == eras(log, 23)
    assert log.unread == ()


@pytest.mark.parametrize("tool", [GHOST, PT_OSC], ids=["gh-ost", "pt-online-schema-change"])
def test_a_copy_of_what_changed_meanwhile_proves_nothing(tool: list[SchemaChangeRecord]) -> None:
    meanwhile = change(20, "alter table t drop b, add b int", {"t": "a b"})
    log = logged(CREATED, tool[0], meanwhile, *tool[1:])
    assert not eras(log, 10) & eras(log, 23)


def test_a_table_with_other_columns_is_no_copy() -> None:
    log = logged(
        CREATED, change(20, "create table _t_new (a int)", {"_t_new": "a"}), change(22, PT_OSC[3].ddl, {"t": "a"})
    )
    assert not eras(log, 10) & eras(log, 22)


def test_a_copy_made_again_under_one_name_is_another_table() -> None:
    copied = [change(20, "create table u like t", {"u": "a b"}), change(21, "drop table u", {"u": None})]
    log = logged(CREATED, *copied, change(22, "create table u like t", {"u": "a b"}))
    assert eras(log, 20, "u") == eras(log, 22, "u")
    assert not set(tokens(log, 20, "u").values()) & set(tokens(log, 22, "u").values())


def test_a_copy_under_the_name_of_a_dropped_kin_is_the_same_after_it_took_its_original_s_place_as_before() -> None:
    log = logged(
        CREATED,
        change(20, "rename table t to u", {"u": "a b"}),
        change(21, "create table v like u", {"v": "a b"}),
        change(22, "drop table u", {"u": None}),
        change(23, "rename table v to t", {"t": "a b"}),
        change(24, "create table u like t", {"u": "a b"}),
        change(25, "rename table t to w, u to t", {"w": "a b", "t": "a b"}),
        change(26, "rename table t to u", {"u": "a b"}),
    )
    assert tokens(log, 10) == tokens(log, 25)
    assert not eras(log, 24, "u") & eras(log, 26, "u")


def test_a_copy_of_an_unknown_table_is_not_compared_with_a_dropped_one() -> None:
    unlisted = change(22, "alter table t rename column a to c")
    log = logged(
        CREATED,
        change(20, "create table u like t", {"u": "a b"}),
        change(21, "drop table u", {"u": None}),
        unlisted,
        change(23, "create table u like t", {"u": "c b"}),
    )
    assert not eras(log, 20, "u") & eras(log, 23, "u")


def test_names_kept_in_small_letters() -> None:
    created = change(10, "create table T (A int, b int)", {"t": "A b"})
    renamed = change(20, "alter table `DB`.`T` rename column a to c", {"t": "c b"})
    log = logged(created, renamed, change(30, "rename table T to U", {"u": "c b"}))
    assert tokens(log, 10)["A"] == tokens(log, 20)["c"] == tokens(log, 30, "u")["c"]


class TestSnapshots:
    FIRST = [
        change(5, "DROP TABLE IF EXISTS `db`.`t`", {"t": None}, snapshot=True),
        change(5, "CREATE TABLE `t` (...)", {"t": "a b"}, snapshot=True),
    ]

    def test_what_is_there_is_a_reading(self) -> None:
        log = logged(*self.FIRST)
        assert structure(log, 5).reading
        assert structure(log, 5).statement == ""
        assert not structure(logged(CREATED), 10).reading

    def test_the_first_one_told_again_changes_nothing(self) -> None:
        again = [replace(record, ddl=record.ddl + " ") for record in self.FIRST]
        log = logged(*self.FIRST, *again)
        assert len(log.of(table("t"))) == 1

    def test_a_later_one_proves_nothing_and_is_no_fault(self) -> None:
        log = logged(*self.FIRST, change(30, "CREATE TABLE `t` (...)", {"t": "a b"}, snapshot=True))
        assert not eras(log, 5) & eras(log, 30)
        assert log.unread == ()

    def test_changes_go_on_from_it(self) -> None:
        log = logged(*self.FIRST, change(20, "alter table t rename column a to c", {"t": "c b"}))
        assert tokens(log, 5)["a"] == tokens(log, 20)["c"]


class TestOrder:
    RENAMED = change(20, "alter table t rename column a to x", {"t": "x b"})
    BACK = change(30, "alter table t rename column x to a", {"t": "a b"})

    def test_repeats_are_ignored(self) -> None:
        records = [CREATED, self.RENAMED, self.BACK]
        once = logged(*records)
        for repeated in ([*records, *records], [*records, *records[1:]], [CREATED, CREATED, *records[1:], self.BACK]):
            assert logged(*repeated).of(table("t")) == once.of(table("t"))

    def test_a_repeat_may_have_another_row_number(self) -> None:
        again = replace(self.RENAMED, position=at(20, row=3))
        assert len(logged(CREATED, self.RENAMED, self.BACK, again).of(table("t"))) == 3

    def test_positions_that_begin_again_are_not_compared_with_those_before(self) -> None:
        elsewhere = change(15, "alter table t drop b, add b int", {"t": "a b"})
        log = logged(CREATED, self.RENAMED, self.BACK, elsewhere, change(40, "alter table t add c int", {"t": "a b c"}))
        assert tokens(log, 10)
        for place in (15, 20, 30, 39):
            assert structure(log, place).columns == ()
        assert not eras(log, 10) & eras(log, 40)
        assert log.unread[0].reason == RESTART

    def test_another_kind_of_position_ends_everything(self) -> None:
        position = SourcePosition(kind="other", parts=(1,))
        log = logged(CREATED, change(20, "alter table t add c int", {"t": "a b c"}, position=position))
        found = log.at(table("t"), SourcePosition(kind="other", parts=(2,)))
        assert found is not None
        assert found.columns == ()

    def test_a_record_without_a_position_ends_its_tables(self) -> None:
        log = logged(CREATED, change(0, "alter table t add c int", {"t": "a b c"}, position=NO_POSITION))
        assert structure(log, 50).columns == ()
        assert log.unread[0].reason == NO_PLACE

    def test_nothing_is_known_behind_a_gap_until_the_next_record_about_a_table(self) -> None:
        log = replayed(CREATED, change(11, "create table u (a int)", {"u": "a"}))
        log.gap()
        log.add(self.RENAMED)
        found = log.log()
        assert structure(found, 19).columns == ()
        assert structure(found, 25, "u").columns == ()
        assert structure(found, 19).statement == GAP
        assert [column.name for column in structure(found, 20).columns] == ["x", "b"]
        assert not eras(found, 10) & eras(found, 20)

    def test_a_gap_before_anything_is_none(self) -> None:
        log = replayed()
        log.gap()
        assert log.log().tables == ()


def test_oracle_names_are_compared_as_they_are() -> None:
    def told(place: int, ddl: str, columns: str) -> SchemaChangeRecord:
        entries = tuple(ColumnEntry(name=name, type="NUMBER") for name in columns.split())
        entry = TableEntry(action="ALTER", table=TableId(database="PDB", schema="S", table="T"), columns=entries)
        position = SourcePosition(kind="oracle", parts=(place,))
        record = change(place, ddl, position=position, connector="oracle")
        return replace(record, database="PDB", schema="S", tables=(entry,))

    log = logged(
        told(1, 'create table t (a number, "a" number)', "A a"), told(2, "alter table t rename column a to b", "B a")
    )
    first, second = log.of(TableId(database="PDB", schema="S", table="T"))
    assert second.token("B") == first.token("A")
    assert second.token("a") == first.token("a")
    assert log.unread == ()


def effects(*records: SchemaChangeRecord) -> list[tuple[str, str]]:
    return [(item.table.table, item.effect) for item in logged(CREATED, *records).unlogged]


def test_statements_are_told_that_change_rows_without_events() -> None:
    other = change(15, "create table u (a int, b int)", {"u": "a b"})
    exchanged = change(20, "alter table t exchange partition p with table u", {"t": "a b"})
    assert effects(other, exchanged) == [("t", "rows"), ("u", "rows")]
    assert effects(change(20, "alter table t add c int, drop partition p", {"t": "a b c"})) == [("t", "rows")]
    assert effects(change(20, "alter table t add c int", {"t": "a b c"})) == []


@pytest.mark.parametrize(
    ("ddl", "columns"),
    [
        ("create or replace table t (b int, c int)", None),
        ("create or replace table t (b int, c int)", "a b"),
        ("alter table t add c int", None),
        ("alter table t add c int first", "a b"),
        ("alter table t rename column a to c", "b c"),
    ],
)
def test_a_statement_that_the_connector_did_not_take_up_is_told(ddl: str, columns: str | None) -> None:
    """`CREATE OR REPLACE` without columns is what MariaDB's connector sends."""
    assert effects(change(20, ddl, None if columns is None else {"t": columns})) == [("t", "undone")]


def test_what_we_do_not_understand_ourselves_is_no_fault_of_the_connector() -> None:
    assert effects(change(20, "alter table t frobnicate a", {"t": "a b"})) == []
    assert effects(change(20, "create or replace table t (b int, c int)", {"t": "b c"})) == []


@pytest.mark.parametrize(
    ("action", "follows"),
    [
        ("on delete cascade", True),
        ("on update set null", True),
        ("on delete restrict on update cascade", True),
        ("on delete restrict", False),
        ("", False),
    ],
)
def test_a_foreign_key_that_cascades_is_told_also_of_a_snapshot(action: str, *, follows: bool) -> None:
    ddl = f"create table c (a int, foreign key (a) references t (a) {action})"
    for snapshot in (False, True):
        found = effects(change(20, ddl, {"c": "a"}, snapshot=snapshot))
        assert found == ([("c", "follow")] if follows else [])
