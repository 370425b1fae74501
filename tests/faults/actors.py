"""Tables whose context holds what a test gives it, and nothing else."""

from __future__ import annotations

import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from cdc_sync.config.models import Job, Limits
from cdc_sync.core.lineage.coverage import Coverage
from cdc_sync.core.migration.routes import Route
from cdc_sync.runtime.actor import TableActor


def context_of(**edges: Any) -> Any:
    """Return a context of these edges; no evidence is configured."""
    size = edges.pop("size", 1000)
    first_step = edges.pop("first_step", size)
    config = SimpleNamespace(
        job=Job(max_offsets_per_batch=size),
        limits=Limits(max_versions_per_hour=60),
        evidence=SimpleNamespace(wait=timedelta(0)),
    )
    return SimpleNamespace(
        config=config,
        stop=threading.Event(),
        guard=lambda: None,
        first_step=first_step,
        coverage=lambda *_: Coverage(),
        evidence=SimpleNamespace(logs=(), renames=()),
        **edges,
    )


def actor_of(route: Route, **edges: Any) -> TableActor:
    """Return a table that nothing is known of."""
    return TableActor(context_of(**edges), route)
