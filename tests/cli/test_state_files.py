"""The files that `status` reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cdc_sync.core.migration.operator_requests import RegimeAsked, Rollback, Unconverted, UnconvertedValue
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.planning.resync import Mark, Resync
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.errors import HistoryError, TransientError
from cdc_sync.storage.state import StateStore

ORDERS = TableId(database="shop", schema="inv", table="orders")
PAUSED = TableStatus(
    table=ORDERS,
    target="inv.orders",
    state="paused",
    version=3,
    reason="column qty vanished and quantity appeared",
    remedy="declare the rename",
    offsets={"shop.inv.orders": {0: 41, 10: 7, 2: 0}},
    paused_at="shop.inv.orders[0]@41",
    counts={"quarantined": 2},
    warnings=("größer",),
    needs_resync=(Mark(column="created", id=4, version=2, reason="not known"),),
)


def test_a_status_is_read_back_as_it_was_saved(tmp_path: Path) -> None:
    store = StateStore(str(tmp_path), create=True)

    store.save(PAUSED)

    assert store.load(ORDERS) == PAUSED
    assert StateStore(str(tmp_path)).tables() == (PAUSED,)


def test_saving_replaces_the_former_status(tmp_path: Path) -> None:
    store = StateStore(str(tmp_path), create=True)
    running = TableStatus(table=ORDERS, target="inv.orders", state="running")

    store.save(PAUSED)
    store.save(running)

    assert store.tables() == (running,)


def test_equal_statuses_are_equal_text(tmp_path: Path) -> None:
    store = StateStore(str(tmp_path), create=True)

    store.save(PAUSED)

    text = (tmp_path / "tables" / "shop.inv.orders.json").read_text(encoding="utf-8")
    assert text == (Path(__file__).parent / "status_file.json").read_text(encoding="utf-8")


def test_what_was_asked_to_be_read_again_is_kept_by_table_and_signal(tmp_path: Path) -> None:
    store = StateStore(str(tmp_path), create=True)
    asked = Resync(table=ORDERS, signal="a/1", version=3, columns=(4, 2))
    done = replace(asked, signal="b", ends={"shop.inv.orders": {0: 7, 1: 0}})
    other = replace(asked, table=TableId(database="shop", schema="inv", table="other"), failed="no such table")

    for resync in (done, asked, other, asked):
        store.requests.add(resync)

    assert store.requests.all(Resync, ORDERS) == (asked, done)
    assert store.requests.all(Resync, other.table) == (other,)
    assert all(table in store.requests.tables_with("resyncs") for table in (ORDERS, other.table))


def test_the_wish_for_another_regime_is_kept_until_it_is_withdrawn(tmp_path: Path) -> None:
    store = StateStore(str(tmp_path), create=True)
    asked = RegimeAsked(table=ORDERS, evolution="on_read")
    assert store.requests.get(RegimeAsked, ORDERS) is None

    store.requests.add(asked)
    store.requests.add(asked)

    assert (store.requests.get(RegimeAsked, ORDERS), ORDERS in store.requests.tables_with("regimes")) == (asked, True)
    for _ in range(2):
        store.requests.remove(asked)
        assert (store.requests.get(RegimeAsked, ORDERS), ORDERS in store.requests.tables_with("regimes")) == (
            None,
            False,
        )


@pytest.mark.parametrize(
    "table",
    [
        TableId(database="a.b", schema="c", table="d"),
        TableId(database="a", schema="b.c", table="d"),
        TableId(database="a", schema="", table="b/../c"),
        TableId(database="a", schema="", table="ta ble%2F"),
        TableId(database="größe", schema="☃", table='"'),
        TableId(database="inv", schema="ю" * 31, table="ж" * 31),
        TableId(database="😀" * 64, schema="", table="~" * 300),
    ],
    ids=str,
)
def test_any_table_name_gets_a_file_of_its_own(tmp_path: Path, table: TableId) -> None:
    store = StateStore(str(tmp_path), create=True)
    status = TableStatus(table=table, target="x.y", state="running")

    store.save(PAUSED)
    store.save(status)

    assert store.load(table) == status
    assert len(store.tables()) == 2
    store.requests.add(Rollback(table=table, version=2))
    assert table in store.requests.tables_with("rollbacks")
    assert len(list((tmp_path / "tables").iterdir())) == 2


def test_reading_a_pipeline_that_never_ran_makes_no_folder(tmp_path: Path) -> None:
    store = StateStore(str(tmp_path / "none"))

    assert store.tables() == ()
    assert store.load(ORDERS) is None
    assert store.dead_letters.counts() == ()
    assert not (tmp_path / "none").exists()


def test_a_root_may_be_a_url(tmp_path: Path) -> None:
    StateStore(f"file://{tmp_path}/a%20b", create=True).save(PAUSED)

    assert StateStore(f"{tmp_path}/a b").tables() == (PAUSED,)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"format": 2}', "it is of another format than 1; update cdc_sync"),
        ('{"format": 1}', "delete the file, the job writes it anew"),
        ("\xe9", "can't decode byte 0xe9"),
    ],
)
def test_a_damaged_status_is_an_error_of_its_table_alone(tmp_path: Path, text: str, detail: str) -> None:
    store = StateStore(str(tmp_path), create=True)
    other = TableStatus(table=replace(ORDERS, table="items"), target="inv.items", state="running")
    store.save(other)
    (tmp_path / "tables" / "shop.inv.orders.json").write_text(text, encoding="latin-1")
    (tmp_path / "tables" / "notes.json").write_text("not one of a table")

    with pytest.raises(HistoryError, match=detail):
        store.load(ORDERS)
    found, damaged = store.tables()
    assert (found, damaged.table, damaged.state) == (other, ORDERS, "failing")
    assert detail in (damaged.reason or "")
    assert store.has_status(ORDERS)
    assert not store.has_status(replace(ORDERS, table="order"))


def test_a_damaged_status_is_kept_where_the_next_one_does_not_overwrite_it(tmp_path: Path) -> None:
    store = StateStore(str(tmp_path), create=True)
    store.save(PAUSED)
    (tmp_path / "tables" / "shop.inv.orders.json").write_bytes(b"\xff{")

    aside = store.set_status_aside(ORDERS)
    store.save(PAUSED)

    assert aside == "damaged/shop.inv.orders.json"
    assert (tmp_path / aside).read_bytes() == b"\xff{"
    assert store.tables() == (PAUSED,)


def test_a_store_that_cannot_be_used_is_a_failure_that_may_pass(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(TransientError, match=r"Cannot use state in .*/file/below"):
        StateStore(str(tmp_path / "file" / "below"), create=True).save(PAUSED)


def test_what_a_rewrite_had_no_place_for_is_kept_once(tmp_path: Path) -> None:
    store = StateStore(str(tmp_path), create=True)
    value = UnconvertedValue(key={"id": "1"}, column="qty", value="größer")
    found = Unconverted(version=3, counts={"qty": 1}, values=(value,))
    for _ in range(2):
        store.keep_unconverted(ORDERS, found)
    assert store.unconverted(ORDERS) == (found,)
    assert store.unconverted(TableId(database="shop", schema="inv", table="order")) == ()


def test_a_rollback_is_asked_for_and_withdrawn(tmp_path: Path) -> None:
    store = StateStore(str(tmp_path), create=True)
    assert store.requests.get(Rollback, ORDERS) is None
    store.requests.add(Rollback(table=ORDERS, version=3))
    assert store.requests.get(Rollback, ORDERS) == Rollback(table=ORDERS, version=3)
    assert ORDERS in store.requests.tables_with("rollbacks")
    for _ in range(2):
        store.requests.remove(Rollback(table=ORDERS, version=3))
    assert store.requests.get(Rollback, ORDERS) is None
    assert ORDERS not in store.requests.tables_with("rollbacks")


def test_what_a_table_passed_is_kept_for_the_marker_it_had(tmp_path: Path) -> None:
    store = StateStore(str(tmp_path), create=True)
    places = {("shop.all", 0): 41, ("shop.all", 10): 7, ("other", 2): 0}

    store.save_passed(ORDERS, "marker", places)

    assert store.passed(ORDERS, "marker") == places
    assert store.passed(ORDERS, "another") == {}
    assert store.passed(replace(ORDERS, table="o"), "marker") == {}
