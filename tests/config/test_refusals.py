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


def test_all_mistakes_of_a_file_are_told_at_once_misspelt_keys_first() -> None:
    text = """
pipeline: {nam: p}
kafka: {bootstrap_servers: 'b:1', topics: []}
tables: [{pattern: '('}, {pattern: '.*', mode: upsrt}]
job: {parallel_tables: 0, trigger_interval: soon}
"""
    with pytest.raises(ConfigError) as refusal:
        parse_config(text, path="conf.yaml", environ={})

    told = [str(item).split(": ")[:2] for item in (refusal.value, *refusal.value.others)]
    assert told == [
        ["conf.yaml:2:12", "Cannot use pipeline.nam"],
        ["conf.yaml:3:35", "Cannot use kafka.topics"],
        ["conf.yaml:4:20", "Cannot use tables[0].pattern"],
        ["conf.yaml:4:48", "Cannot use tables[1].mode"],
        ["conf.yaml:5:24", "Cannot use job.parallel_tables"],
        ["conf.yaml:5:45", "Cannot use job.trigger_interval"],
    ]


def test_all_references_that_lead_nowhere_are_told_at_once() -> None:
    text = "pipeline: {name: '${env:NAME}'}\nkafka: {bootstrap_servers: '${env:BROKERS}'}\n"
    with pytest.raises(ConfigError, match="NAME") as refusal:
        parse_config(text, path="conf.yaml", environ={})
    (other,) = refusal.value.others
    assert "BROKERS" in str(other)
    assert (other.line, other.column) == (2, 28)


def test_the_golden_file_is_read_whole() -> None:
    assert len(_CASES) == 123
