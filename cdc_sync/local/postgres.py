"""A Postgres server on this machine with logical decoding switched on."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from cdc_sync.errors import SetupError
from cdc_sync.local.accounts import hand_over, service_account
from cdc_sync.local.ports import LOOPBACK
from cdc_sync.local.process import ServerProcess, run_as

USER = "postgres"
DATABASE = "postgres"

_SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_wal_senders": "16",
    "max_replication_slots": "16",
    "timezone": "UTC",
    # Data that is thrown away need not survive a power cut.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
}


class PostgresServer:
    """A Postgres whose superuser `postgres` may log in from this machine without a password.

    Postgres refuses to run as root; a root program runs it as the user `postgres` (else `nobody`), who then needs
    to be able to enter the folder's parents.

    Args:
        folder: where data and log live; made if absent.
        port: the port clients use.
    """

    def __init__(self, folder: Path, *, port: int) -> None:
        self.folder = folder
        self.port = port
        self.process: ServerProcess | None = None

    @property
    def dsn(self) -> str:
        """What a client library connects with."""
        return f"host={LOOPBACK} port={self.port} user={USER} dbname={DATABASE}"

    @property
    def data(self) -> Path:
        """The data folder of `initdb`."""
        return self.folder / "data"

    def start(self, *, wait: bool = True) -> None:
        """Starts the server, on a new database when the folder has none; `wait=False`: see `wait_ready`."""
        user = service_account("Postgres", USER)
        self._initialise(user)
        settings = [part for key, value in _SETTINGS.items() for part in ("-c", f"{key}={value}")]
        self.process = ServerProcess(
            "Postgres",
            [str(binaries() / "postgres"), "-D", str(self.data), "-p", str(self.port), *settings],
            log=self.folder / "postgres.log",
            stop_signal=signal.SIGINT,  # fast shutdown: SIGTERM would wait for every client to leave
            cwd=self.folder,
            environment={"LC_ALL": "C"},
            user=user,
        )
        if wait:
            self.wait_ready()

    def wait_ready(self, *, timeout: float = 60.0) -> None:
        """Returns once the server accepts connections."""
        if self.process is not None:
            self.process.wait_until(self._ready, timeout=timeout)

    def stop(self) -> None:
        """Stops the server, dropping its connections; its data stays."""
        if self.process is not None:
            self.process.stop()
            self.process = None

    def _ready(self) -> bool:
        """Asks the lock file, as pg_ctl does: its eighth line is the state, its first the process id."""
        try:
            lines = (self.data / "postmaster.pid").read_text().split("\n")
        except OSError:
            return False
        mine = self.process is not None and lines[0].strip() == str(self.process.pid)
        return mine and len(lines) > 7 and lines[7].strip() == "ready"

    def _initialise(self, user: tuple[int, int] | None) -> None:
        hand_over(self.folder, user, server="Postgres")
        if (self.data / "PG_VERSION").is_file():
            return
        command = [
            *(*run_as(user), str(binaries() / "initdb"), "-D", str(self.data), "-U", USER, "-A", "trust"),
            *("-E", "UTF8", "--locale=C", "--no-sync"),
        ]
        answer = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise SetupError(f"Cannot make a Postgres database in {self.data}: {answer.stderr.strip()}")


@lru_cache(maxsize=1)
def binaries() -> Path:
    """The folder of `initdb` and `postgres`, from the PATH, the distribution's folders or `pg_config`.

    Raises:
        SetupError: there is no Postgres server on this machine.
    """
    for folder in _candidates():
        if all((folder / name).is_file() for name in ("initdb", "postgres")):
            return folder
    raise SetupError("Cannot find a Postgres server (initdb, postgres): install postgresql and put it on the PATH")


def _candidates() -> Iterator[Path]:
    if on_path := shutil.which("initdb"):
        yield Path(on_path).resolve().parent
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(versions, key=lambda folder: _number(folder.parent.name), reverse=True)
    if pg_config := shutil.which("pg_config"):
        answer = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=False)
        yield Path(answer.stdout.strip())


def _number(text: str) -> int:
    match = re.match(r"\d+", text)
    return int(match.group()) if match else 0
