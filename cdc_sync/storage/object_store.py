"""Folders and object stores, opened alike."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from hashlib import sha256
from urllib.parse import quote, unquote

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url

from cdc_sync.core.model.positions import TableId
from cdc_sync.errors import TransientError

_LONGEST = 248
"""Characters: file systems have names of 255 bytes, of which an ending and a suffix while it is written take some."""
_DIGEST = "~"
"""What names begin with that are digests. An encoded name has it too, but has dots between its parts."""


def open_store(root: str, *, create: bool) -> ObjectStore:
    """Open a folder or object-store URL.

    Args:
        root: the folder or URL.
        create: make the folder if it is not there; without it a missing folder reads as empty.
    """
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", root) and not root.startswith("file://"):
        return from_url(root)
    folder = unquote(root.removeprefix("file://")) if root.startswith("file://") else root
    if not create and not os.path.isdir(folder):
        return MemoryStore()
    _make_private(folder)
    return LocalStore(folder, mkdir=True)


def _make_private(folder: str) -> None:
    """Make a folder that is not there its owner's alone, whatever the umask: records that were set aside hold rows."""
    if folder and not os.path.isdir(folder):
        _make_private(os.path.dirname(folder))
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, mode=0o700)


def holds_any(root: str) -> bool:
    """Whether anybody wrote below a root; of a folder, whether it is there."""
    store = open_store(root, create=False)
    if isinstance(store, LocalStore):
        return True
    return any(chunk for chunk in obstore.list(store, chunk_size=1))


def digest(text: str) -> str:
    """Return what a file of a text that is no name is called, and what tells whether a text is another one."""
    return sha256(text.encode()).hexdigest()


def name_of(table: TableId) -> str:
    """Return what a source table's file or folder is called."""
    return name_of_parts(table.database, table.schema, table.table)


def name_of_parts(*parts: str) -> str:
    """Return what the file or folder of a name of some parts is called; dots in them are encoded: no two share it.

    A name that is longer than a file's may be is a digest, which does not tell the table: what is in the file does.
    """
    name = ".".join(quote(part, safe="").replace(".", "%2E") for part in parts)
    return name if len(name) <= _LONGEST else f"{_DIGEST}{digest(name)}"


def is_digest(name: str) -> bool:
    """Whether a file's or folder's name is one of a table whose own name is too long."""
    return name.startswith(_DIGEST) and "." not in name.removesuffix(".json")


def table_of(name: str) -> TableId | None:
    """Return the table whose file or folder is called so, None if it is none of a table, or a digest."""
    parts = [unquote(part) for part in name.removesuffix(".json").split(".")]
    return TableId(database=parts[0], schema=parts[1], table=parts[2]) if len(parts) == 3 else None


def copy_files(root: str, into: str, folders: Iterable[str]) -> None:
    """Copy the files below some folders of one root to another one; folders that are not there are left out.

    Raises:
        TransientError: if either does not answer.
    """
    try:
        source, target = open_store(root, create=False), open_store(into, create=True)
        for folder in folders:
            for path in [item["path"] for chunk in obstore.list(source, prefix=folder) for item in chunk]:
                obstore.put(target, path, bytes(obstore.get(source, path).bytes()))
    except (BaseError, OSError) as error:
        raise TransientError(f"Cannot copy files of {root}: {' '.join(str(error).split())}") from error
