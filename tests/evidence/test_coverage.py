"""Since when evidence tells of a table, and what to do where it does not."""

from __future__ import annotations

from dataclasses import replace

from cdc_sync.core.lineage.column_log import ColumnLog, LoggedColumn, Structure, Token
from cdc_sync.core.lineage.coverage import CATALOGUE, MESSAGES, SCHEMA_CHANGES, VALUES, Configured, Coverage, coverage
from cdc_sync.core.lineage.kept import NOTHING_KEPT
from cdc_sync.core.model.positions import KafkaPosition, SourcePosition, TableId
from cdc_sync.core.schema.policy import Policy
from tests.plan.model import ROUTE
from tests.plan.tables import Table

ORDERS = TableId(database="shop", schema="inv", table="orders")
ITEMS = TableId(database="shop", schema="inv", table="items")
HEAD = SourcePosition(kind="postgresql", parts=(900, 900))
TOLD = Configured(messages=("shop.message",), schema_changes=("shop",))
COLUMN = LoggedColumn(name="id", token=Token(era=("pg", "shop"), number=(1, 1)), type="integer")


def structure(lsn: int, table: TableId = ORDERS, *, dropped: bool = False, empty: bool = False) -> Structure:
    at = KafkaPosition(topic="shop.message", partition=0, offset=lsn) if dropped else None
    columns = () if empty or dropped else (COLUMN,)
    position = replace(HEAD, parts=(lsn, lsn))
    return Structure(table=table, position=position, columns=columns, statement="alter …", dropped=dropped, kafka=at)


def of(*structures: Structure, configured: Configured = TOLD, head: SourcePosition = HEAD) -> Coverage:
    return coverage(ORDERS, head, configured, (ColumnLog("message", structures), ColumnLog("ddl")), NOTHING_KEPT)


def test_a_table_is_covered_from_its_first_structure_on() -> None:
    assert of(structure(7), structure(9)) == Coverage(since={MESSAGES: "postgresql:7/7"})


def test_messages_of_other_tables_leave_a_gap_whose_remedy_is_to_install_again() -> None:
    found = of(structure(7, ITEMS))
    assert found.since == {MESSAGES: None}
    (gap,) = found.gaps
    assert gap.startswith("evidence.messages (shop.message) tells nothing of the table yet; run `cdc-sync install-ddl-")


def test_what_was_not_understood_ends_what_is_covered_until_the_next_structure() -> None:
    (gap,) = of(structure(7), structure(8, empty=True)).gaps
    assert "any more since what was not understood at postgresql:8/8 (alter …); run `cdc-sync install" in gap
    assert of(structure(7), structure(8, empty=True), structure(9)).since == {MESSAGES: "postgresql:9/9"}


def test_a_table_that_was_dropped_has_no_gap() -> None:
    assert of(structure(7), structure(8, dropped=True)).gaps == ()


def test_only_what_a_source_can_tell_is_asked_for() -> None:
    binlog = SourcePosition(kind="binlog", parts=(1, 2, 0))
    found = of(structure(7), head=binlog)
    assert found.since == {SCHEMA_CHANGES: None}
    assert "cdc-sync decide" in found.gaps[0]
    untold = of(head=binlog, configured=Configured(messages=("shop.message",)))
    assert (untold.since, untold.gaps) == ({}, ())


def test_where_nothing_tells_statements_that_is_said_all_the_time() -> None:
    for configured, key in ((Configured(), MESSAGES), (Configured(catalogue=True, values=True), MESSAGES)):
        (unseen,) = of(configured=configured).all_gaps
        assert unseen.startswith("no topic is configured that tells statements, so one that changes stored values")
        assert f"set {key} " in unseen
    binlog = SourcePosition(kind="binlog", parts=(1, 2, 0))
    assert f"set {SCHEMA_CHANGES} " in (of(head=binlog, configured=Configured(messages=("m",))).unseen or "")
    assert of(structure(7)).all_gaps == ()


def test_what_is_told_before_a_log_that_began_anew_is_a_gap() -> None:
    (gap,) = of(structure(7), head=replace(HEAD, incarnation=1)).gaps
    assert gap.startswith("the source's log began anew")


def test_a_catalogue_that_cannot_be_read_is_a_gap() -> None:
    asked = Configured(catalogue=True, values=True)
    found = coverage(ORDERS, HEAD, asked, (), NOTHING_KEPT, problem="no route to host")
    assert replace(found, unseen=None) == Coverage(
        since={CATALOGUE: None, VALUES: None}, gaps=("evidence.catalogue is not read: no route to host",)
    )


def test_a_table_that_waits_for_proof_says_which_evidence_there_is() -> None:
    table = Table()
    table.rename_column("z", "b")
    observations = table.row()
    route = replace(ROUTE, policy=Policy(unproven_rename="pause"))
    told = {
        "no evidence is configured that proves such changes: `cdc-sync docs identity` shows what would": Coverage(),
        "what is configured does not prove it: evidence.messages (since postgresql:7/7)": of(structure(7)),
        "; ".join(of().gaps): of(),
    }
    for text, found in told.items():
        refusal = observations.plan(route, coverage=found).refusal
        assert refusal is not None
        assert refusal.why.remedy.endswith(f"; {text}")


def test_triggers_that_are_gone_are_a_gap_of_every_table() -> None:
    logs = (ColumnLog("message", (structure(7),)), ColumnLog("ddl"))
    (gap,) = coverage(ORDERS, HEAD, TOLD, logs, NOTHING_KEPT, untold="the triggers are gone").gaps
    assert gap.startswith("evidence.messages tells nothing new: the triggers are gone; run `cdc-sync install-ddl-")
    binlog = SourcePosition(kind="binlog", parts=(1, 2, 0))
    assert coverage(ORDERS, binlog, Configured(), logs, NOTHING_KEPT, untold="the triggers are gone").gaps == ()
