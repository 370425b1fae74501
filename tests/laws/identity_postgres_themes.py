"""What is done to a Postgres table between its rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from tests.laws.identity_course import NAME, Course
from tests.laws.identity_postgres import Op, Session, quoted


def postgres_course(seed: int, *, reveal: bool = False) -> Course:
    """Generate one history of the table `public.t`."""
    session = Session(Random(seed), reveal=reveal)
    session.begin()
    names, weights, themes = zip(*_THEMES, strict=True)
    for _ in range(session.random.randint(2, 6)):
        (drawn,) = session.random.choices(range(len(names)), weights)
        ops = themes[drawn](session)
        session.themes.append(names[drawn] if ops else names[0])
        session.round(ops or _one(session))
    session.row()
    session.commit()
    return session.course()


def _renaming(session: Session, old: str, new: str) -> Op:
    return partial(session.rename, old, new)


def _one(session: Session) -> list[Op]:
    return [session.simple()]


def _rename(session: Session) -> list[Op]:
    return [session.some_rename]


def _burst(session: Session) -> list[Op]:
    return [session.simple() for _ in range(session.random.randint(2, 5))]


def _case_only(session: Session) -> list[Op]:
    (column,) = session.draw.pick(session.table) or (None,)
    if column is None or session.draw.other_case(column.name) == column.name:
        return []
    return [_renaming(session, column.name, session.draw.other_case(column.name))]


def _rename_and_retype(session: Session) -> list[Op]:
    (column,) = session.draw.pick(session.table) or (None,)
    if column is None:
        return []
    new = session.draw.renamed(session.table, column)
    if session.draw.chance(0.5):
        return [_renaming(session, column.name, new), lambda: session.retype(new)]
    return [lambda: session.retype(column.name), _renaming(session, column.name, new)]


def _around(session: Session, count: int) -> list[Op]:
    """Give columns each other's names in a circle."""
    columns = session.draw.pick(session.table, count, same_kind=session.draw.chance(0.8))
    if not columns:
        return []
    spare = session.draw.name(session.table, reuse=0)
    names = [column.name for column in columns]
    pairs = [(names[0], spare), *zip(names[1:], names, strict=False), (spare, names[-1])]
    return [_renaming(session, old, new) for old, new in pairs]


def _swap(session: Session) -> list[Op]:
    return _around(session, 2)


def _rotate(session: Session) -> list[Op]:
    return _around(session, 3)


def _key(session: Session) -> list[Op]:
    if session.partitions > 1:  # a key that changes goes to another partition, and planning refuses that
        return []
    column = next(column for column in session.table.columns if column.key)
    return [lambda: session.rename(column.name, session.draw.renamed(session.table, column))]


def _add_again(session: Session) -> list[Op]:
    (column,) = session.draw.pick(session.table) or (None,)
    if column is None:
        return []
    kind = column.kind if session.draw.chance(0.6) else session.draw.kind()
    return [lambda: session.drop(column.name), lambda: session.add(column.name, kind)]


def _replace(session: Session) -> list[Op]:
    (column,) = session.draw.pick(session.table) or (None,)
    if column is None:
        return []
    new = session.draw.name(session.table)
    ops: list[Op] = [lambda: session.drop(column.name), lambda: session.add(new, column.kind)]
    return ops if session.draw.chance(0.5) else ops[::-1]


def _name_goes_on(session: Session) -> list[Op]:
    """A name passes to a new column while its own gets another, or to a neighbour while its own is dropped."""
    columns = session.draw.pick(session.table, 2, same_kind=session.draw.chance(0.7))
    if not columns:
        return []
    first, second = columns
    if session.draw.chance(0.5):
        new = session.draw.renamed(session.table, first)
        return [lambda: session.rename(first.name, new), lambda: session.add(first.name, first.kind)]
    return [lambda: session.drop(first.name), lambda: session.rename(second.name, first.name)]


