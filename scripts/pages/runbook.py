"""docs/runbook.md: why tables do not run and records become dead letters, from the codes that the program uses.

`python -m scripts.pages.runbook > docs/runbook.md` prints the page; a test compares it with the file.
"""

from __future__ import annotations

import sys

from cdc_sync.core.model.runbook import RUNBOOK
from cdc_sync.core.planning.stops import SKIPPABLE

_HEAD = (
    "# Runbook\n"
    "A table that does not run says why, and names one of these codes: in `cdc-sync status` (in brackets; `code` with "
    "`--json`), and in the log (`table paused`). Texts may change, codes do not.\n"
    "What is paused waits for you; what fails or waits is tried again by itself. Other tables go on in both cases, and "
    "nothing is lost as long as the topic keeps its records. `CONFIG` and `TABLE` stand for yours. Where something is "
    "to be set, edit the configuration: a running job takes it up within seconds, and tries the table again.\n"
    "Codes that begin with `record-` are of one record, which became a dead letter while its table went on: "
    "`cdc-sync dead-letters list CONFIG`.\n"
)
_SKIP = (
    "- Or have the table go on without this record, which becomes a dead letter: "
    "`cdc-sync skip CONFIG TABLE --at PLACE --why TEXT`.\n"
)


def render() -> str:
    """Return the page."""
    parts = [_HEAD]
    for code, entry in RUNBOOK.items():
        parts.append(f"\n## {code}\n{entry.cause}\n\n- Look at: {entry.look}\n- Do: {entry.act}\n")
        if code in SKIPPABLE:
            parts.append(_SKIP)
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(render())
