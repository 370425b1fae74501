"""Texts as a terminal may show them, and files that hold rows."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from cdc_sync.cli.printable import printable
from cdc_sync.storage.history import HistoryStore
from cdc_sync.storage.state import StateStore
from tests.cli.runner import CommandLine
from tests.cli.test_status_command import PAUSED


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, größe, 漢, 😀", "plain, größe, 漢, 😀"),
        ("a\nb\tc", "a\nb\tc"),
        ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
        ("a\rb\0", "a\\u000db\\u0000"),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\udb40\\udc41"),
    ],
)
def test_what_steers_a_terminal_or_shows_nothing_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_status_shows_names_and_reasons_without_obeying_them(cdc_sync: CommandLine, config: Path) -> None:
    name = "o\x1b[31m\u202erders"
    store = StateStore(f"{config.parent}/state/inventory", create=True)
    store.save(replace(PAUSED, table=replace(PAUSED.table, table=name), reason="because \x9b of\x07"))

    ran = cdc_sync("status", config)

    assert ran.exit_code == 0
    assert all(line.isprintable() for line in ran.out.splitlines())
    assert "o\\u001b[31m\\u202erders is paused" in ran.out
    machine = cdc_sync("status", config, "--json")
    assert all(line.isprintable() for line in machine.out.splitlines())
    assert json.loads(machine.out)["tables"][0]["reason"] == "because \x9b of\x07"


def test_folders_of_rows_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        HistoryStore(f"{tmp_path}/new/state/shop/history")._open(create=True)
        StateStore(f"{tmp_path}/new/state/shop", create=True).save(PAUSED)
        StateStore(str(tmp_path), create=True).save(PAUSED)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new", "new/state", "new/state/shop")]
    assert modes == [0o700] * 3
