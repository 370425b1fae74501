"""Which tests `scripts/test --changed` runs."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
reached = runpy.run_path(str(ROOT / "scripts" / "changed.py"))["reached"]


@pytest.mark.parametrize(
    ("file", "test"),
    [
        ("cdc_sync/core/planning/stops.py", "tests/plan/test_stops.py"),
        ("cdc_sync/core/schema/types.py", "tests/targets/test_iceberg.py"),
        ("tests/table/model.py", "tests/table/test_ending.py"),
        ("tests/plan/test_stops.py", "tests/plan/test_stops.py"),
        ("README.md", "tests/test_readme.py"),
        ("tests/targets/conftest.py", "tests/targets"),
        ("conf/reference.yaml", "tests"),
    ],
)
def test_a_change_runs_what_imports_it_however_far_down(file: str, test: str) -> None:
    assert test in reached([file])


def test_it_runs_nothing_else() -> None:
    assert reached(["cdc_sync/core/planning/stops.py"]) != ["tests"]
    assert "tests/schema/test_promote.py" not in reached(["cdc_sync/core/planning/stops.py"])
    assert reached(["CHANGELOG.md"]) == []
