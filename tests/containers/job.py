"""The job in a container of its own: read-only, with nothing but its configuration and its two folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testcontainers.core.network import Network

from tests.containers import engine

CONFIGURATION = "/etc/cdc_sync/pipeline.yaml"
STATE = "/var/lib/cdc_sync"
_PATIENCE = 90.0


class Job:
    """One container after another over the same folders.

    Args:
        folder: the host's; the warehouse lies at the same path inside, for tables name their files by whole paths.
        text: the configuration.
    """

    def __init__(self, folder: Path, network: Network, text: str) -> None:
        self.state = engine.for_containers(folder / "state")
        self.warehouse = engine.for_containers(folder / "warehouse")
        self._network = network
        self._configuration = folder / "pipeline.yaml"
        self._configuration.write_text(text, encoding="utf-8")
        self._configuration.chmod(0o644)
        self._container: Any = None

    @property
    def id(self) -> str:
        """The container that runs now."""
        return str(self._container.get_container_id())

    @property
    def wrapped(self) -> Any:
        """The engine's own view of it, as it is at this moment."""
        found = self._container.get_wrapped_container()
        found.reload()
        return found

    @property
    def runs(self) -> bool:
        """Whether there is a container, and it has not ended."""
        return self._container is not None and self.wrapped.status == "running"

    def start(self, *arguments: str, image: str = engine.JOB, entrypoint: Sequence[str] | None = None) -> None:
        """Start a new container; without arguments it does what the image does by itself."""
        self.remove()
        settings: dict[str, Any] = {"entrypoint": list(entrypoint)} if entrypoint else {}
        made = engine.container(image, self._network, alias="job", read_only=True, cap_drop=["ALL"], **settings)
        made = self.with_folders(made)
        self._container = made.with_command(list(arguments)) if arguments else made
        self._container.start()

    def with_folders(self, container: Any) -> Any:
        """Give a container what the job has."""
        container = container.with_volume_mapping(str(self._configuration), CONFIGURATION, "ro")
        container = container.with_volume_mapping(str(self.state), STATE, "rw")
        return container.with_volume_mapping(str(self.warehouse), str(self.warehouse), "rw")

    def ask(self, *command: str) -> tuple[int, str]:
        """Run a command of cdc-sync beside the job; return its exit code and what it said."""
        answer = self.wrapped.exec_run(["cdc-sync", *command])
        return answer.exit_code, answer.output.decode()

    def stop(self) -> int:
        """Stop it as an orchestrator does, and return its exit code."""
        self.wrapped.stop(timeout=int(_PATIENCE))
        return int(self.wrapped.attrs["State"]["ExitCode"])

    def restart(self) -> None:
        """Stop the container and start the same one again, with all that is left in it."""
        self.wrapped.restart(timeout=int(_PATIENCE))

    def kill(self) -> None:
        """End it and its JVM at once, as a power cut would."""
        self.wrapped.kill("SIGKILL")

    def wait(self, *, timeout: float) -> int:
        """Wait until it has ended by itself; return its exit code."""
        return int(self.wrapped.wait(timeout=timeout)["StatusCode"])

    def log(self) -> str:
        """All it said."""
        return str(self._container.get_wrapped_container().logs().decode()) if self._container else ""

    def remove(self) -> None:
        """Remove the container; the folders stay."""
        if self._container is not None:
            self._container.stop()
            self._container = None
