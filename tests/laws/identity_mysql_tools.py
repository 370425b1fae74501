"""What becomes of whole tables, by hand and by tools, and what servers log besides."""

from __future__ import annotations

from tests.laws.identity_course import NAME
from tests.laws.identity_model import Col
from tests.laws.identity_mysql import Server, entry_of
from tests.laws.identity_mysql_clauses import drawn_clauses
from tests.laws.identity_mysql_text import Clause


def recreate(server: Server) -> None:
    new = server.database.new_column
    columns = [new(c.name, c.kind, key=c.key) for c in server.table.columns if c.key or server.draw.chance(0.9)]
    if server.draw.chance(0.4):
        columns.append(new(server.draw.name(server.table), server.draw.kind()))
    if server.draw.chance(0.2):
        server.random.shuffle(columns)
    if server.draw.chance(0.4):
        columns = server.draw.columns(server.database)
    if server.connector == "mariadb" and server.draw.chance(0.4):
        server.create(NAME, columns, head="CREATE OR REPLACE TABLE")
    else:
        server.drop_table(NAME, unless=server.random.choice(("", "IF EXISTS ")))
        server.create(NAME, columns)


def exchange(server: Server) -> None:
    """Rename the table away and another one in, with columns of the same names; perhaps the former comes back."""
    other = "t_next"
    if other not in server.database.tables:
        new = server.database.new_column
        server.create(other, [new(c.name, c.kind, key=c.key) for c in server.table.columns])
    if server.draw.chance(0.6):
        server.rename_tables((NAME, "t_spare"), (other, NAME), ("t_spare", other))
    else:
        server.rename_tables((NAME, "t_spare"))
        server.rename_tables((other, NAME), ("t_spare", other))


def there_and_back(server: Server) -> None:
    """Change the table while it has another name."""
    if server.draw.chance(0.5):
        server.rename_tables((NAME, "t_away"))
    else:
        relation = server.database.tables["t_away"] = server.database.tables.pop(NAME)
        texts = [f"{server.write.word('RENAME')} {server.random.choice(('TO ', 'AS ', ''))}`t_away`"]
        for column in server.draw.pick(relation):
            clause = Clause(do="rename", old=column.name, new=server.draw.renamed(relation, column))
            texts.append(server.write.clause(clause))
            relation.change(clause.old, name=clause.new)
        server.run(server.write.alter(NAME, texts), server.entry("t_away"))
    relation = server.database.tables["t_away"]
    for column in server.draw.pick(relation):
        server.alter(Clause(do="rename", old=column.name, new=server.draw.renamed(relation, column)), name="t_away")
    server.rename_tables(("t_away", NAME))


def ghost(server: Server) -> None:
    """Change the table as gh-ost does: on a copy, which then takes the table's name.

    Source: gh-ost, `go/logic/applier.go`.
    """
    tool = "/* gh-ost */ "
    key = Col(identity=0, name="id", kind="big", key=True)
    server.create("_t_ghc", [key, server.database.new_column("hint", "word")], head=f"create {tool}table")
    server.create_like("_t_gho", NAME, tool=tool)
    _copy_altered(server, "_t_gho")
    server.create("_t_del", [key], head=f"create {tool}table")
    server.row()
    server.drop_table("_t_del")
    server.rename_tables((NAME, "_t_del"), ("_t_gho", NAME), tool=tool)
    server.drop_table("_t_ghc", unless="IF EXISTS ")
    server.drop_table("_t_del", unless="IF EXISTS ")


def online_schema_change(server: Server) -> None:
    """Change the table as pt-online-schema-change does; the copy is made from the text of SHOW CREATE TABLE.

    Source: Percona Toolkit, `bin/pt-online-schema-change`.
    """
    server.create("_t_new", list(server.table.columns))
    _copy_altered(server, "_t_new")
    server.record(
        "CREATE TRIGGER `pt_osc_shop_t_del` AFTER DELETE ON `shop`.`t` FOR EACH ROW "
        "DELETE IGNORE FROM `shop`.`_t_new` WHERE `shop`.`_t_new`.`id` <=> OLD.`id`"
    )
    server.row()
    server.rename_tables((NAME, "_t_old"), ("_t_new", NAME))
    server.drop_table("_t_old", unless="IF EXISTS ")
    server.record("DROP TRIGGER IF EXISTS `shop`.`pt_osc_shop_t_del`")


