"""Keep lake tables equal to their source tables, rows and schema.

What the command line does, as functions that return values::

    config = cdc_sync.load_config("pipeline.yaml")
    report = cdc_sync.run(config, once=True)

`cdc-sync docs python` shows more. Names are imported when they are asked for: `import cdc_sync` starts no JVM.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cdc_sync.api.commands import (
        diff,
        history,
        maintain,
        plan,
        replay,
        run,
        status,
        validate,
        verify,
    )
    from cdc_sync.api.dead_letters import (
        discard_dead_letters,
        list_dead_letters,
        redrive_dead_letters,
        show_dead_letter,
    )
    from cdc_sync.api.requests import decide, forget, pause, resume, resync, rollback, skip
    from cdc_sync.api.resets import reset, reset_from_snapshot
    from cdc_sync.config import Config, load_config, parse_config
    from cdc_sync.core.planning.deciding import Words
    from cdc_sync.errors import CdcSyncError

__all__ = [
    "CdcSyncError",
    "Config",
    "Words",
    "decide",
    "diff",
    "discard_dead_letters",
    "forget",
    "history",
    "list_dead_letters",
    "load_config",
    "maintain",
    "parse_config",
    "pause",
    "plan",
    "redrive_dead_letters",
    "replay",
    "reset",
    "reset_from_snapshot",
    "resume",
    "resync",
    "rollback",
    "run",
    "show_dead_letter",
    "skip",
    "status",
    "validate",
    "verify",
]
_ELSEWHERE = {
    "CdcSyncError": "errors",
    "Config": "config",
    "Words": "core.planning.deciding",
    **dict.fromkeys(("decide", "forget", "pause", "resume", "resync", "rollback", "skip"), "api.requests"),
    **dict.fromkeys(
        ("discard_dead_letters", "list_dead_letters", "redrive_dead_letters", "show_dead_letter"), "api.dead_letters"
    ),
    **dict.fromkeys(("reset", "reset_from_snapshot"), "api.resets"),
    "load_config": "config",
    "parse_config": "config",
}
"""Where names are that are not among `api.commands`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'api.commands')}"), name)
