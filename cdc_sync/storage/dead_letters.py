"""Dead letters of a pipeline: ``dead-letters/<topic>/<partition>/``, where there is

    <offset>.jsonl          `DeadLetter`s of one batch, named after the first offset
    index.json              which offsets they are, by reason, so that nobody has to read them to count them
    settled/<id>.json       one `Settled`
    refused.json            why letters could not be applied when somebody wanted that

What versions before this one wrote is below ``quarantine/``, as
files of records alone.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Literal

from cdc_sync.core.model.codes import Code
from cdc_sync.core.model.dead_letters import DeadLetter, DeadLetterCount, Settled
from cdc_sync.core.model.offsets import Runs, offsets_in, runs_of
from cdc_sync.core.model.positions import KafkaPosition
from cdc_sync.core.planning.problems import record_code
from cdc_sync.errors import HistoryError
from cdc_sync.storage.documents import Documents, as_value, json_object

_FOLDER = "dead-letters"
_BEFORE = "quarantine"
_BYTES = ("key", "value")
_ANEW = "delete the file: the records beside it are counted without it"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reason:
    code: Code
    offsets: Runs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Index:
    reasons: Mapping[str, _Reason]

    def with_letters(self, letters: Iterable[DeadLetter]) -> _Index:
        """Add letters; one that is there already is so once."""
        found = {reason: (item.code, offsets_in(item.offsets)) for reason, item in self.reasons.items()}
        for letter in letters:
            found.setdefault(letter.reason, (letter.code, set()))[1].add(letter.offset)
        return _Index(reasons={reason: _Reason(code=code, offsets=runs_of(of)) for reason, (code, of) in found.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusals:
    why: dict[int, str]


class DeadLetters:
    """The dead letters of one pipeline. Thread-safe for different partitions."""

    def __init__(self, files: Documents) -> None:
        self._files = files

    def add(self, letters: Iterable[DeadLetter]) -> None:
        """Keep letters; doing it again changes nothing.

        Those whose first offset already names a file are added to that file: a repeated batch may be shorter than the
        one that wrote it. The index comes last: where it does not, the batch is repeated.
        """
        groups: dict[str, list[DeadLetter]] = {}
        for letter in letters:
            groups.setdefault(f"{_FOLDER}/{letter.topic}/{letter.partition}", []).append(letter)
        for folder, group in groups.items():
            path = f"{folder}/{min(letter.offset for letter in group)}.jsonl"
            lines = {_line(letter) for letter in group} | set(_lines(self._files.text(path)))
            self._write(path, lines)
            index = self._index(folder).with_letters(group)
            self._files.put(f"{folder}/index.json", asdict(index), indent=None)
            self._unsettle(folder, {letter.offset for letter in group})

    def _unsettle(self, folder: str, offsets: set[int]) -> None:
        """Have letters that were redriven be some again: a table that is read anew meets them once more."""
        for path in self._files.paths(f"{folder}/settled"):
            word = self._files.get(path, Settled, _ANEW)
            if word is None or word.outcome != "redriven" or offsets.isdisjoint(offsets_in(word.offsets)):
                continue
            left = runs_of(offsets_in(word.offsets) - offsets)
            self._files.put(path, asdict(replace(word, offsets=left)))

    def letters(self, topic: str | None = None) -> Iterator[DeadLetter]:
        """Return every letter that is not settled, once, by partition; of one topic if one is named."""
        for paths in self._partitions(topic).values():
            seen = self._settled(paths)
            for letter in self._read(paths):
                if letter.offset not in seen:
                    seen.add(letter.offset)
                    yield letter

    def find(self, place: KafkaPosition) -> DeadLetter | None:
        """Return the letter of a place, None if there is none."""
        found = (letter for letter in self.letters(place.topic) if letter.place == place)
        return next(found, None)

    def counts(self) -> tuple[DeadLetterCount, ...]:
        """Count letters that are not settled by topic and reason, without reading them."""
        counts: dict[tuple[str, str], tuple[Code, int]] = {}
        for (topic, _), paths in self._partitions(None).items():
            gone = self._settled(paths)
            for reason, (code, offsets) in self._reasons(paths).items():
                number = len(offsets - gone)
                counts[topic, reason] = code, counts.get((topic, reason), (code, 0))[1] + number
        found = (
            DeadLetterCount(topic=topic, code=code, reason=reason, records=number)
            for (topic, reason), (code, number) in counts.items()
            if number
        )
        return tuple(sorted(found))

    def places(self, topic: str) -> set[tuple[int, int]]:
        """Return partition and offset of all that was not applied, whether or not somebody let it go."""
        found: set[tuple[int, int]] = set()
        for (_, partition), paths in self._partitions(topic).items():
            applied = self._settled(paths, "redriven")
            for _, offsets in self._reasons(paths).values():
                found |= {(partition, offset) for offset in offsets - applied}
        return found

    def settle(
        self, places: Iterable[KafkaPosition], *, outcome: Literal["discarded", "redriven"], by: str, at: str, why: str
    ) -> None:
        """Have letters be none any more: keys and values are deleted, that they were there, and why, is kept."""
        for (topic, partition), offsets in _by_partition(places).items():
            word = Settled(outcome=outcome, by=by, at=at, why=why, offsets=runs_of(offsets))
            self._files.create(f"{_FOLDER}/{topic}/{partition}/settled/{uuid.uuid4().hex}.json", asdict(word))
            for path in _written(self._partitions(topic)[topic, partition]):
                self._forget(path, offsets)

    def expire(self, seconds: float, most: float, *, at: str) -> int:
        """Let go of letters that were written so long ago, or so many bytes of letters ago; return how many it were."""
        files = [it for root in (_BEFORE, _FOLDER) for it in self._files.written(root) if it.path.endswith(".jsonl")]
        held, old = 0, []
        for file in sorted(files):
            held += file.size
            if file.age > seconds or held > most:
                old.append(file.path)
        places = {letter.place for letter in self._read(old)}
        self.settle(places, outcome="discarded", by="the job", at=at, why="older or more than dead_letters keeps")
        return len(places)

    def refuse(self, why: Mapping[KafkaPosition, str]) -> None:
        """Keep why letters could not be applied."""
        for (topic, partition), offsets in _by_partition(why).items():
            path = f"{_FOLDER}/{topic}/{partition}/refused.json"
            said = {offset: why[KafkaPosition(topic=topic, partition=partition, offset=offset)] for offset in offsets}
            self._files.put(path, {"why": {str(key): text for key, text in {**self._refusals(path), **said}.items()}})

    def refused(self, place: KafkaPosition) -> str | None:
        """Return why a letter could not be applied, None if nobody wanted that."""
        return self._refusals(f"{_FOLDER}/{place.topic}/{place.partition}/refused.json").get(place.offset)

    def _refusals(self, path: str) -> Mapping[int, str]:
        found = self._files.get(path, _Refusals, "delete the file")
        return {} if found is None else found.why

    def _forget(self, path: str, offsets: set[int]) -> None:
        lines = _lines(self._files.text(path))
        left = {line for line in lines if json_object(line, path)["offset"] not in offsets}
        if not left:
            self._files.delete(path)
        elif len(left) < len(lines):
            self._write(path, left)

    def _write(self, path: str, lines: Iterable[str]) -> None:
        ordered = sorted(lines, key=lambda line: (json.loads(line)["offset"], line))
        self._files.write(path, "".join(f"{line}\n" for line in ordered))

    def _partitions(self, topic: str | None) -> dict[tuple[str, int], list[str]]:
        """Return the files of each partition."""
        found: dict[tuple[str, int], list[str]] = {}
        for root in (_FOLDER, _BEFORE):
            for path in self._files.paths(root):
                _, named, partition, _ = path.split("/", 3)
                if topic in (None, named):
                    found.setdefault((named, int(partition)), []).append(path)
        return found

    def _index(self, folder: str) -> _Index:
        """Return what a folder's index says; where there is none, what its records say."""
        found = self._files.get(f"{folder}/index.json", _Index, _ANEW)
        if found is None:
            return _Index(reasons={}).with_letters(self._read(self._files.paths(folder)))
        return found

    def _reasons(self, paths: Iterable[str]) -> dict[str, tuple[Code, set[int]]]:
        """Return which offsets the folders of one partition hold for each reason, settled or not."""
        found: dict[str, tuple[Code, set[int]]] = {}
        for folder in sorted({"/".join(path.split("/")[:3]) for path in paths}):
            for reason, item in self._index(folder).reasons.items():
                found.setdefault(reason, (item.code, set()))[1].update(offsets_in(item.offsets))
        return found

    def _settled(self, paths: Iterable[str], outcome: str | None = None) -> set[int]:
        """Return which letters of a partition are none any more, all or those of one outcome."""
        words = (self._files.get(path, Settled, _ANEW) for path in paths if "/settled/" in path)
        return {
            offset
            for word in words
            if word is not None and outcome in (None, word.outcome)
            for offset in offsets_in(word.offsets)
        }

    def _read(self, paths: Iterable[str]) -> Iterator[DeadLetter]:
        for path in _written(paths):
            for number, line in enumerate(_lines(self._files.text(path)), 1):
                yield _letter(line, f"{path}:{number}")


def _by_partition(places: Iterable[KafkaPosition]) -> dict[tuple[str, int], set[int]]:
    found: dict[tuple[str, int], set[int]] = {}
    for place in places:
        found.setdefault((place.topic, place.partition), set()).add(place.offset)
    return found


def _written(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if path.endswith(".jsonl")]


def _lines(text: str | None) -> list[str]:
    # Not splitlines: a text inside the JSON may hold one of the other characters that it takes for a line's end.
    return [line for line in (text or "").split("\n") if line]


def _line(letter: DeadLetter) -> str:
    encoded = {
        name: None if (held := getattr(letter, name)) is None else base64.b64encode(held).decode() for name in _BYTES
    }
    return json.dumps({**asdict(letter), **encoded}, sort_keys=True, ensure_ascii=False)


def _letter(line: str, place: str) -> DeadLetter:
    data = json_object(line, place)
    try:
        decoded = {name: None if data[name] is None else base64.b64decode(data[name]) for name in _BYTES}
        code = data.get("code") or record_code(data["reason"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HistoryError(f"Cannot read dead letter {place}: {error}") from None
    return as_value({**data, **decoded, "code": code}, DeadLetter, place, "delete the line")
