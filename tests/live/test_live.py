"""Real databases, real Debezium, random DDL and DML: every column keeps its id for life, and every row is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_sync.local.stack import LocalStack
from tests.live.databases import MariadbDatabase, PostgresDatabase
from tests.live.run import Live

pytestmark = [pytest.mark.kafka, pytest.mark.iceberg, pytest.mark.spark]


@pytest.mark.parametrize("histories", [3, 5])
def test_ids_and_rows_are_right_after_random_histories(histories: int, tmp_path: Path) -> None:
    with LocalStack(databases=("postgres", "mariadb")) as stack:
        live = Live(stack, [PostgresDatabase(stack), MariadbDatabase(stack)], tmp_path)
        with live.running():
            outcomes = live.wave(histories, seed=5, groups=2, patience=180)

    problems = [f"{outcome.name}: {text}" for outcome in outcomes for text in outcome.problems]
    assert not problems, "\n".join(problems)
    assert len(outcomes) == 2 * histories
    assert sum(outcome.verdict.columns for outcome in outcomes if outcome.verdict is not None) > 60 * histories
