"""What other users of the machine can see of a process."""

from __future__ import annotations

import os
from pathlib import Path

_LISTENING = "0A"
_LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")


def command_line(pid: int) -> str:
    """Return its words, with blanks between."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def open_ports(pid: int) -> list[str]:
    """Return the addresses that it listens on, as the kernel writes them, except those of the loopback interface."""
    sockets = {os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == _LISTENING and f"socket:[{inode}]" in sockets and local.split(":")[0] not in _LOOPBACK:
                found.append(local)
    return found


def family(pid: int) -> list[int]:
    """Return a process and all that it started, and so on."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [pid, *(found for item in children for child in item.read_text().split() for found in family(int(child)))]
