"""A MariaDB server on this machine whose binary log Debezium can read."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from cdc_sync.errors import SetupError
from cdc_sync.local.accounts import hand_over, service_account
from cdc_sync.local.ports import LOOPBACK, accepts_connections
from cdc_sync.local.process import ServerProcess, run_as

USER = "root"
SERVER_ID = 77

_SETTINGS = {
    "bind-address": LOOPBACK,
    # Inside the data folder, into which the server changes: a whole path may be longer than a socket's may.
    "socket": "mariadb.sock",
    "pid-file": "mariadb.pid",
    "server-id": str(SERVER_ID),
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "character-set-server": "utf8mb4",
    "collation-server": "utf8mb4_general_ci",
    "default-time-zone": "+00:00",
    # Data that is thrown away need not survive a power cut.
    "innodb-flush-log-at-trx-commit": "0",
    "sync-binlog": "0",
    "innodb-buffer-pool-size": "64M",
}


class MariadbServer:
    """A MariaDB whose user `root` may log in from this machine without a password.

    The server refuses to run as root; a root program runs it as the user `mysql` (else `nobody`), who then needs to be
    able to enter the folder's parents.

    Args:
        folder: where data and log live; made if absent.
        port: the port clients use.
    """

    def __init__(self, folder: Path, *, port: int) -> None:
        self.folder = folder
        self.port = port
        self.process: ServerProcess | None = None

    @property
    def url(self) -> str:
        """Where a client finds it, as `mysql://user@host:port/`."""
        return f"mysql://{USER}@{LOOPBACK}:{self.port}/"

    @property
    def data(self) -> Path:
        """The data folder of `mariadb-install-db`."""
        return self.folder / "data"

    def start(self, *, wait: bool = True) -> None:
        """Starts the server, on a new database when the folder has none; `wait=False`: see `wait_ready`."""
        account = service_account("MariaDB", "mysql")
        self._initialise(account)
        settings = [f"--{key}={value}" for key, value in _SETTINGS.items()]
        self.process = ServerProcess(
            "MariaDB",
            [str(programs()[1]), "--no-defaults", *self._folders(), f"--port={self.port}", *settings],
            log=self.folder / "mariadb.log",
            cwd=self.folder,
            user=account,
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
        """Asks the server's pid file first, for somebody else may have taken the port."""
        try:
            written = (self.data / _SETTINGS["pid-file"]).read_text().strip()
        except OSError:
            return False
        return self.process is not None and written == str(self.process.pid) and accepts_connections(self.port)

    def _folders(self) -> tuple[str, str]:
        # Temporary tables in the machine's own folder are everybody's, and somebody may clean it up.
        return f"--datadir={self.data}", f"--tmpdir={self.folder / 'tmp'}"

    def _initialise(self, account: tuple[int, int] | None) -> None:
        for folder in (self.folder, self.folder / "tmp"):
            hand_over(folder, account, server="MariaDB")
        if (self.data / "mysql").is_dir():
            return
        command = [
            *(*run_as(account), str(programs()[0]), "--no-defaults", *self._folders()),
            *("--auth-root-authentication-method=normal", "--skip-test-db"),
        ]
        answer = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            said = (answer.stderr or answer.stdout).strip()
            raise SetupError(f"Cannot make a MariaDB database in {self.data}: {said}")


@lru_cache(maxsize=1)
def programs() -> tuple[Path, Path]:
    """The paths of `mariadb-install-db` and `mariadbd`, from the PATH or the folders where distributions put them.

    Raises:
        SetupError: there is no MariaDB server on this machine.
    """
    found = [next(_places(name), None) for name in ("mariadb-install-db", "mariadbd")]
    if found[0] is None or found[1] is None:
        raise SetupError(
            "Cannot find a MariaDB server (mariadb-install-db, mariadbd): install mariadb-server and put it on the PATH"
        )
    return found[0], found[1]


def _places(name: str) -> Iterator[Path]:
    if on_path := shutil.which(name):
        yield Path(on_path)
    # A server's folder is not on everybody's PATH.
    for folder in ("/usr/sbin", "/usr/libexec", "/usr/local/sbin"):
        if (path := Path(folder, name)).is_file():
            yield path
