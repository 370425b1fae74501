"""What a column may be computed from: one row, by names that are bound to ids, and nothing that changes by itself."""

from __future__ import annotations

import pytest

from cdc_sync.core.schema.expressions import Expression, parse_expression
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT32
from cdc_sync.errors import SchemaError

NAMES = ("qty", "price", "address", "na me", "tags", "day", "lines", "user")
SCHEMA = InternalSchema(
    columns=tuple(Column(id=number, name=name, type=INT32) for number, name in enumerate(NAMES, 1)),
    primary_key=(),
    last_column_id=8,
)
RENAMED = InternalSchema(
    columns=tuple(Column(id=number, name=f"n`{number}", type=INT32) for number in range(1, 9)),
    primary_key=(),
    last_column_id=8,
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("qty * price", (1, " * ", 2)),
        ("coalesce(address.city, `na me`)", ("coalesce(", 3, ".city, ", 4, ")")),
        ("transform(tags, x -> x + qty)", ("transform(", 5, ", x -> x + ", 1, ")")),
        ("transform(tags, qty -> qty + 1)", ("transform(", 5, ", qty -> qty + 1)")),
        ("case when qty > 1 then 'price' else price end", ("case when ", 1, " > 1 then 'price' else ", 2, " end")),
        ("lines[0].qty", (7, "[0].qty")),
        ("interval 1 day + day", ("interval 1 day + ", 6)),
        ("DATE_ADD(day, 1)", ("DATE_ADD(", 6, ", 1)")),
        ("'now()' || `user`", ("'now()' || ", 8)),
        ("unix_timestamp", None),
        ("1", ("1",)),
    ],
)
def test_names_are_bound_and_the_rest_stays_as_it_is_written(text: str, parts: tuple[str | int, ...] | None) -> None:
    if parts is None:
        with pytest.raises(SchemaError, match="reads column 'unix_timestamp', which the table does not have"):
            parse_expression(text, SCHEMA)
        return
    found = parse_expression(text, SCHEMA)

    assert found.parts == parts
    assert found.ids == {part for part in parts if isinstance(part, int)}


def test_it_is_written_for_the_names_that_the_columns_have_by_then() -> None:
    assert parse_expression("qty * price", SCHEMA).sql(RENAMED) == "(`n``1` * `n``2`)"
    assert Expression(parts=("1",)).sql(RENAMED) == "(1)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nope + 1", "reads column 'nope', which the table does not have by then; it has qty, price"),
        ("QTY", "reads column 'QTY'"),
        ("(select 1)", "must read one row only"),
        ("sum(qty)", "must read one row only"),
        ("row_number() over (partition by qty)", "must read one row only"),
        ("*", "must read one row only"),
        ("now()", "calls now, which may say something else each time"),
        ("Current_Date", "calls current_date"),
        ("date_diff(current_date, day)", "calls current_date"),
        ("user", "calls user"),
        ("uuid ()", "calls uuid"),
        ("reflect('java.lang.System', 'exit', 1)", "calls reflect"),
        ("qty; drop table x", "must be one expression"),
        ("", "must be one expression"),
        ("qty -- x", "must be without comments"),
        ("qty /* x */", "must be without comments"),
        ("'--'", "must be without comments"),
        ("1) , price = (2", "cannot be read as SQL: "),
        ("qty +", "cannot be read as SQL: "),
        ("'x", "cannot be read as SQL: "),
        (":p", "must say its values itself"),
        ("${env:X}", "must say its values itself"),
        ("1 + " * 3000 + "1", "is longer than 10000 characters"),
    ],
)
def test_what_is_no_expression_of_one_row_is_refused(text: str, said: str) -> None:
    with pytest.raises(SchemaError) as found:
        parse_expression(text, SCHEMA)

    assert said in str(found.value)
