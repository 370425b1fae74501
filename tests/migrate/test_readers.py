"""Which engines may read which tables, and that the page, the configuration and the benchmark say the same."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from cdc_sync.config import Target, parse_config
from cdc_sync.config.formats import BUILT_IN
from cdc_sync.core.migration.readers import ENGINES, REGIMES, has_logs, regime_of, right_for, why_not
from cdc_sync.errors import ConfigError
from scripts.pages.readers import render

_MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def test_the_page_is_printed_from_what_the_program_acts_by() -> None:
    assert (Path(__file__).parents[2] / "docs" / "readers.md").read_text() == render()


def test_every_engine_can_be_named_in_the_configuration() -> None:
    (names, _) = get_args(Target.model_fields["readers"].annotation)
    assert get_args(names) == tuple(ENGINES)


def test_every_format_that_is_kept_is_read_by_somebody() -> None:
    assert {regime.partition(" ")[0] for regime in REGIMES} == set(BUILT_IN) - {"memory"}
    for regime in REGIMES:
        assert any(regime in right_for(name) for name in ENGINES)


def test_how_a_hudi_table_is_kept_is_told_by_its_properties() -> None:
    assert regime_of("hudi", _MERGE_ON_READ) == "hudi merge-on-read"
    assert regime_of("hudi", {}) == "hudi"
    assert regime_of("hudi", {}, partitioned=True) == "hudi partitioned"
    assert regime_of("hudi", _MERGE_ON_READ, partitioned=True) == "hudi merge-on-read"
    assert regime_of("iceberg", {}, partitioned=True) == "iceberg"
    assert regime_of("delta", _MERGE_ON_READ) == "delta"
    assert has_logs("hudi", _MERGE_ON_READ)
    assert not has_logs("hudi", {})
    assert not has_logs("delta", _MERGE_ON_READ)
    assert regime_of("hudi", {}, "on_read") == regime_of("hudi", _MERGE_ON_READ, "on_read") == "hudi on read"


@pytest.mark.parametrize("regime", [*REGIMES, "memory"])
@pytest.mark.parametrize("name", ENGINES)
def test_a_configuration_is_refused_if_its_reader_would_show_something_else(name: str, regime: str) -> None:
    form = regime.partition(" ")[0]
    warehouse = "{type: hive, warehouse: /w}" if form == "parquet" else "{warehouse: /w}"
    properties = _MERGE_ON_READ if "merge" in regime else {}
    evolution = ", schema_evolution: on_read" if regime == "hudi on read" else ""
    said = f"readers: [{name}]"
    said_of_all = "" if regime == "hudi partitioned" else f"{said}, "
    rule = f", partition_by: [id], {said}" if regime == "hudi partitioned" else ""
    text = f"""
pipeline: {{name: p}}
kafka: {{bootstrap_servers: 'b:1', topics: [t]}}
tables: [{{table: d.s.t{rule}}}]
target: {{format: {form}, catalog: {warehouse}, {said_of_all}table_properties: {properties}{evolution}}}
"""
    reason = why_not(name, regime)
    if reason is None:
        assert (parse_config(text).tables[0].readers if rule else parse_config(text).target.readers) == (name,)
        return
    with pytest.raises(ConfigError) as refusal:
        parse_config(text)
    place = "tables[0]" if rule else "target"
    assert f"{place}.readers[0]: it names {name}, which is not to read {regime} tables: it {reason}; " in str(
        refusal.value
    )
    assert all(other in str(refusal.value) for other in right_for(name))
