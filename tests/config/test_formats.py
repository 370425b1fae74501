"""Table formats that other packages add, by an entry point."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_sync.config import formats, parse_config
from cdc_sync.config.formats import BUILT_IN, format_names, format_of
from cdc_sync.config.routes import route
from cdc_sync.core.migration.capabilities import KINDS
from cdc_sync.core.model.positions import TableId
from cdc_sync.errors import ConfigError

CONFIG = """
pipeline: {name: p}
kafka: {bootstrap_servers: 'b:1', topics: [t]}
tables: [{pattern: '.*'}]
target: {format: %s}
"""
ADDED = """
from cdc_sync.core.migration.capabilities import Capabilities
from cdc_sync.core.migration.target_format import TargetFormat

GOOD = TargetFormat(
    opens="lance_for_tests:opened", kinds=(Capabilities(format="lance", promotions=frozenset(), merges=True),)
)
NONE = "a text"
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package beside cdc_sync, as pip leaves it."""
    (tmp_path / "lance_for_tests.py").write_text(ADDED)
    info = tmp_path / "lance_for_tests-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lance-for-tests\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[cdc_sync.targets]\n"
        "lance = lance_for_tests:GOOD\nnone = lance_for_tests:NONE\ngone = lance_for_tests:GONE\n"
        "iceberg = lance_for_tests:GOOD\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    formats._added.cache_clear()
    yield
    formats._added.cache_clear()
    sys.modules.pop("lance_for_tests", None)


def test_those_that_come_with_it_have_the_kinds_of_their_name() -> None:
    assert [kind for found in BUILT_IN.values() for kind in found.kinds] == list(KINDS)
    assert {name: {kind.format for kind in found.kinds} for name, found in BUILT_IN.items()} == {
        name: {name} for name in BUILT_IN
    }


@pytest.mark.usefixtures("installed")
def test_a_format_of_another_package_is_configured_by_its_name() -> None:
    config = parse_config(CONFIG % "lance")
    found = route(config, TableId(database="d", schema="s", table="t"))
    assert found is not None
    assert found.capabilities == format_of("lance").usual
    assert found.capabilities.format == "lance"


@pytest.mark.usefixtures("installed")
def test_one_that_comes_with_it_is_not_replaced() -> None:
    assert format_of("iceberg") is BUILT_IN["iceberg"]
    assert format_names().count("iceberg") == 1


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("name", "said"), [("none", "is no TargetFormat"), ("gone", "AttributeError")])
def test_one_that_cannot_be_used_is_said_only_where_it_is_wanted(name: str, said: str) -> None:
    assert name in format_names()
    parse_config(CONFIG % "iceberg")
    with pytest.raises(ConfigError, match=rf"Cannot use target\.format {name}: lance_for_tests:.*{said}"):
        parse_config(CONFIG % name)


@pytest.mark.usefixtures("installed")
def test_a_name_that_nobody_adds_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"must be iceberg, delta, hudi, parquet, memory, gone, lance or none"):
        parse_config(CONFIG % "lanse")
