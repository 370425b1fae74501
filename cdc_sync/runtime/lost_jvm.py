"""A JVM that ended under the program: how that shows, and what to do."""

from __future__ import annotations

import traceback

DEAD_JVM = (
    "Cannot go on: the JVM that Spark runs in has ended: it was killed, perhaps by the system for want of memory, or "
    "ran out of its own; what it wrote last stands above. Everything that was committed stands; start the command "
    "again, and if it happens again, with another spark.driver.memory under spark.conf"
)


def is_of_a_dead_jvm(error: BaseException) -> bool:
    """Whether Python lost its connection to the JVM; without loading what connects them."""
    seen: BaseException | None = error
    while seen is not None:
        frames = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(seen.__traceback__))
        is_network = isinstance(seen, OSError) or type(seen).__name__ == "Py4JNetworkError"
        if is_network and any(name.startswith("py4j.") for name in frames):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
