"""What only the thorough run has is in one list, of tests that there are."""

from __future__ import annotations

import pytest

from tests.thorough import LISTED, is_thorough, matches, patterns, unknown


def test_every_line_names_a_test_that_there_is() -> None:
    assert LISTED
    assert [pattern for pattern in LISTED if unknown(pattern)] == []
    assert len(set(LISTED)) == len(LISTED)


@pytest.mark.parametrize(
    "pattern",
    ["no/such_file.py::test_it", "test_thorough.py::test_of_no_such_name", "test_thorough.py::test_every[a]"],
)
def test_a_line_that_names_none_is_found(pattern: str) -> None:
    assert unknown(pattern)


@pytest.mark.parametrize(
    ("pattern", "node", "expected"),
    [
        ("a/test_b.py::test_c", "a/test_b.py::test_c", True),
        ("a/test_b.py::test_c", "a/test_b.py::test_c[one]", True),
        ("a/test_b.py::test_c", "a/test_b.py::test_c_and_more", False),
        ("a/test_b.py::test_c[one*]", "a/test_b.py::test_c[one-two]", True),
        ("a/test_b.py::test_c[one*]", "a/test_b.py::test_c[two-one]", False),
        ("a/test_b.py::*[*two]", "a/test_b.py::test_d[one-two]", True),
        ("a/test_b.py::test_c[.]", "a/test_b.py::test_c[x]", False),
    ],
)
def test_a_star_is_any_text_and_a_function_all_its_cases(pattern: str, node: str, expected: bool) -> None:
    assert matches(pattern, node) is expected


def test_comments_and_empty_lines_are_none() -> None:
    assert patterns("# a comment\n\n  a::b \nc::d\n") == ("a::b", "c::d")


def test_what_is_run_always_is_run_whatever_other_lines_say() -> None:
    lines = {"thorough": ["a.py::*[slow*]"], "always": ["a.py::test_b[*]"]}
    assert [is_thorough(f"tests/a.py::{it}", **lines) for it in ("test_b[slow]", "test_c[slow]", "test_c[quick]")] == [
        False,
        True,
        False,
    ]
