"""Kafka Connect on this machine: one standalone worker with Debezium's plugins, driven through its REST API."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cdc_sync.errors import SetupError
from cdc_sync.local import jars
from cdc_sync.local.java import java_executable
from cdc_sync.local.kafka import DEFAULT_MAX_MESSAGE_BYTES
from cdc_sync.local.ports import LOOPBACK
from cdc_sync.local.process import ServerProcess

_SETTINGS = """\
bootstrap.servers={bootstrap_servers}
listeners=http://{host}:{port}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=1000
plugin.path={plugins}
plugin.discovery={discovery}
topic.creation.enable=true
producer.max.request.size={max_message_bytes}
"""
# A proxy configured for the internet must not be asked for the loopback interface.
_HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStatus:
    """What the worker says of a connector: RUNNING, FAILED, PAUSED, STOPPED or UNASSIGNED, itself and its tasks."""

    state: str
    tasks: tuple[str, ...]
    trace: str

    @property
    def is_running(self) -> bool:
        """The connector and at least one task run, and nothing else than running tasks exists."""
        return self.state == "RUNNING" and set(self.tasks) == {"RUNNING"}

    @property
    def has_failed(self) -> bool:
        """The connector or one of its tasks has given up; `trace` says why."""
        return "FAILED" in (self.state, *self.tasks)


class ConnectServer:
    """A standalone Connect worker; its offsets survive `stop` and `start`, its connectors are registered again.

    Args:
        folder: where offsets, settings and log live; made if absent.
        port: of the REST API.
        bootstrap_servers: the Kafka it writes to.
        max_message_bytes: the largest message it sends.
        plugins: the sets of jars that hold its connectors.
        heap: the JVM's `-Xmx`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int,
        bootstrap_servers: str,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
        plugins: Sequence[str] = (jars.DEBEZIUM_POSTGRES,),
        heap: str = "512m",
    ) -> None:
        self.folder = folder
        self.port = port
        self.bootstrap_servers = bootstrap_servers
        self.max_message_bytes = max_message_bytes
        self.plugins = tuple(plugins)
        self.heap = heap
        self.process: ServerProcess | None = None

    @property
    def url(self) -> str:
        """Root of the REST API."""
        return f"http://{LOOPBACK}:{self.port}"

    def start(self, *, wait: bool = True) -> None:
        """Starts the worker; Kafka must be up. `wait=False` returns before it is ready (see `wait_ready`)."""
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = self.folder / "worker.properties"
        settings.write_text(
            _SETTINGS.format(
                bootstrap_servers=self.bootstrap_servers,
                host=LOOPBACK,
                port=self.port,
                folder=self.folder,
                # Apicurio's converter does not say of itself that it is one; looking through all classes takes longer.
                discovery="hybrid_warn" if jars.AVRO_CONVERTER in self.plugins else "service_load",
                plugins=",".join(str(self._plugin_path(plugin)) for plugin in self.plugins),
                max_message_bytes=self.max_message_bytes,
            ),
            encoding="utf-8",
        )
        command = [
            *(str(java_executable()), f"-Xmx{self.heap}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            *("-cp", f"{jars.install(jars.KAFKA)}/*"),
            *("org.apache.kafka.connect.cli.ConnectStandalone", str(settings)),
        ]
        self.process = ServerProcess("Kafka Connect", command, log=self.folder / "connect.log", cwd=self.folder)
        if wait:
            self.wait_ready()

    def _plugin_path(self, plugin: str) -> Path:
        """Return a folder of plugins: of jars that lie side by side Connect would take each for one of its own."""
        found = jars.install(plugin)
        if not any(found.glob("*.jar")):
            return found
        link = self.folder / "plugins" / plugin / plugin
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(found)
        return link.parent

    def wait_ready(self, *, timeout: float = 90.0) -> None:
        """Returns once the REST API answers."""
        if self.process is not None:
            self.process.wait_until(self._answers, timeout=timeout)

    def stop(self) -> None:
        """Stops the worker and so its connectors, after they flushed their offsets."""
        if self.process is not None:
            self.process.stop()
            self.process = None

    def register(self, name: str, config: Mapping[str, str], *, timeout: float = 60.0) -> None:
        """Creates or changes a connector and returns once it and its task run.

        Raises:
            SetupError: the worker refuses the configuration, or the connector fails or does not start in time.
        """
        self._call("PUT", f"/connectors/{quote(name)}/config", dict(config))
        deadline = time.monotonic() + timeout
        while not (status := self.status(name)).is_running:
            if status.has_failed or time.monotonic() > deadline:
                raise SetupError(f"Cannot start connector {name}: {status.state} {status.tasks}\n{status.trace}")
            time.sleep(0.05)

    def delete(self, name: str) -> None:
        """Removes a connector; its replication slot and its offsets stay."""
        self._call("DELETE", f"/connectors/{quote(name)}")

    def forget(self, name: str) -> None:
        """Removes a connector and its offsets: whoever is registered under this name next begins with a snapshot."""
        self._call("PUT", f"/connectors/{quote(name)}/stop")
        deadline = time.monotonic() + 60.0
        while self.status(name).state != "STOPPED":
            if time.monotonic() > deadline:
                raise SetupError(f"Cannot stop connector {name}: it is still {self.status(name).state}")
            time.sleep(0.05)
        self._call("DELETE", f"/connectors/{quote(name)}/offsets")
        self.delete(name)

    def status(self, name: str) -> ConnectorStatus:
        """The state of a connector; UNASSIGNED while the worker has not taken it up."""
        try:
            answer = self._call("GET", f"/connectors/{quote(name)}/status")
        except LookupError:
            return ConnectorStatus(state="UNASSIGNED", tasks=(), trace="")
        parts = (answer["connector"], *answer["tasks"])
        return ConnectorStatus(
            state=answer["connector"]["state"],
            tasks=tuple(task["state"] for task in answer["tasks"]),
            trace="\n".join(part["trace"] for part in parts if "trace" in part),
        )

    def _answers(self) -> bool:
        try:
            self._call("GET", "/connectors")
        except (SetupError, LookupError):
            return False
        return True

    def _call(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        """One REST call; LookupError for what the worker does not know."""
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(
            self.url + path, data, headers={"Content-Type": "application/json"}, method=method
        )
        try:
            with _HTTP.open(request, timeout=30) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            detail = error.read().decode(errors="replace")
            if error.code == 404:
                raise LookupError(detail) from None
            raise SetupError(f"Cannot {method} {path} on Kafka Connect: {error.code} {detail}") from None
        except OSError as error:
            raise SetupError(f"Cannot reach Kafka Connect at {self.url}: {error}") from None
        return json.loads(text) if text else None
