"""Plants the faults of tests/mutants.yaml one by one, and prints which no test finds.

    .venv/bin/python bench/mutants.py [--spark] [--only WORD]

Each is planted in a copy of the clone, where the tests run that the file can reach: those that import it themselves
first, until one fails. `--spark` also runs those that need a JVM where the others find nothing. Ends with 1 if fewer
than 57 are found.
"""

from __future__ import annotations

import argparse
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import grimp
import yaml

ROOT = Path(__file__).parents[1]
ENOUGH = 57
JVM = "spark or kafka or iceberg or delta or hudi or parquet"


def main() -> int:
    """Plant each, and say what found it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--only", default="")
    wanted = parser.parse_args()
    mutants = yaml.safe_load((ROOT / "tests" / "mutants.yaml").read_text(encoding="utf-8"))
    reached = runpy.run_path(str(ROOT / "scripts" / "changed.py"))["reached"]
    graph = grimp.build_graph("cdc_sync", "tests", cache_dir=None)
    found = tried = 0
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "clone"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv", ".git", "__pycache__", ".*_cache", ".site"))
        for mutant in mutants:
            if wanted.only not in f"{mutant['file']} {mutant['old']}":
                continue
            module = mutant["file"].removesuffix(".py").replace("/", ".")
            near = {f"{item.replace('.', '/')}.py" for item in graph.find_modules_that_directly_import(module)}
            tests = sorted(reached([mutant["file"]]), key=lambda file: (file not in near, file))
            began = time.monotonic()
            by = _found(copy, mutant, tests, spark=wanted.spark)
            tried, found = tried + 1, found + (by is not None)
            told, seconds = "found" if by else "NOT FOUND", time.monotonic() - began
            print(f"{told:9} {seconds:6.0f} s  {mutant['file']}: {by or mutant['new']}")
            sys.stdout.flush()
    print(f"{found} of {tried} are found")
    return int(not wanted.only and found < ENOUGH)


def _found(copy: Path, mutant: dict[str, str], tests: list[str], *, spark: bool) -> str | None:
    """Return the test that finds a fault, None if none does."""
    file = copy / mutant["file"]
    whole = file.read_text(encoding="utf-8")
    assert whole.count(mutant["old"]) == 1, f"{mutant['file']}: {mutant['old']!r} does not stand there once"
    file.write_text(whole.replace(mutant["old"], mutant["new"]), encoding="utf-8")
    try:
        stages = [f"not ({JVM} or docker or thorough)", *([f"({JVM}) and not (docker or thorough)"] if spark else [])]
        return next((by for stage in stages if (by := _first_failure(copy, tests, stage)) is not None), None)
    finally:
        file.write_text(whole, encoding="utf-8")


def _first_failure(copy: Path, tests: list[str], stage: str) -> str | None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        stage,
        *tests,
    ]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    if run.returncode in (0, 5):
        return None
    lines = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0].partition(" - ")[0] if lines else f"pytest ended with {run.returncode}"


if __name__ == "__main__":
    sys.exit(main())
