"""Changes after which rows are not what events said: other types, other keys, no rows, a table made anew."""

from __future__ import annotations

from tests.live.changes import Change, Table
from tests.live.dialects import MOMENTS, Postgres
from tests.live.model import CONVERTED, IDENTITIES, KEY, KINDS, PART, WIDE_KEY


def convert(table: Table) -> list[str] | None:
    """Give a column a type that the lake has to rewrite rows for; the database converts the values."""
    found = [column for column in table.model.others if column.kind in CONVERTED and column.default is None]
    if not found:
        return None
    column = table.chance.choice(found)
    kind = table.chance.choice(CONVERTED[column.kind])
    return [table.alter(table.dialect.retype(table.model.change(column, kind=kind)))]


def convert_by_expression(table: Table) -> list[str] | None:
    """Give a column another type and other values: no event tells of those, and the column is marked."""
    found = [column for column in table.model.others if column.kind == "int" and column.default is None]
    if not isinstance(table.dialect, Postgres) or not found:
        return None
    column, quoted = table.chance.choice(found), table.dialect.quoted
    kind, values = table.chance.choice((("text", "'v' || {}"), ("long", "{} * 2::bigint"), ("double", "{} / 4.0")))
    clause = table.dialect.retype(table.model.change(column, kind=kind))
    return [table.alter(f"{clause} using {values.format(quoted(column.name))}")]


def add_a_moment(table: Table) -> list[str] | None:
    """Add a column whose default is a function: what older rows have no event tells."""
    if not table.defaults or len(table.model.columns) > 9:
        return None
    default = table.chance.choice(MOMENTS[type(table.dialect)])
    column = table.model.add(table.model.free_name(table.chance), "moment", default=default)
    return [table.alter(table.dialect.add(column, after=None))]


def truncate(table: Table) -> list[str] | None:
    table.emptied = True
    return [f"truncate table {table.name}"]


def make_anew(table: Table) -> list[str] | None:
    """Drop the table and create one of its name, with other columns behind the key."""
    model, dialect = table.model, table.dialect
    name = next(column.name for column in model.columns if column.kind in IDENTITIES)
    model.columns.clear()
    model.add(name, KEY)
    for place, kind in enumerate(table.chance.sample(KINDS, table.chance.randint(3, 6))):
        model.add(f"d{place}", kind)
    table.emptied = True
    table.lives += 1
    return [f"drop table {table.name}", dialect.create(table.name, model.columns)]


def widen_the_key(table: Table) -> list[str] | None:
    narrow = [column for column in table.model.columns if column.kind == KEY]
    return [table.alter(table.dialect.retype(table.model.change(narrow[0], kind=WIDE_KEY)))] if narrow else None


def add_to_the_key(table: Table) -> list[str] | None:
    """Add a column to the table and to its primary key."""
    if any(column.kind == PART for column in table.model.columns):
        return None
    part = table.model.add(table.model.free_name(table.chance), PART, default="1")
    key = [column for column in table.model.columns if column.kind in IDENTITIES] + [part]
    return [table.alter(table.dialect.add(part, after=None), *table.dialect.change_key(table.name, key))]


REWRITES: dict[Change, int] = {
    convert: 5,
    convert_by_expression: 2,
    add_a_moment: 3,
    truncate: 2,
    make_anew: 2,
    widen_the_key: 1,
    add_to_the_key: 1,
}
"""Every such change, with how often it is chosen, in the measure of `changes.CHANGES`."""
