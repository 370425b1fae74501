"""Captured messages, damaged in every way that bytes on a wire, and people with access to a topic, can think of."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.fuzz.documents import DOCUMENTS
from tests.fuzz.octets import AVRO, OCTETS, Corpus, Mutant


class Mutator:
    """Damages records of a corpus; the same seed gives the same damage."""

    def __init__(self, corpus: Corpus, *, seed: int) -> None:
        self._corpus = [record for record in corpus if record[1] is not None]
        self._random = random.Random(seed)

    def mutant(self) -> Mutant:
        """Damage one record, sometimes twice."""
        key, value = self._random.choice(self._corpus)
        found = self._once(Mutant(kind="", key=key, value=value))
        if self._random.random() < 0.2:
            found = self._once(found)
        return found

    def damaged(self, key: bytes | None, value: bytes) -> Mutant:
        """Damage a given record once."""
        return self._once(Mutant(kind="", key=key, value=value))

    def _once(self, record: Mutant) -> Mutant:
        is_avro = (record.value or b"\x00")[:1] == b"\x00"
        table = OCTETS + (AVRO if is_avro else DOCUMENTS)
        mutate = self._random.choice(table)
        name = mutate.__name__.strip("_")
        return replace(mutate(record, self._random, self._corpus), kind=f"{record.kind} {name}".strip())
