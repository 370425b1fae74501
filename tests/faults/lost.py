"""Connections that are lost around a call: before it is done, or behind it, when only the reply is gone."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_sync.errors import TargetError


class LostCalls:
    """Each of these calls fails once before it is done, and once after; or as often as `times` says, every third time.

    The fates of a call are its own: the first time before, the second time behind, the third time it goes well.
    """

    def __init__(self, patch: pytest.MonkeyPatch, *calls: tuple[type[Any], str], times: int = 1) -> None:
        self.failed: list[str] = []
        self._fates = ["before", "behind", "fine"] * times
        for owner, call in calls:
            self._lose(patch, owner, call)

    def _lose(self, patch: pytest.MonkeyPatch, owner: type[Any], call: str) -> None:
        fates, real = iter(self._fates), getattr(owner, call)

        def lossy(self_: Any, what: Any, *more: Any) -> Any:
            fate = next(fates, "fine")
            result = None if fate == "before" else real(self_, what, *more)
            if fate != "fine":
                self.failed.append(f"{call} {fate}")
                raise TargetError(f"Cannot {call} {what}: the connection was lost")
            return result

        patch.setattr(owner, call, lossy)
