"""Whether the connectors that write the topics are alive, for `cdc-sync status`: a dead one leaves no lag behind.

Source: Kafka Connect REST API, `GET /connectors?expand=status`; Debezium, `heartbeat.interval.ms`, whose topics are
`__debezium-heartbeat.<topic.prefix>`.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from cdc_sync.config.sources import Connect, Heartbeats

if TYPE_CHECKING:
    from cdc_sync.sources.kafka import KafkaClient
    from cdc_sync.sources.records import Offsets

_LARGEST_ANSWER = 16 * 1024 * 1024
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SHOWN = 300
"""Characters of a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """What is known of one connector, or of one topic of heartbeats.

    Attributes:
        well: it runs, or has written a moment ago.
        text: what it does, or why nobody knows.
    """

    name: str
    well: bool
    text: str


def of_connect(connect: Connect) -> tuple[SourceLine, ...]:
    """Ask Kafka Connect for its connectors, those that are named or all; what it does not answer is a line as well."""
    try:
        return connector_lines(_answer(connect), connect.names)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        return (SourceLine(name=_host(connect.url), well=False, text=f"Kafka Connect does not answer: {reason}"),)


def connector_lines(answer: Mapping[str, Any], names: tuple[str, ...] | None) -> tuple[SourceLine, ...]:
    """Read the answer to `GET /connectors?expand=status`.

    Args:
        names: connectors to tell of; None for all there are.

    Raises:
        ValueError: if it is no such answer.
    """
    try:
        known = {name: item["status"] for name, item in answer.items()}
        wanted = sorted(known) if names is None else names
        return tuple(_line(name, known.get(name)) for name in wanted)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the answer is not understood ({error!r})") from None


def _line(name: str, status: Mapping[str, Any] | None) -> SourceLine:
    if status is None:
        return SourceLine(name=name, well=False, text="there is no such connector")
    connector, tasks = status["connector"], status["tasks"]
    for what, part in (("it", connector), *((f"task {task['id']}", task) for task in tasks)):
        if part["state"] != "RUNNING":
            reason = str(part.get("trace") or "").split("\n", 1)[0][:_SHOWN]
            said = f"{what} is {part['state']}"
            return SourceLine(name=name, well=False, text=f"{said}: {reason}" if reason else said)
    if not tasks:
        return SourceLine(name=name, well=False, text="it has no task")
    return SourceLine(name=name, well=True, text="RUNNING")


def _answer(connect: Connect) -> Mapping[str, Any]:
    parts = urlsplit(connect.url)
    host = parts.netloc.rpartition("@")[2]
    url = urlunsplit((parts.scheme, host, f"{parts.path.rstrip('/')}/connectors", "expand=status", ""))
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    # A proxy configured for the internet must not be asked for this machine.
    handlers = [urllib.request.ProxyHandler({})] if parts.hostname in _LOOPBACK else []
    opener = urllib.request.build_opener(*handlers)
    with opener.open(request, timeout=connect.timeout.total_seconds()) as answer:
        found = json.loads(answer.read(_LARGEST_ANSWER))
    if not isinstance(found, dict):
        raise ValueError("the answer is not understood")
    return found


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def of_heartbeats(heartbeats: Heartbeats, ends: Offsets, kafka: KafkaClient) -> Iterator[SourceLine]:
    """Tell how long ago each topic of heartbeats was written.

    Args:
        ends: of the topics, as the brokers say.

    Raises:
        KafkaUnavailable: if Kafka does not answer.
    """
    for topic in heartbeats.topics:
        places = ((partition, end - 1) for partition, end in ends.get(topic, {}).items() if end)
        last = [record.timestamp for place in places if (record := kafka.peek(topic, *place)) is not None]
        times = [at for at in last if at is not None]
        yield heartbeat_line(topic, max(times, default=None), time.time(), heartbeats.within)


def heartbeat_line(topic: str, last: int | None, now: float, within: timedelta) -> SourceLine:
    """Say how long ago a topic of heartbeats was written.

    Args:
        last: when, in milliseconds since the epoch; None if nothing is in it.
        now: in seconds since the epoch.
    """
    if last is None:
        return SourceLine(
            name=topic, well=False, text="no heartbeat is there; set heartbeat.interval.ms in the connector"
        )
    age = timedelta(seconds=max(0, round(now - last / 1000)))
    return SourceLine(name=topic, well=age <= within, text=f"the last heartbeat came {age} ago")
