"""What the source's catalogue says of a new column's value in older rows; with a real Postgres in tests/capture."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.lineage.column_log import ColumnLog, LoggedColumn, Structure, Token
from cdc_sync.core.lineage.ddl import parse
from cdc_sync.core.lineage.ddl_statements import Add, AlterTable
from cdc_sync.core.lineage.initials import told_initial
from cdc_sync.core.lineage.records import ColumnEntry, TableEntry
from cdc_sync.core.lineage.stated import NULL, Stated
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.core.schema.initial import InitialValue, Known, Unknown
from cdc_sync.core.schema.observed import ObservedColumn
from cdc_sync.core.schema.types import BINARY, BOOLEAN, FLOAT64, INT32, STRING, DataType, DecimalType, Default
from tests.evidence.ddl_schema_changes import at as binlog
from tests.evidence.ddl_schema_changes import change, replayed, table

T = TableId(database="inv", schema="public", table="t")
OTHER = LoggedColumn(name="id", token=Token(era="pg", number=(1, 1)), type="integer")
ADDED = LoggedColumn(name="n", token=Token(era="pg", number=(1, 2)), type="integer", default=True, missing="5")
SHOWN = ObservedColumn(name="n", type=INT32)
UNSEEN = Unknown(reason="it was added with a default that no event shows")


def at(lsn: int) -> SourcePosition:
    return SourcePosition(kind="postgresql", parts=(lsn, lsn))


def log(*steps: tuple[int | LoggedColumn | None, ...], text: str = "", files: tuple[int, ...] = ()) -> ColumnLog:
    """Structures at places in the log; the text and the files, where there are any, are of the last ones."""
    made = []
    for index, (lsn, *columns) in enumerate(steps):
        assert isinstance(lsn, int)
        found = tuple(column for column in columns if isinstance(column, LoggedColumn))
        statement = text if index == len(steps) - 1 else ""
        file = files[index] if files else None
        made.append(Structure(table=T, position=at(lsn), columns=found, statement=statement, file=file))
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


def test_a_default_that_wrote_every_row_is_unknown_unless_its_statement_says_it() -> None:
    wrote = log((5, OTHER), (10, OTHER, replace(ADDED, missing=None)))

    assert told(wrote) == UNSEEN
    assert told(wrote, replace(SHOWN, default=5)) is None, "the event's default may be of later"
    assert told(wrote, replace(SHOWN, suspect_default=True)) is None
    stated = log((5, OTHER), (10, OTHER, replace(ADDED, missing=None)), text="alter table t add n integer default 5")
    assert told(stated, replace(SHOWN, default=9)) == Known(value=5)


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
    assert isinstance(told(found, replace(SHOWN, type=type_, default="of later")), Unknown)


@pytest.mark.parametrize(("source_type", "missing", "shown"), [("mood", '"ok"', "ok"), ("jsonb", "[1, 2]", "[1,2]")])
def test_what_has_another_form_is_taken_from_the_event_where_that_shows_the_same(
    source_type: str, missing: str, shown: str
) -> None:
    found = log((10, replace(ADDED, type=source_type, missing=missing)))

    assert told(found, replace(SHOWN, type=STRING, default=shown)) == Known(value=shown)
    assert isinstance(told(found, replace(SHOWN, type=STRING, default=shown, suspect_default=True)), Unknown)
    assert isinstance(told(found, replace(SHOWN, type=STRING, default="[")), Unknown)


def test_a_long_value_is_shown_in_part() -> None:
    found = told(log((10, replace(ADDED, missing="[" + "1," * 100 + "1]"))))

    assert isinstance(found, Unknown)
    assert len(found.reason) < 140


PLAIN = replace(ADDED, missing=None, default=False)


@pytest.mark.parametrize("default", [None, 5])
def test_a_default_that_was_set_after_the_column_was_added_is_not_what_existing_rows_read(default: int | None) -> None:
    """`add column n int`, then `alter n set default 5`, then the first event."""
    text = "alter table t add column n int"
    added = (10, OTHER, PLAIN)
    found = log((5, OTHER), added, text=text)
    later = ColumnLog("message", (*found.of(T), *log((20, OTHER, replace(PLAIN, default=True))).of(T)))

    assert told(later, replace(SHOWN, default=default)) == Known(value=None)
    at_once = log((5, OTHER), (10, OTHER, replace(PLAIN, default=True)), text=f"{text}, alter n set default 5")
    assert told(at_once, replace(SHOWN, default=default)) == Known(value=None)


def test_a_definition_that_does_not_say_it_is_shown_as_it_was_written() -> None:
    text = "alter table t add N int not null\n  DEFAULT f('it''s', \"A b\", $$x$$), alter n set default 5"

    found = told(log((5, OTHER), (10, OTHER, replace(PLAIN, default=True)), text=text), replace(SHOWN, default=5))

    assert found == Unknown(
        reason="it was added as `int not null DEFAULT f('it''s', \"A b\", …`, which does not say it"
    )


def test_a_default_that_was_dropped_again_is_what_existing_rows_read() -> None:
    assert told(log((5, OTHER), (10, OTHER, ADDED), (20, OTHER, PLAIN))) == Known(value=5)


def test_an_add_that_is_repeated_if_the_column_does_not_exist_says_nothing() -> None:
    first = log((5, OTHER), (10, OTHER, PLAIN), text="alter table t add if not exists n int").of(T)
    again = log((20, OTHER, PLAIN), text="alter table t add if not exists n int default 7").of(T)

    assert told(ColumnLog("message", (*first, *again)), replace(SHOWN, default=7)) == Known(value=None)
    both = "alter table t add if not exists n int; alter table t add if not exists n int default 7"
    assert told(log((5, OTHER), (10, OTHER, PLAIN), text=both), replace(SHOWN, default=7)) is None


@pytest.mark.parametrize(
    "text", ["do $$ begin alter table t add n int; end $$", "alter table t add n int;" + " " * 300]
)
def test_where_the_text_tells_nothing_rows_that_nothing_wrote_anew_read_null(text: str) -> None:
    steps = (5, OTHER), (10, OTHER, PLAIN)

    assert told(log(*steps, text=text, files=(7, 7))) == Known(value=None)
    assert told(log(*steps, text=text, files=(7, 8))) is None, "a message may be missing in between"
    assert told(log(*steps, text=text)) is None
    assert told(log((10, OTHER, PLAIN), text=text, files=(7,))) is None, "it may have been there before"
    assert told(log((5, OTHER), (10, OTHER, replace(PLAIN, default=True)), text=text, files=(7, 7))) == UNSEEN


def test_a_type_of_its_own_may_have_a_default_of_its_own() -> None:
    domain = replace(PLAIN, type="positive", default=None)
    text = "alter table t add n positive"

    assert told(log((5, OTHER), (10, OTHER, domain), text=text)) is None, "an older trigger does not say it"
    assert told(log((5, OTHER), (10, OTHER, replace(domain, default=True)), text=text)) == UNSEEN
    assert told(log((5, OTHER), (10, OTHER, replace(domain, default=False)), text=text)) == Known(value=None)


def test_null_stays_null_in_another_type_unless_an_expression_gives_it_one() -> None:
    wider = replace(PLAIN, type="bigint")
    added = log((5, OTHER), (10, OTHER, PLAIN), text="alter table t add n int").of(T)

    def retyped(text: str) -> InitialValue | None:
        return told(ColumnLog("message", (*added, *log((20, OTHER, wider), text=text).of(T))))

    assert retyped("alter table t alter n type bigint") == Known(value=None)
    assert isinstance(retyped("alter table t alter n type bigint using coalesce(n, 0)"), Unknown)


CREATED = change(10, "create table t (id int)", {"t": "id"})


def mysql(*steps: str, default: Default = None, type_: DataType = INT32, suspect: bool = False) -> InitialValue | None:
    """What is told of `n` after statements on `t`, each with what the connector says of `n`: its type and default."""
    records = [CREATED]
    for place, step in enumerate(steps):
        ddl, _, said = step.partition(" -> ")
        source, _, shown = (said or "INT").partition("=")
        columns = (
            ColumnEntry(name="id", type="INT"),
            ColumnEntry(name="n", type=source.rstrip("!"), optional=not source.endswith("!"), default=shown or None),
        )
        record = change(20 + place, f"alter table t {ddl}")
        records.append(replace(record, tables=(TableEntry(action="ALTER", table=table("t"), columns=columns),)))
    shown_column = replace(SHOWN, type=type_, default=default, suspect_default=suspect)
    return told_initial([replayed(*records).log()], table("t"), binlog(50), shown_column)


@pytest.mark.parametrize(
    ("steps", "default", "expected"),
    [
        (["add n int"], None, Known(value=None)),
        (["add n int default null -> INT"], None, Known(value=None)),
        (["add n int default 5 -> INT=5"], 5, Known(value=5)),
        (["add n int", "alter n set default 5 -> INT=5"], 5, Known(value=None)),
        (["add n int default 1 -> INT=1", "alter n set default 2 -> INT=2"], 2, Known(value=1)),
        (["add n int default 1 -> INT=1", "alter n drop default"], None, Known(value=1)),
        (
            ["add if not exists n int default 1 -> INT=1", "add if not exists n int default 2 -> INT=1"],
            1,
            Known(value=1),
        ),
        (["add n int not null default -7 -> INT!=-7"], -7, Known(value=-7)),
        (["add n int default '8' -> INT=8"], 8, Known(value=8)),
    ],
)
def test_the_statement_that_added_a_column_wins_over_the_default_that_an_event_shows(
    steps: list[str], default: int | None, expected: InitialValue
) -> None:
    assert mysql(*steps, default=default) == expected


def test_a_zero_that_is_written_in_the_statement_is_no_function() -> None:
    assert mysql("add n int default 0 -> INT=0", default=0, suspect=True) == Known(value=0)
    assert mysql("add n bit default b'0' -> BIT=0", default=False, type_=BOOLEAN, suspect=True) == Known(value=False)


@pytest.mark.parametrize(
    ("step", "default"),
    [
        ("add n int default (1+1)", None),
        ("add n int auto_increment unique", None),
        ("add n int as (id + 1)", None),
        ("add (n int default (5))", None),
        ("add n int not null -> INT!", None),
        ("add n timestamp -> TIMESTAMP", None),
        ("add n datetime default current_timestamp -> DATETIME=1970-01-01", None),
        ("add n int default 5.7 -> INT=5.7", 5),  # the server rounds it up, the connector down
        ("add n int default 0x41 -> INT=A", 65),
    ],
)
def test_what_a_statement_does_not_say_in_one_value_is_unknown(step: str, default: int | None) -> None:
    """Tried on MariaDB 10.11 with Debezium 3.5: of a default that is an expression, events show none."""
    assert isinstance(mysql(step, default=default), Unknown)


def test_a_column_that_was_changed_again_before_an_event_showed_it_is_unknown() -> None:
    """NULL becomes 0 where it is not accepted any more, and values are cut off or rounded."""
    assert isinstance(mysql("add n int", "modify n int not null -> INT!"), Unknown)
    assert isinstance(mysql("add n int default 5 -> INT=5", "modify n tinyint -> TINYINT=5"), Unknown)


def test_texts_are_taken_as_they_were_written() -> None:
    def told_text(step: str, default: str | None = None, *, suspect: bool = False) -> InitialValue | None:
        return mysql(step, default=default, type_=STRING, suspect=suspect)

    assert told_text("add n varchar(9) default 'it''s' -> VARCHAR(9)='it''s'", "'it''s'", suspect=True) == Known(
        value="it's"
    )
    assert told_text("add n varchar(9) default '' -> VARCHAR(9)=", "", suspect=True) == Known(value="")
    assert told_text("add n enum('A') default 'A' -> ENUM('A')=A", "A") == Known(value="A")
    assert told_text("add n time default '10:00' -> TIME=10:00", "10:00:00") == Known(value="10:00:00")
    assert told_text("add n varchar(9) default _utf8'é' -> VARCHAR(9)=é", "é") == Unknown(
        reason="it was added as `varchar(9) default _utf8'é'`, which does not say it"
    )
    assert isinstance(told_text("add n enum('A') default 'a' -> ENUM('A')"), Unknown)
    assert isinstance(told_text("add n char(9) default 'a ' -> CHAR(9)"), Unknown)


@pytest.mark.parametrize(
    ("definition", "stated"),
    [
        ("int default (1+1)", Stated(kind="other", text="int default (1+1)")),
        ("varchar(36) default uuid()", Stated(kind="other", text="varchar(36) default uuid()")),
        ("int as (id + 1)", Stated(kind="other", text="int as (id + 1)")),
        ("int default 5", Stated(kind="literal", text="5")),
        ("int default null", NULL),
        ("varchar(9)", NULL),
        ('varchar(9) default "a""b" not null', Stated(kind="literal", text='a"b', quoted=True)),
        (r"varchar(9) default 'a\n'", Stated(kind="literal", quoted=True)),
    ],
)
@pytest.mark.parametrize("form", ["add n {}", "add (n {})", "add m int, add column if not exists n {} after id"])
def test_a_definition_is_read_in_every_form_of_add(form: str, definition: str, stated: Stated) -> None:
    (found,) = parse(f"alter table t {form.format(definition)}", "mariadb", "db", None)
    assert isinstance(found, AlterTable)
    (added,) = (clause for clause in found.clauses if isinstance(clause, Add) and clause.name == "n")
    assert added.stated is not None
    assert replace(added.stated, text=(added.stated.text or "").removesuffix(" after id") or None) == stated


def test_columns_that_were_there_when_the_log_begins_were_not_added_by_a_statement_that_is_known() -> None:
    begun = replayed(change(20, "alter table t comment 'x'", {"t": "id n"}))
    assert told_initial([begun.log()], table("t"), binlog(50), SHOWN) is None


def test_a_statement_of_oracle_says_it_too() -> None:
    def added(text: str) -> list[Stated | None]:
        (found,) = parse(f'alter table "S"."T" {text}', "oracle", "db", "S")
        assert isinstance(found, AlterTable)
        return [clause.stated for clause in found.clauses if isinstance(clause, Add)]

    assert added("add (a number(9) default 5 not null, b date default sysdate, c number)") == [
        Stated(kind="literal", text="5"),
        Stated(kind="other", text="date default sysdate"),
        NULL,
    ]
    assert added("add a varchar2(9) default 'x' not null") == [Stated(kind="literal", text="x", quoted=True)]
