"""A Kafka broker on this machine: one KRaft node, broker and controller in one small JVM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from cdc_sync.local import jars
from cdc_sync.local.java import java_executable
from cdc_sync.local.ports import LOOPBACK, accepts_connections, free_ports
from cdc_sync.local.process import ServerProcess

DEFAULT_MAX_MESSAGE_BYTES = 20 * 1024 * 1024

_SETTINGS = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.quorum.voters=1@{host}:{controller_port}
log.dirs={data}
num.partitions={partitions}
message.max.bytes={max_message_bytes}
replica.fetch.max.bytes={max_message_bytes}
log.retention.ms=-1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""
# What the storage tool would write; a JVM start is saved by writing it here. With a static quorum nothing else
# is needed: the controller starts at the newest metadata version.
_META = "version=1\ncluster.id=kQF3h2VbQ8yJ1c2Wn0aZ5g\nnode.id=1\ndirectory.id=Wn0aZ5gkQF3h2VbQ8yJ1cg\n"


class KafkaServer:
    """A single-node Kafka whose data, and so its topics, survive `stop` and `start` in the same folder.

    Args:
        folder: where data, settings and log live; made if absent.
        port: the port clients use.
        controller_port: the port of the internal quorum.
        partitions: of topics made without saying how many.
        max_message_bytes: the largest record batch accepted.
        heap: the JVM's `-Xmx`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int,
        controller_port: int,
        partitions: int = 1,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
        heap: str = "384m",
    ) -> None:
        self.folder = folder
        self.port = port
        self.controller_port = controller_port
        self.partitions = partitions
        self.max_message_bytes = max_message_bytes
        self.heap = heap
        self.process: ServerProcess | None = None

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to."""
        return f"{LOOPBACK}:{self.port}"

    def start(self, *, wait: bool = True) -> None:
        """Starts the broker; with `wait=False` returns before it is ready (see `wait_ready`)."""
        settings = self._write_settings()
        command = [
            *(str(java_executable()), f"-Xmx{self.heap}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            *("-cp", f"{jars.install(jars.KAFKA)}/*", "kafka.Kafka", str(settings)),
        ]
        self.process = ServerProcess("Kafka", command, log=self.folder / "kafka.log", cwd=self.folder)
        if wait:
            self.wait_ready()

    def wait_ready(self, *, timeout: float = 90.0) -> None:
        """Returns once the broker answers metadata requests."""
        if self.process is not None:
            self.process.wait_until(self._answers, timeout=timeout)

    def stop(self) -> None:
        """Stops the broker in good order; its data stays."""
        if self.process is not None:
            self.process.stop()
            self.process = None

    def _answers(self) -> bool:
        if not accepts_connections(self.port):
            return False
        try:
            client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
            return bool(client.list_topics(timeout=5).brokers)
        except KafkaException:
            return False

    def _write_settings(self) -> Path:
        data = self.folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        if not (meta := data / "meta.properties").is_file():
            meta.write_text(_META, encoding="utf-8")
        settings = self.folder / "server.properties"
        settings.write_text(
            _SETTINGS.format(
                host=LOOPBACK,
                port=self.port,
                controller_port=self.controller_port,
                data=data,
                partitions=self.partitions,
                max_message_bytes=self.max_message_bytes,
            ),
            encoding="utf-8",
        )
        return settings


@contextmanager
def running_kafka(folder: Path) -> Iterator[KafkaServer]:
    """Have a broker on free ports, whose data lie in the folder; it is stopped at the end."""
    port, controller_port = free_ports(2)
    server = KafkaServer(folder, port=port, controller_port=controller_port)
    server.start()
    try:
        yield server
    finally:
        server.stop()
