"""What to ask a registry for, in the protocols they speak.

Sources: Confluent schema-registry, `SchemasResource`, `SubjectVersionsResource`; Apicurio Registry, core API v3 and v2,
and answers of a running 3.3.3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol
from urllib.parse import quote

from cdc_sync.core.debezium.avro_references import inline
from cdc_sync.core.debezium.wireids import WireId
from cdc_sync.errors import WireError
from cdc_sync.sources.registry.http import NoAnswer, NoSuchPath, RegistryHttp

_MOST_REFERENCES = 100
_DEFAULT_GROUP = "default"


class Api(Protocol):
    """A protocol."""

    def schema(self, id_: WireId) -> str:
        """Return the schema with this id, its references put in.

        Raises:
            WireError: if it is not Avro, or an id of another registry.
            NoSuchSchema, NoSuchPath, NoAnswer, RegistryUnavailable: see `RegistryHttp.get`.
        """
        ...


class ConfluentApi:
    """Confluent's protocol, which others speak too."""

    def __init__(self, http: RegistryHttp) -> None:
        self._http = http

    def schema(self, id_: WireId) -> str:
        """See `Api`."""
        if id_.kind not in ("confluent", "guid"):
            raise WireError(
                f"Cannot read Avro with schema {id_}: that is an id of Apicurio's own; set registry.type to apicurio"
            )
        path = f"/schemas/guids/{id_.value}" if id_.kind == "guid" else f"/schemas/ids/{id_.value}"
        document = self._document(path, id_)
        references: dict[str, str] = {}
        self._collect(document, id_, references)
        return inline(str(document["schema"]), references)

    def _document(self, path: str, id_: WireId) -> dict[str, Any]:
        document = _json(self._http.get(path))
        if not isinstance(document, dict) or not isinstance(document.get("schema"), str):
            raise NoAnswer(f"the answer for {path} holds no schema")
        kind = document.get("schemaType") or "AVRO"
        if kind != "AVRO":
            raise WireError(f"Cannot read record with schema {id_}: the registry says that it is {kind}, not Avro")
        return document

    def _collect(self, document: dict[str, Any], id_: WireId, references: dict[str, str]) -> None:
        for reference in _objects(document.get("references")):
            subject, version = quote(str(reference.get("subject")), safe=""), reference.get("version")
            path = f"/subjects/{subject}/versions/{version}"
            if path not in references:
                found = self._document(path, id_)
                _add(references, path, str(found["schema"]), id_)
                self._collect(found, id_, references)


class ApicurioApi:
    """Apicurio's own protocol: version 3, else 2."""

    def __init__(self, http: RegistryHttp) -> None:
        self._http = http

    def schema(self, id_: WireId) -> str:
        """See `Api`."""
        if id_.kind not in ("content", "global"):
            # Its default there is the content id, as in its own protocol.
            return ConfluentApi(self._http.below("/apis/ccompat/v7")).schema(id_)
        try:
            return self._schema(self._http.below("/apis/registry/v3"), id_, content="/content")
        except NoSuchPath:
            return self._schema(self._http.below("/apis/registry/v2"), id_, content="")

    def _schema(self, http: RegistryHttp, id_: WireId, *, content: str) -> str:
        path = f"/ids/{id_.kind}Ids/{id_.value}"
        text = _text(http.get(path), id_)
        references: dict[str, str] = {}
        self._collect(http, path, content, id_, references)
        return inline(text, references)

    def _collect(self, http: RegistryHttp, path: str, content: str, id_: WireId, references: dict[str, str]) -> None:
        try:
            named = _objects(_json(http.get(f"{path}/references")))
        except NoSuchPath:  # versions before 2.2 know no references
            return
        for reference in named:
            parts = (reference.get("groupId") or _DEFAULT_GROUP, reference.get("artifactId"), reference.get("version"))
            group, artifact, version = (quote(str(part), safe="") for part in parts)
            place = f"/groups/{group}/artifacts/{artifact}/versions/{version}"
            if place not in references:
                _add(references, place, _text(http.get(f"{place}{content}"), id_), id_)
                self._collect(http, place, content, id_, references)


def _add(references: dict[str, str], place: str, text: str, id_: WireId) -> None:
    if len(references) >= _MOST_REFERENCES:
        raise WireError(f"Cannot read Avro with schema {id_}: it refers to more than {_MOST_REFERENCES} schemas")
    references[place] = text


def _objects(value: object) -> Iterator[dict[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise NoAnswer("the answer is not JSON") from None


def _text(data: bytes, id_: WireId) -> str:
    """Return a schema that is sent bare, with nothing that says what it is."""
    if data.lstrip().startswith(b"<"):
        raise NoAnswer("the answer is a page, not a schema")
    try:
        text = data.decode()
        json.loads(text)
    except (ValueError, RecursionError):
        raise WireError(f"Cannot read record with schema {id_}: what the registry holds is not Avro") from None
    return text
