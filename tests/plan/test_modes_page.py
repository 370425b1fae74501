"""docs/modes.md says what the modes are."""

from __future__ import annotations

from pathlib import Path

from cdc_sync.core.schema.policy import MODES, answers


def test_the_page_s_table_is_what_the_modes_answer() -> None:
    page = (Path(__file__).parents[2] / "docs" / "modes.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    found = {
        cells[1].split("`")[1]: [cell.strip() for cell in cells[2:-1]]
        for line in lines
        if len(cells := line.split("|")) == 8
    }

    assert found == {name: [answers(mode)[name] for mode in MODES] for name in found}
    assert set(found) == set(answers("evolve"))
