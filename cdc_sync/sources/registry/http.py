"""Questions to a schema registry over HTTP: log-in, certificates, and what an answer means."""

from __future__ import annotations

import base64
import copy
import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from cdc_sync.errors import ConfigError, RegistryUnavailable

_ACCEPTED = "application/vnd.schemaregistry.v1+json, application/json"
_LARGEST_ANSWER = 64 * 1024 * 1024
_AT_ONCE = 64 * 1024
_TIMEOUTS = 3
"""As many timeouts a whole answer may take."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_BASIC = "basic.auth.user.info"
_TOKEN = "bearer.auth.token"
_HEADERS = {
    "bearer.auth.logical.cluster": "target-sr-cluster",
    "bearer.auth.identity.pool.id": "Confluent-Identity-Pool-Id",
}
_CA, _CERTIFICATE, _KEY, _KEY_PASSWORD = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
)


class NoSuchSchema(Exception):
    """The registry says that it has no such schema; never leaves `cdc_sync.sources.registry`."""


class NoSuchPath(Exception):
    """What answered does not know the question; never leaves `cdc_sync.sources.registry`."""


class NoAnswer(Exception):
    """A failure that may pass; never leaves `cdc_sync.sources.registry`."""


class _WithinTheHost(urllib.request.HTTPRedirectHandler):
    """Follows a redirection to the same host only: what another one answers is not what was configured."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Refuse another host, or the same without encryption."""
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        if after.netloc != before.netloc or (before.scheme == "https" and after.scheme != "https"):
            raise urllib.error.URLError(f"it redirects to {after.scheme}://{after.netloc}, which is not configured")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class RegistryHttp:
    """One registry, asked by GET. Thread-safe."""

    def __init__(self, url: str, *, timeout: timedelta, properties: Mapping[str, str]) -> None:
        """Prepare questions; nothing is sent yet.

        Args:
            url: root of the API; may hold user and password.
            timeout: of each connection and each read; the whole answer may take some times as long.
            properties: of `config.clientnames.REGISTRY`.

        Raises:
            ConfigError: if a certificate cannot be used.
        """
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        self.url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._timeout = timeout.total_seconds()
        self._headers = {_HEADERS[name]: f"{value}" for name, value in properties.items() if name in _HEADERS}
        self._login = _login(parts.username, parts.password, properties)
        handlers: list[urllib.request.BaseHandler] = [
            urllib.request.HTTPSHandler(context=_context(properties)),
            _WithinTheHost(),
        ]
        if parts.hostname in _LOOPBACK:
            # A proxy configured for the internet must not be asked for this machine.
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def below(self, path: str) -> RegistryHttp:
        """Return the same registry with a longer root."""
        return self._at(f"{self.url}{path}")

    def above(self, path: str) -> RegistryHttp:
        """Return the same registry with a root that ends before `path`, if the root holds it."""
        return self._at(self.url.partition(path)[0])

    def _at(self, url: str) -> RegistryHttp:
        other = copy.copy(self)
        other.url = url
        return other

    def get(self, path: str) -> bytes:
        """Return the answer to one question.

        Args:
            path: below the root, with its first slash.

        Raises:
            NoSuchSchema, NoSuchPath, NoAnswer: see there.
            RegistryUnavailable: if the registry refuses the log-in.
        """
        request = urllib.request.Request(f"{self.url}{path}", headers={"Accept": _ACCEPTED, **self._headers})
        if self._login:
            # Not repeated behind a redirection, which may lead to another host.
            request.add_unredirected_header("Authorization", self._login)
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                data = self._read(answer)
        except urllib.error.HTTPError as error:
            raise self._meaning(path, error) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise NoAnswer(f"{reason or type(error).__name__}") from None
        if len(data) > _LARGEST_ANSWER:
            raise NoAnswer(f"the answer is longer than {_LARGEST_ANSWER} bytes")
        return data

    def _read(self, answer: http.client.HTTPResponse) -> bytes:
        """Read an answer for no longer than a few timeouts, however slowly it drips, and no more than is used."""
        until, data = time.monotonic() + _TIMEOUTS * self._timeout, bytearray()
        while len(data) <= _LARGEST_ANSWER and (part := answer.read1(_AT_ONCE)):
            data += part
            if time.monotonic() > until:
                raise OSError(f"the answer took longer than {_TIMEOUTS * self._timeout:g} s")
        return bytes(data)

    def _meaning(self, path: str, error: urllib.error.HTTPError) -> Exception:
        with error:
            if error.code in (401, 403):
                return RegistryUnavailable(
                    f"Cannot use the registry at {self.url}: it refuses the log-in ({error.code} {error.reason}); "
                    "fix registry.properties"
                )
            if error.code != 404:
                return NoAnswer(f"{error.code} {error.reason}")
            try:
                data = error.read(_LARGEST_ANSWER)
            except (OSError, http.client.HTTPException):
                data = b""
        return NoSuchSchema() if _is_about_a_schema(data) else NoSuchPath(f"404 for {self.url}{path}")


def _is_about_a_schema(data: bytes) -> bool:
    """Tell "no such schema" from "no such page".

    Sources: Confluent, `Errors` (404nn: subject, version, schema); Apicurio, `ArtifactNotFoundException` and its like,
    whereas a page that is not there is a bare `NotFoundException`.
    """
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        return False
    if not isinstance(answer, dict):
        return False
    code, name = answer.get("error_code"), str(answer.get("name") or "")
    is_confluents = isinstance(code, int) and 40401 <= code <= 40499
    return is_confluents or (name.endswith("NotFoundException") and name != "NotFoundException")


def _login(user: str | None, password: str | None, properties: Mapping[str, str]) -> str | None:
    if token := properties.get(_TOKEN):
        return f"Bearer {token}"
    pair = properties.get(_BASIC) or (f"{unquote(user)}:{unquote(password or '')}" if user else None)
    return f"Basic {base64.b64encode(f'{pair}'.encode()).decode()}" if pair else None


def _context(properties: Mapping[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=properties.get(_CA))
        if certificate := properties.get(_CERTIFICATE):
            context.load_cert_chain(certificate, properties.get(_KEY), properties.get(_KEY_PASSWORD))
    except OSError as error:  # also ssl.SSLError
        raise ConfigError(f"Cannot use registry.properties: the certificates cannot be read: {error}") from error
    return context
