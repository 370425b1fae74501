"""Files and folders of a warehouse, through Hadoop's file systems."""

from __future__ import annotations

import os
import uuid
from typing import Any

from py4j.protocol import Py4JJavaError
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

    def named(self, folder: str, ending: str) -> list[str]:
        """Return the files below a folder whose names end so."""
        found = self._system.listFiles(self._path(folder), True)
        files = []
        while found.hasNext():
            path = found.next().getPath()
            if str(path.getName()).endswith(ending):
                files.append(str(path.toString()))
        return files

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

    def create(self, file: str, text: str) -> bool:
        """Make a file unless there is one, in one step with all it holds; return whether there was none.

        Args:
            text: like that of no other file, so that it can be told who made it where the answer was lost.
        """
        self.make(file.rpartition("/")[0])
        try:
            made = self._create_in_one_step(file, text)
        except Py4JJavaError:
            found = self.read(file)
            if found is None:
                raise
            return found == text
        return made

    def _create_in_one_step(self, file: str, text: str) -> bool:
        scheme, path = str(self._system.getUri().getScheme()), self._path(file)
        if scheme == "file":
            return _linked(str(path.toUri().getPath()), text)
        if scheme in ("hdfs", "viewfs"):
            # What is being written can be read there, so it is written under another name.
            other = f"{file}.{uuid.uuid4().hex[:12]}"
            self.write(other, text)
            made = bool(self._system.rename(self._path(other), path))
            if not made:
                self.delete(other)
            return made
        builder = self._system.createFile(path).overwrite(False)
        # S3 compares only if it is asked, from Hadoop 3.4.2 on; before, it is looked for right before.
        stream = builder.opt("fs.option.create.conditional.overwrite", "true").build()
        try:
            self._jvm.org.apache.commons.io.IOUtils.write(text, stream, "UTF-8")
        finally:
            stream.close()
        return True

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


def _linked(path: str, text: str) -> bool:
    """Make a file of the local file system unless there is one; Hadoop looks first and then writes."""
    other = f"{path}.{uuid.uuid4().hex[:12]}"
    with open(other, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    try:
        os.link(other, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(other)
    return True
