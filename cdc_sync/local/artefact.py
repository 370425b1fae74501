"""Java artefacts by coordinates, and the checked-in manifest that pins every file of every set.

The manifest is text, one section per set::

    [kafka]
    org.apache.kafka:kafka-clients:4.3.1 <sha256>
    [debezium-postgres]
    io.debezium:debezium-connector-postgres:3.6.1.Final:plugin@tar.gz <sha256>
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cdc_sync.errors import SetupError

MANIFEST = Path(__file__).with_name("jars.lock")
_HEADER = "# Every Java artefact that is installed. Generated: python -m cdc_sync.local.jars --lock\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """One file of a Maven repository; `sha256` is empty until it is pinned."""

    group: str
    name: str
    version: str
    classifier: str = ""
    extension: str = "jar"
    sha256: str = ""

    @classmethod
    def parse(cls, line: str) -> Artefact:
        """Reads `group:name:version[:classifier@extension] [sha256]`.

        Raises:
            SetupError: the line is not of that form.
        """
        coordinates, _, sha256 = line.strip().partition(" ")
        parts = coordinates.split(":")
        if len(parts) not in (3, 4) or not all(parts):
            raise SetupError(f"Cannot read artefact {line!r}: expected group:name:version[:classifier@extension]")
        classifier, _, extension = parts[3].partition("@") if len(parts) == 4 else ("", "", "")
        return cls(
            group=parts[0],
            name=parts[1],
            version=parts[2],
            classifier=classifier,
            extension=extension or "jar",
            sha256=sha256.strip(),
        )

    def __str__(self) -> str:
        suffix = f":{self.classifier}@{self.extension}" if self.classifier or self.extension != "jar" else ""
        return f"{self.group}:{self.name}:{self.version}{suffix}"

    @property
    def file_name(self) -> str:
        """The name the file has in a Maven repository, unique inside a set."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.extension}"


def sha256_of(path: Path) -> str:
    """The hexadecimal SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def parse_manifest(text: str) -> dict[str, tuple[Artefact, ...]]:
    """Reads a manifest; sets and files keep their order."""
    sets: dict[str, tuple[Artefact, ...]] = {}
    current = ""
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            current = line.strip("[]")
            sets[current] = ()
        else:
            sets[current] = (*sets[current], Artefact.parse(line))
    return sets


def render_manifest(sets: Mapping[str, Iterable[Artefact]]) -> str:
    """Writes a manifest such that `parse_manifest` gives the same sets back."""
    lines = [_HEADER]
    for name, artefacts in sets.items():
        lines.append(f"[{name}]\n")
        lines.extend(f"{artefact} {artefact.sha256}\n" for artefact in artefacts)
    return "".join(lines)


def digest_of(artefacts: Iterable[Artefact]) -> str:
    """A short name for exactly this set of files: a changed manifest installs into another folder."""
    text = "\n".join(f"{artefact} {artefact.sha256}" for artefact in artefacts)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
