"""Each cause has a code, each code stands on the runbook's page, and what the page tells to type is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import cdc_sync
from cdc_sync.config import installed
from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.runbook import RUNBOOK
from cdc_sync.core.table.checks import code_of
from cdc_sync.errors import HistoryError, KafkaUnavailable, TargetError
from scripts.pages.runbook import render
from tests.cli.runner import options_of

PACKAGE = Path(cdc_sync.__file__).parent


def test_the_page_is_printed_from_the_codes() -> None:
    page = PACKAGE.parent / "docs" / "runbook.md"
    assert page.read_text() == render(), "run: python -m scripts.pages.runbook > docs/runbook.md"


def test_every_code_is_explained_once_in_order() -> None:
    assert list(RUNBOOK) == list(Code)
    assert len({code.value for code in Code}) == len(Code)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code.value) for code in Code)


def test_every_code_is_used() -> None:
    used = {
        node.attr
        for path in PACKAGE.rglob("*.py")
        if path.name not in ("codes.py", "runbook.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Code"
    }
    assert used == {code.name for code in Code}


def test_what_it_tells_to_type_is_there() -> None:
    told = re.findall(r"`cdc-sync ([\w-]+)([^`]*)`", render())
    assert len(told) > 40
    for name, rest in told:
        options = options_of([name, *rest.split()])
        assert options is not None, (name, rest)
        assert {word for word in rest.split() if word.startswith("--")} <= options, (name, rest)
        if name == "docs":
            assert rest.split()[0] in installed.pages()


def test_what_fails_and_is_tried_again_is_told_by_its_kind() -> None:
    kinds = (KafkaUnavailable("k"), TargetError("t"), HistoryError("h"), RuntimeError("r"))
    assert [code_of(error) for error in kinds] == [Code.AWAY, Code.TARGET, Code.HISTORY, Code.OTHER]
