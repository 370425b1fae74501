"""Against a real Apicurio Registry, which speaks Confluent's protocol and two of its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import stamina

from cdc_sync.config import Registry
from cdc_sync.core.debezium.avro import connect_schema
from cdc_sync.core.debezium.wireids import IdKind, WireId
from cdc_sync.errors import RegistryUnavailable, SetupError, WireError
from cdc_sync.local.ports import free_ports
from cdc_sync.sources.registry import SchemaRegistry
from tests.corpus.reader import schemas, topics
from tests.registry import server as local_registry
from tests.registry.ccompat import register
from tests.registry.server import RegistryServer
from tests.registry.servers import confluent_registry
from tests.registry.test_registry import INNER, OUTER, REFERENCES

pytestmark = pytest.mark.kafka


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=2):
        yield


def registry(url: str, root: Path, **more: object) -> SchemaRegistry:
    settings = {"url": url, "timeout": timedelta(seconds=10), "attempts": 2, **more}
    return SchemaRegistry(Registry.model_validate(settings), str(root))


def of_its_own(apicurio: RegistryServer, root: Path, **more: object) -> SchemaRegistry:
    return registry(apicurio.url, root, type="apicurio", **more)


def test_every_captured_record_finds_its_schema(apicurio: RegistryServer, tmp_path: Path) -> None:
    found = registry(apicurio.confluent_url, tmp_path)
    seen = 0
    for capture in ("postgres-avro", "mariadb-avro"):
        for messages in topics(capture).values():
            for data in (data for message in messages for data in (message.key, message.value) if data):
                located = found.find_id(data, (), "value")
                assert located is not None
                assert found.schema(located[0]) == schemas(capture)[int(located[0].value)]
                seen += 1
    assert seen == 751 + 712


@pytest.mark.parametrize("ids", ["content", "global"])
@pytest.mark.parametrize("api", ["", "/", "/apis/registry/v3", "/apis/registry/v2/"])
def test_its_own_protocol_gives_the_same(apicurio: RegistryServer, tmp_path: Path, ids: IdKind, api: str) -> None:
    found = registry(f"{apicurio.url}{api}", tmp_path, type="apicurio", ids=ids)
    located = found.find_id(b"\0\0\0\0\x02", (), "value")
    assert located == (WireId(kind=ids, value=2), 5)
    # Every captured schema was registered once, so both kinds of id count alike.
    assert found.schema(located[0]) == schemas("postgres-avro")[2]
    assert (tmp_path / "registry" / f"{ids}-2.json").is_file()


def test_an_id_of_confluents_form_is_asked_for_in_confluents_protocol(apicurio: RegistryServer, tmp_path: Path) -> None:
    found = of_its_own(apicurio, tmp_path, headers=True)
    located = found.find_id(b"", [("__value_schema_id", b"\0\0\0\0\x02")], "value")
    assert located is not None
    assert found.schema(located[0]) == schemas("postgres-avro")[2]


@pytest.mark.parametrize("kind", ["confluent", "content", "global"])
def test_references_are_put_in(apicurio: RegistryServer, tmp_path: Path, kind: IdKind) -> None:
    register(apicurio.confluent_url, "inner", INNER)
    outer = register(apicurio.confluent_url, "outer", OUTER, references=REFERENCES)
    found = of_its_own(apicurio, tmp_path).schema(WireId(kind=kind, value=outer))
    assert connect_schema(found).members[0].name == "a.Inner"


@pytest.mark.parametrize("kind", ["confluent", "content", "global"])
def test_an_id_it_does_not_know_is_refused(apicurio: RegistryServer, tmp_path: Path, kind: IdKind) -> None:
    with pytest.raises(WireError, match=f"schema {kind}-99999: the registry at .* does not know it"):
        of_its_own(apicurio, tmp_path).schema(WireId(kind=kind, value=99999))


@pytest.mark.parametrize("kind", ["confluent", "content"])
@pytest.mark.parametrize(
    ("type_", "schema"),
    [
        ("PROTOBUF", 'syntax = "proto3"; message M { int32 x = 1; }'),
        ("JSON", '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}'),
    ],
)
def test_what_is_not_avro_is_refused(
    apicurio: RegistryServer, tmp_path: Path, kind: IdKind, type_: str, schema: str
) -> None:
    id_ = register(apicurio.confluent_url, f"other-{type_}", schema, kind=type_)
    with pytest.raises(WireError, match="Cannot read"):
        of_its_own(apicurio, tmp_path).schema(WireId(kind=kind, value=id_))


def test_an_address_without_the_api_is_said_so(apicurio: RegistryServer, tmp_path: Path) -> None:
    with pytest.raises(RegistryUnavailable, match="Apicurio speaks Confluent's protocol below /apis/ccompat/v7"):
        registry(apicurio.url, tmp_path).schema(WireId(kind="confluent", value=1))


def test_a_registry_that_is_gone_is_not_missed_for_what_is_known(apicurio: RegistryServer, tmp_path: Path) -> None:
    port, management_port = free_ports(2)
    server = RegistryServer(tmp_path / "server", port=port, management_port=management_port)
    server.start()  # a second one: the other tests need the first
    id_ = WireId(kind="confluent", value=register(server.confluent_url, "inner", INNER))
    assert registry(server.confluent_url, tmp_path).schema(id_) == INNER
    server.stop()

    again = registry(server.confluent_url, tmp_path)
    assert again.schema(id_) == INNER
    with pytest.raises(RegistryUnavailable, match="Connection refused"):
        again.schema(WireId(kind="confluent", value=2))


def test_the_small_one_stands_in_where_it_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java(_: int) -> Path:
        raise SetupError("no Java")

    monkeypatch.setattr(local_registry, "java_executable_from", no_java)
    with confluent_registry(tmp_path / "server") as url:
        found = registry(url, tmp_path).schema(WireId(kind="confluent", value=2))
        assert found == schemas("postgres-avro")[2]
