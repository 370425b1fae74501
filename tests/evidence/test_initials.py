"""What the source's catalogue says of a new column's value in older rows; with a real Postgres in tests/capture."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.events import SourcePosition, TableId
from cdc_sync.evidence.column_log import ColumnLog, LoggedColumn, Structure, Token
from cdc_sync.evidence.initials import told_initial
from cdc_sync.schema.initial import InitialValue, Known, Unknown
from cdc_sync.schema.observed import ObservedColumn
from cdc_sync.schema.types import BINARY, FLOAT64, INT32, STRING, DataType, DecimalType
from tests.evidence.ddl_schema_changes import at as binlog
from tests.evidence.ddl_schema_changes import change, replayed, table

T = TableId(database="inv", schema="public", table="t")
ADDED = LoggedColumn(name="n", token=Token(era="pg", number=(1, 2)), type="integer", default=True, missing="5")
SHOWN = ObservedColumn(name="n", type=INT32)
UNSEEN = Unknown(reason="it was added with a default that no event shows")


def at(lsn: int) -> SourcePosition:
    return SourcePosition(kind="postgresql", parts=(lsn, lsn))


def log(*steps: tuple[int, LoggedColumn | None]) -> ColumnLog:
    made = (
        Structure(table=T, position=at(lsn), columns=() if column is None else (column,), statement="alter table t")
        for lsn, column in steps
    )
    return ColumnLog("message", made)


def told(found: ColumnLog, column: ObservedColumn = SHOWN, lsn: int = 100) -> InitialValue | None:
    return told_initial([ColumnLog("ddl"), found], T, at(lsn), column)


def test_the_value_of_the_moment_the_column_was_added_counts() -> None:
    later = replace(ADDED, name="m", missing=None)
    found = log((10, None), (20, ADDED), (30, later))

    assert told(found, lsn=25) == Known(value=5)
    assert told(found, replace(SHOWN, name="m", default=6)) == Known(value=5)
    assert told(found, lsn=15) is None
    assert told(found, replace(SHOWN, name="other")) is None
    assert told_initial([], T, at(100), SHOWN) is None


def test_another_column_of_the_name_tells_nothing_of_this_one() -> None:
    again = replace(ADDED, token=Token(era="pg", number=(1, 3)), missing=None, default=False)

    assert told(log((10, ADDED), (20, None), (30, again))) is None


def test_a_value_from_before_the_type_changed_is_not_taken_for_one_of_the_new_type() -> None:
    retyped = replace(ADDED, type="text", missing=None)

    found = told(log((10, ADDED), (20, retyped)), replace(SHOWN, type=STRING, default="5"))

    assert isinstance(found, Unknown)
    assert "has 5 for them" in found.reason


def test_a_default_that_wrote_every_row_is_unknown_unless_events_show_it() -> None:
    rewrote = log((10, replace(ADDED, missing=None)))

    assert told(rewrote) == UNSEEN
    assert told(rewrote, replace(SHOWN, default=5)) is None
    assert told(rewrote, replace(SHOWN, suspect_default=True)) is None
    assert told(log((10, replace(ADDED, missing=None, default=False)))) is None


@pytest.mark.parametrize(
    ("type_", "source_type", "missing"),
    [
        (INT32, "integer", "3000000000"),
        (INT32, "integer", "true"),
        (INT32, "integer", "[1"),
        (INT32, "integer", "[" * 100_000),
        (FLOAT64, "double precision", '"NaN"'),
        # base64, if it were taken for what a connector sends
        (DecimalType(precision=20, scale=2), "numeric(20,2)", '"Infinity"'),
        (DecimalType(precision=4, scale=2), "numeric", "123.45"),
        (STRING, "jsonb", '"x"'),
        (STRING, "text", "7"),
        (BINARY, "bytea", '"abc"'),
        (BINARY, "bytea", '"\\\\xzz"'),
        (BINARY, "bit(8)", '"01010101"'),
    ],
)
def test_what_has_another_form_is_not_guessed_at(type_: DataType, source_type: str, missing: str) -> None:
    found = log((10, replace(ADDED, type=source_type, missing=missing)))

    assert isinstance(told(found, replace(SHOWN, type=type_)), Unknown)
    default = replace(SHOWN, type=type_, default="shown")
    assert told(found, default) is None, "then the event says it"
    assert isinstance(told(found, replace(default, suspect_default=True)), Unknown)


def test_a_long_value_is_shown_in_part() -> None:
    found = told(log((10, replace(ADDED, missing="[" + "1," * 100 + "1]"))))

    assert isinstance(found, Unknown)
    assert len(found.reason) < 140


def test_a_generated_column_of_mysql_has_values_that_no_event_tells() -> None:
    """Rows that come show it, VIRTUAL or STORED; those that are there compute it from then on, and nothing is sent."""
    found = replayed(
        change(10, "create table t (a int)", {"t": "a"}),
        change(20, "alter table t add n int as (a * 2) virtual, add c int", {"t": "a n c"}),
    ).log()
    behind = SourcePosition(kind="binlog", parts=(1, 30, 0))
    shown = (told_initial([found], table("t"), behind, replace(SHOWN, name=name)) for name in ("n", "c"))
    assert list(shown) == [UNSEEN, None]


CREATED = change(10, "create table t (id int)", {"t": "id"})


@pytest.mark.parametrize(
    ("definition", "shown", "expected"),
    [
        ("int default (1+1)", None, UNSEEN),
        ("varchar(36) default uuid()", None, UNSEEN),
        ("datetime default current_timestamp", None, UNSEEN),
        ("int as (id + 1)", None, UNSEEN),
        ("int auto_increment", None, UNSEEN),
        ("int default 5", 5, None),
        ("int default null", None, None),
        ("int", None, None),
    ],
)
@pytest.mark.parametrize("form", ["add n {}", "add (n {})", "add m int, add column if not exists n {} after id"])
def test_a_statement_says_that_existing_rows_have_a_value_which_no_event_shows(
    form: str, definition: str, shown: int | None, expected: InitialValue | None
) -> None:
    """Tried on MariaDB 10.11 with Debezium 3.5: of a default that is an expression, events show none."""
    columns = "id n" if "m int" not in form else "id n m"
    log = replayed(CREATED, change(20, f"alter table t {form.format(definition)}", {"t": columns})).log()

    assert told_initial([log], table("t"), binlog(25), replace(SHOWN, default=shown)) == expected
