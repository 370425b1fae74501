"""The faults that `bench/mutants.py` plants can be planted: each stands once where the list says."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


def test_every_fault_can_be_planted() -> None:
    mutants = yaml.safe_load((ROOT / "tests" / "mutants.yaml").read_text(encoding="utf-8"))
    assert len(mutants) == 60
    places = [(item["file"], (ROOT / item["file"]).read_text(encoding="utf-8").count(item["old"])) for item in mutants]
    assert [file for file, count in places if count != 1] == []
    assert all(item["old"] != item["new"] for item in mutants)
