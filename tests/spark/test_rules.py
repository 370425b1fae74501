"""Rules that queries are planned without."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc_sync.config import Target
from cdc_sync.spark.session import rules_left_out

pytestmark = pytest.mark.spark


def test_spark_has_each_rule_and_leaves_it_out(session: SparkSession) -> None:
    optimizer: Any = session._jsparkSession.sessionState().optimizer()
    left_out = set(rules_left_out(Target()))

    assert left_out <= names_of(optimizer.defaultBatches())
    assert left_out.isdisjoint(names_of(optimizer.batches()))


def names_of(batches: Any) -> set[str]:
    return {
        rules.apply(place).ruleName()
        for rules in (batches.apply(index).rules() for index in range(batches.size()))
        for place in range(rules.size())
    }
