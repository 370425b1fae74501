"""The account a database server runs as when this program is root: databases refuse to run as root."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

from cdc_sync.errors import SetupError
from cdc_sync.local.process import run_as


def service_account(server: str, *names: str) -> tuple[int, int] | None:
    """Return (uid, gid) of the first account that exists; None unless this program is root.

    Args:
        server: what error messages call the server.
        names: the accounts that packages make for it; `nobody` comes after them.

    Raises:
        SetupError: if none of them exists.
    """
    if os.geteuid() != 0:
        return None
    for name in (*names, "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return entry.pw_uid, entry.pw_gid
    raise SetupError(f"Cannot run {server} as root: make a user named {names[0]}")


def hand_over(folder: Path, account: tuple[int, int] | None, *, server: str) -> None:
    """Make a folder that belongs to the account.

    Raises:
        SetupError: if the account cannot enter one of the folder's parents.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if account is None:
        return
    os.chown(folder, *account)
    if subprocess.run([*run_as(account), "test", "-x", str(folder)], check=False).returncode != 0:
        raise SetupError(
            f"Cannot run {server} in {folder}: as root it runs as another user, who cannot enter this "
            "folder. Choose a folder whose parents everybody may enter."
        )
