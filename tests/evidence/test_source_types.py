"""Which changes of a type, by the source's own rule, may change values."""

from __future__ import annotations

import pytest

from cdc_sync.core.lineage.source_types import may_differ


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("character varying(10)", "character varying(20)"),
        ("character varying(10)", "character varying"),
        ("character varying(10)", "text"),
        ("text", "character varying"),
        ("VARCHAR VARCHAR(10)", "VARCHAR VARCHAR(12)"),
        ("VARCHAR(10)", "varchar(10)"),
        ("CHAR(5)", "CHAR(9)"),
        ("CHAR(5)", "VARCHAR(5)"),
        ("timestamp(3) without time zone", "timestamp without time zone"),
        ("timestamp(3) without time zone", "timestamp(6) without time zone"),
        ("time(0) without time zone", "time(3) without time zone"),
        ("DATETIME", "DATETIME(6)"),
        ("TIME(3)", "TIME(6)"),
        ("numeric(10,2)", "numeric(12,2)"),
        ("numeric(10,2)", "numeric(12,4)"),
        ("numeric(10,2)", "numeric"),
        ("INT(11)", "INT(5)"),
        ("INT UNSIGNED(10)", "INT UNSIGNED ZEROFILL(10)"),
        ("INT UNSIGNED(10)", "BIGINT UNSIGNED(20)"),
        ("TINYINT", "SMALLINT"),
        ("TEXT", "LONGTEXT"),
        ("VARCHAR(200)", "MEDIUMTEXT"),
        ("json", "text"),
        ("jsonb", "json"),
        ("uuid", "text"),
        ("character varying(3)[]", "character varying(5)[]"),
        ("ENUM(1)(\"'a'\",\"'b'\")", "ENUM(1)(\"'a'\",\"'b'\",\"'c'\")"),
        ("bit varying(3)", "bit varying(9)"),
    ],
)
def test_what_holds_every_value_of_before_changes_none(old: str, new: str) -> None:
    assert not may_differ(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("character varying(10)", "character varying(3)"),
        ("character varying", "character varying(3)"),
        ("text", "character varying(3)"),
        ("character varying(10)", "character(12)"),
        ("character(5)", "text"),
        ("character(5)", "character(6)"),
        ("timestamp without time zone", "timestamp(3) without time zone"),
        ("timestamp(6) with time zone", "timestamp(0) with time zone"),
        ("time(6) without time zone", "time(0) without time zone"),
        ("DATETIME(6)", "DATETIME(3)"),
        ("DATETIME(6)", "DATETIME"),
        ("numeric", "numeric(10,2)"),
        ("numeric(10,4)", "numeric(10,2)"),
        ("numeric(10,2)", "numeric(8,2)"),
        ("numeric(10,2)", "numeric(10,4)"),
        ("json", "jsonb"),
        ("text", "jsonb"),
        ("inet", "text"),
        ("bit(3)", "bit(5)"),
        ("BINARY(3)", "BINARY(5)"),
        ("BIGINT", "INT"),
        ("BIGINT", "BIGINT UNSIGNED"),
        ("LONGTEXT", "TEXT"),
        ("VARCHAR(200)", "VARCHAR(100)"),
        ("ENUM(1)(\"'a'\",\"'b'\")", "ENUM(1)(\"'b'\",\"'a'\")"),
        ("ENUM(1)(\"'a'\",\"'b'\")", "ENUM(1)(\"'a'\")"),
        ("mood", "feeling"),
        ("geometry(Point,4326)", "geometry(Point,3857)"),
        ("character varying(5)[]", "character varying(3)[]"),
    ],
)
def test_what_does_not_may_have_changed_some(old: str, new: str) -> None:
    assert may_differ(old, new)


def test_a_text_of_a_number_shows_the_digits_that_are_zero() -> None:
    assert may_differ("numeric(40,2)", "numeric(42,4)", as_text=True)
    assert not may_differ("numeric(40,2)", "numeric(42,2)", as_text=True)
