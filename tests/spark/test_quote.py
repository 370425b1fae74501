"""Whatever a name holds, quoted it is one identifier; no JVM needed."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from cdc_sync.core.schema.identifiers import quoted

names = st.text(alphabet=st.sampled_from("`'\";-/*\\.a \n\x00é😀"), max_size=12) | st.text(max_size=12)


def identifiers(sql: str) -> list[str]:
    """Read a list of quoted identifiers as Spark's lexer does: BACKQUOTED_IDENTIFIER is '`' ( ~'`' | '``' )* '`'."""
    found, rest = [], sql
    while rest:
        assert rest[0] == "`", rest
        name, place = "", 1
        while True:
            if rest[place : place + 2] == "``":
                name, place = name + "`", place + 2
            elif rest[place] == "`":
                break
            else:
                name, place = name + rest[place], place + 1
        found.append(name)
        rest = rest[place + 1 :].removeprefix(", ").removeprefix(".")
    return found


@given(names)
@example("`")
@example("`; DROP TABLE x; --")
@example("")
def test_a_quoted_name_is_exactly_one_identifier(name: str) -> None:
    assert identifiers(quoted(name)) == [name]


@given(st.lists(names, max_size=4))
def test_names_side_by_side_stay_apart(several: list[str]) -> None:
    assert identifiers(", ".join(map(quoted, several))) == several
    assert identifiers(".".join(map(quoted, several))) == several
