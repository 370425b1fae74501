"""`cdc-sync dead-letters`: what was not applied is listed, shown without its values, and let go only with a reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import cdc_sync as package
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.dead_letters import DeadLetter, Redrive
from cdc_sync.core.model.positions import TableId
from cdc_sync.storage.state import StateStore
from tests.cli.runner import CommandLine

ORDERS = TableId(database="shop", schema="inv", table="orders")
VALUE = json.dumps({"schema": {}, "payload": {"after": {"name": "Ann"}}}).encode()


def letter(offset: int, code: Code, reason: str, *, table: TableId | None = ORDERS) -> DeadLetter:
    return DeadLetter(
        topic="shop.inv.orders",
        partition=0,
        offset=offset,
        timestamp=1_700_000_000_000,
        code=code,
        reason=reason,
        table=table,
        version=2,
        schema="ab12",
        size=len(VALUE),
        key=None,
        value=VALUE,
    )


@pytest.fixture
def store(config: Path) -> StateStore:
    made = StateStore(f"{config.parent}/state/inventory", create=True)
    made.dead_letters.add(
        (
            letter(4, Code.RECORD_VALUE, "does not convert: column qty"),
            letter(7, Code.RECORD_VALUE, "does not convert: column qty"),
            letter(9, Code.RECORD_FOREIGN, "XML", table=None),
        )
    )
    return made


def test_they_are_counted_and_listed(cdc_sync: CommandLine, config: Path, store: StateStore) -> None:
    ran = cdc_sync("dead-letters", "list", config)

    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "dead letters: 1 of shop.inv.orders (record-not-a-change): XML",
        "dead letters: 2 of shop.inv.orders (record-value-without-place): does not convert: column qty",
        "shop.inv.orders[0]@4 of 2023-11-14T22:13:20Z, shop.inv.orders (record-value-without-place): does not convert: "
        "column qty",
        "shop.inv.orders[0]@7 of 2023-11-14T22:13:20Z, shop.inv.orders (record-value-without-place): does not convert: "
        "column qty",
        "shop.inv.orders[0]@9 of 2023-11-14T22:13:20Z (record-not-a-change): XML",
    ]


@pytest.mark.parametrize(
    ("given", "offsets"),
    [
        (("--code", "record-not-a-change"), [9]),
        (("--table", "orders"), [4, 7]),
        (("--topic", "other"), []),
        (("--topic", "../.."), []),
        (("--limit", "1"), [4]),
    ],
)
def test_a_part_of_them_is_listed(
    cdc_sync: CommandLine, config: Path, store: StateStore, given: tuple[str, ...], offsets: list[int]
) -> None:
    found = cdc_sync("dead-letters", "list", config, *given, "--json").json

    assert [item["place"] for item in found["letters"]] == [f"shop.inv.orders[0]@{offset}" for offset in offsets]
    assert sum(item["records"] for item in found["counts"]) == 3
    assert found["is_more"] == (given[0] == "--limit")


def test_a_pipeline_without_any_says_so(cdc_sync: CommandLine, config: Path) -> None:
    StateStore(f"{config.parent}/state/inventory", create=True)

    assert cdc_sync("dead-letters", "list", config).out == "No record was set aside.\n"


def test_one_is_shown_without_its_values_until_they_are_asked_for(
    cdc_sync: CommandLine, config: Path, store: StateStore
) -> None:
    shown = cdc_sync("dead-letters", "show", config, "shop.inv.orders[0]@4")
    revealed = cdc_sync("dead-letters", "show", config, "shop.inv.orders[0]@4", "--reveal")

    assert "Ann" not in shown.out
    assert 'value: {"after": {"name": "text of 3"}}' in shown.out
    assert f"value: {VALUE.decode()}" in revealed.out
    assert "key: (nothing is kept that can be shown)" in revealed.out


def test_what_is_kept_masked_is_shown_as_it_is_kept(cdc_sync: CommandLine, config: Path, store: StateStore) -> None:
    kept = b'{"after": {"name": "text of 3"}}'
    store.dead_letters.add([replace(letter(11, Code.RECORD_VALUE, "r"), payload="masked", value=kept)])

    for more in ((), ("--reveal",)):
        shown = cdc_sync("dead-letters", "show", config, "shop.inv.orders[0]@11", *more)
        assert f"value: {kept.decode()}" in shown.out


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("shop.inv.orders[0]@5", "Cannot show shop.inv.orders[0]@5: no dead letter is there"),
        ("orders:4", "Cannot find 'orders:4': a place is written as topic[partition]@offset"),
        ("../../x[0]@4", "no dead letter is there"),
    ],
)
def test_a_place_that_holds_none_is_said(
    cdc_sync: CommandLine, config: Path, store: StateStore, place: str, said: str
) -> None:
    ran = cdc_sync("dead-letters", "show", config, place)

    assert ran.exit_code == 5
    assert said in ran.err


def test_they_are_let_go_with_a_reason(cdc_sync: CommandLine, config: Path, store: StateStore) -> None:
    told = cdc_sync("dead-letters", "discard", config, "--table", "orders", "--why", "a test", "--dry-run")
    assert told.out.splitlines()[-1] == "2 dead letters would be discarded"
    assert len(list(store.dead_letters.letters())) == 3

    ran = cdc_sync("dead-letters", "discard", config, "--table", "orders", "--why", "a test", "--yes", "--json")

    assert (ran.json["number"], ran.json["dry_run"]) == (2, False)
    assert [found.offset for found in store.dead_letters.letters()] == [9]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "say which, by places, --topic, --table or --code"),
        (("shop.inv.orders[0]@5",), "Cannot discard shop.inv.orders[0]@5: no such dead letter is there"),
    ],
)
def test_nothing_is_let_go_by_accident(
    cdc_sync: CommandLine, config: Path, store: StateStore, given: tuple[str, ...], said: str
) -> None:
    ran = cdc_sync("dead-letters", "discard", config, *given, "--why", "a test", "--yes")

    assert ran.exit_code == 5
    assert said in ran.err
    assert len(list(store.dead_letters.letters())) == 3


def test_it_needs_a_yes_and_a_reason(cdc_sync: CommandLine, config: Path, store: StateStore) -> None:
    assert cdc_sync("dead-letters", "discard", config, "--table", "orders", "--yes").exit_code == 2
    ran = cdc_sync("dead-letters", "discard", config, "--table", "orders", "--why", "a test")
    assert (ran.exit_code, "say --yes" in ran.err) == (2, True)


def test_the_same_in_python(config: Path, store: StateStore) -> None:
    loaded = package.load_config(config)

    found = package.list_dead_letters(loaded, table="inv.orders")
    shown = package.show_dead_letter(loaded, found.letters[0].place)

    assert [item.place for item in found.letters] == ["shop.inv.orders[0]@4", "shop.inv.orders[0]@7"]
    assert shown.value == '{"after": {"name": "text of 3"}}'


def test_they_are_redriven_by_the_job_table_by_table(cdc_sync: CommandLine, config: Path, store: StateStore) -> None:
    told = cdc_sync("dead-letters", "redrive", config, "--dry-run")
    assert told.out.splitlines()[2:] == [
        "1 of which nobody knows whose rows they are cannot be redriven",
        "2 dead letters would be redriven",
    ]
    assert store.requests.all(Redrive, ORDERS) == ()

    ran = cdc_sync("dead-letters", "redrive", config, "shop.inv.orders[0]@4", "--yes")

    assert ran.out.splitlines()[1:] == [
        "1 dead letter to be redriven",
        "No job runs; the next one does it when it starts.",
    ]
    (word,) = store.requests.all(Redrive, ORDERS)
    assert [str(place) for place in word.places] == ["shop.inv.orders[0]@4"]
    assert "@" in word.by
    store.requests.remove(word)
    assert store.requests.all(Redrive, ORDERS) == ()


def test_why_one_could_not_be_redriven_is_listed(cdc_sync: CommandLine, config: Path, store: StateStore) -> None:
    first = next(store.dead_letters.letters()).place
    store.dead_letters.refuse({first: "the topic does not hold it any more"})
    store.dead_letters.refuse({first: "its row is not there"})

    lines = cdc_sync("dead-letters", "list", config, "--code", "record-value-without-place").out.splitlines()

    assert lines[-2].endswith("column qty; not redriven: its row is not there")
    assert lines[-1].endswith("column qty")
