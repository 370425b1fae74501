"""Prints the test files that a change can reach: `scripts/test --changed [BASE]` runs them.

A test file is reached if it, or a module it imports, however far down, differs from BASE (HEAD if not given). What a
`conftest.py` imports is left out, for that reaches every test. Prints nothing where nothing is reached, and `tests`
where something else than Python changed that any test may read.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
ELSEWHERE = ("pyproject.toml", "requirements.lock", "scripts/", "docker/", "conf/", "tests/")
"""Where a file that is no Python may be read by any test."""


def changed(base: str) -> list[str]:
    """Return the files that differ from a commit, those that git does not know among them."""
    asked = (["diff", "--name-only", base], ["ls-files", "--others", "--exclude-standard"])
    told = (subprocess.run(["git", *one], cwd=ROOT, check=True, capture_output=True, text=True) for one in asked)
    return sorted({line for found in told for line in found.stdout.splitlines()})


def reached(files: list[str]) -> list[str]:
    """Return the test files, or folders of them, that a change of some files can reach."""
    sys.path.insert(0, str(ROOT))
    if any(name.startswith(ELSEWHERE) and not name.endswith(".py") for name in files):
        return ["tests"]
    graph = grimp.build_graph("cdc_sync", "tests", cache_dir=None)
    for name in [name for name in graph.modules if name.rpartition(".")[2] == "conftest"]:
        graph.remove_module(name)
    found = {str(Path(name).parent) for name in files if name.endswith("conftest.py")}
    if any(name.startswith("docs/") or name == "README.md" for name in files):
        found |= {
            str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py") if "docs" in path.read_text()
        }
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files}
    for module in modules & graph.modules:
        for item in {module} | graph.find_downstream_modules(module):
            if item.rpartition(".")[2].startswith("test_"):
                found.add(f"{item.replace('.', '/')}.py")
    return sorted(found)


if __name__ == "__main__":
    print("\n".join(reached(changed(sys.argv[1] if len(sys.argv) > 1 else "HEAD"))))
