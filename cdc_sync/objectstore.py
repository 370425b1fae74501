"""Folders and object stores, opened alike."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url


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
    return LocalStore(folder, mkdir=True)
