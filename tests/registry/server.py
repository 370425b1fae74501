"""A schema registry on this machine: Apicurio Registry, its schemas in memory, gone when it stops."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from pathlib import Path

from cdc_sync.local import jars
from cdc_sync.local.java import java_executable_from
from cdc_sync.local.ports import LOOPBACK, accepts_connections
from cdc_sync.local.process import ServerProcess

REQUIRED_MAJOR = 21
"""Apicurio Registry 3 does not run on an earlier Java."""

# A proxy configured for the internet must not be asked for the loopback interface.
_HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class RegistryServer:
    """An Apicurio Registry, which also speaks Confluent's protocol; every `start` begins empty.

    Args:
        folder: where the log lives; made if absent.
        port: of the REST API.
        management_port: of its health checks.
        heap: the JVM's `-Xmx`.
    """

    def __init__(self, folder: Path, *, port: int, management_port: int, heap: str = "384m") -> None:
        self.folder = folder
        self.port = port
        self.management_port = management_port
        self.heap = heap
        self.process: ServerProcess | None = None

    @property
    def url(self) -> str:
        """Root of all its APIs, for clients of type apicurio."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def confluent_url(self) -> str:
        """Root of the API that is compatible with Confluent's."""
        return f"{self.url}/apis/ccompat/v7"

    def start(self, *, wait: bool = True) -> None:
        """Starts it; with `wait=False` returns before it is ready (see `wait_ready`).

        Raises:
            SetupError: there is no Java 21 or later, or the registry cannot be had.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        java = java_executable_from(REQUIRED_MAJOR)
        command = [
            *(str(java), f"-Xmx{self.heap}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
            *(f"-Dquarkus.http.host={LOOPBACK}", f"-Dquarkus.http.port={self.port}"),
            *(f"-Dquarkus.management.host={LOOPBACK}", f"-Dquarkus.management.port={self.management_port}"),
            *("-jar", str(jars.install(jars.APICURIO) / "quarkus-run.jar")),
        ]
        self.process = ServerProcess("Apicurio Registry", command, log=self.folder / "registry.log", cwd=self.folder)
        if wait:
            self.wait_ready()

    def wait_ready(self, *, timeout: float = 120.0) -> None:
        """Returns once the registry answers questions for schemas."""
        if self.process is not None:
            self.process.wait_until(self._answers, timeout=timeout)

    def stop(self) -> None:
        """Stops it; its schemas are gone."""
        if self.process is not None:
            self.process.stop()
            self.process = None

    def _answers(self) -> bool:
        if not accepts_connections(self.port):
            return False
        try:
            with _HTTP.open(f"{self.confluent_url}/subjects", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, http.client.HTTPException, OSError):
            return False
