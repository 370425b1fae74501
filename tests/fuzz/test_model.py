"""The fuzzed job is held to a model that is held to these."""

from __future__ import annotations

from functools import partial

import pytest

from cdc_sync.testing import INT32, TEXT, SourceTable, column, heartbeat
from tests.fuzz.model import Meaning, decode, read_json
from tests.fuzz.twins import Twins, read_twin

_TABLE = ("shop", "fuzz", "t")


def _record(name: str = "t") -> bytes:
    table = SourceTable(name, [column("id", INT32, optional=False), column("note", TEXT)], schema="fuzz", prefix="fuzz")
    (record,) = table.insert(id=1, note="x")
    assert record.value is not None
    return record.value


_GOOD = _record()
_SCHEMA = _GOOD[: _GOOD.index(b',"payload"')]
_BEAT = heartbeat("fuzz", 1).value or b""


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        (_GOOD, "change"),
        (_record("u"), "another table's"),
        (_BEAT, "no change"),
        (None, "tombstone"),
        (_SCHEMA + b',"payload":null}', "tombstone"),
        (b'{"schema":null,"payload":null}"schema":null,"payload":null}', "tombstone"),
        (b"{}", "no change"),
        (_GOOD[:-1], "unreadable"),
        (_GOOD[:-1] + b"\xff", "change"),
        (_GOOD + _BEAT, "change"),
        (_GOOD[:-1] + b',"schema":null}', "change"),
        (_GOOD[:-1] + b',"payload":[]}', "change"),
        (_GOOD.replace(b'"version":"3', b'"version":"\xff'), "unreadable"),
        (_GOOD.replace(b'"note":"x"', b'"note":7'), "unreadable"),
        (_GOOD.replace(b'"note":"x"', b'"note":7,"note":"x"'), "change"),
        (_GOOD.replace(b'"op":"c"', b'"op":"C"'), "unreadable"),
        (_GOOD.replace(b'"table":"t"', b'"table":7'), "unreadable"),
        (_GOOD.replace(b'"schema":"fuzz",', b""), "another table's"),
        (_record("u").replace(b'"version":"3', b'"version":"\xff'), "another table's"),
        (_BEAT[:-5], "no change"),
        (_BEAT.replace(b'"payload":{', b'"payload":{"\xff'), "no change"),
    ],
)
def test_damage_counts_where_something_is_read(value: bytes | None, meaning: Meaning) -> None:
    assert decode(value, _TABLE, read_json).meaning == meaning


@pytest.mark.parametrize(
    ("old", "new", "meaning"),
    [
        (b"", b"", "change"),
        (b"postgresql", b"postgres\xffl", "change"),
        (b"\x02x", b"\x02\xff", "unreadable"),
        (b"\x08shop", b"\x08sho\xff", "unreadable"),
        (b"\x08shop", b"\x08sho/", "another table's"),
    ],
)
def test_in_avro_bytes_that_are_no_text_count_only_in_what_is_read(old: bytes, new: bytes, meaning: Meaning) -> None:
    twins = Twins()
    value = twins.of(_GOOD)
    assert value is not None
    assert old in value
    read = partial(read_twin, texts=twins.texts)
    assert decode(value.replace(old, new), _TABLE, read).meaning == meaning
