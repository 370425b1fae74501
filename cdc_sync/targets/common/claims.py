"""Whose commit comes next, where a format has no commit that is made only if nothing came before it.

Beside the table lie numbered files, each made only if it is absent. Whoever wants to commit reads the last number
before it reads the table, and makes the next file right before the commit: of two that saw the same state, one makes
it. The file says all that the commit needs, so whoever finds it without its commit makes that up.
"""

from __future__ import annotations

from cdc_sync.targets.common.files import Files

_KEPT = 20


class Claims:
    """The numbered files of one table."""

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder

    def last(self) -> tuple[int, str] | None:
        """Return the last number and what its file says, None if there is none."""
        numbers = self._numbers()
        if not numbers:
            return None
        text = self._files.read(self._file(max(numbers)))
        # It was let go of meanwhile, so there are later ones.
        return (max(numbers), text) if text is not None else self.last()

    def take(self, number: int, text: str) -> bool:
        """Make a file, and let go of old ones; return whether the number was free and is the last one.

        Args:
            text: like no other.
        """
        if not self._files.create(self._file(number), text):
            return False
        numbers = self._numbers()
        if max(numbers) != number:  # it was made before, and let go of
            self._files.delete(self._file(number))
            return False
        for old in numbers:
            if old <= number - _KEPT:
                self._files.delete(self._file(old))
        return True

    def _numbers(self) -> list[int]:
        return [int(name) for name in self._files.children(self._folder) if name.isdecimal()]

    def _file(self, number: int) -> str:
        return f"{self._folder}/{number:012}"
