"""Whether the target of a source table that was dropped can be dropped or renamed in one step."""

from __future__ import annotations

import re

from cdc_sync.migrate.capabilities import Capabilities

_ONE_STEP = ("file", "hdfs")
"""Schemes of file systems that rename a folder in one step. Source: Hadoop, "Filesystem Specification", `rename`."""


def why_not_removed(capabilities: Capabilities, answer: str | None, *, catalog: str, warehouse: str) -> str | None:
    """Return why `policy.drop_table` cannot have this answer, None if it can.

    Args:
        capabilities: of the target's format.
        answer: as configured; `keep` and `pause` are always possible.
        catalog: type of the catalogue that finds the tables, where there is one.
        warehouse: folder or object-store URL of the tables.
    """
    if answer not in ("drop", "archive"):
        return None
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", warehouse)
    if capabilities.by_path and scheme is not None and scheme[1].lower() not in _ONE_STEP:
        return (
            f"is {answer}, which moves a table's folder; a folder of an object store is not moved in one step, and "
            f"format {capabilities.format} has no catalogue to do it; set keep or pause"
        )
    if answer == "archive" and not capabilities.by_path and catalog == "hadoop":
        return "is archive, and a catalog of type hadoop cannot rename tables; set keep, drop or pause"
    return None
