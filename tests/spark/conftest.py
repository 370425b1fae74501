"""The one JVM, for tests that hold the session in their hands."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def session(_spark: SparkSession) -> SparkSession:
    return _spark
