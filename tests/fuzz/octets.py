"""Damage to the bytes of a record, whatever they mean, and to the ids and bodies of Avro."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A damaged record, and what was done to it."""

    kind: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


Corpus = Sequence[tuple[bytes | None, bytes | None]]
"""Keys and values of records to take parts from."""

Mutation = Callable[[Mutant, random.Random, Corpus], Mutant]


def _on_a_side(record: Mutant, rng: random.Random, change: Callable[[bytes], bytes]) -> Mutant:
    """Change the value, or now and then the key."""
    if record.key and rng.random() < 0.2:
        return replace(record, key=change(record.key))
    return replace(record, value=change(record.value or b""))


def truncated(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    return _on_a_side(record, rng, lambda data: data[: rng.randrange(len(data) + 1)])


def _beheaded(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    return _on_a_side(record, rng, lambda data: data[rng.randrange(len(data) + 1) :])


def flipped(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    def flip(data: bytes) -> bytes:
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 2, 8))):
            if damaged:
                damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        return bytes(damaged)

    return _on_a_side(record, rng, flip)


def _not_utf8(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    bad = rng.choice((b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80", b"\xe2\x82"))
    return _on_a_side(record, rng, lambda data: _with(data, rng.randrange(len(data) + 1), bad))


def _inserted(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    more = rng.choice(
        (rng.randbytes(rng.randrange(1, 40)), b'"', b"{", b"}", b"]", b"\\", b",", b"\x00", b" \t\r\n", b"\\u0000")
    )
    return _on_a_side(record, rng, lambda data: _with(data, rng.randrange(len(data) + 1), more))


def cut_out(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    def cut(data: bytes) -> bytes:
        start = rng.randrange(len(data) + 1)
        return data[:start] + data[start + rng.randrange(1, 60) :]

    return _on_a_side(record, rng, cut)


def doubled(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    def double(data: bytes) -> bytes:
        start = rng.randrange(len(data) + 1)
        end = start + rng.randrange(1, 200)
        return data[:end] + data[start:]

    return _on_a_side(record, rng, double)


def _swapped(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    return replace(record, key=record.value, value=record.key)


def _of_another(record: Mutant, rng: random.Random, corpus: Corpus) -> Mutant:
    """The key of another table's record, or two records in one."""
    key, value = rng.choice(corpus)
    if rng.random() < 0.5:
        return replace(record, key=key)
    return replace(record, value=(record.value or b"") + (value or b""))


def _noise(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    return replace(record, value=rng.randbytes(rng.randrange(0, 300)))


def _bare(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    texts = (
        b"",
        b"null",
        b"{}",
        b"[]",
        b'""',
        b"0",
        b'{"schema":',
        b'{"schema":{},"payload":{}}',
        b'{"schema":null,"payload":null}',
    )
    return replace(record, value=rng.choice(texts))


def _odd_headers(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    name = rng.choice(("__value_schema_id", "__key_schema_id", "apicurio.value.globalId", "apicurio.value.contentId"))
    data = rng.choice(
        (None, b"", b"\x01", rng.randbytes(4), rng.randbytes(8), b"\x01" + rng.randbytes(16), b"\x00" * 5)
    )
    return replace(record, headers=((name, data),) * rng.choice((1, 2)))


def _another_id(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    numbers = (rng.randrange(1, 400), rng.randrange(2**31), -1, 0, 2**31 - 1, -(2**31))
    new = rng.choice(numbers).to_bytes(4, "big", signed=True)
    return _on_a_side(record, rng, lambda data: data[:1] + new + data[5:])


def _long_id(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    """The 8-byte id of Apicurio 2."""
    return _on_a_side(record, rng, lambda data: data[:1] + bytes(4) + data[1:])


def _garbled_body(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    def garble(data: bytes) -> bytes:
        body = bytearray(data[5:])
        for _ in range(rng.choice((1, 4, 20))):
            if body:
                body[rng.randrange(len(body))] = rng.randrange(256)
        return data[:5] + bytes(body)

    return _on_a_side(record, rng, garble)


def _other_body(record: Mutant, rng: random.Random, corpus: Corpus) -> Mutant:
    """One schema's id before another's body."""
    _, value = rng.choice(corpus)
    return replace(record, value=(record.value or b"")[:5] + (value or b"")[5:])


def _huge_lengths(record: Mutant, rng: random.Random, _: Corpus) -> Mutant:
    """Lengths and counts of 2^62 where a body has small ones."""

    def enlarge(data: bytes) -> bytes:
        place = 5 + rng.randrange(max(1, len(data) - 5))
        return data[:place] + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" + data[place + 1 :]

    return _on_a_side(record, rng, enlarge)


def _with(data: bytes, place: int, more: bytes) -> bytes:
    return data[:place] + more + data[place:]


OCTETS: tuple[Mutation, ...] = (
    truncated,
    _beheaded,
    flipped,
    flipped,
    _not_utf8,
    _inserted,
    cut_out,
    doubled,
    _swapped,
    _of_another,
    _noise,
    _bare,
    _odd_headers,
)
AVRO: tuple[Mutation, ...] = (
    _another_id,
    _long_id,
    _garbled_body,
    _garbled_body,
    _other_body,
    _huge_lengths,
)
