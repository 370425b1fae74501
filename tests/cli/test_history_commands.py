"""`cdc-sync history` and `cdc-sync diff`: what became of a table's columns, and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cdc_sync.core.history.version import Version
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.schema.alignment import Evidence
from cdc_sync.core.schema.diff import diff
from cdc_sync.core.schema.internal import Column, InternalSchema
from cdc_sync.core.schema.types import INT32, INT64, STRING
from cdc_sync.storage.history import HistoryStore
from tests.cli.runner import CommandLine

ORDERS = TableId(database="shop", schema="inv", table="orders")
ARCHIVED = TableId(database="shop", schema="archive", table="orders")
ID = Column(id=1, name="id", type=INT32, optional=False)
FIRST = InternalSchema(columns=(ID, Column(id=2, name="qty", type=INT32)), primary_key=(1,), last_column_id=2)
SECOND = InternalSchema(
    columns=(ID, Column(id=2, name="quantity", type=INT64), Column(id=3, name="note", type=STRING)),
    primary_key=(1,),
    last_column_id=3,
)


def version(number: int, schema: InternalSchema, before: InternalSchema | None, *evidence: Evidence) -> Version:
    return Version(
        table=ORDERS,
        number=number,
        fingerprint=f"f{number}",
        schema=schema,
        changes=diff(before, schema) if before else (),
        evidence=evidence,
        position=SourcePosition(kind="postgresql", parts=(number * 100, number * 100)),
        kafka=KafkaPosition(topic="shop.inv.orders", partition=0, offset=number * 10),
        snapshot=number == 1,
        append_only=True,
    )


@pytest.fixture(autouse=True)
def _recorded(config: Path) -> None:
    store = HistoryStore(f"{config.parent}/state/inventory/history")
    store.append(version(1, FIRST, None, Evidence(subject="shop.inv.orders", kind="first sight", text="first event")))
    store.append(
        version(2, SECOND, FIRST, Evidence(subject="quantity", kind="position", text="stands where qty stood"))
    )


def test_history_tells_each_version_its_changes_and_the_evidence(cdc_sync: CommandLine, config: Path) -> None:
    assert cdc_sync("history", config).out == (
        "shop.inv.orders\n"
        "  version 1  postgresql:100/100  shop.inv.orders[0]@10, first seen in a snapshot\n"
        "    no change of columns\n"
        "      because of shop.inv.orders: first event (first sight)\n"
        "  version 2  postgresql:200/200  shop.inv.orders[0]@20\n"
        "    rename column qty to quantity\n"
        "    change type of column quantity from INT to BIGINT\n"
        "    add column note STRING after quantity, rows from before read NULL\n"
        "      because of quantity: stands where qty stood (position)\n"
    )


def test_history_for_machines_names_kinds_ids_and_positions(cdc_sync: CommandLine, config: Path) -> None:
    [table] = cdc_sync("history", config, "shop.inv.orders", "--json").json

    assert table["table"] == "shop.inv.orders"
    assert table["versions"][1] == {
        "number": 2,
        "position": "postgresql:200/200",
        "kafka": {"topic": "shop.inv.orders", "partition": 0, "offset": 20},
        "snapshot": False,
        "fingerprint": "f2",
        "changes": [
            {"kind": "RenameColumn", "column": 2, "text": "rename column qty to quantity"},
            {"kind": "UpdateColumnType", "column": 2, "text": "change type of column quantity from INT to BIGINT"},
            {
                "kind": "AddColumn",
                "column": 3,
                "text": "add column note STRING after quantity, rows from before read NULL",
            },
        ],
        "evidence": [{"subject": "quantity", "kind": "position", "text": "stands where qty stood"}],
    }


def test_diff_tells_what_leads_from_one_version_to_another(cdc_sync: CommandLine, config: Path) -> None:
    assert cdc_sync("diff", config, "inv.orders", 1, 2).out == (
        "shop.inv.orders: version 1 to 2\n"
        "  rename column qty to quantity\n"
        "  change type of column quantity from INT to BIGINT\n"
        "  add column note STRING after quantity, rows from before read NULL\n"
    )


def test_diff_goes_backwards_too(cdc_sync: CommandLine, config: Path) -> None:
    assert cdc_sync("diff", config, "orders", 2, 1).out == (
        "shop.inv.orders: version 2 to 1\n"
        "  drop column note STRING\n"
        "  rename column quantity to qty\n"
        "  change type of column qty from BIGINT to INT\n"
    )


def test_a_version_differs_in_nothing_from_itself(cdc_sync: CommandLine, config: Path) -> None:
    assert cdc_sync("diff", config, "orders", 2, 2).out == "shop.inv.orders: version 2 to 2\n  no difference\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("diff", "shop.inv.order", 1, 2),
            "Cannot find table 'shop.inv.order': no schema version of it is recorded; did you mean shop.inv.orders?",
        ),
        (
            ("history", "zzz"),
            "Cannot find table 'zzz': no schema version of it is recorded; 1 tables are recorded",
        ),
        (("diff", "orders", 1, 3), "Cannot find version 3 of shop.inv.orders: versions 1 to 2 are recorded"),
    ],
)
def test_what_is_not_recorded_is_refused(
    cdc_sync: CommandLine, config: Path, arguments: tuple[object, ...], message: str
) -> None:
    ran = cdc_sync(arguments[0], config, *arguments[1:])

    assert (ran.exit_code, ran.out, ran.err) == (1, "", f"cdc-sync: {message}\n")


def test_an_end_of_a_name_that_two_tables_share_is_refused(cdc_sync: CommandLine, config: Path) -> None:
    store = HistoryStore(f"{config.parent}/state/inventory/history")
    store.append(replace(version(1, FIRST, None), table=ARCHIVED))

    ran = cdc_sync("history", config, "orders")

    assert ran.err == (
        "cdc-sync: Cannot choose table 'orders': shop.archive.orders and shop.inv.orders both end so; write the whole "
        "name\n"
    )
    assert cdc_sync("history", config, "inv.orders").exit_code == 0


def test_a_pipeline_that_just_began_has_no_versions(cdc_sync: CommandLine, config: Path) -> None:
    config.write_text(config.read_text().replace("name: inventory", "name: other"))
    (config.parent / "state" / "other").mkdir(parents=True)

    assert cdc_sync("history", config).out == "No schema version is recorded yet.\n"
