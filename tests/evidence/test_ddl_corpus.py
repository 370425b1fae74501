"""The captured schema-change topics, replayed, against the structures the source really had after every step."""

from __future__ import annotations

import pytest

from cdc_sync.core.lineage.column_log import ColumnLog, Structure
from cdc_sync.core.model.positions import SourcePosition, TableId
from tests.corpus.reader import history, script
from tests.evidence.ddl_schema_changes import captured, replayed

CAPTURES = ("mariadb-json", "mariadb-avro")
SNAPSHOT = 18694


def log_of(capture: str) -> ColumnLog:
    return replayed(*captured(capture)).log()


def named(text: str) -> TableId:
    database, _, table = text.partition(".")
    return TableId(database=database, schema="", table=table)


def seen_from(pos_after: list[object]) -> SourcePosition:
    """Return a position behind a step; the topic begins with a snapshot, behind the steps of phase 0."""
    _, pos, _ = pos_after
    assert isinstance(pos, int)
    return SourcePosition(kind="binlog", parts=(1, max(pos, SNAPSHOT), 0))


def after_step(step: int) -> SourcePosition:
    return next(seen_from(line["pos_after"]) for line in script("mariadb-json") if line["step"] == step)


@pytest.mark.parametrize("capture", CAPTURES)
def test_names_and_order_are_the_truth_after_every_step(capture: str) -> None:
    log = log_of(capture)
    lines = history("mariadb-json")
    for line in lines:
        structure = log.at(named(line["table"]), seen_from(line["pos_after"]))
        assert structure is not None, line["table"]
        assert [column.name for column in structure.columns] == [column[0] for column in line["columns"]]
    assert len(lines) == 187
    assert log.unread == ()


IDENTITIES: dict[str, list[tuple[int, str]]] = {
    # step, and the columns after it: the name each had when it was first seen, as the script says; `+` for a new one
    "inv.swap": [(52, "id=id a=a b=b c=c"), (53, "id=id b=a a=b c=c"), (56, "id=id b=a a=b c=c")],
    "inv.evolve": [
        (11, "id=id name=name qty=qty"),
        (12, "id=id name=name qty=qty note=+1"),
        (14, "id=id name=name qty=qty note=+1 flag=+2"),
        (16, "id=id name=name price=+3 qty=qty note=+1 flag=+2"),
        (18, "first_col=+4 id=id name=name price=+3 qty=qty note=+1 flag=+2"),
        (20, "first_col=+4 id=id qty=qty name=name price=+3 note=+1 flag=+2"),
        (22, "first_col=+4 id=id qty=qty name=name price=+3 note=+1 flag=+2 created=+5"),
        (24, "first_col=+4 id=id qty=qty name=name price=+3 note=+1 flag=+2 created=+5 nn=+6"),
        (26, "first_col=+4 id=id qty=qty full_name=name price=+3 note=+1 flag=+2 created=+5 nn=+6"),
        (28, "first_col=+4 id=id qty=qty fname=name price=+3 note=+1 flag=+2 created=+5 nn=+6"),
        (30, "first_col=+4 id=id qty=qty price=+3 note=+1 flag=+2 created=+5 nn=+6 label=name"),
        (36, "first_col=+4 id=id qty=qty price=+3 note=+1 flag=+2 created=+5 nn=+6 label=name"),
        (38, "first_col=+4 id=id qty=qty price=+3 flag=+2 created=+5 nn=+6 label=name"),
        (44, "id=id qty=qty price=+3 flag=+2 made=+5 nn=+6 label=name note=+7 extra=+8"),
        (50, "id=id qty=qty price=+3 flag=+2 made=+5 nn=+6 label=name note=+7 extra=+8"),
        (189, "id=id qty=qty price=+3 flag=+2 made=+5 nn=+6 label=name note=+7 extra=+8"),
    ],
    "inv.dropadd": [(60, "id=id a=a z=z"), (61, "id=id b=+1 z=z")],
    "inv.dropadd_same": [(63, "id=id a=a z=z"), (64, "id=id z=z a=+1")],
    "inv.reorder": [(57, "id=id a=a b=b c=c"), (58, "c=c id=id b=b a=a")],
    "inv.pkchange": [(68, "id=id code=code v=v"), (71, "id=id code=code v=v"), (75, "id=id kode=code v=v")],
    "inv.silent": [(66, "id=id a=a"), (67, "id=id a=a b=+1")],
    "inv.burst": [(101, "id=id a=a"), (102, "b7=+7 b5=+5 b3=+3 b1=+1 id=id a=a")],
    "inv.recreated": [(110, "id=id v=v"), (111, "id=+1 v=+2 w=+3")],
    "inv.raced": [(186, "id=id a=a b=b"), (187, "id=id a=a b=b c=+1"), (188, "id=id a=a bb=b")],
    "inv.ghosted": [(108, "id=id v=v"), (109, "id=id w=+1 v=v")],
    "inv.later": [(103, "id=+1 v=+2"), (104, "id=+1 v=+2 w=+3")],
}


