"""Three minutes of what `bench/` does for an hour: whatever is killed, stopped or cut, source and lake are equal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(3600)]

_BENCH = Path(__file__).parents[2] / "bench"


@pytest.mark.parametrize("name", ["chaos", "bank"])
def test_it_ends_right(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, str(_BENCH / f"{name}.py"), "--minutes", "3"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
