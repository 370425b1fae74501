"""Whether the target of a source table that was dropped or renamed can be dropped or renamed in one step."""

from __future__ import annotations

import re

from cdc_sync.core.migration.capabilities import Capabilities

_ONE_STEP = ("file", "hdfs")
"""Schemes of file systems that rename a folder in one step. Source: Hadoop, "Filesystem Specification", `rename`."""
_FOLDER = (
    "which moves a table's folder; a folder of an object store is not moved in one step, and format {} has no "
    "catalogue to do it"
)


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
    if _is_folder_of_objects(capabilities, warehouse):
        return f"is {answer}, {_FOLDER.format(capabilities.format)}; set keep or pause"
    if answer == "archive" and not capabilities.by_path and catalog == "hadoop":
        return "is archive, and a catalog of type hadoop cannot rename tables; set keep, drop or pause"
    return None


def why_not_renamed(capabilities: Capabilities, answer: str | None, *, catalog: str, warehouse: str) -> str | None:
    """Return why `policy.rename_table` cannot have this answer, None if it can; arguments as of `why_not_removed`."""
    if answer != "follow":
        return None
    if _is_folder_of_objects(capabilities, warehouse):
        return f"is follow, {_FOLDER.format(capabilities.format)}; set stay or pause"
    if not capabilities.by_path and catalog == "hadoop":
        return "is follow, and a catalog of type hadoop cannot rename tables; set stay or pause"
    return None


def _is_folder_of_objects(capabilities: Capabilities, warehouse: str) -> bool:
    """Whether a table is a folder of its own in an object store, and nothing else names it."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", warehouse)
    return capabilities.by_path and scheme is not None and scheme[1].lower() not in _ONE_STEP
