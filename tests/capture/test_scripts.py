"""What the scripts say, and what is refused, without a server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cdc_sync.api import commands
from cdc_sync.errors import ConfigError, SetupError
from cdc_sync.sources.databases import postgres
from cdc_sync.sources.databases.postgres import apply, install_ddl_capture, install_sql, uninstall_sql


def test_without_a_connection_the_script_is_returned_and_nothing_is_done() -> None:
    result = install_ddl_capture("postgresql", dsn=None)
    assert (result.script, result.applied, result.warnings) == (install_sql(), False, ())
    assert install_ddl_capture("postgres", dsn=None, uninstall=True).script == uninstall_sql()


def test_the_schemas_name_is_quoted_wherever_it_stands() -> None:
    for script in (install_sql('a"b {c}'), uninstall_sql('a"b {c}')):
        assert '"a""b {c}"' in script
        assert "{s" not in script


@pytest.mark.parametrize("schema", ["", "pg_mine", "x" * 64, "a\0b", "a$b"])
def test_names_that_postgres_refuses_are_refused(schema: str) -> None:
    with pytest.raises(SetupError, match="this is no name for a schema"):
        install_sql(schema)


@pytest.mark.parametrize(("connector", "reason"), [("mariadb", "it needs none"), ("sqlserver", "for postgresql only")])
def test_other_sources_are_refused_with_the_reason(connector: str, reason: str) -> None:
    with pytest.raises(SetupError, match=reason):
        install_ddl_capture(connector, dsn=None)


def test_without_psycopg_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SetupError, match=r"psycopg is missing. Install it with pip install 'cdc-sync\[postgres\]'"):
        apply("host=nowhere", install_sql())


def test_a_server_that_is_not_there_is_told_without_the_connections_secrets() -> None:
    with pytest.raises(SetupError, match="Cannot set up DDL capture") as caught:
        apply("host=127.0.0.1 port=1 connect_timeout=2 password=hidden", install_sql())
    assert "hidden" not in str(caught.value)


def test_the_password_comes_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[object] = []

    def apply(dsn: str, _: str, *, password: str | None) -> tuple[str, ...]:
        given.extend([dsn, password])
        return ()

    monkeypatch.setattr(postgres, "apply", apply)
    (tmp_path / "password").write_text("s3cret\n")
    commands.install_ddl_capture("postgresql", dsn="host=db", uninstall=False, password_file=tmp_path / "password")
    assert given == ["host=db", "s3cret"]
    with pytest.raises(ConfigError, match="cannot be read"):
        commands.install_ddl_capture("postgresql", dsn="host=db", uninstall=False, password_file=tmp_path / "none")


def test_only_where_it_is_asked_for_is_a_right_taken_from_others() -> None:
    assert "REVOKE EXECUTE" not in install_sql()
    assert "REVOKE EXECUTE ON FUNCTION" in install_sql(revoke_emit=True)