def identity(structures: list[Structure]) -> list[list[tuple[str, int]]]:
    """Return names with a small number for each token, in order of first sight."""
    seen: dict[object, int] = {}
    return [[(c.name, seen.setdefault(c.token, len(seen))) for c in structure.columns] for structure in structures]


def expected_identity(stages: list[str]) -> list[list[tuple[str, int]]]:
    seen: dict[str, int] = {}
    return [
        [
            (name, seen.setdefault(origin, len(seen)))
            for name, _, origin in (pair.partition("=") for pair in stage.split())
        ]
        for stage in stages
    ]


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("name", IDENTITIES)
def test_tokens_tell_which_column_is_which_as_the_script_says(capture: str, name: str) -> None:
    log, found = log_of(capture), []
    for step, _ in IDENTITIES[name]:
        structure = log.at(named(name), after_step(step))
        assert structure is not None
        found.append(structure)
    assert identity(found) == expected_identity([stage for _, stage in IDENTITIES[name]])
    assert len({column.token.era for structure in found for column in structure.columns}) == 1


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_step_of_burst(capture: str) -> None:
    tokens: dict[str, object] = {}
    structures = log_of(capture).of(named("inv.burst"))
    assert len(structures) == 13
    for structure in structures:
        assert structure.columns
        for column in structure.columns:
            assert tokens.setdefault(column.name, column.token) == column.token
    assert len(set(tokens.values())) == 10


@pytest.mark.parametrize("capture", CAPTURES)
def test_renamed_tables_keep_their_columns(capture: str) -> None:
    log = log_of(capture)
    old, new = log.of(named("inv.oldname")), log.of(named("inv.newname"))
    assert [bool(structure.columns) for structure in old] == [True, False]
    assert new[0].columns == old[0].columns
    original, gone = log.of(named("inv._ghosted_del"))
    assert original.columns == log.of(named("inv.ghosted"))[0].columns
    assert gone.columns == ()


@pytest.mark.parametrize("capture", CAPTURES)
def test_odd_names(capture: str) -> None:
    first, second, third = log_of(capture).of(TableId(database="Odd db", schema="", table="Odd.Table é"))
    renamed = {"A B": "a b", "oRDER": "Order"}
    for column in third.columns:
        if column.name != "x;y":
            assert first.token(renamed.get(column.name, column.name)) == column.token
    assert third.token("x;y") not in {column.token for column in first.columns}
    assert second.token("A B") == first.token("a b")


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_topic_sent_twice_says_the_same(capture: str) -> None:
    records = captured(capture)
    once, twice = replayed(*records).log(), replayed(*records, *records).log()
    assert [once.of(table) for table in once.tables] == [twice.of(table) for table in twice.tables]
    assert twice.unread == ()
