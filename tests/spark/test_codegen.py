"""Small work is interpreted, large work compiled, and beside large work everything is."""

from __future__ import annotations

import threading
from itertools import count

import pytest
from pyspark.sql import SparkSession

from cdc_sync.spark.codegen import Codegen

pytestmark = pytest.mark.spark

_LARGE = 100
_WIDTHS = count(1)


@pytest.fixture
def spark(session: SparkSession) -> SparkSession:
    """A session of its own, with settings as an operator may have made them."""
    found = session.newSession()
    found.conf.set("spark.sql.codegen.wholeStage", "true")
    found.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    return found


def _compiles(spark: SparkSession) -> bool:
    """Whether a query that Spark has not met before has code of its own."""
    metrics = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()  # type: ignore
    before = metrics.getCount()
    columns = [f"id + {number} AS c{number}" for number in range(next(_WIDTHS))]
    assert spark.range(3).selectExpr(*columns).collect()[2].c0 == 2
    return bool(metrics.getCount() > before)


def test_what_is_small_is_interpreted(spark: SparkSession) -> None:
    codegen = Codegen(spark, _LARGE)

    with codegen.of_rows(_LARGE - 1):
        small = _compiles(spark)
    with codegen.of_rows(_LARGE):
        large = _compiles(spark)
    with codegen.of_rows(None):
        unknown = _compiles(spark)

    assert (small, large, unknown, _compiles(spark)) == (False, True, True, True)


def test_nothing_is_small_enough_for_zero(spark: SparkSession) -> None:
    with Codegen(spark, 0).of_rows(0):
        assert _compiles(spark)


def test_what_begins_beside_large_work_is_compiled(spark: SparkSession) -> None:
    codegen = Codegen(spark, _LARGE)
    begun, end = threading.Event(), threading.Event()

    def work() -> None:
        with codegen.of_rows(_LARGE):
            begun.set()
            end.wait(60)

    with codegen.of_rows(1):
        thread = threading.Thread(target=work)
        thread.start()
        assert begun.wait(60)
        beside = _compiles(spark)
        end.set()
        thread.join()
        after = _compiles(spark)

    assert (beside, after) == (True, False)


def test_a_failure_ends_it_too(spark: SparkSession) -> None:
    codegen = Codegen(spark, _LARGE)

    with pytest.raises(ZeroDivisionError), codegen.of_rows(1):
        raise ZeroDivisionError

    assert _compiles(spark)


def test_an_operators_choice_stands_for_large_work(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    codegen = Codegen(spark, _LARGE)

    with codegen.of_rows(1):
        pass

    assert not _compiles(spark)
