"""What a table's events lead to: versions, or a refusal that says what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_sync.core.debezium.connect import ConnectSchema
from cdc_sync.core.history.history import History
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.routes import Decision
from cdc_sync.core.model.codes import Code
from cdc_sync.core.planning.column_mappings import with_declared_key
from cdc_sync.core.planning.observation import Observation, Refusal, TablePlan
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.changes import AddColumn, DropColumn, RenameColumn, UpdateColumnDefault, UpdateColumnType
from cdc_sync.core.schema.policy import Policy
from cdc_sync.testing import BOOLEAN, INT16, INT32, INT64, TEXT, array, column, decimal, struct
from tests.plan.model import ROUTE, in_source_order, observation, observations, planned
from tests.plan.tables import Table

PAUSE = replace(ROUTE, policy=Policy(unproven_rename="pause"))
STRICT = replace(ROUTE, policy=Policy(incompatible_types="pause", unknown_values="pause"))


def changes(plan: TablePlan) -> list[str]:
    """The changes of all versions but the first, as words."""
    return [said for version in plan.versions[1:] for change in version.changes if (said := _said(change))]


def _said(change: object) -> str:
    match change:
        case AddColumn(column=added):
            return f"+{added.name}={added.initial!r}"
        case DropColumn(column=dropped):
            return f"-{dropped.name}"
        case RenameColumn(old=old, new=new):
            return f"{old}->{new}"
        case UpdateColumnDefault():
            return ""
        case _:
            return type(change).__name__


def refusal(plan: TablePlan) -> Refusal:
    assert plan.refusal is not None
    return plan.refusal


class TestVersions:
    def test_the_first_event_is_the_baseline(self) -> None:
        plan = Table().plan()
        (version,) = plan.versions
        assert (version.number, version.changes, plan.refusal) == (1, (), None)
        assert [c.name for c in version.schema.columns] == ["id", "a", "z"]
        assert version.schema.primary_key == (1,)
        assert [item.kind for item in version.evidence] == ["first sight"]

    def test_events_of_one_schema_make_one_version(self) -> None:
        assert len(Table().row().row().plan().versions) == 1

    def test_a_new_column_is_null_for_the_rows_that_are_there(self) -> None:
        t = Table()
        t.add_column(column("n", INT32))
        assert changes(t.row().plan()) == ["+n=None"]

    def test_a_constant_default_is_filled_in_and_marked_for_it_may_be_of_later(self) -> None:
        t = Table()
        t.add_column(column("n", INT32, optional=False, default=7), initial=7)
        plan = t.row().plan()
        assert changes(plan) == ["+n=7"]
        (said,) = (item for item in plan.versions[1].evidence if item.kind == "needs resync")
        assert said.text == (
            "existing rows read 7, the default that the first event shows; nothing tells what it was added "
            "with (`evidence`)"
        )

    def test_so_is_null_for_a_default_may_have_been_dropped_again(self) -> None:
        t = Table()
        t.add_column(column("n", INT32))
        (said,) = (item for item in t.row().plan().versions[1].evidence if item.kind == "needs resync")
        assert said.text == (
            "existing rows read NULL, for the first event shows no default; nothing tells what it was added "
            "with (`evidence`)"
        )

    def test_or_taken_for_true_where_the_operator_trusts_it(self) -> None:
        t = Table()
        t.add_column(column("n", INT32, optional=False, default=7), initial=7)
        t.add_column(column("m", INT32))
        plan = t.row().plan(replace(ROUTE, policy=Policy(unknown_values="trust")))
        assert changes(plan) == ["+n=7", "+m=None"]
        said = [item for item in plan.versions[1].evidence if item.kind != "position"]
        assert [(item.kind, item.text) for item in said] == [
            ("default", "existing rows read 7, the default that the first event shows")
        ]

    def test_or_the_table_pauses_before_it(self) -> None:
        t = Table()
        t.add_column(column("n", INT32, optional=False, default=7), initial=7)
        assert "nothing tells what it was added with" in refusal(t.row().plan(STRICT)).why.reason
        assert t.plan(replace(STRICT, initials={"n": 7})).refusal is None

    @pytest.mark.parametrize("policy", ["mark", "trust"])
    def test_a_new_column_before_older_ones_was_there_and_not_shown(self, policy: Any) -> None:
        t = Table()
        t.columns = (t.columns[0], column("n", INT32, default=7), *t.columns[1:])
        t.add_column(column("m", INT32, default=8), initial=8)
        plan = t.row(n=1).plan(replace(ROUTE, policy=Policy(unknown_values=policy)))
        assert sorted(changes(plan)) == ["+m=8", "+n=None"]
        (said,) = (item for item in plan.versions[1].evidence if item.subject == "n" and item.kind == "needs resync")
        assert said.text == (
            "existing rows read NULL; what they hold is not known: it was there before events showed it, for it stands "
            "before older ones"
        )

    def test_a_changed_default_is_a_version_that_fills_nothing(self) -> None:
        t = Table()
        t.alter_column("a", lambda c: replace(c, default=5))
        plan = t.row().plan()
        assert [type(c) for c in plan.versions[1].changes] == [UpdateColumnDefault]
        assert plan.versions[0].fingerprint == plan.versions[1].fingerprint

    def test_a_rename_is_proven_by_its_place(self) -> None:
        t = Table()
        t.rename_column("a", "b")
        plan = t.row().plan(PAUSE)
        assert changes(plan) == ["a->b"]
        assert [item.kind for item in plan.versions[1].evidence] == ["position"]

    def test_the_last_column_is_renamed_where_it_is_declared(self) -> None:
        t = Table()
        t.rename_column("z", "y")
        plan = t.row().plan(replace(PAUSE, renames={"z": "y"}))
        assert changes(plan) == ["z->y"]
        assert [item.kind for item in plan.versions[1].evidence] == ["declared"]

    def test_a_dropped_column_goes(self) -> None:
        t = Table()
        t.drop_column("a")
        assert changes(t.row().plan()) == ["-a"]

    def test_a_wider_type_is_carried_out(self) -> None:
        t = Table()
        t.alter_column("a", lambda _: column("a", INT64))
        assert changes(t.row().plan()) == ["UpdateColumnType"]

    def test_a_schema_that_returns_is_a_new_version(self) -> None:
        t = Table()
        t.add_column(column("n", INT32))
        t.row().drop_column("n")
        plan = t.row().plan()
        assert changes(plan) == ["+n=None", "-n"]
        first, _, last = plan.versions
        assert (first.fingerprint, first.schema.columns) == (last.fingerprint, last.schema.columns)

    def test_a_text_that_says_nothing_new_makes_no_version(self) -> None:
        t = Table()
        t.alter_column("a", lambda _: replace(column("a", INT32), parameters={"__debezium.source.column.type": "INT"}))
        assert len(t.row().plan().versions) == 1

    def test_an_older_event_that_comes_late_never_evolves_the_table_back(self) -> None:
        t = Table()
        t.add_column(column("n", INT32))
        history = t.row().history()
        early, late = in_source_order(t.events())
        again = replace(observation(early), kafka=replace(late.kafka, offset=99))
        assert plan_table(history, [again], ROUTE, ICEBERG) == TablePlan(versions=())


class TestWhatIsNotProven:
    def renamed_last(self) -> Table:
        t = Table()
        t.rename_column("z", "y")
        return t.row()

    def test_the_old_column_is_kept_and_the_new_one_added(self) -> None:
        plan = self.renamed_last().plan()
        assert [(c.name, c.retired) for c in plan.versions[1].schema.columns] == [
            ("id", False),
            ("a", False),
            ("z", True),
            ("y", False),
        ]
        assert plan.warnings == (
            "z: kept with its data, gone at the source: the last columns may be renamed, or dropped and others added",
        )

    def test_or_the_table_pauses_and_the_explanations_are_named(self) -> None:
        stop = refusal(self.renamed_last().plan(PAUSE))
        assert "'z' vanished, 'y' appeared" in stop.why.reason
        assert "'z' was renamed to 'y'" in stop.why.reason
        assert "'z' was dropped, 'y' was added" in stop.why.reason
        assert "--rename z=y" in stop.why.remedy

    def test_names_that_changed_places_pause_whatever_the_policy(self) -> None:
        t = Table()
        for old, new in (("a", "tmp"), ("z", "a"), ("tmp", "z")):
            t.rename_column(old, new)
        assert "never reorders" in refusal(t.row().plan()).why.reason

    def test_a_name_of_a_kept_column_cannot_come_back_until_its_drop_is_declared(self) -> None:
        t = self.renamed_last()
        t.add_column(column("z", TEXT))
        t.row()
        assert "'z'" in refusal(t.plan()).why.reason
        plan = t.plan(replace(ROUTE, drops=frozenset({"z"}), renames={}))
        assert plan.refusal is None

    def test_a_column_only_the_snapshot_showed_is_kept(self) -> None:
        t = Table()
        t.records.clear()
        t.wal.last_commit = None
        t.snapshot()
        t.drop_column("a")
        plan = t.row().plan()
        assert [c.name for c in plan.versions[1].schema.columns if c.retired] == ["a"]

    def test_but_dropped_if_the_stream_showed_it_too(self) -> None:
        t = Table()
        t.records.clear()
        t.wal.last_commit = None
        t.snapshot()
        t.row().drop_column("a")
        assert changes(t.row().plan()) == ["-a"]


class TestDecisions:
    def test_what_the_operator_said_of_a_change_is_the_proof(self) -> None:
        t = Table()
        t.rename_column("z", "y")
        stop = refusal(t.row().plan(PAUSE))

        def decided(**said: Any) -> TablePlan:
            decision = Decision(table=t.id, at=str(stop.kafka), **{"renames": {}, **said})
            return t.plan(replace(PAUSE, decisions=(decision,)))

        assert changes(decided(renames={"z": "y", "gone": "y"})) == ["z->y"]
        assert decided(renames={"z": "y"}).versions[1].evidence[0].kind == "decided"
        assert changes(decided(dropped=("z",))) == ["-z", "+y=None"]
        anew = decided(not_same=("y", "gone"))
        assert anew.refusal is None
        assert "z->y" not in changes(anew)

    def test_of_another_change_it_says_nothing(self) -> None:
        t = Table()
        t.rename_column("z", "y")
        other = Decision(table=t.id, at="t[0]@77", renames={"z": "y"})
        assert refusal(t.row().plan(replace(PAUSE, decisions=(other,))))


class TestRefusals:
    def test_a_function_default_pauses_and_a_stated_value_cures_it(self) -> None:
        t = Table()
        t.add_column(column("n", INT32, optional=False, default=0), initial=3)
        t.row(n=4)
        stop = refusal(t.plan(STRICT))
        assert "existing rows hold in the new column 'n'" in stop.why.reason
        assert "initial_values: {n: <value>}" in stop.why.remedy
        plan = t.plan(replace(ROUTE, initials={"n": 3}))
        assert changes(plan) == ["+n=3"]
        assert "existing rows read 3, declared" in [item.text for item in plan.versions[1].evidence]

    @pytest.mark.parametrize("wrong", ["three", 2**40, True, 1.5])
    def test_a_stated_value_that_is_none_of_the_type_pauses(self, wrong: bool | float | str) -> None:
        t = Table()
        t.add_column(column("n", INT32))
        stop = refusal(t.row(n=4).plan(replace(ROUTE, initials={"n": wrong})))
        assert stop.why.reason == (
            f"what initial_values says of the new column 'n' must be a whole number of 32 bits, not {wrong!r}"
        )
        assert stop.why.remedy.startswith("correct initial_values: {n: <value>}")

    def test_a_function_default_marks_the_column(self) -> None:
        t = Table()
        t.add_column(column("n", INT32, optional=False, default=0), initial=3)
        plan = t.row(n=4).plan()
        assert changes(plan) == ["+n=None"]
        (said,) = (item for item in plan.versions[1].evidence if item.kind == "needs resync")
        assert said.subject == "n"
        assert said.text == (
            "existing rows read NULL; what they hold is not known: its default arrives as 0, which is also how a "
            "function default arrives"
        )
        assert plan.warnings == ()

    def test_a_changelog_is_not_marked_for_its_rows_are_what_the_events_said(self) -> None:
        t = Table()
        t.add_column(column("n", INT32, optional=False, default=0), initial=3)
        plan = t.row(n=4).plan(replace(ROUTE, append=True))
        assert changes(plan) == ["+n=None"]
        assert "needs resync" not in [item.kind for item in plan.versions[1].evidence]

    def test_null_can_be_stated_too(self) -> None:
        t = Table()
        t.add_column(column("n", INT32, optional=False, default=0))
        assert changes(t.row(n=4).plan(replace(ROUTE, initials={"n": None}))) == ["+n=None"]

    def test_a_zero_default_is_believed_when_the_first_row_holds_it(self) -> None:
        t = Table()
        t.add_column(column("n", INT32, optional=False, default=0), initial=0)
        assert changes(t.row().plan()) == ["+n=0"]

    def test_false_is_a_constant(self) -> None:
        t = Table()
        t.add_column(column("n", BOOLEAN, optional=False, default=False), initial=False)
        assert changes(t.row(n=True).plan()) == ["+n=False"]

    def test_not_null_without_a_default_pauses(self) -> None:
        t = Table()
        t.add_column(column("n", INT32, optional=False), initial=1)
        assert "accepts no NULL and has no default" in refusal(t.row(n=2).plan(STRICT)).why.reason

    def test_a_default_that_arrives_cut_off_is_not_copied(self) -> None:
        t = Table()
        t.add_column(column("n", TEXT, optional=False, default="it"), initial="it's new")
        stopped = refusal(t.row(n="it's new").plan(STRICT))
        assert "what existing rows hold in the new column 'n' is not known" in stopped.why.reason

    def test_a_key_column_that_changes_pauses_where_a_topic_has_several_partitions(self) -> None:
        t = Table()
        t.rename_column("id", "key")
        events = t.row().events()
        assert changes(t.plan()) == ["id->key"]
        several = [observation(event, partitions=2) for event in events]
        assert (
            "rows of one key now come in two of them" in refusal(plan_table(None, several, ROUTE, ICEBERG)).why.reason
        )

    def test_an_incompatible_type_pauses_and_names_both(self) -> None:
        t = Table()
        t.alter_column("a", lambda _: column("a", TEXT))
        found = refusal(t.row().plan(STRICT))
        assert found.why.reason == "column 'a' changed from INT to STRING, which iceberg cannot do in place"
        assert found.why.remedy.endswith("or set policy.incompatible_types: rewrite for the table")

    def test_a_type_without_a_conversion_stands_beside_the_old_column(self) -> None:
        t = Table()
        t.alter_column("a", lambda _: column("a", array(TEXT)), convert=lambda _: None)
        plan = t.row().plan()
        assert plan.refusal is None
        assert changes(plan)[0].startswith("a->a__retired_2")
        names = [(item.name, item.id, item.retired) for item in plan.versions[1].schema.columns]
        assert names == [("id", 1, False), ("a__retired_2", 2, True), ("a", 4, False), ("z", 3, False)]
        (said,) = plan.warnings
        assert "no value of the old type is one of the new type" in said

    def test_a_type_that_converts_is_one_column_and_the_rule_is_told(self) -> None:
        t = Table()
        t.alter_column("a", lambda _: column("a", TEXT))
        plan = t.row().plan()
        assert [item.id for item in plan.versions[1].schema.columns] == [1, 2, 3]
        assert plan.warnings == ()
        evidence, mark = plan.versions[1].evidence
        assert (evidence.subject, evidence.kind) == ("a", "rewrite")
        assert evidence.text == "existing values are converted, INT to STRING: its decimal digits"
        assert (mark.subject, mark.kind) == ("a", "needs resync")
        assert mark.text == (
            "existing values were converted by rule, INT to STRING; no event tells whether the source did so by an "
            "expression of its own (USING)"
        )
        log = t.plan(replace(ROUTE, append=True))
        assert [item.kind for item in log.versions[1].evidence] == ["rewrite"]

    def test_a_key_that_may_lose_a_value_pauses(self) -> None:
        t = Table(column("id", TEXT, optional=False), column("a", INT32))
        t.alter_column("id", lambda _: column("id", INT32, optional=False))
        found = refusal(t.row(id=7).plan())
        assert found.why.reason.endswith("which iceberg cannot do in place, and rows are found by it")

    def test_what_comes_before_the_refused_change_is_planned(self) -> None:
        t = Table()
        t.add_column(column("n", INT32))
        t.row().alter_column("id", lambda _: column("id", INT16, optional=False))
        plan = t.row().row().plan()
        assert len(plan.versions) == 2
        stop = refusal(plan)
        assert (stop.kafka.offset, stop.position) == (2, t.events()[2].source.position)

    def test_another_key_pauses_only_where_a_topic_has_several_partitions(self) -> None:
        t = Table()
        t.key = ("id", "a")
        t.insert(id=9, a=1)
        assert t.plan().refusal is None
        assert t.history().head.schema.primary_key == (1, 2)
        several = [observation(event, partitions=2) for event in t.events()]
        found = refusal(plan_table(None, several, ROUTE, ICEBERG)).why.reason
        assert found.startswith("the key changed from (id) to (id, a), and the topic has 2 partitions: ")
        changelog = plan_table(None, several, replace(ROUTE, append=True), ICEBERG)
        assert changelog.refusal is None

    def test_a_table_without_a_key_is_kept_by_whole_rows(self) -> None:
        plan = Table(column("id", INT32), key=()).plan()
        assert plan.refusal is None
        assert plan.versions[0].schema.primary_key == ()

    def test_a_table_without_a_key_whose_rows_cannot_be_compared_is_refused(self) -> None:
        text_map = ConnectSchema(
            type="map", field="m", optional=True, keys=ConnectSchema(type="string"), values=ConnectSchema(type="string")
        )
        t = Table(column("id", INT32), text_map, key=())
        stop = refusal(t.plan())
        assert "cannot be told apart by column 'm'" in stop.why.reason
        assert "`key` or `mode: append`" in stop.why.remedy
        assert t.plan(replace(ROUTE, append=True)).refusal is None

    def test_a_table_whose_keys_carry_no_schema_is_refused(self) -> None:
        (event,) = Table(column("id", INT32), key=()).events()
        stop = refusal(plan_table(None, [observation(event, opaque_key=True)], ROUTE, ICEBERG))
        assert "carry no schema" in stop.why.reason
        assert "schemas.enable=true" in stop.why.remedy

    @pytest.mark.parametrize(
        ("record_key", "declared", "reason"),
        [
            ((), None, "the records have no key"),
            ((), ("id",), "the records have no key"),
            (("a",), ("id",), "the record key (a) has columns that the declared `key` (id) has not"),
            (("id", "a"), ("id",), "the record key (id, a) has columns that the declared `key` (id) has not"),
            (("id",), ("id",), None),
            (("a",), ("id", "a"), None),
            (("id", "a"), ("a", "id"), None),
        ],
    )
    def test_on_several_partitions_the_record_key_must_be_of_columns_of_the_declared_one(
        self, record_key: tuple[str, ...], declared: tuple[str, ...] | None, reason: str | None
    ) -> None:
        (event,) = Table(column("id", INT32), column("a", INT32), key=record_key).events()
        assert event.known.schema is not None
        route = replace(ROUTE, key=declared)
        one = observation(event, schema=with_declared_key(event.known.schema, route))
        assert plan_table(None, [one], route, ICEBERG).refusal is None
        several = replace(one, partitions=3)
        changelog = replace(route, append=True)
        assert plan_table(None, [several], changelog, ICEBERG).refusal is None
        found = plan_table(None, [several], route, ICEBERG).refusal
        if reason is None:
            assert found is None
        else:
            assert found is not None
            assert found.why.reason == (
                f"{reason}, and the topic has 3 partitions: a row's events come in any of them, in no order"
            )
            assert "one partition" in found.why.remedy
            assert "message.key.columns" in found.why.remedy

    @pytest.mark.parametrize("at_once", [True, False])
    def test_another_record_key_below_a_declared_one_pauses_only_where_a_topic_has_several_partitions(
        self, at_once: bool
    ) -> None:
        t = Table(column("id", INT32), column("a", INT32), key=("id",))
        t.key = ("a",)
        route = replace(ROUTE, key=("id", "a"))

        def plan(partitions: int) -> TablePlan:
            first, second = (
                observation(event, partitions=partitions, schema=with_declared_key(event.known.schema, route))
                for event in t.row().events()[:2]
                if event.known.schema is not None
            )
            if at_once:
                return plan_table(None, [first, second], route, ICEBERG)
            history = History(table=t.id, versions=plan_table(None, [first], route, ICEBERG).versions)
            return plan_table(history, [second], route, ICEBERG)

        assert plan(1).refusal is None
        stop = refusal(plan(2))
        assert (stop.kafka.offset, stop.why.reason) == (
            1,
            "the record key changed from (id) to (a), and the topic has 2 partitions: rows of one key now come in two "
            "of them, in no order",
        )

    def test_on_several_partitions_no_key_helps_where_record_keys_carry_no_schema(self) -> None:
        (event,) = Table(column("id", INT32), key=()).events()
        assert event.known.schema is not None
        for route in (ROUTE, replace(ROUTE, key=("id",))):
            schema = with_declared_key(event.known.schema, route)
            seen = observation(event, schema=schema, opaque_key=True, partitions=2)
            stop = refusal(plan_table(None, [seen], route, ICEBERG))
            assert "carry no schema" in stop.why.reason
            assert "schemas.enable=true" in stop.why.remedy
            assert "declare `key`" not in stop.why.remedy

    def test_a_key_that_is_no_column_is_refused(self) -> None:
        (event,) = Table().events()
        assert event.known.schema is not None
        seen = observation(event, schema=replace(event.known.schema, key=("gone",)))
        assert "key column 'gone' is not a column" in refusal(plan_table(None, [seen], ROUTE, ICEBERG)).why.reason

    def test_a_schema_beyond_the_limits_is_refused(self) -> None:
        (event,) = Table().events()
        why = Refused(code=Code.SCHEMA_SIZE, reason="too much", remedy="raise it")
        assert refusal(plan_table(None, [observation(event, exceeded=why)], ROUTE, ICEBERG)).why == why

    @pytest.mark.parametrize("name", ["__cdc_sync_x", ""])
    def test_names_the_target_cannot_hold_are_refused(self, name: str) -> None:
        t = Table(column("id", INT32, optional=False), column(name, INT32))
        assert f"column name {name!r} cannot be used" in refusal(t.plan()).why.reason

    def test_a_type_that_is_not_read_is_refused(self) -> None:
        t = Table(column("id", INT32, optional=False), column("n", struct("x.Y")))
        assert "column 'n' is a" in refusal(t.plan()).why.reason

    def test_a_truncate_says_nothing_of_columns(self) -> None:
        t = Table()
        t.add_column(column("n", INT32))
        t.truncate()
        assert len(t.plan().versions) == 1
        assert len(t.row().plan().versions) == 2

    def test_a_truncate_before_anything_else_empties_nothing(self) -> None:
        t = Table()
        t.records.clear()
        t.truncate()
        assert len(t.row().plan().versions) == 1

    def test_a_refused_table_stays_refused_and_records_nothing_twice(self) -> None:
        t = Table()
        t.add_column(column("n", decimal(4, 2)))
        t.row().alter_column("n", lambda _: column("n", decimal(4, 1)))
        first = t.row().plan()
        history = History(table=t.id, versions=first.versions)
        again = planned(history, t.events(), t.events(), t.events())
        assert (again.versions, again.refusal) == ((), first.refusal)


def test_observations_are_planned_in_source_order_however_they_come() -> None:
    t = Table()
    t.add_column(column("n", INT32))
    events = t.row().events()
    seen: list[Observation] = observations(None, events, events)
    assert plan_table(None, reversed(seen), ROUTE, ICEBERG) == plan_table(None, seen, ROUTE, ICEBERG)
    assert any(isinstance(c, UpdateColumnType | AddColumn) for c in t.plan().versions[1].changes)
