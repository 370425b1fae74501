"""Finding Java 17."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_sync.errors import SetupError
from cdc_sync.local import java


@pytest.fixture(autouse=True)
def no_java_on_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "_INSTALLED", tmp_path / "jvm")
    java.java_home.cache_clear()
    java.java_executable_from.cache_clear()
    yield
    java.java_home.cache_clear()
    java.java_executable_from.cache_clear()


def make_java(home: Path, version: str, *, with_release_file: bool = True) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    executable.chmod(0o755)
    if with_release_file:
        (home / "release").write_text(f'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.mark.parametrize("with_release_file", [True, False])
@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("17", 17), ("1.8.0_402", 8), ("21.0.1", 21)])
def test_major_version(tmp_path: Path, version: str, major: int, with_release_file: bool) -> None:
    home = make_java(tmp_path / "some", version, with_release_file=with_release_file)

    assert java.major_version(home) == major


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_java(tmp_path / "jvm" / "java-17", "17.0.1")
    home = make_java(tmp_path / "mine", "17.0.2")
    monkeypatch.setenv("JAVA_HOME", str(home))

    assert java.java_home() == home
    assert java.java_executable() == home / "bin" / "java"


def test_a_java_of_another_version_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "new", "21.0.1")))
    home = make_java(tmp_path / "jvm" / "java-17", "17.0.1")

    assert java.java_home() == home


def test_a_link_on_the_path_leads_to_its_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "real", "17.0.1")
    (tmp_path / "java").symlink_to(home / "bin" / "java")

    assert java.java_home() == home


def test_no_java_is_one_clear_sentence() -> None:
    with pytest.raises(SetupError, match=r"Cannot find Java 17: no Java on this machine\. Install a Java 17 runtime"):
        java.java_home()


def test_the_wrong_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "new", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(home))

    with pytest.raises(SetupError, match=f"found only Java 21 in {home}"):
        java.java_home()


def test_a_later_java_is_the_earliest_that_is_late_enough(tmp_path: Path) -> None:
    for version in ("17.0.1", "25.0.1", "21.0.4"):
        make_java(tmp_path / "jvm" / f"java-{version}", version)

    assert java.java_executable_from(21) == tmp_path / "jvm" / "java-21.0.4" / "bin" / "java"


def test_no_late_enough_java_is_one_clear_sentence(tmp_path: Path) -> None:
    make_java(tmp_path / "jvm" / "java-17", "17.0.1")

    with pytest.raises(SetupError, match="Cannot find Java 21 or later: install such a runtime"):
        java.java_executable_from(21)
