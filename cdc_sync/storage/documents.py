"""Files below a root, and JSON documents in them: each is one value, names its format, and is replaced atomically.

All text is the same for equal values, so that a backup or a diff shows only what changed.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from pydantic import TypeAdapter, ValidationError

from cdc_sync.errors import HistoryError, TransientError
from cdc_sync.storage.object_store import open_store

FORMAT = 1

T = TypeVar("T")


class Written(NamedTuple):
    """A file: how many seconds ago it was written, and its bytes."""

    age: float
    path: str
    size: int


class Documents:
    """Files of one root, a folder or an object-store URL. Thread-safe for different files.

    Every method raises `TransientError` if the store does not answer, and `HistoryError` if a file is damaged.
    """

    def __init__(self, root: str, *, create: bool = False) -> None:
        """Open the files; reading needs no `create`."""
        self.root = root
        self._store = self._asked(lambda: open_store(root, create=create))

    def paths(self, folder: str) -> list[str]:
        """Return the files below a folder, ordered."""
        return self._asked(
            lambda: sorted(item["path"] for chunk in obstore.list(self._store, prefix=folder) for item in chunk)
        )

    def exists(self, path: str) -> bool:
        """Tell whether a file is there, readable or not."""
        try:
            self._asked(lambda: obstore.head(self._store, path))
        except (FileNotFoundError, NotFoundError):
            return False
        return True

    def text(self, path: str) -> str | None:
        """Return what is in a file, None if it is not there."""
        try:
            return self._asked(lambda: bytes(obstore.get(self._store, path).bytes())).decode()
        except (FileNotFoundError, NotFoundError):
            return None
        except UnicodeDecodeError as error:
            raise HistoryError(f"Cannot read {path}: {error}") from None

    def write(self, path: str, text: str) -> None:
        """Replace a file."""
        self._asked(lambda: obstore.put(self._store, path, text.encode()))

    def copy(self, path: str, into: str) -> None:
        """Copy a file."""
        self._asked(lambda: obstore.copy(self._store, path, into))

    def delete(self, path: str) -> None:
        """Delete a file; nothing happens if it is not there."""
        with contextlib.suppress(FileNotFoundError, NotFoundError):
            self._asked(lambda: obstore.delete(self._store, path))

    def put(self, path: str, data: Mapping[str, Any], *, sort_keys: bool = True, indent: int | None = 2) -> None:
        """Replace a document."""
        self.write(path, to_text({"format": FORMAT, **data}, sort_keys=sort_keys, indent=indent))

    def create(self, path: str, data: Mapping[str, Any]) -> bool:
        """Write a document that is not there yet; return whether it was not."""
        text = to_text({"format": FORMAT, **data})
        try:
            self._asked(lambda: obstore.put(self._store, path, text.encode(), mode="create"))
        except AlreadyExistsError:
            return False
        return True

    def written(self, folder: str) -> list[Written]:
        """Return the files below a folder, the newest first."""
        found = self._asked(lambda: [item for chunk in obstore.list(self._store, prefix=folder) for item in chunk])
        now = time.time()
        files = (Written(now - item["last_modified"].timestamp(), item["path"], item["size"]) for item in found)
        return sorted(files)

    def age(self, path: str) -> float | None:
        """Return how many seconds ago a file was written, None if it is not there."""
        try:
            written = self._asked(lambda: obstore.head(self._store, path))["last_modified"]
        except (FileNotFoundError, NotFoundError):
            return None
        return time.time() - written.timestamp()

    def get(self, path: str, kind: type[T], remedy: str, **given: Any) -> T | None:
        """Return the value that a document is, None if it is not there.

        Args:
            kind: a dataclass; its fields are the document's.
            remedy: what to do about a file that is none.
            given: fields that the document does not hold.
        """
        text = self.text(path)
        return None if text is None else as_value({**document(text, path), **given}, kind, path, remedy)

    def all(self, folder: str, kind: type[T], remedy: str) -> list[T]:
        """Return the value of every document below a folder, in the order of their paths."""
        found = (self.get(path, kind, remedy) for path in self.paths(folder) if path.endswith(".json"))
        return [value for value in found if value is not None]

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except (FileNotFoundError, NotFoundError, AlreadyExistsError):
            raise
        except (BaseError, OSError) as error:
            raise TransientError(f"Cannot use state in {self.root}: {' '.join(str(error).split())}") from error


def to_text(data: Mapping[str, Any], *, sort_keys: bool = True, indent: int | None = 2) -> str:
    """Write a JSON object as the text of a file."""
    return json.dumps(data, indent=indent, sort_keys=sort_keys, ensure_ascii=False) + "\n"


def document(text: str, path: str) -> dict[str, Any]:
    """Read a document, and take its format out."""
    data = json_object(text, path)
    if data.pop("format", None) != FORMAT:
        raise HistoryError(f"Cannot read {path}: it is of another format than {FORMAT}; update cdc_sync")
    return data


def json_object(text: str, place: str) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise HistoryError(f"Cannot read {place}: not JSON: {error}") from None
    if not isinstance(data, dict):
        raise HistoryError(f"Cannot read {place}: not a JSON object")
    return data


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def as_value(data: Mapping[str, Any], kind: type[T], place: str, remedy: str) -> T:
    """Return an object's fields as a value; nothing of what the file holds is in an error's text."""
    try:
        value: T = _adapter(cast(Any, kind)).validate_python(data)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise HistoryError(f"Cannot read {place}: {where}: {first['msg']}; {remedy}") from None
    return value
