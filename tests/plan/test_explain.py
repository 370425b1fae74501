"""Steps in the words of SQL."""

from __future__ import annotations

from cdc_sync.core.migration.migration import (
    AlterTable,
    Backfill,
    ChangeRegime,
    CreateTable,
    JoinValues,
    Repartition,
    RewriteTable,
)
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.planning.explain import ArchiveTable, DropTable, EmptyTable, ExplainedStep, RollBack, explain
from cdc_sync.core.schema.changes import (
    AddColumn,
    DropColumn,
    JoinColumn,
    MoveColumn,
    RenameColumn,
    RetireColumn,
    SchemaChange,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnType,
)
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.partitioning import UNPARTITIONED, Partitioning
from cdc_sync.core.schema.types import INT32, INT64, STRING

T = TargetName(namespace="shop", name="odd.name")
ID, A = Column(id=1, name="id", type=INT32, optional=False), Column(id=2, name="a b", type=STRING)
SCHEMA = InternalSchema(columns=(ID, A), primary_key=(1,), last_column_id=2)
NEW = Column(id=3, name="new", type=INT64, initial=7, default=7)


def altered(*changes: SchemaChange) -> list[str]:
    step = explain(AlterTable(steps=tuple((SCHEMA, change) for change in changes)), T)
    assert (step.kind, step.cost) == ("AlterTable", "metadata")
    return [statement.removeprefix("ALTER TABLE shop.`odd.name` ") for statement in step.statements]


def test_a_table_is_created_with_the_columns_of_its_mode() -> None:
    assert explain(CreateTable(schema=SCHEMA), T) == ExplainedStep(
        kind="CreateTable", cost="metadata", statements=("CREATE TABLE shop.`odd.name` (id INT, `a b` STRING)",)
    )
    assert "_cdc_op STRING" in explain(CreateTable(schema=SCHEMA, mode="append"), T).statements[0]


def test_partitions_are_part_of_a_new_table_and_fields_of_one_that_is_there() -> None:
    before, after = Partitioning.parse(["day(at), `a b`"]), Partitioning.parse(["`a b`, bucket(16, id)"])

    (created,) = explain(CreateTable(schema=SCHEMA, partitioning=before), T).statements
    assert created.endswith(") PARTITIONED BY (day(at), `a b`)")
    assert explain(Repartition(before=before, after=after), T) == ExplainedStep(
        kind="Repartition",
        cost="metadata",
        statements=(
            "ALTER TABLE shop.`odd.name` DROP PARTITION FIELD day(at)",
            "ALTER TABLE shop.`odd.name` ADD PARTITION FIELD bucket(16, id)",
        ),
    )
    assert explain(CreateTable(schema=SCHEMA, partitioning=UNPARTITIONED), T) == explain(CreateTable(schema=SCHEMA), T)


def test_derived_partitions_are_columns_and_another_partitioning_is_a_rewrite_of_all_rows() -> None:
    before, after = Partitioning.parse(["id"]), Partitioning.parse(["`a b`, bucket(16, id)"])

    (created,) = explain(CreateTable(schema=SCHEMA, partitioning=after, partitions="derived"), T).statements
    assert created == (
        "CREATE TABLE shop.`odd.name` (id INT, `a b` STRING, cdc_sync_by_value_a_x0020_b STRING, "
        "cdc_sync_by_bucket16_id INT) PARTITIONED BY (cdc_sync_by_value_a_x0020_b, cdc_sync_by_bucket16_id)"
    )
    assert explain(Repartition(before=before, after=after, partitions="derived"), T) == ExplainedStep(
        kind="Repartition",
        cost="rewrite",
        statements=(
            "INSERT OVERWRITE TABLE shop.`odd.name` <all rows, partitioned by (cdc_sync_by_value_a_x0020_b, "
            "cdc_sync_by_bucket16_id)>",
        ),
    )
    same = Partitioning(fields=after.fields[::-1])
    found = explain(Repartition(before=same, after=after, partitions="derived"), T)
    assert (found.cost, found.statements) == ("metadata", ())


def test_another_regime_is_a_rewrite_of_all_rows() -> None:
    assert explain(ChangeRegime(after="on_read"), T) == ExplainedStep(
        kind="ChangeRegime",
        cost="rewrite",
        statements=("INSERT OVERWRITE TABLE shop.`odd.name` <all rows, for schema_evolution: on_read>",),
    )


def test_each_change_is_a_clause() -> None:
    assert altered(
        DropColumn(column=A, after=1),
        RenameColumn(id=2, old="a b", new="b"),
        UpdateColumnType(id=1, old=INT32, new=INT64),
        UpdateColumnComment(id=2, old=None, new="it's"),
        MoveColumn(id=2, old_after=1, new_after=None),
        AddColumn(column=NEW, after=2),
        JoinColumn(column=A, after=1, into=1, into_name="id"),
    ) == [
        "DROP COLUMN `a b`",
        "RENAME COLUMN `a b` TO b",
        "ALTER COLUMN id TYPE BIGINT",
        "ALTER COLUMN `a b` COMMENT 'it''s'",
        "ALTER COLUMN `a b` FIRST",
        "ADD COLUMN new BIGINT AFTER `a b`",
        "DROP COLUMN `a b`",
    ]


def test_what_is_only_recorded_is_no_statement() -> None:
    assert altered(RetireColumn(id=2, name="a b"), UpdateColumnDefault(id=1, old=None, new=1)) == []


def test_what_rewrites_rows_says_so() -> None:
    filled = explain(Backfill(columns=(NEW,)), T)
    assert (filled.cost, filled.statements) == ("rewrite", ("UPDATE shop.`odd.name` SET new = 7 WHERE new IS NULL",))
    joined = explain(JoinValues(schema=SCHEMA, into=1, joined=(2,), type=INT64, version=3), T)
    assert joined.cost == "rewrite"
    assert "`a b`" in joined.statements[0]


def test_a_new_type_that_rewrites_rows_says_so() -> None:
    change = UpdateColumnType(id=1, old=INT32, new=STRING)
    step = RewriteTable(version=1, before=SCHEMA, steps=((SCHEMA, change),), filled=())
    assert explain(step, T) == ExplainedStep(
        kind="RewriteTable", cost="rewrite", statements=("ALTER TABLE shop.`odd.name` ALTER COLUMN id TYPE STRING",)
    )


def test_a_rollback_moves_the_table_back() -> None:
    assert explain(RollBack(), T).cost == "metadata"


def test_a_truncate_takes_files_away_and_reads_none() -> None:
    assert explain(EmptyTable(), T) == ExplainedStep(
        kind="EmptyTable", cost="metadata", statements=("DELETE FROM shop.`odd.name`",)
    )


def test_a_table_that_goes_says_where() -> None:
    assert explain(DropTable(), T).statements == ("DROP TABLE shop.`odd.name`",)
    into = TargetName(namespace="shop", name="t__dropped_3")
    assert explain(ArchiveTable(into=into), T) == ExplainedStep(
        kind="ArchiveTable", cost="metadata", statements=("ALTER TABLE shop.`odd.name` RENAME TO shop.t__dropped_3",)
    )
