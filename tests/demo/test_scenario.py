"""The scenarios do what the demo says it shows."""

from __future__ import annotations

import pytest

from cdc_sync.demo.mariadb_scenario import MARIADB_SCENARIO
from cdc_sync.demo.postgres_scenario import POSTGRES_SCENARIO
from cdc_sync.demo.scenario import Scenario

BOTH = pytest.mark.parametrize("scenario", [POSTGRES_SCENARIO, MARIADB_SCENARIO], ids=["postgres", "mariadb"])


def ddl(scenario: Scenario) -> list[str]:
    return [" ".join(statement.split()) for step in scenario.steps for statement in step.ddl]


@pytest.mark.parametrize(
    "part",
    [
        "add column discount numeric(5,2)",
        "add column priority int not null default 7",
        "drop column note",
        "rename column customer to buyer",
        "alter column quantity type bigint, alter column price type numeric(12,2)",
        "rename column discount to reduction",
        "drop column reduction",
        "add column reduction text",
        "rename column other to arrives",
        "create table inv.shipments",
    ],
)
def test_postgres_is_altered_in_every_way(part: str) -> None:
    assert any(part in statement for statement in ddl(POSTGRES_SCENARIO))


@pytest.mark.parametrize(
    "part",
    [
        "add column discount decimal(5,2)",
        "add column priority int not null default 7 after quantity",
        "drop column note",
        "change column customer buyer",
        "rename column paid to settled",
        "modify column quantity bigint",
        "modify column priority int not null default 7 first",
        "rename column other to arrives",
        "rename table inv.orders to inv._orders_del, inv._orders_gho to inv.orders",
        "create table inv.shipments",
    ],
)
def test_mariadb_is_altered_in_every_way(part: str) -> None:
    assert any(part in statement for statement in ddl(MARIADB_SCENARIO))


def test_one_transaction_of_postgres_renames_and_adds() -> None:
    assert any(
        "rename" in step.ddl[0] and "add" in step.ddl[1] for step in POSTGRES_SCENARIO.steps if len(step.ddl) == 2
    )


def test_a_name_comes_back_after_rows_without_it_and_in_the_same_step() -> None:
    texts = ddl(POSTGRES_SCENARIO)
    assert texts.index("alter table inv.orders drop column discount") < texts.index(
        "alter table inv.orders add column discount text"
    )
    for scenario in (POSTGRES_SCENARIO, MARIADB_SCENARIO):
        assert any("drop column" in step.ddl[0] and "add column" in step.ddl[-1] for step in scenario.steps if step.ddl)


@BOTH
def test_every_alter_is_followed_by_a_row_that_proves_it(scenario: Scenario) -> None:
    for step in scenario.steps:
        assert step.is_alter == any(statement.startswith("alter table") for statement in step.ddl), step.title
        if step.is_alter:
            assert step.proof is not None, step.title
            assert step.rows[0].startswith(f"insert into {step.proof.table}"), step.title
            assert f"({', '.join(map(str, step.proof.key))}, " in " ".join(step.rows[0].split()), step.title


@BOTH
def test_rows_are_inserted_updated_and_deleted(scenario: Scenario) -> None:
    words = {statement.split()[0] for step in scenario.steps for statement in step.rows}
    assert words == {"insert", "update", "delete"}


@BOTH
def test_tables_have_many_types(scenario: Scenario) -> None:
    common = ("smallint", "date", "time", "timestamp", "json", "double", "varchar(40)")
    own = {
        POSTGRES_SCENARIO: ("text[]", "uuid", "bytea", "timestamptz", "real"),
        MARIADB_SCENARIO: ("enum(", "set(", "year", "datetime(6)", "int unsigned", "blob", "float"),
    }[scenario]
    created = " ".join(scenario.before)
    for type_ in (*common, *own):
        assert f" {type_}" in created, type_
