"""Patterns of the configuration end, whatever a topic, a table or a column is called."""

from __future__ import annotations

import re
import time

import pytest

from cdc_sync.config import parse_config
from cdc_sync.config.routes import is_routed, route
from cdc_sync.core import patterns
from cdc_sync.core.migration.routes import LeftOut
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.patterns import full_match
from cdc_sync.errors import ConfigError, RefusedError

ENDLESS, NAME = r"(a|aa)+b", "a" * 63
CONFIG = """
pipeline: {{name: p}}
kafka: {{bootstrap_servers: b:1, topic_pattern: '{topics}'}}
tables: [{{pattern: '.*', exclude: ['{exclude}']}}, {{pattern: '{tables}'}}]
target: {{catalog: {{warehouse: /w}}}}
"""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "_SECONDS", 0.2)


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        (r"shop\.inv\..*", "shop.inv.orders", True),
        (r"shop\.inv", "shop.inv.orders", False),
        (r"(?P<which>eu|us)_(?!old).*", "eu_orders", True),
        (r"(?P<which>eu|us)_(?!old).*", "eu_old", False),
        (r"(\w)\1", "aa", True),
        (r"[\w.]+", "shop.\u00e9t\u00e9", True),
        (r"(?i)ORDERS", "orders", True),
        (r"a.b", "a\nb", False),
        (r"a$", "a\n", False),
    ],
)
def test_they_mean_what_they_mean_to_python(pattern: str, name: str, matches: bool) -> None:
    assert bool(full_match(pattern, name)) is bool(re.fullmatch(pattern, name)) is matches


def test_a_pattern_that_would_never_end_is_an_error_that_says_which_and_for_what() -> None:
    began = time.monotonic()
    with pytest.raises(ConfigError, match=r"'a{63}' with the pattern '\(a\|aa\)\+b': it takes longer than 0.2 s"):
        full_match(ENDLESS, NAME)
    assert time.monotonic() - began < 10


def test_it_refuses_the_table_and_no_other() -> None:
    for key in ("exclude", "tables"):
        text = CONFIG.format(
            **{"topics": ".*", "exclude": ".*" if key == "tables" else "x", "tables": "x", key: ENDLESS}
        )
        config = parse_config(text)
        hostile, other = (TableId(database=name, schema="", table="t") for name in (NAME, "shop"))
        with pytest.raises(RefusedError, match="Cannot route table"):
            route(config, hostile)
        assert not is_routed(config, hostile)
        assert is_routed(config, other) is (key == "exclude")


def test_topics_and_columns_are_matched_like_that_too() -> None:
    config = parse_config(CONFIG.format(topics=ENDLESS, exclude="x", tables="x"))
    with pytest.raises(ConfigError, match="takes longer"):
        config.kafka.matching([NAME])
    with pytest.raises(ConfigError, match="takes longer"):
        LeftOut((rf"s\.t\.{ENDLESS}",)).holds(TableId(database="d", schema="s", table="t"), NAME)
    assert LeftOut((r"s\.t\.PASS\w*",)).holds(TableId(database="d", schema="s", table="t"), "password")
