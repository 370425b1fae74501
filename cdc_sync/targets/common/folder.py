"""Tables that are folders: moved and deleted through Hadoop's file system, so that a reader sees all of one or none."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from cdc_sync.errors import TargetError
from cdc_sync.targets.common.java import first_line

_LEAVING = "__dropping"
"""What is put behind the name of a folder whose files are being deleted."""


def delete_folder(spark: SparkSession, path: str) -> None:
    """Take a folder away at once, then delete its files; called again, it ends what was begun.

    Raises:
        TargetError: if the file system refuses.
    """
    leaving = f"{path}{_LEAVING}"
    try:
        system = _system(spark, path)
        _delete(spark, system, leaving)
        if system.exists(_path(spark, path)):
            _rename(spark, system, path, leaving)
            _delete(spark, system, leaving)
    except Py4JJavaError as error:
        raise TargetError(f"Cannot drop {path}: {first_line(error)}") from error


def move_folder(spark: SparkSession, path: str, into: str) -> None:
    """Give a folder another name, in one step; nothing happens if it is not there.

    Raises:
        TargetError: if something has the name, or the file system refuses.
    """
    try:
        system = _system(spark, path)
        if not system.exists(_path(spark, path)):
            return
        if system.exists(_path(spark, into)):
            raise TargetError(f"Cannot archive {path}: {into} exists")
        _rename(spark, system, path, into)
    except Py4JJavaError as error:
        raise TargetError(f"Cannot archive {path}: {first_line(error)}") from error


def _rename(spark: SparkSession, system: Any, path: str, into: str) -> None:
    if not system.rename(_path(spark, path), _path(spark, into)):
        raise TargetError(f"Cannot move {path} to {into}: the file system refuses; look at its permissions")


def _delete(spark: SparkSession, system: Any, path: str) -> None:
    if system.exists(_path(spark, path)) and not system.delete(_path(spark, path), True):
        raise TargetError(f"Cannot delete {path}: the file system refuses; look at its permissions")


def _path(spark: SparkSession, text: str) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.hadoop.fs.Path(text)


def _system(spark: SparkSession, path: str) -> Any:
    return _path(spark, path).getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
