"""Ids of schemas, in front of the body and in headers."""

from __future__ import annotations

import uuid
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_sync.core.debezium.wireids import WireId, find_id
from cdc_sync.errors import WireError

GUID = uuid.UUID("89791762-2336-4186-9674-299b90a802e2")
Headers = list[tuple[str, bytes | None]]


def found(
    data: bytes,
    headers: Headers | None = None,
    *,
    part: Literal["key", "value"] = "value",
    registry_type: Literal["confluent", "apicurio"] = "confluent",
    ids: Literal["content", "global"] = "content",
    use_headers: bool = True,
) -> tuple[str, int] | None:
    answer = find_id(data, headers or [], part=part, registry_type=registry_type, ids=ids, use_headers=use_headers)
    return None if answer is None else (str(answer[0]), answer[1])


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ({}, "confluent-17"),
        ({"registry_type": "confluent", "ids": "global"}, "confluent-17"),
        ({"registry_type": "apicurio"}, "content-17"),
        ({"registry_type": "apicurio", "ids": "global"}, "global-17"),
    ],
)
def test_four_bytes_in_front_are_what_the_configuration_says(setting: dict[str, Any], expected: str) -> None:
    assert found(b"\0\0\0\0\x11body", **setting) == (expected, 5)
    assert found(b"\0\0\0\0\x11", **setting) == (expected, 5)


def test_eight_bytes_in_front_are_apicurios_global_id() -> None:
    assert found(b"\0" + (17).to_bytes(8, "big") + b"body", registry_type="apicurio") == ("global-17", 9)
    assert found(b"\0" + (17).to_bytes(8, "big"), registry_type="apicurio") == ("global-17", 9)


def test_four_zero_bytes_in_front_of_a_short_body_are_the_id_zero() -> None:
    assert found(b"\0\0\0\0\0body"[:8]) == ("confluent-0", 5)


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\0\0\0\0", b'{"schema":', b"\x01\0\0\0\x11", b"\0\xff\0\0\0"],
)
def test_anything_else_has_no_id(data: bytes) -> None:
    assert found(data) is None


@pytest.mark.parametrize("part", ["key", "value"])
@pytest.mark.parametrize(
    ("header", "content", "expected"),
    [
        ("__{}_schema_id", b"\x01" + GUID.bytes, f"guid-{GUID}"),
        ("__{}_schema_id", b"\x00\0\0\0\x11", "confluent-17"),
        ("apicurio.{}.globalId", (17).to_bytes(8, "big"), "global-17"),
        ("apicurio.{}.contentId", (17).to_bytes(8, "big"), "content-17"),
    ],
)
def test_a_header_names_the_schema_of_its_own_part(
    part: Literal["key", "value"], header: str, content: bytes, expected: str
) -> None:
    other: Literal["key", "value"] = "key" if part == "value" else "value"
    headers: Headers = [("x", None), (header.format(part), content), (header.format(other), None)]
    assert found(b"body", headers, part=part) == (expected, 0)
    assert found(b"", headers, part=part) == (expected, 0)
    assert found(b"body", headers, part=other) is None
    assert found(b"body", headers, part=part, use_headers=False) is None


def test_headers_go_before_bytes_and_confluents_before_apicurios() -> None:
    apicurio: Headers = [("apicurio.value.globalId", (18).to_bytes(8, "big"))]
    assert found(b"\0\0\0\0\x11", apicurio) == ("global-18", 0)
    assert found(b"\0\0\0\0\x11", [*apicurio, ("__value_schema_id", b"\0\0\0\0\x13")]) == ("confluent-19", 0)


@pytest.mark.parametrize(
    ("header", "content"),
    [
        ("__value_schema_id", b"\x01short"),
        ("__value_schema_id", b"\x02" + GUID.bytes),
        ("__value_schema_id", b"\0\xff\0\0\0"),
        ("apicurio.value.globalId", b"\0\0\0\x11"),
        ("apicurio.value.contentId", b"\xff" * 8),
    ],
)
def test_a_header_of_another_form_is_refused(header: str, content: bytes) -> None:
    with pytest.raises(WireError, match=f"Cannot read header '{header}': .* is not the id of a schema"):
        found(b"body", [(header, content)])


def test_two_headers_that_disagree_are_refused() -> None:
    one, other = (("__value_schema_id", bytes([0, 0, 0, 0, number])) for number in (1, 2))
    assert found(b"body", [one, one]) == ("confluent-1", 0)
    with pytest.raises(WireError, match="it is there twice"):
        found(b"body", [one, other])


@given(
    data=st.binary(max_size=20),
    headers=st.lists(
        st.tuples(
            st.sampled_from(("__value_schema_id", "apicurio.value.globalId", "apicurio.value.contentId", "x")),
            st.none() | st.binary(max_size=18),
        ),
        max_size=3,
    ),
)
def test_no_bytes_make_it_fail_in_another_way(data: bytes, headers: Headers) -> None:
    try:
        answer = find_id(data, headers, part="value", registry_type="apicurio", ids="content", use_headers=True)
    except WireError:
        return
    assert answer is None or (isinstance(answer[0], WireId) and answer[1] in (0, 5, 9))
