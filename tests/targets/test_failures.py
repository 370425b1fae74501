"""What a target's failures say: files that are gone are told from all else."""

from __future__ import annotations

import pytest

from cdc_sync.errors import FilesGone, TargetError
from cdc_sync.targets.common.java import failure


@pytest.mark.parametrize(
    "said",
    [
        "java.io.FileNotFoundException: File file:/lake/t/a.parquet does not exist",
        "java.nio.file.NoSuchFileException: /lake/t/a.parquet",
        "org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Error while reading file a.parquet",
        "org.apache.iceberg.exceptions.NotFoundException: Failed to open input stream for file: s3://lake/t/a.parquet",
        "org.apache.iceberg.exceptions.NotFoundException: File does not exist: /lake/t/a.parquet",
        "software.amazon.awssdk.services.s3.model.NoSuchKeyException: The specified key does not exist",
    ],
)
def test_a_file_that_is_gone_is_told_from_all_else(said: str) -> None:
    found = failure("write lake.t", RuntimeError(f"{said}\nand a long trace"))
    assert isinstance(found, FilesGone)
    assert str(found) == f"Cannot write lake.t: {said}"


@pytest.mark.parametrize("said", ["java.io.IOException: no space left", "Table or view not found: t", "timeout"])
def test_other_failures_are_no_missing_files(said: str) -> None:
    assert type(failure("write lake.t", RuntimeError(said))) is TargetError
