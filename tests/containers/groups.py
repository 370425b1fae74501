"""Which tests go to which of two workers: they wait more than they compute, so that two at a time are sooner done."""

from __future__ import annotations

from pathlib import PurePosixPath

from xdist.scheduler import LoadScopeScheduling

FIRST = ("test_cluster", "test_end_to_end", "test_engine", "test_images")
"""Half of all by the time they take; all that use the shared job, for each worker has one of its own."""


def group_of(test: str) -> str:
    """Return the group of a test, of which a worker gets all or none.

    Args:
        test: its id, which begins with its file's path.
    """
    return "first" if PurePosixPath(test.partition("::")[0]).stem in FIRST else "second"


class InGroups(LoadScopeScheduling):  # type: ignore[misc]  # has no annotations
    """Hands out whole groups. The mark `xdist_group`, which is meant for that, has no effect with pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
