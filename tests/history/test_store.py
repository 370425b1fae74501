"""Histories on a folder: appended once, read back the same, and never damaged unnoticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import GenericError, PermissionDeniedError

from cdc_sync.core.history.history import History
from cdc_sync.core.model.positions import TableId
from cdc_sync.errors import HistoryError, TransientError, VersionExists
from cdc_sync.storage.history import HistoryStore
from cdc_sync.storage.object_store import copy_files
from tests.history.versions import ORDERS, versions

GOLDEN = Path(__file__).parent / "golden"
FIRST = "shop.public.orders/000001.json"
ODD_TABLES = (
    TableId(database="shop", schema="", table="orders"),
    TableId(database="shop", schema="Odd.Schema", table='Täble/é %2E "x"'),
    TableId(database="shop", schema="Odd", table="Schema.T"),
    TableId(database="..", schema=".", table="*?<>|"),
    TableId(database="inv", schema="ю" * 31, table="ж" * 31),
    TableId(database="inv", schema="ю" * 31, table="ж" * 30 + "ы"),
    TableId(database="😀" * 64, schema="", table="~" * 300),
)


@pytest.fixture
def store(tmp_path: Path) -> HistoryStore:
    return HistoryStore(f"{tmp_path}/new/folder")


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """The folder of a store that holds the three versions."""
    store = HistoryStore(str(tmp_path))
    for version in versions():
        store.append(version)
    return tmp_path


def test_what_is_appended_is_loaded(store: HistoryStore) -> None:
    for version in versions():
        store.append(version)
    assert store.load(ORDERS) == History(table=ORDERS, versions=versions())
    assert store.tables() == (ORDERS,)


def test_the_end_of_a_table_is_loaded_and_told_of_nowhere_else(store: HistoryStore) -> None:
    *before, last = versions()
    for version in (*before, replace(last, dropped="archive")):
        store.append(version)
    assert [version.dropped for version in store.load(ORDERS).versions] == [None, None, "archive"]
    assert [version.ends_target for version in store.load(ORDERS).versions] == [False, False, True]


def test_the_record_key_beside_a_declared_one_is_loaded(store: HistoryStore) -> None:
    first, second, third = versions()
    for version in (first, replace(second, record_key=("tenant", "id")), third):
        store.append(version)
    assert [version.record_key for version in store.load(ORDERS).versions] == [None, ("tenant", "id"), None]
    assert store.load(ORDERS).record_key == ("tenant", "id")


def test_reading_makes_no_folder(tmp_path: Path) -> None:
    store = HistoryStore(f"{tmp_path}/new")
    assert store.find(ORDERS) is None
    assert store.tables() == ()
    assert not (tmp_path / "new").exists()


def test_a_table_without_history_is_not_found(store: HistoryStore) -> None:
    store.append(versions()[0])
    assert store.find(replace(ORDERS, table="order")) is None
    with pytest.raises(HistoryError, match=r"history of shop\.public\.order: no version of it is recorded in .*folder"):
        store.load(replace(ORDERS, table="order"))


@pytest.mark.parametrize("table", ODD_TABLES, ids=str)
def test_tables_with_odd_names_have_files_of_their_own(store: HistoryStore, table: TableId) -> None:
    for other in (*ODD_TABLES, ORDERS):
        store.append(versions(other)[0])
    assert set(store.tables()) == {*ODD_TABLES, ORDERS}
    assert store.load(table).versions == versions(table)[:1]


def test_a_file_url_is_a_folder(tmp_path: Path) -> None:
    HistoryStore(f"file://{tmp_path}/a%20b").append(versions()[0])
    assert (tmp_path / "a b" / FIRST).exists()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_files_are_as_recorded(recorded: Path, number: int) -> None:
    written = (recorded / f"shop.public.orders/{number:06d}.json").read_bytes()
    assert written == (GOLDEN / f"{number:06d}.json").read_bytes()


def test_the_recorded_files_can_still_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "shop.public.orders"
    folder.mkdir()
    for path in GOLDEN.glob("*.json"):
        (folder / path.name).write_bytes(path.read_bytes())
    assert HistoryStore(str(tmp_path)).load(ORDERS).versions == versions()


def test_appending_the_same_version_again_is_no_change(recorded: Path) -> None:
    HistoryStore(str(recorded)).append(versions()[1])
    assert HistoryStore(str(recorded)).load(ORDERS).versions == versions()


def test_another_version_of_the_same_number_is_refused(recorded: Path) -> None:
    with pytest.raises(VersionExists, match=r"version 2 of shop\.public\.orders: another one is recorded"):
        HistoryStore(str(recorded)).append(replace(versions()[1], fingerprint="other"))
    assert HistoryStore(str(recorded)).load(ORDERS).versions == versions()


def test_a_version_without_the_one_before_is_refused(store: HistoryStore) -> None:
    store.append(versions()[0])
    with pytest.raises(HistoryError, match=r"version 3 of shop\.public\.orders: .*000002\.json is missing"):
        store.append(versions()[2])


DAMAGE: dict[str, tuple[Callable[[str], str], str]] = {
    "cut off": (lambda text: text[:100], "not JSON"),
    "no object": (lambda _: "[]", "format None is not known"),
    "of a later format": (lambda text: text.replace('"format": 1', '"format": 2'), "format 2 is not known"),
    "without a member": (lambda text: text.replace('"fingerprint"', '"finger"'), "KeyError"),
    "with an unreadable position": (lambda text: text.replace("postgresql:20/20", "20/20"), "source position '20/20'"),
    "with an unknown type": (lambda text: text.replace("decimal(10,2)", "uint8"), "type 'uint8'"),
    "with an unreadable type": (lambda text: text.replace("decimal(10,2)", "decimal(a,b)"), "ValueError"),
    "with an unknown change": (lambda text: text.replace("AddColumn", "TeleportColumn"), "change 'TeleportColumn'"),
    "with a name twice": (lambda text: text.replace('"price"', '"note"'), "name is used twice"),
    "with a schema of the wrong kind": (lambda text: text.replace('"columns": [', '"columns": 5, "x": ['), "TypeError"),
    "of another table": (lambda text: text.replace('"orders"', '"others"'), "version 2 of shop.public.others"),
    "with another column": (lambda text: text.replace('"nach Maß"', '"nach"'), "changes of version 2 do not lead"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_noticed(recorded: Path, kind: str) -> None:
    damage, message = DAMAGE[kind]
    path = recorded / "shop.public.orders/000002.json"
    path.write_text(damage(path.read_text()))
    with pytest.raises(HistoryError) as raised:
        HistoryStore(str(recorded)).load(ORDERS)
    assert message in str(raised.value)


def test_a_missing_file_between_others_is_noticed(recorded: Path) -> None:
    (recorded / "shop.public.orders/000002.json").unlink()
    with pytest.raises(HistoryError, match=r"000002\.json is missing, or does not belong there"):
        HistoryStore(str(recorded)).load(ORDERS)


def test_a_foreign_file_is_noticed(recorded: Path) -> None:
    (recorded / "shop.public.orders/notes.json").write_text("{}")
    with pytest.raises(HistoryError, match=r"000004\.json is missing, or does not belong there"):
        HistoryStore(str(recorded)).load(ORDERS)


def test_a_root_that_is_a_file_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HistoryError, match="Cannot open history store"):
        HistoryStore(f"{tmp_path}/file").append(versions()[0])


def test_an_unknown_kind_of_store_cannot_be_used() -> None:
    with pytest.raises(HistoryError, match=r"Cannot open history store pigeon://post: .*Unable to recognise URL"):
        HistoryStore("pigeon://post").tables()


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (GenericError("no route\nDebug source: ..."), TransientError),
        (OSError("disk away"), TransientError),
        (PermissionDeniedError("who are you"), HistoryError),
        (PermissionError("read-only"), HistoryError),
    ],
    ids=str,
)
def test_errors_of_the_store_are_translated(
    store: HistoryStore, monkeypatch: pytest.MonkeyPatch, raised: Exception, expected: type[Exception]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(obstore, "put", fail)
    with pytest.raises(expected) as found:
        store.append(versions()[0])
    assert str(found.value).startswith("Cannot use history store ")
    assert "\n" not in str(found.value)


def test_a_file_that_goes_while_it_is_read_is_asked_for_again(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(obstore, "get", gone)
    with pytest.raises(TransientError, match="listed, but is not there"):
        HistoryStore(str(recorded)).load(ORDERS)


def test_a_value_that_json_cannot_hold_is_refused(store: HistoryStore) -> None:
    version = versions()[0]
    column = replace(version.schema.columns[0], initial=float("nan"))
    with pytest.raises(HistoryError, match="Cannot write schema"):
        store.append(replace(version, schema=replace(version.schema, columns=(column,))))


def test_a_copy_is_the_same_and_leaves_out_what_is_not_named(tmp_path: Path) -> None:
    store = HistoryStore(f"{tmp_path}/one/history")
    for table in ODD_TABLES:
        store.append(replace(versions()[0], table=table))
    (tmp_path / "one" / "quarantine").mkdir()
    (tmp_path / "one" / "quarantine" / "x").write_text("x")

    copy_files(f"{tmp_path}/one", f"{tmp_path}/two", ("history", "tables"))

    copied = HistoryStore(f"{tmp_path}/two/history")
    assert [copied.load(table) for table in copied.tables()] == [store.load(table) for table in store.tables()]
    assert len(copied.tables()) == len(ODD_TABLES)
    assert [path.name for path in (tmp_path / "two").iterdir()] == ["history"]


def test_what_is_not_there_is_copied_as_nothing(tmp_path: Path) -> None:
    copy_files(f"{tmp_path}/none", f"{tmp_path}/two", ("history",))
    assert HistoryStore(f"{tmp_path}/two/history").tables() == ()
    assert not (tmp_path / "none").exists()
