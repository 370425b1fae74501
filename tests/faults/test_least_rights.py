"""The rights in Kafka that docs/security.md names are enough for a job, and each of them is needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

import cdc_sync
from cdc_sync.config import Config
from cdc_sync.errors import CdcSyncError
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.local.ports import free_ports
from cdc_sync.runtime.reports import RunReport
from cdc_sync.sources.kafka import KafkaClient
from cdc_sync.testing import DATE, INT32, SourceTable, column
from tests.faults.pipeline import Pipeline

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]

_LOGGED_IN = """
listeners=SASL_PLAINTEXT://{host},CONTROLLER://{controller}
advertised.listeners=SASL_PLAINTEXT://{host}
listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
username="admin" password="admin" user_admin="admin" user_app="app";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:ANONYMOUS
"""
_TOPIC, _DEAD = "rights.public.orders", "rights-dead"


def _as(user: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": user,
    }


@dataclass(frozen=True)
class Right:
    operation: str
    on: str
    name: str

    def __str__(self) -> str:
        return f"{self.operation} {self.on} {self.name}"


RIGHTS = (Right("READ", "TOPIC", _TOPIC), Right("READ", "GROUP", "cdc-sync-"), Right("WRITE", "TOPIC", _DEAD))
ASKS = Right("DESCRIBE_CONFIGS", "TOPIC", _TOPIC)


class GuardedKafka(KafkaServer):
    """A broker that lets everybody do only what they have a right to."""

    def _write_settings(self) -> Path:
        path = super()._write_settings()
        host, controller = f"127.0.0.1:{self.port}", f"127.0.0.1:{self.controller_port}"
        kept = [line for line in path.read_text().splitlines() if not re.match(r"(advertised\.)?listener", line)]
        path.write_text("\n".join(kept) + _LOGGED_IN.format(host=host, controller=controller))
        return path

    def _answers(self) -> bool:
        try:
            return bool(self.admin.list_topics(timeout=5).brokers)
        except KafkaException:
            return False

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0, **_as("admin")})

    def grant(self, right: Right) -> None:
        binding = AclBinding(
            ResourceType[right.on],
            right.name,
            ResourcePatternType.LITERAL if right.on == "TOPIC" else ResourcePatternType.PREFIXED,
            "User:app",
            "*",
            AclOperation[right.operation],
            AclPermissionType.ALLOW,
        )
        for answer in self.admin.create_acls([binding]).values():
            answer.result()

    def revoke_all(self) -> None:
        everything = AclBindingFilter(
            ResourceType.ANY,
            cast(str, None),
            ResourcePatternType.ANY,
            "User:app",
            "*",
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        for answer in self.admin.delete_acls([everything]).values():
            answer.result()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    port, controller_port = free_ports(2)
    server = GuardedKafka(tmp_path_factory.mktemp("guarded"), port=port, controller_port=controller_port)
    server.start()
    table = SourceTable(
        "orders", [column("id", INT32, optional=False), column("day", DATE)], prefix="rights", null_is_default=False
    )
    table.insert(id=1, day=19_000)
    table.insert(id=2, day=99_999_999)
    for answer in server.admin.create_topics([NewTopic(_TOPIC, 1, 1), NewTopic(_DEAD, 1, 1)]).values():
        answer.result()
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, **_as("admin")})
    for record in table.records:
        producer.produce(_TOPIC, record.value, record.key)
    producer.flush(30)
    yield server
    server.stop()


def _run(guarded: GuardedKafka, folder: Path, run_once: Callable[[Config], RunReport]) -> tuple[Pipeline, int]:
    """Run a job with the rights that there are; return its exit code."""
    lake = Pipeline(
        folder=folder,
        servers=guarded.bootstrap_servers,
        prefix="rights",
        run_once=run_once,
        settings=f"dead_letters: {{topic: {_DEAD}}}",
        kafka=f"properties: {_as('app')}, attempts: 1, request_timeout: 3s",
    )
    try:
        return lake, lake.run().exit_code
    except CdcSyncError as error:
        return lake, error.exit_code


def test_they_are_enough(guarded: GuardedKafka, tmp_path: Path, run_once: Callable[[Config], RunReport]) -> None:
    guarded.revoke_all()
    for right in RIGHTS:
        guarded.grant(right)

    lake, code = _run(guarded, tmp_path, run_once)

    assert code == 0
    assert [row["id"] for row in lake.read(lake.statuses()["orders"].table).to_pylist()] == [1]
    status = cdc_sync.status(lake.config)
    assert status.kafka_problem is None
    assert [line.lag for line in status.tables] == [0]
    kafka = KafkaClient(lake.config.kafka)
    with pytest.raises(CdcSyncError, match="authorization failed"):
        kafka.retention([_TOPIC])
    guarded.grant(ASKS)
    assert kafka.retention([_TOPIC]) == {_TOPIC: None}


@pytest.mark.parametrize("missing", RIGHTS, ids=str)
def test_each_is_needed(
    guarded: GuardedKafka, tmp_path: Path, run_once: Callable[[Config], RunReport], missing: Right
) -> None:
    guarded.revoke_all()
    for right in RIGHTS:
        if right != missing:
            guarded.grant(right)

    _, code = _run(guarded, tmp_path, run_once)

    assert code != 0, "a job that lacks a right says so"
