"""How the client in Trino's image waits for a server that has just come up. Needs no engine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.containers import engine

_STARTING = "Query 1 failed: No nodes available to run query"
_JAVA = """#!/bin/sh
echo asked >>{folder}/asked
[ $(wc -l <{folder}/asked) -gt {refusals} ] || {{ echo '{said}' >&2; exit 1; }}
echo '"1"'; echo a warning >&2
"""


def _asked(folder: Path, *words: str, refusals: int, said: str) -> tuple[int, str, str, int]:
    """Return exit code, both outputs and how often the server was asked, of a server that refuses that often."""
    for name, text in (
        ("java", _JAVA.format(folder=folder, refusals=refusals, said=said)),
        ("sleep", "#!/bin/sh\n"),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    done = subprocess.run(
        ["sh", str(engine.ROOT / "docker" / "services" / "trino"), *words],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr, len((folder / "asked").read_text().splitlines())


@pytest.mark.parametrize("refusals", [0, 1, 14])
def test_a_statement_is_asked_again_until_the_server_knows_its_catalog(refusals: int, tmp_path: Path) -> None:
    done = _asked(tmp_path, "--execute", "select 1", refusals=refusals, said=_STARTING)
    assert done == (0, '"1"\n', "a warning\n", refusals + 1)


def test_not_for_ever(tmp_path: Path) -> None:
    assert _asked(tmp_path, "--execute", "select 1", refusals=99, said=_STARTING) == (1, "", f"{_STARTING}\n", 15)


def test_what_fails_for_another_reason_fails_at_once(tmp_path: Path) -> None:
    done = _asked(tmp_path, "--execute", "select x", refusals=1, said="Column x cannot be resolved")
    assert done == (1, "", "Column x cannot be resolved\n", 1)


def test_a_session_at_a_terminal_is_left_alone(tmp_path: Path) -> None:
    assert _asked(tmp_path, refusals=1, said=_STARTING) == (1, "", f"{_STARTING}\n", 1)
