"""A rename that is declared long after it: which columns are meant, and what the history says from then on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_sync.core.history.history import History
from cdc_sync.core.history.joined import Joined, as_joined, joined_columns, staying_id
from cdc_sync.core.history.version import Version
from cdc_sync.core.history.warned import warnings_of
from cdc_sync.core.migration.capabilities import ICEBERG
from cdc_sync.core.migration.migration import AlterTable, JoinValues, migration
from cdc_sync.core.migration.routes import Decision, Join
from cdc_sync.core.planning.column_mappings import readings
from cdc_sync.core.planning.merge_columns import find_join, join_version
from cdc_sync.core.planning.plan import plan_table
from cdc_sync.core.planning.stops import Refused
from cdc_sync.core.schema.changes import JoinColumn, RenameColumn, ReviveColumn
from cdc_sync.core.schema.projection import FromColumn
from cdc_sync.storage.history import version_to_text
from cdc_sync.testing import INT32, INT64, TEXT, column
from tests.plan.model import ROUTE, observations
from tests.plan.tables import Table, _firsts


def split() -> Table:
    """A table whose last column was renamed from `z` to `y`, which nothing proves."""
    table = Table()
    table.rename_column("z", "y")
    return table.row()


def found(history: History, old: str, new: str) -> Join:
    join = find_join(history, old, new)
    assert isinstance(join, Join), join
    return join


def with_join(history: History, old: str, new: str) -> History:
    version = join_version(history, found(history, old, new), ICEBERG)
    assert isinstance(version, Version), version
    return history.extended(version)


def reason(what: object) -> str:
    assert isinstance(what, Refused)
    return what.reason


def ids(version: Version) -> dict[str, int]:
    return {column.name: column.id for column in version.schema.columns}


class TestWhichColumns:
    def test_those_that_one_version_kept_and_added(self) -> None:
        history = split().history()
        assert ids(history.head) == {"id": 1, "a": 2, "z": 3, "y": 4}
        assert find_join(history, "z", "y") == Join(table=history.table, kept=3, joined=4, old="z", new="y", after=2)

    def test_a_kept_column_is_found_by_both_names_it_has_had(self) -> None:
        table = split()
        table.rename_column("y", "Z")
        history = table.row().history()
        (kept,) = [item for item in history.head.schema.columns if item.id == 3]
        assert kept.name == "z__retired_3"
        assert reason(find_join(history, "z", "Z")).startswith("'z' did not vanish at the change at which 'Z' came")
        history = with_join(history, "y", "Z")
        by_its_name = found(history, "z__retired_3", "Z")
        assert found(history, "z", "Z") == replace(by_its_name, old="z")

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("a", "y", "the source still has 'a'"),
            ("nothing", "y", "'nothing' is none of the columns that are kept (z)"),
            ("z", "nothing", "'nothing' is no column of the source"),
            ("z", "z", "'z' is no column of the source"),
            ("z", "a", "'z' did not vanish at the change at which 'a' came, which is version 1"),
        ],
    )
    def test_any_others_are_refused(self, old: str, new: str, said: str) -> None:
        assert reason(find_join(split().history(), old, new)) == said

    def test_what_was_dropped_is_gone(self) -> None:
        table = Table()
        table.drop_column("z")
        table.row().add_column(column("y", TEXT))
        history = table.row().history()
        assert reason(find_join(history, "z", "y")) == "'z' was dropped with its data at version 2"

    def test_what_is_done_is_said(self) -> None:
        history = with_join(split().history(), "z", "y")
        assert reason(find_join(history, "z", "y")) == "'z' and 'y' are one column since version 3"


class TestTheVersion:
    def test_the_older_column_lives_on_in_the_newer_ones_place(self) -> None:
        table = split()
        table.add_column(column("n", TEXT))
        before = table.row().history()
        history = with_join(before, "z", "y")
        assert ids(history.head) == {"id": 1, "a": 2, "y": 3, "n": 5}
        assert (history.head.number, history.head.schema.last_column_id) == (4, 5)
        assert (history.head.position, history.head.kafka) == (before.head.position, before.head.kafka)
        kinds = [type(change) for change in history.head.changes]
        assert kinds == [JoinColumn, RenameColumn, ReviveColumn]
        (why,) = history.head.evidence
        assert (why.subject, why.kind) == ("z", "decided")
        assert "both had been kept since version 2 and are joined" in why.text

    def test_types_that_widen_are_joined_and_others_are_refused(self) -> None:
        for type_, fits in ((INT64, True), (TEXT, False)):
            table = Table(column("id", INT64, optional=False), column("a", INT64), column("z", INT32))
            table.rename_column("z", "y")
            table.alter_column("y", lambda old, type_=type_: column("y", type_))  # type: ignore[misc]
            history = table.row().history()
            version = join_version(history, found(history, "z", "y"), ICEBERG)
            assert isinstance(version, Version) is fits
            if isinstance(version, Refused):
                assert version.reason == (
                    "only columns of one type can be joined, or a narrower one with a wider one: "
                    "'z' is a INT, 'y' a STRING"
                )

    def test_what_changed_meanwhile_is_refused(self) -> None:
        history = split().history()
        join = found(history, "z", "y")
        assert "not what it was" in reason(join_version(with_join(history, "z", "y"), replace(join, joined=2), ICEBERG))
        assert "not both there" in reason(join_version(with_join(history, "z", "y"), join, ICEBERG))


class TestAfterwards:
    def test_events_of_every_age_are_read_into_the_one_column(self) -> None:
        table = split()
        table.add_column(column("n", TEXT))
        table.row()
        history = with_join(table.history(), "z", "y")
        read = []
        for event in _firsts(table.events()):
            assert event.known.schema is not None
            assert event.known.fingerprint is not None
            (reading,) = readings(history, event.known.schema, event.known.fingerprint, event.source.position)
            entry = next(entry for entry in reading.projection.columns if entry.id == 3)
            read.append(entry.name if isinstance(entry, FromColumn) else None)
        assert read == ["z", "y", "y"]

    def test_every_version_reads_as_if_it_had_been_known(self) -> None:
        history = with_join(split().history(), "z", "y")
        assert joined_columns(history.versions) == (Joined(version=3, id=4, into=3),)
        assert [ids(version) for version in as_joined(history)] == [
            {"id": 1, "a": 2, "z": 3},
            {"id": 1, "a": 2, "y": 3},
            {"id": 1, "a": 2, "y": 3},
        ]

    def test_a_chain_of_joins_ends_in_the_first_column(self) -> None:
        table = split()
        table.rename_column("y", "x")
        history = table.row().history()
        assert ids(history.head) == {"id": 1, "a": 2, "z": 3, "y": 4, "x": 5}
        history = with_join(with_join(history, "y", "x"), "z", "x")
        assert ids(history.head) == {"id": 1, "a": 2, "x": 3}
        assert staying_id(5, joined_columns(history.versions)) == 3
        assert [ids(version)[name] for version, name in zip(as_joined(history), "zyxxx", strict=True)] == [3] * 5
        (join, _) = migration(
            history.version(3), history.version(3), history.head, joined=joined_columns(history.versions)
        ).steps
        assert isinstance(join, JoinValues)
        assert (join.into, join.joined, join.version) == (3, (5, 4), 5)

    def test_a_position_proves_the_next_rename_of_the_one_column(self) -> None:
        table = split()
        table.add_column(column("n", TEXT))
        table.row()
        joined = with_join(table.history(), "z", "y")
        table.rename_column("y", "w")
        table.row()
        events = table.events()
        plan = plan_table(joined, observations(joined, _firsts(events), events), ROUTE, ICEBERG)
        (version,) = plan.versions
        assert ids(version) == {"id": 1, "a": 2, "w": 3, "n": 5}


class TestMadeAgain:
    def test_a_replay_has_the_join_at_its_place_however_it_is_split(self) -> None:
        table = split()
        first = table.events()
        joined = with_join(table.history(), "z", "y")
        table.add_column(column("n", TEXT))
        events = table.row().events()
        plan = plan_table(joined, observations(joined, _firsts(events), events), ROUTE, ICEBERG)
        written = [version_to_text(version) for version in (*joined.versions, *plan.versions)]
        route = replace(ROUTE, joins=(found(History(table=table.id, versions=joined.versions[:2]), "z", "y"),))

        at_once = plan_table(None, observations(None, _firsts(events), events), route, ICEBERG)
        assert [version_to_text(version) for version in at_once.versions] == written

        parts = plan_table(None, observations(None, _firsts(first), first), route, ICEBERG).versions
        assert len(parts) == 3, "the join needs no event behind it"
        history = History(table=table.id, versions=parts)
        parts += plan_table(history, observations(history, _firsts(events), events), route, ICEBERG).versions
        assert [version_to_text(version) for version in parts] == written


class TestSteps:
    def test_values_are_joined_before_the_columns_are(self) -> None:
        history = with_join(split().history(), "z", "y")
        _, second, head = history.versions
        joined = joined_columns(history.versions)
        join, alter = migration(second, second, head, joined=joined).steps
        assert join == JoinValues(schema=second.schema, into=3, joined=(4,), type=head.schema.column(3).type, version=3)
        assert isinstance(alter, AlterTable)
        assert migration(head, head, head, joined=joined).steps == ()

    def test_a_target_that_never_had_the_second_column_only_renames(self) -> None:
        history = with_join(split().history(), "z", "y")
        first, _, head = history.versions
        (alter,) = migration(first, first, head, joined=joined_columns(history.versions)).steps
        assert isinstance(alter, AlterTable)
        assert [type(change) for _, change in alter.steps] == [RenameColumn]


class TestWarnings:
    """What `status` warns of, by the history alone."""

    def test_a_kept_column_is_warned_of_until_it_is_joined(self) -> None:
        history = split().history()
        (text,) = warnings_of(history)
        assert text.startswith("z: kept with its data, gone at the source")
        assert warnings_of(history)[text]
        assert not warnings_of(with_join(history, "z", "y"))[text]

    def test_or_until_it_is_dropped(self) -> None:
        table = split()
        before = table.history()
        table.add_column(column("n", TEXT))
        table.row()
        said = Decision(table=table.id, at="", renames={}, dropped=("z", "a"), after=2)
        after = table.history(replace(ROUTE, decisions=(said,)))
        assert [item.name for item in after.head.schema.columns] == ["id", "a", "y", "n"]
        assert (list(warnings_of(before).values()), list(warnings_of(after).values())) == ([True], [False])

    def test_what_was_said_later_changes_no_version_of_before(self) -> None:
        table = split()
        table.add_column(column("n", TEXT))
        table.row()
        said = Decision(table=table.id, at="", renames={}, dropped=("z",), after=3)
        assert table.history(replace(ROUTE, decisions=(said,))) == table.history()

    def test_a_column_whose_values_are_left_out_is_warned_of_until_it_is_wanted(self) -> None:
        table = Table()
        table.add_column(column("n", TEXT))
        ignores = replace(ROUTE, policy=replace(ROUTE.policy, add_column="ignore"))
        history = table.row().history(ignores)
        assert list(warnings_of(history).items()) == [("n: its values are left out: policy.add_column is ignore", True)]
