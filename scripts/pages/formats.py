"""docs/formats.md: what each table format holds, and changes in place, from the tables that the program acts by.

`python -m scripts.pages.formats > docs/formats.md` prints the page; a test compares it with the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from cdc_sync.core.migration.capabilities import KINDS, Capabilities, Promotion
from cdc_sync.core.migration.namerules import NameRules
from cdc_sync.core.schema.changes import (
    AddColumn,
    ChangePrimaryKey,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SchemaChange,
    UpdateColumnComment,
)
from cdc_sync.core.schema.members import AddMember, DropMember, MemberChange, MoveMember

_HEAD = """\
# Table formats

`target.format` says what the tables are. Everything else is the same for all formats: the same history, the same
evidence, the same policies, one behaviour suite (`tests/targets`). This page is printed by the program
(`scripts/pages/formats.py`), and a test compares them.

*In place*: one commit of metadata, no row is touched. *Rewritten*: columns, rows, version and progress change in one
commit, the state before is kept, and `cdc-sync rollback` brings it back; what is larger than `policy.rewrite_limit`
asks first. Readers see the table before or after, never between.

Members of structs change as columns do, also in elements of lists and in values of maps ([how](type-changes.md)). Of a
file that has no member of a struct that a query asks for, Spark's readers give NULL for all of the struct, or for the
list around it; that of Iceberg loses a list's elements or fails at a map. So a new member is written to every file, but
in Iceberg ([below](#iceberg)), and the oldest one, which every file has, goes by a rewrite. `tests/targets` asks for
each member alone in sessions of Spark's own settings, with its vectorised reader and without.
"""

_CHANGES: tuple[tuple[str, type[SchemaChange]], ...] = (
    ("drop a column", DropColumn),
    ("rename a column, swap names", RenameColumn),
    ("move a column", MoveColumn),
    ("comment", UpdateColumnComment),
    ("another primary key", ChangePrimaryKey),
)
_MEMBERS: tuple[tuple[str, type[MemberChange]], ...] = (
    ("add a member to a struct, anywhere", AddMember),
    ("drop a member", DropMember),
    ("move a member", MoveMember),
)
_NOTES = """\
## Iceberg

Format version 2, merge-on-read with position deletes, which every reader of Iceberg takes. Progress is a property of
each snapshot, the version a property of the table.

Catalogs: JDBC (an SQLite file by default, or a database that several engines share), Hadoop, Hive, REST; the suite
plays every change in each. One of type hadoop cannot rename tables. A Hive metastore compares types of columns by
their position and refuses most changes unless its `hive-site.xml` says
`hive.metastore.disallow.incompatible.col.type.changes=false`; and Iceberg takes a lock of it for each commit, for which
one that Hive's `schematool` did not set up has no tables: every commit waits for minutes then and fails. A metastore
that checks what it replaces (Hive 2.3.10, 3.1.4, 4) needs no locks, which
`properties: {hadoop.iceberg.engine.hive.lock-enabled: 'false'}` of the catalog leaves out.

`partition_by` of a rule divides the files: `[day(created_at), bucket(16, id), region]`, in Iceberg's words; year,
month, day and hour are in UTC. Changed, it holds for what is written from then on, in one commit of metadata; files of
before stay as they are (Spark's `rewrite_data_files` brings them over), and queries need no change. A renamed column
still divides. A dropped one no longer does, but stays in the table as `__cdc_sync_dropped_…`, NULL in new rows: without
the columns of past specs Iceberg cannot merge. Partitioned tables are written with `hash` distribution and without
fanout, so that a batch makes one file for each partition and needs little memory; `target.table_properties` wins. A
column's own value becomes the name of a folder: long texts want `truncate`. In `append` mode the changelog's own
columns can be named too, such as `day(_cdc_ts)`. A column that the table does not have, or of a type that the transform
does not take, pauses a new table; one that has rows stays partitioned as it is, and `status` says so
([all formats](partitions.md), [why](decisions/0025-partitions-of-iceberg-tables.md)).

Spark's reader of Iceberg goes wrong where a query asks for nothing of structs but members that a file is older than:
`select s.note from t where s is not null` has no rows of that file, `lines.note` is `[]` instead of a NULL for each
line, and `tags['a'].note` fails. All of the column, or any query with
`spark.sql.optimizer.nestedSchemaPruning.enabled=false`, reads what the table holds.

## Delta

Tables lie at `<warehouse>/<namespace>/<name>` and are found by that path. Columns are mapped by name
(`delta.columnMapping.mode`), so readers must know column mapping; Spark's and delta-rs' (its SQL) are tested. No
deletion vectors, no type widening: on Spark 3.5 Delta widens 8 and 16 bit integers only, which are held as 32 bits
here, so any other type change rewrites. The first timestamp without a zone brings the feature `timestampNtz`.
`target.table_properties` are set when a table is made. With `catalog: {type: hive, uri: …}` each table has an
entry in a Hive metastore too, as [Hudi tables](hudi.md#in-a-hive-metastore) have.

`partition_by` of a rule divides a table by columns that are computed for it, `cdc_sync_by_…`, and a changed one writes
all rows anew ([partitions.md](partitions.md)).

Progress is the user metadata of each commit and the version a property of the table; what others commit (OPTIMIZE,
VACUUM, their own writes) is left alone, and after a RESTORE by anybody the job goes on from the version that was
restored. A rollback needs the files of before, which a VACUUM of others removes after a week (the table's
`delta.deletedFileRetentionDuration`) and [maintenance](maintenance.md) does not. If all commits of cdc_sync have
expired from the log (`delta.logRetentionDuration`, 30 days, and only while others go on committing, and nobody
maintains the table), the job says so and reads nothing anew.

## Hudi

Copy-on-write or merge-on-read, in one of two regimes: *hudi* above is schema-on-write, which Presto, Trino and Hive
read right; *hudi on read* is `schema_evolution: on_read`, for tables that only Spark reads, where a name that is used
again is a rewrite as long as files have it of before. Partitioned by `partition_by` as they are made, for good.
[hudi.md](hudi.md) has all of it, names, types, readers and what Spark has to be told.

## Parquet

Plain files that a Hive metastore names, for readers that know nothing else. Every batch writes its tables anew, whole,
so they are for tables that are small or change seldom; [parquet.md](parquet.md) has layout, cost and readers. With
`partition_by` a batch writes the partitions that it touches; they are Hive's, by columns `cdc_sync_by_…` that are
computed for it, and another `partition_by` writes all rows anew ([partitions.md](partitions.md)).
"""


def render() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *_table(), "", _NOTES])


def _table() -> Iterator[str]:
    shown = [found for found in KINDS if found.format != "memory"]
    yield "| change | " + " | ".join(found.kind or found.format for found in shown) + " |"
    yield "|---" * (len(shown) + 1) + "|"
    yield _row("add a column behind all others", [_how(AddColumn not in found.rewritten) for found in shown])
    yield _row("add a column elsewhere", [_how(not found.adds_last) for found in shown])
    for name, change in _CHANGES:
        yield _row(name, [_how(change not in found.rewritten) for found in shown])
    for promotion in Promotion:
        yield _row(promotion.value, [_how(promotion in found.promotions) for found in shown])
    yield _row("the same inside lists, maps, structs", [_how(found.widens_nested) for found in shown])
    for name, member in _MEMBERS:
        yield _row(name, [_how(member not in found.rewritten) for found in shown])
    yield _row("drop the oldest member of a struct", ["rewritten"] * len(shown))
    yield _row("any other type", ["rewritten"] * len(shown))
    yield _row("[another `partition_by`](partitions.md)", [_divided(found) for found in shown])
    yield _row("names of columns", [_names(found) for found in shown])
    yield _row("[several source tables in one](merged.md)", ["yes" if found.merges else "no" for found in shown])


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


def _how(in_place: bool) -> str:
    return "in place" if in_place else "rewritten"


def _divided(found: Capabilities) -> str:
    if found.partitions is None:
        return "refused"
    if found.partitions_stay:
        return "stays as made"
    return _how(found.partitions == "hidden")


def _names(capabilities: Capabilities) -> str:
    rules: NameRules = capabilities.columns
    said = ["letters, digits and `_`; others are escaped" if rules.plain else "any"]
    if rules.folds_case:
        said.append("not two that differ only in case")
    return "; ".join(said)


if __name__ == "__main__":
    sys.stdout.write(render())
