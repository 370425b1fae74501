"""What is told of a table while a step is carried out."""

from __future__ import annotations

from typing import get_args

import pytest

from cdc_sync.core.table.transitions import Effect, ReadRest
from cdc_sync.runtime.now import WORDS, Now


def test_every_step_has_words() -> None:
    assert set(get_args(Effect)) == set(WORDS)


def test_it_is_told_until_the_step_has_ended_or_failed() -> None:
    now, seen = Now(), []

    def carried_out() -> None:
        with now.telling(ReadRest(ranges=(), stretches=())):
            seen.append(now.doing)
            raise KeyError("step")

    with pytest.raises(KeyError, match="step"):
        carried_out()
    assert [doing.what for doing in seen if doing is not None] == ["reads on"]
    assert now.doing is None