def _recreate(session: Session) -> list[Op]:
    old = session.table.columns
    if session.draw.chance(0.6):
        columns = [
            session.database.new_column(c.name, c.kind, key=c.key, generated=c.generated)
            for c in old
            if c.key or session.draw.chance(0.9)
        ]
        if session.draw.chance(0.4):
            columns.append(session.database.new_column(session.draw.name(session.table), session.draw.kind()))
        if session.draw.chance(0.2):
            session.random.shuffle(columns)
    else:
        columns = session.draw.columns(session.database)
    return [lambda: session.drop_table(NAME), lambda: session.create(NAME, columns)]


def _exchange(session: Session) -> list[Op]:
    """Rename the table away and another in, with columns of the same names; perhaps the former comes back."""
    other = "t_next" if "t_next" not in session.database.tables else "t_other"
    ops: list[Op] = []
    if other not in session.database.tables:
        twins = [
            session.database.new_column(column.name, column.kind, key=column.key, generated=column.generated)
            for column in session.table.columns
        ]
        ops.append(lambda: session.create(other, twins))
    ops += [
        lambda: session.rename_table(NAME, "t_spare"),
        lambda: session.rename_table(other, NAME),
        lambda: session.rename_table("t_spare", other),
    ]
    return ops


def _there_and_back(session: Session) -> list[Op]:
    """Change the table while it has another name."""

    def renamed() -> None:
        relation = session.database.tables["t_away"]
        for column in session.draw.pick(relation):
            new = session.draw.renamed(relation, column)
            relation.change(column.name, name=new)
            session.touch(column.number, relation)
            text = f"alter table t_away rename {quoted(column.name)} to {quoted(new)}"
            session.told_of("ALTER TABLE", "t_away", text, member=new)

    return [
        lambda: session.rename_table(NAME, "t_away"), renamed, lambda: session.rename_table("t_away", NAME)
    ]  # fmt: skip


def _reveal(session: Session) -> list[Op]:
    """Drop a column and give an excluded one a name that is not excluded."""
    hidden = [column for column in session.table.columns if column.is_excluded]
    columns = session.draw.pick(session.table)
    if not session.draw.reveal or not hidden or not columns or columns[0].is_excluded:
        return []
    revealed = session.random.choice(hidden)
    new = session.draw.name(session.table)
    return [lambda: session.drop(columns[0].name), lambda: session.rename(revealed.name, new)]


def _noise(session: Session) -> list[Op]:
    def comment() -> None:
        for column in session.draw.pick(session.table, keys=True):
            text = f"comment on column t.{quoted(column.name)} is 'rename a to b'"
            session.told_of("COMMENT", NAME, text, member=column.name)

    def other_table() -> None:
        if "u" not in session.database.tables:
            names = [column.name for column in session.table.columns]
            session.create("u", [session.database.new_column(name, "int", key=not at) for at, name in enumerate(names)])
        else:
            for column in session.draw.pick(session.database.tables["u"]):
                relation = session.database.tables["u"]
                new = session.draw.name(relation)
                relation.change(column.name, name=new)
                session.touch(column.number, relation)
                session.told_of(
                    "ALTER TABLE", "u", f"alter table u rename {quoted(column.name)} to {quoted(new)}", member=new
                )

    return [session.random.choice((comment, other_table))]


_THEMES: tuple[tuple[str, float, Callable[[Session], list[Op]]], ...] = (
    ("one statement", 14, _one),
    ("rename", 14, _rename),
    ("collapsed", 20, _burst),
    ("case only", 5, _case_only),
    ("rename and retype", 8, _rename_and_retype),
    ("swap", 8, _swap),
    ("rotate", 5, _rotate),
    ("rename of the key", 4, _key),
    ("drop and add again", 8, _add_again),
    ("drop and add another", 6, _replace),
    ("name goes on", 6, _name_goes_on),
    ("recreated", 4, _recreate),
    ("exchanged for another table", 3, _exchange),
    ("renamed away and back", 3, _there_and_back),
    ("revealed", 4, _reveal),
    ("noise", 6, _noise),
)