def _copy_altered(server: Server, copy: str) -> None:
    shown = server.table
    server.database.tables[NAME] = server.database.tables[copy]  # draw names that the copy does not have
    clauses = drawn_clauses(server, server.random.choice((1, 1, 2, 3)))
    server.database.tables[NAME] = shown
    server.alter(*clauses, name=copy)
    server.row()


def noise(server: Server) -> None:
    """Say things that change no column of the table."""
    name = server.random.choice(server.table.columns).name
    quoted = "`" + name.replace("`", "``") + "`"
    texts = [
        (f"CREATE INDEX ix ON `t` ({quoted})", [server.entry(NAME)]),
        ("DROP INDEX ix ON t", [server.entry(NAME)]),
        (f"CREATE OR REPLACE VIEW v AS SELECT {quoted} AS renamed FROM t", []),
        ("ALTER TABLE t COMMENT = 'was: alter table t rename column a to b'", [server.entry(NAME)]),
        ("ANALYZE TABLE `shop`.`t`", []),
        ("SET GLOBAL max_connections = 200", []),
        ("GRANT SELECT ON shop.* TO 'reader'@'%'", []),
        ("CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES ('alter table t drop a')", []),
        (f"CREATE TABLE IF NOT EXISTS `t` ({quoted} int, `another` int)", [server.entry(NAME)]),
    ]  # fmt: skip
    text, entries = server.random.choice(texts)
    server.record(text, entries)


def elsewhere(server: Server) -> None:
    """Change a table of the same name in another database."""
    columns = tuple(server.table.columns)
    old = server.random.choice(columns).name
    new = server.draw.name(server.table)
    texts = server.write
    others = tuple(Col(identity=0, name=new if c.name == old else c.name, kind=c.kind) for c in columns)
    inside = server.draw.chance(0.5)
    table = "t" if inside else "`crm`.`t`"
    text = f"ALTER TABLE {table} RENAME COLUMN {texts.name(old)} TO {texts.name(new)}"
    entry = entry_of(NAME, others, "ALTER", database="crm")
    server.record(text, [entry], database="crm" if inside else "shop")


def said_oddly(server: Server) -> None:
    """Rename twice in one record: two statements, or one with a part that only servers read."""
    columns = server.draw.pick(server.table, 2, same_kind=True)
    if not columns:
        return
    first, second = columns
    new = server.draw.name(server.table, reuse=0)
    one = f"RENAME COLUMN {server.write.name(first.name)} TO {server.write.name(new)}"
    two = f"RENAME COLUMN {server.write.name(second.name)} TO {server.write.name(first.name)}"
    server.table.change(first.name, name=new)
    server.table.change(second.name, name=first.name)
    if server.draw.chance(0.5):
        server.run(f"ALTER TABLE t {one}; ALTER TABLE t {two};", server.entry(NAME))
    else:
        server.run(f"ALTER TABLE t {one} /*!50600 , {two} */", server.entry(NAME))


def nothing_there(server: Server) -> None:
    """Say what MariaDB skips because the column is not there, or is."""
    if server.connector != "mariadb":
        return
    column = server.random.choice(server.table.columns)
    there, missing = server.write.name(column.name), "`not there`"
    server.run(
        "ALTER TABLE t "
        + server.random.choice(
            (
                f"ADD COLUMN IF NOT EXISTS {there} int",
                f"DROP COLUMN IF EXISTS {missing}",
                f"CHANGE COLUMN IF EXISTS {missing} {there} int",
                f"RENAME COLUMN IF EXISTS {missing} TO {there}",
                f"MODIFY COLUMN IF EXISTS {missing} int FIRST",
            )
        ),
        server.entry(NAME),
    )
