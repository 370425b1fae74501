"""Every refusal of a configuration, word for word, from refusals.txt."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cdc_sync.config import parse_config
from cdc_sync.errors import ConfigError

_CASES = re.findall(
    r"^=== (.+)\n((?:(?!^=== ).*\n)*?)^--- (.+)$",
    (Path(__file__).parent / "refusals.txt").read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)


@pytest.mark.parametrize(("text", "message"), [case[1:] for case in _CASES], ids=[case[0] for case in _CASES])
def test_is_refused_with_place_reason_and_remedy(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_config(text, path="conf.yaml", environ={"SECRET": "hunter2"})

    assert str(refusal.value) == message
    assert refusal.value.exit_code == 2
    assert "hunter2" not in str(refusal.value)


def test_the_golden_file_is_read_whole() -> None:
    assert len(_CASES) == 121
