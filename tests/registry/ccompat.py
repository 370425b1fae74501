"""A small registry that speaks as much of Confluent's protocol as schemas need, for machines without Java 21.

Also the way to put schemas into any registry that speaks it.
"""

from __future__ import annotations

import json
import re
import threading
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple

from typing_extensions import Self

from cdc_sync.local.ports import LOOPBACK, free_ports

_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Answer(NamedTuple):
    """Something to send in place of what the registry holds."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class SmallRegistry:
    """Schemas by id on a free port of this machine, as a context manager.

    Attributes:
        documents: what it answers for an id.
        answers: path -> what to send instead.
        asked: every path it was asked for, in order; `logins` the Authorization headers that came with them.
    """

    def __init__(self, schemas: Mapping[int, str] | None = None) -> None:
        self.documents: dict[int, dict[str, Any]] = {id_: {"schema": text} for id_, text in (schemas or {}).items()}
        self.guids: dict[str, int] = {}
        self.subjects: dict[str, list[int]] = {}
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.logins: list[str | None] = []
        (self.port,) = free_ports(1)
        self._server: ThreadingHTTPServer | None = None

    @property
    def confluent_url(self) -> str:
        """Root of the API."""
        return f"http://{LOOPBACK}:{self.port}"

    def start(self) -> None:
        """Begin to answer, on the same port every time."""
        self._server = _Server((LOOPBACK, self.port), _handler(self))
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        """Answer nobody any more; the schemas stay."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def answer(self, path: str) -> Answer:
        """Say what a GET of this path gets."""
        if path in self.answers:
            return self.answers[path]
        if path == "/subjects":
            return _json(list(self.subjects))
        if found := re.fullmatch(r"/schemas/ids/(\d+)", path):
            return self._document(int(found[1]))
        if found := re.fullmatch(r"/schemas/guids/([0-9a-f-]{36})", path):
            return self._document(self.guids.get(found[1], -1))
        if found := re.fullmatch(r"/subjects/([^/]+)/versions/(\d+)", path):
            versions = self.subjects.get(found[1], [])
            return self._document(versions[int(found[2]) - 1] if int(found[2]) <= len(versions) else -1)
        return Answer(404, b"no such page")

    def register(self, subject: str, document: dict[str, Any]) -> Answer:
        """Give a schema an id, the same for the same schema."""
        known = next((id_ for id_, other in self.documents.items() if other == document), None)
        id_ = known if known is not None else max(self.documents, default=0) + 1
        self.documents[id_] = document
        self.subjects.setdefault(subject, []).append(id_)
        return _json({"id": id_})

    def _document(self, id_: int) -> Answer:
        if id_ in self.documents:
            return _json(self.documents[id_])
        return _json({"error_code": 40403, "message": f"Schema {id_} not found"}, status=404)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


def _handler(registry: SmallRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked.append(self.path)
            registry.logins.append(self.headers["Authorization"])
            self._send(registry.answer(self.path))

        def do_POST(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(registry.register(self.path.split("/")[2], document))

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    return Handler


def _json(value: object, *, status: int = 200) -> Answer:
    return Answer(status, json.dumps(value).encode(), (("Content-Type", _CONTENT_TYPE),))


def register(
    confluent_url: str,
    subject: str,
    schema: str,
    *,
    references: Sequence[Mapping[str, object]] = (),
    kind: str = "AVRO",
) -> int:
    """Put a schema into a registry and return its id; the same schema keeps its id."""
    document: dict[str, Any] = {"schema": schema}
    if references:
        document["references"] = list(references)
    if kind != "AVRO":
        document["schemaType"] = kind
    request = urllib.request.Request(
        f"{confluent_url}/subjects/{subject}/versions",
        data=json.dumps(document).encode(),
        headers={"Content-Type": _CONTENT_TYPE},
    )
    with _HTTP.open(request, timeout=30) as answer:
        return int(json.loads(answer.read())["id"])


def register_in_order(confluent_url: str, schemas: Iterable[tuple[int, str]]) -> dict[int, int]:
    """Put captured schemas into a registry; return the id each has now, by the id it had.

    An empty registry counts from 1, so both Avro captures together, ordered by id, keep their ids.
    """
    return {id_: register(confluent_url, f"captured-{id_}", text) for id_, text in sorted(schemas)}
