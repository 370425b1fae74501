"""Schemas by id: from the registry the first time, from the pipeline's own files ever after."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
import stamina

from cdc_sync.config import Registry
from cdc_sync.core.debezium.avro import connect_schema
from cdc_sync.core.debezium.wireids import IdKind, WireId
from cdc_sync.errors import ConfigError, HistoryError, RegistryUnavailable, TransientError, WireError
from cdc_sync.sources.registry import SchemaRegistry
from tests.corpus.reader import schemas
from tests.registry.ccompat import Answer, SmallRegistry, register

GUID = "89791762-2336-4186-9674-299b90a802e2"
INNER = '{"type":"record","name":"Inner","namespace":"a","fields":[{"name":"x","type":"int"}]}'
OUTER = '{"type":"record","name":"Outer","namespace":"b","fields":[{"name":"y","type":"a.Inner"}]}'
REFERENCES = [{"name": "a.Inner", "subject": "inner", "version": 1}]


def number(value: int | str, kind: IdKind = "confluent") -> WireId:
    return WireId(kind=kind, value=value)


def settings(url: str, **more: object) -> Registry:
    return Registry.model_validate({"url": url, "timeout": timedelta(seconds=2), "attempts": 3, **more})


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=3):
        yield


@pytest.fixture
def registry(small: SmallRegistry, tmp_path: Path) -> SchemaRegistry:
    return SchemaRegistry(settings(small.confluent_url), str(tmp_path))


def test_every_captured_schema_is_found_under_the_id_in_its_records(
    registry: SchemaRegistry, small: SmallRegistry
) -> None:
    for capture in ("postgres-avro", "mariadb-avro"):
        for id_, text in schemas(capture).items():
            assert registry.schema(number(id_)) == text
    assert len(small.asked) == 171 + 146


def test_a_schema_is_asked_for_once(registry: SchemaRegistry, small: SmallRegistry) -> None:
    assert registry.schema(number(1)) == registry.schema(number(1))
    assert small.asked == ["/schemas/ids/1"]


def test_an_outage_stops_only_ids_never_seen(small: SmallRegistry, tmp_path: Path) -> None:
    before = SchemaRegistry(settings(small.confluent_url), str(tmp_path))
    known = before.schema(number(1))
    small.stop()

    after = SchemaRegistry(settings(small.confluent_url), str(tmp_path))
    for registry in (before, after):
        assert registry.schema(number(1)) == known
        with pytest.raises(RegistryUnavailable, match=r"^Cannot get schema confluent-2: no usable answer .* in 3 att"):
            registry.schema(number(2))

    small.start()
    assert after.schema(number(2)) == schemas("postgres-avro")[2]


def test_a_registry_that_said_nothing_gets_one_try_until_it_speaks(small: SmallRegistry, tmp_path: Path) -> None:
    registry = SchemaRegistry(settings(small.confluent_url), str(tmp_path))
    for id_ in (1, 2, 3):
        small.answers[f"/schemas/ids/{id_}"] = Answer(503)
        with pytest.raises(RegistryUnavailable):
            registry.schema(number(id_))
    assert len(small.asked) == 3 + 1 + 1

    registry.schema(number(4))
    small.asked.clear()
    with pytest.raises(RegistryUnavailable):
        registry.schema(number(1))
    assert len(small.asked) == 3


def test_ids_that_somebody_made_up_hold_up_nobody(small: SmallRegistry, tmp_path: Path) -> None:
    registry = SchemaRegistry(settings(small.confluent_url), str(tmp_path))
    for id_ in range(100):
        with pytest.raises(WireError, match="does not know it"):
            registry.schema(number(1_000_000 + id_))
    assert len(small.asked) == 20 * 3 + 80
    assert registry.schema(number(1)) == schemas("postgres-avro")[1]


def test_without_a_registry_no_record_has_an_id(tmp_path: Path) -> None:
    registry = SchemaRegistry(None, str(tmp_path))
    assert registry.find_id(b"\0\0\0\0\x01", (), "value") is None
    with pytest.raises(WireError, match="no registry is configured"):
        registry.schema(number(1))


@pytest.mark.parametrize(("headers", "expected"), [(True, "confluent-2"), (False, "confluent-1")])
def test_ids_are_found_as_configured(tmp_path: Path, headers: bool, expected: str) -> None:
    registry = SchemaRegistry(settings("http://127.0.0.1:9", headers=headers), str(tmp_path))
    found = registry.find_id(b"\0\0\0\0\x01", [("__value_schema_id", b"\0\0\0\0\x02")], "value")
    assert found is not None
    assert str(found[0]) == expected


class TestAnswers:
    def test_an_id_it_does_not_know_is_asked_for_again_and_then_refused(
        self, registry: SchemaRegistry, small: SmallRegistry
    ) -> None:
        with pytest.raises(WireError, match=r"schema confluent-999: the registry at http://127.0.0.1:\d+ does not kno"):
            registry.schema(number(999))
        assert small.asked == ["/schemas/ids/999"] * 3

    def test_a_schema_that_comes_late_is_found(
        self, registry: SchemaRegistry, small: SmallRegistry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = small.documents.pop(1)["schema"]
        answer = small.answer

        def late(path: str) -> object:
            """Answer, and know the schema from then on."""
            given = answer(path)
            small.documents[1] = {"schema": text}
            return given

        monkeypatch.setattr(small, "answer", late)
        assert registry.schema(number(1)) == text
        assert len(small.asked) == 2

    @pytest.mark.parametrize("kind", ["PROTOBUF", "JSON"])
    def test_what_is_not_avro_is_refused(self, registry: SchemaRegistry, small: SmallRegistry, kind: str) -> None:
        small.documents[1]["schemaType"] = kind
        with pytest.raises(WireError, match=f"the registry says that it is {kind}, not Avro"):
            registry.schema(number(1))

    def test_avro_that_cannot_be_read_is_refused_and_not_kept(
        self, registry: SchemaRegistry, small: SmallRegistry, tmp_path: Path
    ) -> None:
        small.documents[1]["schema"] = '["int","string"]'
        with pytest.raises(WireError, match="a union is not one type"):
            registry.schema(number(1))
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        "answer",
        [Answer(500), Answer(429), Answer(200, b"<html>"), Answer(200, b"[]"), Answer(200, b'{"schema":1}')],
        ids=["500", "429", "a page", "a list", "a number"],
    )
    def test_an_answer_that_makes_no_sense_is_none(
        self, registry: SchemaRegistry, small: SmallRegistry, answer: Answer
    ) -> None:
        small.answers["/schemas/ids/1"] = answer
        with pytest.raises(RegistryUnavailable):
            registry.schema(number(1))
        assert len(small.asked) == 3

    @pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"name":"NotFoundException"}', b"[" * 100_000])
    def test_a_page_that_is_not_there_is_no_answer_about_a_schema(
        self, registry: SchemaRegistry, small: SmallRegistry, body: bytes
    ) -> None:
        small.answers["/schemas/ids/1"] = Answer(404, body)
        with pytest.raises(RegistryUnavailable, match=r"no answer of such a registry; check registry\.url"):
            registry.schema(number(1))

    @pytest.mark.parametrize("status", [401, 403])
    def test_a_refused_login_is_not_repeated(self, registry: SchemaRegistry, small: SmallRegistry, status: int) -> None:
        small.answers["/schemas/ids/1"] = Answer(status)
        with pytest.raises(RegistryUnavailable, match=f"it refuses the log-in \\({status}"):
            registry.schema(number(1))
        assert len(small.asked) == 1

    def test_guids_and_references(self, registry: SchemaRegistry, small: SmallRegistry) -> None:
        register(small.confluent_url, "inner", INNER)
        small.guids[GUID] = register(small.confluent_url, "outer", OUTER, references=REFERENCES)
        found = registry.schema(number(GUID, "guid"))
        assert connect_schema(found).members[0].name == "a.Inner"
        assert small.asked == [f"/schemas/guids/{GUID}", "/subjects/inner/versions/1"]

    @pytest.mark.parametrize("kind", ["content", "global"])
    def test_apicurios_ids_need_apicurios_type(self, registry: SchemaRegistry, kind: IdKind) -> None:
        with pytest.raises(WireError, match=r"set registry\.type to apicurio"):
            registry.schema(number(1, kind))


class TestFiles:
    def test_one_file_for_each_id(self, registry: SchemaRegistry, tmp_path: Path) -> None:
        text = registry.schema(number(1))
        assert json.loads((tmp_path / "registry" / "confluent-1.json").read_text()) == {"format": 1, "schema": text}

    def test_what_another_process_wrote_first_wins(self, small: SmallRegistry, tmp_path: Path) -> None:
        one, other = (SchemaRegistry(settings(small.confluent_url), str(tmp_path)) for _ in range(2))
        assert one._keep(number(1), '"int"') == '"int"'
        assert other._keep(number(1), '"long"') == '"int"'

    @pytest.mark.parametrize("text", ["", "{}", "[]", "\udcff"])
    def test_a_damaged_file_is_said_so(self, registry: SchemaRegistry, tmp_path: Path, text: str) -> None:
        (tmp_path / "registry").mkdir()
        (tmp_path / "registry" / "confluent-1.json").write_text(text, errors="surrogateescape")
        with pytest.raises(HistoryError, match=r"registry/confluent-1.json: .*; delete the file, the registry has it"):
            registry.schema(number(1))

    def test_a_file_of_another_format_is_said_so(self, registry: SchemaRegistry, tmp_path: Path) -> None:
        (tmp_path / "registry").mkdir()
        (tmp_path / "registry" / "confluent-1.json").write_text('{"format": 2}')
        with pytest.raises(HistoryError, match="it is of another format; update cdc_sync"):
            registry.schema(number(1))

    def test_files_that_cannot_be_had_are_a_passing_trouble(self, small: SmallRegistry, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        registry = SchemaRegistry(settings(small.confluent_url), str(tmp_path / "file"))
        with pytest.raises(TransientError, match="Cannot use registry schemas in"):
            registry.schema(number(1))

    def test_many_threads_get_the_same(self, small: SmallRegistry, tmp_path: Path) -> None:
        registry = SchemaRegistry(settings(small.confluent_url), str(tmp_path))
        with ThreadPoolExecutor(8) as pool:
            found = set(pool.map(lambda _: registry.schema(number(1)), range(40)))
        assert found == {schemas("postgres-avro")[1]}


class TestLogin:
    def logins(
        self, small: SmallRegistry, tmp_path: Path, url: str | None = None, **properties: str
    ) -> set[str | None]:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        SchemaRegistry(settings(url or small.confluent_url, properties=named), str(tmp_path)).schema(number(1))
        return set(small.logins)

    def test_nobody(self, small: SmallRegistry, tmp_path: Path) -> None:
        assert self.logins(small, tmp_path) == {None}

    def test_user_and_password(self, small: SmallRegistry, tmp_path: Path) -> None:
        expected = {f"Basic {base64.b64encode(b'me:pass').decode()}"}
        assert self.logins(small, tmp_path, basic_auth_user_info="me:pass") == expected

    def test_user_and_password_in_the_url(self, small: SmallRegistry, tmp_path: Path) -> None:
        url = small.confluent_url.replace("//", "//me:p%40ss@")
        assert self.logins(small, tmp_path, url) == {f"Basic {base64.b64encode(b'me:p@ss').decode()}"}

    def test_a_token(self, small: SmallRegistry, tmp_path: Path) -> None:
        assert self.logins(small, tmp_path, bearer_auth_token="t0ken") == {"Bearer t0ken"}

    def test_no_other_host_is_asked_behind_a_redirection(self, small: SmallRegistry, tmp_path: Path) -> None:
        with SmallRegistry({1: '"int"'}) as other:
            target = f"{other.confluent_url}/schemas/ids/1"
            small.answers["/schemas/ids/1"] = Answer(302, headers=(("Location", target),))
            with pytest.raises(RegistryUnavailable, match="it redirects to http://127"):
                self.logins(small, tmp_path, bearer_auth_token="t0ken")
            assert other.logins == []

    @pytest.mark.parametrize("name", ["ssl.ca.location", "ssl.certificate.location"])
    def test_a_certificate_that_is_not_there_is_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(ConfigError, match="the certificates cannot be read"):
            SchemaRegistry(settings("https://h", properties={name: "/nowhere"}), str(tmp_path))
