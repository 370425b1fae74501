"""Records that were not applied: listed, shown, applied after all, let go."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from cdc_sync.api.stores import is_running, place_of, state_store, this_person, utc_now
from cdc_sync.config import Config
from cdc_sync.core.model.dead_letters import DeadLetter, DeadLetterCount, Redrive, kept_of
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.errors import RefusedError
from cdc_sync.storage.state import StateStore

_SHOWN = 20
"""Letters that `list` shows, and that `discard` names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which dead letters are meant: all that fit everything that is said here.

    Attributes:
        topic: whole name.
        table: dotted name, or its end.
        code: see `cdc-sync docs runbook`.
        places: as `topic[partition]@offset`.
    """

    topic: str | None = None
    table: str | None = None
    code: str | None = None
    places: tuple[KafkaPosition, ...] = ()

    def fits(self, letter: DeadLetter) -> bool:
        """Return whether a letter is meant."""
        name = str(letter.table)
        return (
            (not self.places or letter.place in self.places)
            and self.topic in (None, letter.topic)
            and self.code in (None, letter.code.value)
            and (self.table is None or name == self.table or name.endswith(f".{self.table}"))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterLine:
    """One dead letter, without what is kept of its key and value; see `DeadLetter`.

    Attributes:
        refused: why it could not be redriven, None if nobody wanted that.
    """

    place: str
    timestamp: int | None
    code: str
    table: str | None
    version: int | None
    schema: str
    size: int | None
    reason: str
    refused: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterList:
    """Dead letters of a pipeline.

    Attributes:
        counts: of all, whatever is listed.
        letters: those that were asked for, the first of them.
        is_more: there are others like these.
    """

    counts: tuple[DeadLetterCount, ...]
    letters: tuple[LetterLine, ...]
    is_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterShown:
    """One dead letter with what is kept of it, as text; what is not UTF-8 is escaped."""

    letter: LetterLine
    key: str | None
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LettersDiscarded:
    """Dead letters that were let go, or would be."""

    number: int
    letters: tuple[LetterLine, ...]
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LettersRedriven:
    """Dead letters that the job is to apply after all.

    Attributes:
        strangers: others that fit, of which nobody knows whose rows they are: they cannot be applied.
        is_running: a job runs, and takes it up; else the next one does.
        dry_run: nothing was asked.
    """

    number: int
    letters: tuple[LetterLine, ...]
    strangers: int
    is_running: bool
    dry_run: bool


def list_dead_letters(
    config: Config,
    *,
    topic: str | None = None,
    table: str | None = None,
    code: str | None = None,
    limit: int = _SHOWN,
) -> LetterList:
    """Tell which records were not applied, and count all of them.

    Args:
        topic, table, code: list only those; see `Which`.
        limit: how many to list.

    Raises:
        ConfigError: if no job ever wrote there.
    """
    store = state_store(config)
    found = list(islice(_those(store, Which(topic=topic, table=table, code=code)), limit + 1))
    return LetterList(
        counts=store.dead_letters.counts(),
        letters=tuple(_line(store, letter) for letter in found[:limit]),
        is_more=len(found) > limit,
    )


def show_dead_letter(config: Config, place: str, *, reveal: bool = False) -> LetterShown:
    """Show one record that was not applied.

    Args:
        place: as `topic[partition]@offset`.
        reveal: with its values; else a word stands in place of each.

    Raises:
        RefusedError: if there is none at this place.
    """
    store = state_store(config)
    found = store.dead_letters.find(place_of(place))
    if found is None:
        raise RefusedError(f"Cannot show {place}: no dead letter is there; see `cdc-sync dead-letters list`")
    as_kept = reveal or found.payload == "masked"  # a mask of a mask would tell of the words in it
    key, value = (kept_of(data, "full" if as_kept else "masked") for data in (found.key, found.value))
    return LetterShown(letter=_line(store, found), key=_text(key), value=_text(value))


def discard_dead_letters(
    config: Config,
    places: Sequence[str] = (),
    *,
    topic: str | None = None,
    table: str | None = None,
    code: str | None = None,
    why: str,
    dry_run: bool = False,
) -> LettersDiscarded:
    """Let records go that were not applied: what is kept of them is deleted, and who let them go is written down.

    Args:
        places: as `topic[partition]@offset`; all that fit the rest, if none is named.
        topic, table, code: only those; see `Which`. Something must be said: all at once are let go by accident alone.
        why: kept beside their places.
        dry_run: only tell which.

    Raises:
        RefusedError: if nothing says which, or a place holds none.
    """
    which = Which(topic=topic, table=table, code=code, places=tuple(map(place_of, places)))
    if which == Which():
        raise RefusedError("Cannot discard dead letters: say which, by places, --topic, --table or --code")
    store = state_store(config)
    found = _chosen(store, which, "discard")
    if not dry_run:
        gone = [letter.place for letter in found]
        store.dead_letters.settle(gone, outcome="discarded", by=this_person(), at=utc_now(), why=why)
    return LettersDiscarded(
        number=len(found), letters=tuple(_line(store, letter) for letter in found[:_SHOWN]), dry_run=dry_run
    )


def redrive_dead_letters(
    config: Config,
    places: Sequence[str] = (),
    *,
    topic: str | None = None,
    table: str | None = None,
    code: str | None = None,
    dry_run: bool = False,
) -> LettersRedriven:
    """Have the job apply records after all, once what was wrong is mended; newer events of their rows win.

    Those that still cannot be applied stay dead letters, which `list` says why.

    Args:
        places: as `topic[partition]@offset`; all that fit the rest, if none is named.
        topic, table, code: only those; see `Which`.
        dry_run: only tell which.

    Raises:
        RefusedError: if a place holds none.
    """
    store = state_store(config)
    found = _chosen(store, Which(topic=topic, table=table, code=code, places=tuple(map(place_of, places))), "redrive")
    mine: dict[TableId, list[KafkaPosition]] = {}
    for letter in found:
        if letter.table is not None:
            mine.setdefault(letter.table, []).append(letter.place)
    if not dry_run:
        for owner, at in mine.items():
            word = Redrive(table=owner, id=uuid.uuid4().hex, by=this_person(), at=utc_now(), places=tuple(at))
            store.requests.add(word)
    known = [letter for letter in found if letter.table is not None]
    return LettersRedriven(
        number=len(known),
        letters=tuple(_line(store, letter) for letter in known[:_SHOWN]),
        strangers=len(found) - len(known),
        is_running=is_running(config),
        dry_run=dry_run,
    )


def _chosen(store: StateStore, which: Which, what: str) -> list[DeadLetter]:
    """Return the letters that are meant, without what is kept of their keys and values.

    Raises:
        RefusedError: if a place holds none.
    """
    found = [replace(letter, key=None, value=None) for letter in _those(store, which)]
    missing = sorted(map(str, set(which.places) - {letter.place for letter in found}))
    if missing:
        raise RefusedError(f"Cannot {what} {', '.join(missing)}: no such dead letter is there")
    return found


def _those(store: StateStore, which: Which) -> Iterator[DeadLetter]:
    topics: Sequence[str | None] = sorted({place.topic for place in which.places}) or [which.topic]
    return (letter for topic in topics for letter in store.dead_letters.letters(topic) if which.fits(letter))


def _line(store: StateStore, letter: DeadLetter) -> LetterLine:
    return LetterLine(
        place=str(letter.place),
        timestamp=letter.timestamp,
        code=letter.code.value,
        table=str(letter.table) if letter.table else None,
        version=letter.version,
        schema=letter.schema,
        size=letter.size,
        reason=letter.reason,
        refused=store.dead_letters.refused(letter.place),
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")
