"""The manifest of Java artefacts, and installing from it, without a JVM."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from cdc_sync.errors import SetupError
from cdc_sync.local import ivy, jars
from cdc_sync.local.artefact import MANIFEST, Artefact, digest_of, parse_manifest, render_manifest

ALPHA = Artefact(group="org.example", name="alpha", version="1.0")
BETA = Artefact(group="org.example", name="beta", version="2.0-rc1", classifier="plugin", extension="zip")


def content_of(artefact: Artefact) -> bytes:
    if artefact.extension != "zip":
        return f"bytes of {artefact.name}".encode()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in ("beta-2.0/a.jar", "beta-2.0/shorte...ned.jar"):
            archive.writestr(zipfile.ZipInfo(name), name)
    return content.getvalue()


def pinned(artefact: Artefact) -> Artefact:
    return replace(artefact, sha256=hashlib.sha256(content_of(artefact)).hexdigest())


@dataclass
class FakeIvy:
    """Serves what it is given, as `ivy.start` would."""

    serves: set[str]
    requests: list[str] = field(default_factory=list)
    fails_once: bool = False

    def start(self, artefacts: Sequence[Artefact], folder: Path) -> subprocess.Popen[bytes]:
        folder.mkdir(parents=True)
        (folder / "ivy.log").write_text("as Ivy says it")
        for artefact in artefacts:
            self.requests.append(artefact.name)
            if artefact.name in self.serves and not self.fails_once:
                path = ivy.retrieved(artefact, folder)
                path.parent.mkdir(parents=True)
                path.write_bytes(content_of(artefact))
        self.fails_once = False
        return subprocess.Popen([sys.executable, "-S", "-c", ""])


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeIvy:
    """A repository that holds alpha and beta, a manifest of both, and an empty cache."""
    fake = FakeIvy(serves={"alpha", "beta"})
    manifest = tmp_path / "jars.lock"
    manifest.write_text(render_manifest({"letters": (pinned(ALPHA), pinned(BETA))}))
    monkeypatch.setattr(jars, "MANIFEST", manifest)
    monkeypatch.setattr(ivy, "start", fake.start)
    monkeypatch.setenv("CDC_SYNC_CACHE", str(tmp_path / "cache"))
    return fake


def leftovers(cache: Path) -> list[str]:
    return [path.name for path in (cache / "jars").glob(".*")]


def test_manifest_reads_back_as_it_was_written() -> None:
    sets = {"one": (pinned(ALPHA),), "two": (pinned(ALPHA), pinned(BETA))}

    assert parse_manifest(render_manifest(sets)) == sets


def test_coordinates_of_a_classified_file() -> None:
    assert str(BETA) == "org.example:beta:2.0-rc1:plugin@zip"
    assert BETA.file_name == "beta-2.0-rc1-plugin.zip"
    assert Artefact.parse(str(BETA)) == BETA


@pytest.mark.parametrize("line", ["", "alpha", "a:b", "a::c", "a:b:c:d@jar:e"])
def test_a_line_that_is_no_artefact_is_refused(line: str) -> None:
    with pytest.raises(SetupError, match="Cannot read artefact"):
        Artefact.parse(line)


def test_the_checked_in_manifest_pins_every_file_of_every_set() -> None:
    sets = parse_manifest(MANIFEST.read_text())

    spark_sets = {jars.SPARK, jars.ICEBERG, jars.DELTA, jars.HUDI, jars.S3}
    connect_sets = {jars.DEBEZIUM_POSTGRES, jars.DEBEZIUM_MARIADB, jars.AVRO_CONVERTER}
    engines = {jars.TRINO, jars.TRINO_SERVER, jars.PRESTO}
    others = {jars.KAFKA, jars.APICURIO, jars.ICEBERG_REST}
    assert set(sets) == others | engines | connect_sets | spark_sets
    for name, artefacts in sets.items():
        assert artefacts, name
        assert all(len(artefact.sha256) == 64 for artefact in artefacts), name
        assert len({artefact.file_name for artefact in artefacts}) == len(artefacts), name


def test_install_puts_verified_files_into_the_cache_and_unpacks_archives(repository: FakeIvy) -> None:
    folder = jars.install("letters")

    assert {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.jar")} == {
        "alpha-1.0.jar": b"bytes of alpha",
        "beta-2.0/a.jar": b"beta-2.0/a.jar",
        "beta-2.0/shorte...ned.jar": b"beta-2.0/shorte...ned.jar",
    }
    assert not list(folder.glob("*.zip"))
    assert folder.name == f"letters-{digest_of((pinned(ALPHA), pinned(BETA)))}"


def test_an_installed_set_is_not_fetched_again(repository: FakeIvy) -> None:
    folder = jars.install("letters")
    repository.requests.clear()

    assert jars.install("letters") == folder
    assert repository.requests == []


def test_what_a_first_round_leaves_out_is_asked_for_again(repository: FakeIvy) -> None:
    repository.fails_once = True

    assert len(list(jars.install("letters").iterdir())) == 2


def test_a_file_that_is_not_there_is_named_and_nothing_stays_behind(repository: FakeIvy, tmp_path: Path) -> None:
    repository.serves.remove("beta")

    with pytest.raises(
        SetupError, match=r"(?s)Cannot fetch org\.example:beta:2\.0-rc1:plugin@zip: .*as Ivy says it"
    ) as error:
        jars.install("letters")

    assert "alpha" not in str(error.value)
    assert leftovers(tmp_path / "cache") == []


def test_a_file_with_other_bytes_is_refused(repository: FakeIvy, tmp_path: Path) -> None:
    (tmp_path / "jars.lock").write_text(render_manifest({"letters": (replace(ALPHA, sha256="0" * 64),)}))

    with pytest.raises(SetupError, match=r"Cannot use org\.example:alpha:1\.0: its SHA-256 is [0-9a-f]{64}"):
        jars.install("letters")

    assert list((tmp_path / "cache" / "jars").iterdir()) == []


def test_installs_at_the_same_time_end_in_one_folder(repository: FakeIvy, tmp_path: Path) -> None:
    threads = [threading.Thread(target=jars.install, args=("letters",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(list((tmp_path / "cache" / "jars").iterdir())) == 1


def test_an_unknown_set_is_refused_with_the_known_ones(repository: FakeIvy) -> None:
    with pytest.raises(SetupError, match="Cannot install 'digits': the sets are letters"):
        jars.install("digits")


def test_the_command_line_answers_with_the_exit_code_of_the_error(
    repository: FakeIvy, capsys: pytest.CaptureFixture[str]
) -> None:
    assert jars.main(["letters"]) == 0
    assert "jars letters: 2 files in" in capsys.readouterr().err
    assert jars.main(["digits"]) == SetupError.exit_code


@pytest.mark.spark
def test_ivy_fetches_from_a_mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    for artefact in (ALPHA, BETA):
        path = mirror / "org/example" / artefact.name / artefact.version / artefact.file_name
        path.parent.mkdir(parents=True)
        path.write_bytes(content_of(artefact))
    manifest = tmp_path / "jars.lock"
    manifest.write_text(render_manifest({"letters": (pinned(ALPHA), pinned(BETA))}))
    monkeypatch.setattr(jars, "MANIFEST", manifest)
    monkeypatch.setenv("CDC_SYNC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(ivy.MIRROR_VARIABLE, mirror.as_uri())

    folder = jars.install("letters")

    assert sorted(path.name for path in folder.iterdir()) == ["alpha-1.0.jar", "beta-2.0"]
