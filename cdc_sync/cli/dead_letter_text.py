"""Records that were not applied, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from typing_extensions import assert_never

from cdc_sync.api.dead_letters import LetterLine, LetterList, LettersDiscarded, LetterShown, LettersRedriven
from cdc_sync.core.model.dead_letters import DeadLetterCount
from cdc_sync.core.model.times import utc

Shown: TypeAlias = LetterList | LetterShown | LettersDiscarded | LettersRedriven


def lines(value: Shown) -> Iterator[str]:
    """Say which records were not applied, or what became of them."""
    match value:
        case LetterList():
            yield from map(counted, value.counts)
            if not value.counts:
                yield "No record was set aside."
            yield from map(_line, value.letters)
            if value.is_more:
                yield "There are more; --limit lists them, --topic, --table and --code choose."
        case LetterShown():
            yield _line(value.letter)
            schema = value.letter.schema or "none that can be told"
            yield f"size: {value.letter.size} bytes; version of the table: {value.letter.version}; schema: {schema}"
            yield f"key: {value.key if value.key is not None else '(nothing is kept that can be shown)'}"
            yield f"value: {value.value if value.value is not None else '(nothing is kept that can be shown)'}"
        case LettersDiscarded():
            yield from map(_line, value.letters)
            if value.number > len(value.letters):
                yield f"and {value.number - len(value.letters)} more"
            done = "would be discarded" if value.dry_run else "discarded"
            yield f"{value.number} dead letter{'s' if value.number != 1 else ''} {done}"
        case LettersRedriven():
            yield from _redriven(value)
        case _:
            assert_never(value)


def _redriven(value: LettersRedriven) -> Iterator[str]:
    yield from map(_line, value.letters)
    if value.number > len(value.letters):
        yield f"and {value.number - len(value.letters)} more"
    if value.strangers:
        yield f"{value.strangers} of which nobody knows whose rows they are cannot be redriven"
    done = "would be redriven" if value.dry_run else "to be redriven"
    yield f"{value.number} dead letter{'s' if value.number != 1 else ''} {done}"
    if value.dry_run or not value.number:
        return
    if value.is_running:
        yield "The job does it within seconds; `cdc-sync dead-letters list` shows what is left, and why."
    else:
        yield "No job runs; the next one does it when it starts."


def counted(count: DeadLetterCount) -> str:
    """Say how many there are of one kind."""
    return f"dead letters: {count.records} of {count.topic} ({count.code}): {count.reason}"


def _line(letter: LetterLine) -> str:
    at = "" if letter.timestamp is None else f" of {utc(letter.timestamp / 1000)}"
    table = f", {letter.table}" if letter.table else ""
    refused = f"; not redriven: {letter.refused}" if letter.refused else ""
    return f"{letter.place}{at}{table} ({letter.code}): {letter.reason}{refused}"
