"""How the source gave a column another type, as the statements of its event trigger show it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.lineage.column_log import ColumnLog, LoggedColumn, Structure, Token
from cdc_sync.core.lineage.retyping import told_retyping, told_types
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.core.schema.retyping import By

T = TableId(database="inv", schema="public", table="t")


def at(lsn: int) -> SourcePosition:
    return SourcePosition(kind="postgresql", parts=(lsn, lsn))


def state(lsn: int, name: str, type_: str, statement: str, number: int = 2) -> Structure:
    column = LoggedColumn(name=name, token=Token(era="pg", number=(1, number)), type=type_)
    return Structure(table=T, position=at(lsn), columns=(column,), statement=statement)


def told(*states: Structure, name: str = "n", after: int = 10, upto: int = 99) -> By | None:
    found = told_retyping([ColumnLog("ddl"), ColumnLog("message", states)], T, at(after), at(upto), name)
    return None if found is None else found.by


FIRST = state(5, "n", "integer", "create table t (n integer)")


@pytest.mark.parametrize(
    ("statement", "by"),
    [
        ("alter table t alter n type text", By.RULE),
        ('ALTER TABLE public.t ALTER COLUMN n SET DATA TYPE text COLLATE "C", add m int', By.RULE),
        ("alter table t alter m type text using m || 'x', alter n type text", By.RULE),
        ("alter table t alter n type text using n::text", By.EXPRESSION),
        ("alter table t add m int, alter column n type text using ('v' || n); commit", By.EXPRESSION),
        ('alter table t alter "n" type numeric(10, 2) using n / 3.0', By.EXPRESSION),
        ("alter table t alter n type text; alter table t alter n type varchar(9) using upper(n)", By.EXPRESSION),
        ("alter table other.t alter n type text", By.UNKNOWN),
        ("do $$ begin alter table t alter n type text; end $$", By.UNKNOWN),
        ("select change_it()", By.UNKNOWN),
        ("alter table t alter n type text using repeat(n::text, 3)" + " " * 300, By.UNKNOWN),
        ("alter domain d", By.UNKNOWN),
    ],
)
def test_a_statement_shows_where_the_values_come_from(statement: str, by: By) -> None:
    assert told(FIRST, state(20, "n", "text", statement)) is by


def test_of_several_changes_the_one_that_is_known_worst_counts() -> None:
    by_rule = state(20, "n", "bigint", "alter table t alter n type bigint")
    by_expression = state(30, "n", "text", "alter table t alter n type text using n + 1")
    unknown = state(40, "n", "bytea", "select f()")

    assert told(FIRST, by_rule) is By.RULE
    assert told(FIRST, by_rule, unknown) is By.UNKNOWN
    assert told(FIRST, by_rule, by_expression, unknown) is By.EXPRESSION
    assert told(FIRST, by_rule, by_expression, upto=25) is By.RULE
    assert told(FIRST, by_rule, by_expression, after=35) is None


def test_a_column_is_followed_through_its_names() -> None:
    renamed = state(20, "m", "integer", "alter table t rename n to m")
    retyped = state(30, "m", "text", "alter table t alter m type text using m || ''")
    back = state(40, "n", "text", "alter table t rename m to n")

    assert told(FIRST, renamed, retyped, back) is By.EXPRESSION
    assert told(FIRST, renamed, retyped, name="m") is By.EXPRESSION


def test_another_column_of_the_name_and_an_unknown_beginning_tell_nothing() -> None:
    again = state(20, "n", "text", "alter table t drop n, add n text", number=3)

    assert told(FIRST, again) is None
    assert told(state(20, "n", "text", "alter table t alter n type text")) is None
    assert told(FIRST, name="other") is None


def test_of_a_log_that_begins_with_a_change_an_expression_is_certain() -> None:
    by_expression = state(20, "n", "bigint", "alter table t alter n type bigint using n * 2")
    renamed = state(20, "m", "integer", "alter table t rename n to m")
    back = state(30, "n", "integer", "alter table t rename m to n")
    later = state(40, "n", "bigint", "alter table t alter n type bigint using n * 2")
    by_rule = state(40, "n", "bigint", "alter table t alter n type bigint")

    assert told(by_expression) is By.EXPRESSION
    assert told(renamed, back, later) is By.EXPRESSION
    assert told(renamed, back, by_rule) is None, "the type may have changed before, too"
    assert told(state(20, "n", "bigint", "alter table t alter n type bigint")) is None
    assert told(state(20, "n", "bigint", "select change_it()")) is None


def test_of_a_log_that_begins_with_what_is_there_the_changes_behind_it_are_certain() -> None:
    """DDL capture that was installed behind the table's snapshot, or whose first messages are gone from the topic."""

    def steps(*states: Structure) -> list[tuple[str, str]] | None:
        found = told_types([ColumnLog("ddl"), ColumnLog("message", states)], T, at(10), at(99), "n")
        return None if found is None else [(item.old, item.new) for item in found]

    changed = state(30, "n", "text", "alter table t alter n type text")
    for first in (FIRST, state(20, "n", "integer", "")):
        assert steps(replace(first, reading=True), changed) == [("integer", "text")]
    assert steps(FIRST) == []
    assert steps(replace(state(20, "n", "integer", ""), reading=True)) is None, "it may have changed before"
    assert steps(state(20, "n", "integer", "alter table t alter n type integer"), changed) is None
