"""What other users of the machine can see of a process."""

from __future__ import annotations

import os
from pathlib import Path

_LISTENING = "0A"
_LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")


def command_line(pid: int) -> str:
    """Return its words, with blanks between; none if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def open_ports(pid: int) -> list[str]:
    """Return the addresses that it listens on, as the kernel writes them, except those of the loopback interface.

    One that has ended listens on none.
    """
    try:
        sockets = {_target(path) for path in Path(f"/proc/{pid}/fd").iterdir()}
        tables = [Path(f"/proc/{pid}/net/{table}").read_text() for table in ("tcp", "tcp6")]
    except (FileNotFoundError, ProcessLookupError):
        return []
    found = []
    for line in (line for table in tables for line in table.splitlines()[1:]):
        _, local, _, state, *_, inode = line.split()[:10]
        if state == _LISTENING and f"socket:[{inode}]" in sockets and local.split(":")[0] not in _LOOPBACK:
            found.append(local)
    return found


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except FileNotFoundError:
        return ""  # it was closed meanwhile


def family(pid: int) -> list[int]:
    """Return a process and all that it started, and so on."""
    try:
        children = [item.read_text().split() for item in Path(f"/proc/{pid}/task").glob("*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return [pid]
    return [pid, *(found for ids in children for child in ids for found in family(int(child)))]
