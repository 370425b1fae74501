"""What Java calls back while it runs a statement whose commit carries properties."""

from __future__ import annotations

from collections.abc import Callable


class Callback:
    """A Python function as `java.util.concurrent.Callable`; keeps the error that Java would wrap."""

    def __init__(self, action: Callable[[], object]) -> None:
        self._action = action
        self.error: Exception | None = None

    def call(self) -> None:
        """Run the function, in the thread that Java calls from."""
        try:
            self._action()
        except Exception as error:
            self.error = error
            raise

    class Java:  # noqa: D106 - Py4J's word
        implements = ["java.util.concurrent.Callable"]
