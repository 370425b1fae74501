"""How brokers are asked: again where there is no usable answer, for so long; and what their refusals mean."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from cdc_sync.config.clientnames import why_refused
from cdc_sync.config.sources import Kafka
from cdc_sync.errors import ConfigError, KafkaUnavailable
from cdc_sync.sources.retry import Outage, repeated

T = TypeVar("T")

CLIENT_LOG = logging.getLogger("cdc_sync.librdkafka")
CLIENT_LOG.addHandler(logging.NullHandler())
CLIENT_LOG.propagate = False

_REFUSED = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError._INVALID_ARG,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
    }
)
"""Codes that no repetition fixes."""


class RetryError(Exception):
    """A failure that may pass; no question that is asked here lets it out."""


class Brokers:
    """The brokers of one configuration.

    Attributes:
        admin: a client for all that is no record.
        timeout: of one question, in seconds.
    """

    def __init__(self, config: Kafka, *, attempts: int | None = None, stop: threading.Event | None = None) -> None:
        """Prepare to ask; nothing is sent yet. The arguments are those of `KafkaClient`."""
        self.timeout = config.request_timeout.total_seconds()
        self._stop = stop or threading.Event()
        self._servers = config.bootstrap_servers
        self._outage = Outage("Kafka", config.outage_timeout.total_seconds(), servers=self._servers)
        self._attempts = attempts or config.attempts
        self._settings = config.driver_settings
        self._refusal: KafkaError | None = None
        self.admin = self.made(lambda: AdminClient(self.settings, logger=CLIENT_LOG))

    @property
    def away_since(self) -> float | None:
        """When a question that had no answer was asked, if none had one since; by a clock that never goes back."""
        return self._outage.since

    def asked(self, what: str, ask: Callable[[], T]) -> T:
        """Ask until an answer comes, the brokers refuse, or the attempts are used up.

        Raises:
            KafkaUnavailable: if no attempt succeeded.
            ConfigError: if the brokers refuse the log-in or a setting.
        """
        asked = time.monotonic()
        try:
            answer = repeated(
                f"Kafka: {what}",
                lambda: self._once(ask),
                on=lambda error: isinstance(error, RetryError) and not self._stop.is_set(),
                attempts=self._attempts,
                timeout=self._outage.patience_left(),
            )
        except RetryError as error:
            self._outage.note_silence(asked, str(error))
            raise KafkaUnavailable(
                f"Cannot {what}: no usable answer from Kafka at {self._servers!r} in {self._attempts} attempts "
                f"({error}); check that the brokers run and can be reached from here"
            ) from None
        self._outage.note_answer()
        return answer

    def _once(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except KafkaException as error:
            found: KafkaError = error.args[0]
            # A refused log-in only shows in a callback, which polling serves; the call itself just times out.
            self.admin.poll(0)
            refusal = found if found.code() in _REFUSED else self._refusal
            if refusal is not None:
                raise ConfigError(
                    f"Cannot use Kafka at {self._servers!r}: {refusal.str()}; fix the kafka section"
                ) from None
            raise RetryError(found.str()) from None

    def made(self, make: Callable[[], T]) -> T:
        """Make a client.

        Raises:
            ConfigError: if librdkafka refuses a setting.
        """
        try:
            return make()
        except KafkaException as error:
            detail = error.args[0].str()
            reason = why_refused(self._settings, detail)
            raise ConfigError(f"Cannot use kafka.properties or kafka.driver_properties: {reason}") from None

    @property
    def settings(self) -> dict[str, Any]:
        """What every client of librdkafka is made with."""
        return {**self._settings, "error_cb": self._on_error}

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in _REFUSED:
            self._refusal = error
