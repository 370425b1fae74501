"""Schemas by id: asked of the registry once, then kept for ever in the pipeline's own files.

Below the pipeline's root (a folder or an object-store URL)::

    registry/<id>.json      one schema, such as registry/confluent-17.json
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Literal, Protocol

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError

from cdc_sync.core.debezium.avro import connect_schema
from cdc_sync.core.debezium.wireids import WireId, find_id
from cdc_sync.errors import HistoryError, RegistryUnavailable, TransientError, WireError
from cdc_sync.sources.registry.apis import ApicurioApi, ConfluentApi
from cdc_sync.sources.registry.http import NoAnswer, NoSuchPath, NoSuchSchema, RegistryHttp
from cdc_sync.sources.retry import repeated
from cdc_sync.storage.object_store import open_store

_FORMAT = 1
_MANY, _LATELY = 20, 60.0
"""So many unknown ids within so many seconds are nobody's delay: from then on each is asked for once."""


class RegistrySettings(Protocol):
    """What is needed of `config.Registry`."""

    @property
    def url(self) -> str:
        """Root of the API."""

    @property
    def type(self) -> Literal["confluent", "apicurio"]:
        """Its protocol, and how ids stand in records."""

    @property
    def ids(self) -> Literal["content", "global"]:
        """What a number in a record means; Apicurio only."""

    @property
    def headers(self) -> bool:
        """Whether ids may stand in headers."""

    @property
    def timeout(self) -> timedelta:
        """Of each connection and each read."""

    @property
    def attempts(self) -> int:
        """How often a question is asked."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Log-in and certificates, see `config.clientnames.REGISTRY`."""


class SchemaRegistry:
    """Schemas by id. Thread-safe.

    A registry that does not answer stops only ids that this pipeline has never met.
    """

    def __init__(self, config: RegistrySettings | None, root: str) -> None:
        """Prepare; nothing is asked before the first question.

        Args:
            config: None if the configuration names no registry: no id is found then.
            root: of the pipeline's own files.

        Raises:
            ConfigError: if a property is not known, or a certificate cannot be read.
        """
        self._config = config
        self._root = root
        self._known: dict[WireId, str] = {}
        self._registry = _Registry(config) if config else None

    def find_id(
        self, data: bytes, headers: Sequence[tuple[str, bytes | None]], part: Literal["key", "value"]
    ) -> tuple[WireId, int] | None:
        """Return the id of a record's key or value and where its body begins; None if there is no id, or no registry.

        Raises:
            WireError: see `wireids.find_id`.
        """
        if self._config is None:
            return None
        return find_id(
            data,
            headers,
            part=part,
            registry_type=self._config.type,
            ids=self._config.ids,
            use_headers=self._config.headers,
        )

    def schema(self, id_: WireId) -> str:
        """Return the schema with this id, in Avro's JSON, its references put in.

        Raises:
            RegistryUnavailable: if it was never met and the registry gives no usable answer.
            TransientError: if the pipeline's own files do not answer.
            WireError: if the registry has no such schema, or it is not Avro that can be read.
            HistoryError: if the file it is kept in is damaged.
        """
        found = self._known.get(id_)
        if found is None:
            found = self._kept(id_)
            if found is None:
                found = self._keep(id_, self._asked(id_))
            self._known[id_] = found
        return found

    def _asked(self, id_: WireId) -> str:
        if self._registry is None:
            raise WireError(f"Cannot read Avro with schema {id_}: no registry is configured; add the registry section")
        text = self._registry.schema(id_)
        connect_schema(text)  # what cannot be read is not kept
        return text

    def _kept(self, id_: WireId) -> str | None:
        try:
            data = bytes(obstore.get(open_store(self._root, create=False), _path(id_)).bytes())
        except (FileNotFoundError, NotFoundError):
            return None
        except (BaseError, OSError, ValueError) as error:
            raise self._no_files(error) from error
        try:
            kept = json.loads(data)
            if kept["format"] == _FORMAT:
                return str(kept["schema"])
        except (ValueError, KeyError, TypeError) as error:
            raise HistoryError(
                f"Cannot read schema {self._root}/{_path(id_)}: {error!r}; delete the file, the registry has it"
            ) from error
        raise HistoryError(f"Cannot read schema {self._root}/{_path(id_)}: it is of another format; update cdc_sync")

    def _keep(self, id_: WireId, text: str) -> str:
        """Write the schema's file; what another process wrote meanwhile wins."""
        data = json.dumps({"format": _FORMAT, "schema": text}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        try:
            obstore.put(open_store(self._root, create=True), _path(id_), data.encode(), mode="create")
        except AlreadyExistsError:
            return self._kept(id_) or text
        except (BaseError, OSError, ValueError) as error:
            raise self._no_files(error) from error
        return text

    def _no_files(self, error: Exception) -> TransientError:
        return TransientError(f"Cannot use registry schemas in {self._root}: {' '.join(str(error).split())}")


def _path(id_: WireId) -> str:
    return f"registry/{id_}.json"


def check_properties(config: RegistrySettings) -> None:
    """Refuse settings that cannot be used; nothing is sent.

    Raises:
        ConfigError: if a certificate cannot be read.
    """
    RegistryHttp(config.url, timeout=config.timeout, properties=config.properties)


class _Registry:
    """A registry, asked a bounded number of times."""

    def __init__(self, config: RegistrySettings) -> None:
        self._attempts = config.attempts
        self._http = RegistryHttp(config.url, timeout=config.timeout, properties=config.properties)
        if config.type == "apicurio":
            # The settings of Apicurio's own clients name the API too, and its version.
            self._http = self._http.above("/apis/")
        self._api = ApicurioApi(self._http) if config.type == "apicurio" else ConfluentApi(self._http)
        self._is_silent = False
        self._unknown: deque[float] = deque(maxlen=_MANY)
        """When the last ids turned out to be unknown."""

    def schema(self, id_: WireId) -> str:
        try:
            return self._repeated(id_, lambda: self._api.schema(id_))
        except NoSuchSchema:
            self._unknown.append(time.monotonic())
            raise WireError(
                f"Cannot read Avro with schema {id_}: the registry at {self._http.url} does not know it"
            ) from None
        except NoSuchPath as error:
            raise RegistryUnavailable(
                f"Cannot get schema {id_}: {error}, which is no answer of such a registry; check registry.url and "
                "registry.type (Apicurio speaks Confluent's protocol below /apis/ccompat/v7)"
            ) from None
        except NoAnswer as error:
            self._is_silent = True
            raise RegistryUnavailable(
                f"Cannot get schema {id_}: no usable answer from the registry at {self._http.url} in "
                f"{self._attempts} attempts ({error}); check that it runs and can be reached from here"
            ) from None

    def _repeated(self, id_: WireId, ask: Callable[[], str]) -> str:
        what = f"registry: get schema {id_}"
        text = repeated(what, ask, on=self._is_worth_repeating, attempts=self._attempts)
        self._is_silent = False
        return text

    def _is_worth_repeating(self, error: Exception) -> bool:
        if isinstance(error, NoSuchSchema):
            # A copy of the registry may learn of a schema later than the topic; of made-up numbers never.
            self._is_silent = False
            return len(self._unknown) < _MANY or time.monotonic() - self._unknown[0] > _LATELY
        # Having said nothing the last time, it gets one try: topics that need no schema are waiting.
        return isinstance(error, NoAnswer) and not self._is_silent
