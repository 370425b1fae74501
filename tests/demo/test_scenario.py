"""The scenario does what the demo says it shows."""

from __future__ import annotations

from cdc_sync.demo.scenario import BEFORE, STEPS

DDL = [" ".join(statement.split()) for step in STEPS for statement in step.ddl]


def test_every_kind_of_change_is_in_it() -> None:
    for part in (
        "add column discount numeric(5,2)",
        "add column priority int not null default 7",
        "drop column note",
        "rename column customer to buyer",
        "alter column quantity type bigint",
        "alter column price type numeric(12,2)",
        "add column discount text",
        "create table inv.shipments",
    ):
        assert any(part in statement for statement in DDL), part


def test_one_transaction_renames_and_adds() -> None:
    assert any("rename" in step.ddl[0] and "add" in step.ddl[1] for step in STEPS if len(step.ddl) == 2)


def test_rows_change_between_a_drop_and_the_return_of_its_name() -> None:
    drop = next(index for index, step in enumerate(STEPS) if "drop column discount" in str(step.ddl))
    again = next(index for index, step in enumerate(STEPS) if "add column discount text" in str(step.ddl))
    assert drop < again
    assert STEPS[drop].rows


def test_every_alter_is_followed_by_a_row_that_proves_it() -> None:
    for step in STEPS:
        assert step.is_alter == any(statement.startswith("alter table") for statement in step.ddl), step.title
        if step.is_alter:
            assert step.proof is not None, step.title
            assert step.rows[0].startswith(f"insert into {step.proof.table}"), step.title
            assert f"({', '.join(map(str, step.proof.key))}, " in step.rows[0], step.title


def test_rows_are_inserted_updated_and_deleted() -> None:
    words = {statement.split()[0] for step in STEPS for statement in step.rows}
    assert words == {"insert", "update", "delete"}


def test_tables_have_many_types() -> None:
    created = " ".join(BEFORE)
    for type_ in ("jsonb", "text[]", "uuid", "bytea", "timestamptz", "timestamp", "date", "time", "real", "double"):
        assert f" {type_}" in created, type_
