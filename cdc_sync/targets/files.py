"""Files and folders of a warehouse, through Hadoop's file systems."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from cdc_sync.errors import TargetError


class Files:
    """The file system of one warehouse; every error is the JVM's own. Thread-safe."""

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self._jvm: Any = spark._jvm
        self._system = self._path(warehouse).getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())

    def qualified(self, path: str) -> str:
        """Return a path with its scheme, and not relative to where the process was started."""
        return str(self._system.makeQualified(self._path(path)).toString())

    def make(self, folder: str) -> None:
        """Make a folder and those above it."""
        self._system.mkdirs(self._path(folder))

    def children(self, folder: str) -> frozenset[str]:
        """Return the names of what lies in a folder; nothing if it is not there."""
        path = self._path(folder)
        if not self._system.exists(path):
            return frozenset()
        return frozenset(str(found.getPath().getName()) for found in self._system.listStatus(path))

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the folders below one that data files lie in, by their paths from there, and how many bytes do.

        A file whose name begins with `_` or `.` is none. The folder itself has the path "".
        """
        root = str(self._system.makeQualified(self._path(folder)).toString())
        found: dict[str, int] = {}
        files = self._system.listFiles(self._path(folder), True)
        while files.hasNext():
            file = files.next()
            path = file.getPath()
            if str(path.getName())[0] not in "._":
                inside = str(path.getParent().toString()).removeprefix(root).lstrip("/")
                found[inside] = found.get(inside, 0) + int(file.getLen())
        return found

    def size(self, folder: str) -> int:
        """Return how many bytes lie in a folder."""
        return int(self._system.getContentSummary(self._path(folder)).getLength())

    def read(self, file: str) -> str | None:
        """Return the text of a file, None if it is not there."""
        path = self._path(file)
        if not self._system.exists(path):
            return None
        stream = self._system.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, file: str, text: str) -> None:
        """Write a file anew."""
        stream = self._system.create(self._path(file), True)
        try:
            self._jvm.org.apache.commons.io.IOUtils.write(text, stream, "UTF-8")
        finally:
            stream.close()

    def delete(self, path: str) -> None:
        """Take a file or folder away; nothing happens if it is not there.

        Raises:
            TargetError: if the file system refuses without saying why.
        """
        found = self._path(path)
        if self._system.exists(found) and not self._system.delete(found, True):
            raise TargetError(f"Cannot delete {path}: the file system refuses; look at its permissions")

    def _path(self, text: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(text)
