"""Structured logging: one line per event on stderr, key=value for people or JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Collection, MutableMapping
from typing import Any

import structlog
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from cdc_sync.cli.printable import printable
from cdc_sync.config.secrets import Secret, redact

_EventDict = MutableMapping[str, Any]


def configure(
    *, as_json: bool = False, verbose: bool = False, only_errors: bool = False, secrets: Collection[Secret] = ()
) -> None:
    """Set logging up for this process; a later call replaces the earlier one.

    Args:
        as_json: JSON lines instead of key=value.
        verbose: debug events too.
        only_errors: nothing else, unless it is to be verbose.
        secrets: texts whose values never reach a line; their references do.
    """
    level = logging.DEBUG if verbose else logging.ERROR if only_errors else logging.INFO
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.format_exc_info,
            _redactor(secrets),
            structlog.processors.JSONRenderer(_json, default=str, ensure_ascii=False) if as_json else _one_line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # stderr is looked up for every logger, because test runners replace it.
        logger_factory=lambda *_: structlog.WriteLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
    set_on_retry_hooks([_log_retry])


def _log_retry(details: RetryDetails) -> None:
    structlog.get_logger().warning(
        "will try again",
        what=details.name,
        attempt=details.retry_num,
        wait_s=round(details.wait_for, 2),
        cause=str(details.caused_by),
    )


def _redactor(secrets: Collection[Secret]) -> Callable[[Any, str, _EventDict], _EventDict]:
    def processor(_: Any, __: str, event: _EventDict) -> _EventDict:
        return {key: _redacted(value, secrets) for key, value in event.items()}

    return processor


def _redacted(value: Any, secrets: Collection[Secret]) -> Any:
    match value:
        case Secret():
            return value.reference
        case None | bool() | int() | float():
            return value
        case dict():
            return {str(key): _redacted(item, secrets) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_redacted(item, secrets) for item in value]
        case _:
            return redact(str(value), secrets)


def _one_line(_: Any, __: str, event: _EventDict) -> str:
    """`2026-01-01T00:00:00Z info what happened key=value ...`"""
    head = f"{event.pop('time', '')} {event.pop('level', ''):<7} {event.pop('event', '')}"
    rest = " ".join(f"{key}={_word(value)}" for key, value in event.items())
    return printable(" ".join(f"{head} {rest}".splitlines()).rstrip(), kept="")


def _json(event: object, **settings: Any) -> str:
    return printable(json.dumps(event, **settings), kept="")


def _word(value: object) -> str:
    if isinstance(value, str):
        plain = value and not any(character.isspace() or character in '"=' for character in value)
        return value if plain else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, default=str)
