"""Looks for secrets in all that images consist of: their settings, their history, and every file of every layer."""

from __future__ import annotations

import re
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from typing import IO, Any

_LARGEST = 2 * 1024 * 1024
"""Files that people write are smaller."""
_NOT_WRITTEN_BY_PEOPLE = (".jar", ".so", ".pyc", ".gz", ".jsa", ".sym", ".dat", ".mo")
_NAMES = ("id_rsa*", "id_ed25519*", ".netrc", ".npmrc", ".pypirc", ".pgpass", "pip.conf", ".git-credentials", ".env")
_PATHS = ("*/.git/*", "*/.ssh/*", "*/.aws/*", "*/.docker/config.json", "*/.m2/settings.xml", "etc/apt/auth.conf*/?*")
_WORD = rb"[^\s/:@\"'<>{}$%*()\[\]]+"
# What it is, a text without which it is not there, and how it looks.
_CONTENTS = (
    (
        "a private key",
        b"PRIVATE KEY-----",
        re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40}"),
    ),
    ("an access key of AWS", b"AKIA", re.compile(rb"\bAKIA[0-9A-Z]{16}\b")),
    ("a token of GitHub", b"gh", re.compile(rb"\bgh[pousr]_[A-Za-z0-9]{36}\b")),
    (
        "an address with a password",
        b"@",
        re.compile(rb"https?://" + _WORD + rb":" + _WORD + rb"@[a-z0-9.-]+\.[a-z]{2,}"),
    ),
)
_EXAMPLE = re.compile(rb"example|user(?:name)?:pass|foo:bar|localhost|@host\b|\.invalid", re.IGNORECASE)
_SETTING = re.compile(r"(?i)(?:password|passwd|secret|token|api_?key)\w*\s*=\s*\S")


def in_settings(image: Any) -> list[str]:
    """Return the environment and the steps of an image, as the engine's client has it, that hold secrets."""
    texts = [*(image.attrs["Config"]["Env"] or ()), *(step["CreatedBy"] for step in image.history())]
    return [text for text in texts if _SETTING.search(text)]


def in_layers(images: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """Read images as they would be handed on, layers that they share once; return what was found, a sentence each.

    Args:
        images: names or ids.
        known: secrets of this machine by name, whose values must not be there.
    """
    values = {name: value.encode() for name, value in known.items()}
    with subprocess.Popen(["docker", "save", *images], stdout=subprocess.PIPE) as saving:
        found = list(_in_archive(_given(saving.stdout), values))
    assert saving.returncode == 0
    return found


def _in_archive(stream: IO[bytes], known: Mapping[str, bytes]) -> Iterator[str]:
    layers = 0
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if not member.isfile() or member.name.endswith(".json"):
                continue
            try:
                with tarfile.open(fileobj=_given(archive.extractfile(member)), mode="r|*") as layer:
                    layers += 1
                    yield from _in_layer(layer, known)
            except tarfile.ReadError:
                continue  # not a layer, but what describes one
    assert layers, "no layer was looked into"


def _in_layer(layer: tarfile.TarFile, known: Mapping[str, bytes]) -> Iterator[str]:
    for member in layer:
        if not member.isfile():
            continue
        name = member.name.removeprefix("./")
        if any(fnmatch(name.rpartition("/")[2], pattern) for pattern in _NAMES):
            yield f"{name}: a file of that name"
        if any(fnmatch(name, pattern) for pattern in _PATHS):
            yield f"{name}: a file at that place"
        if 0 < member.size <= _LARGEST and not name.endswith(_NOT_WRITTEN_BY_PEOPLE):
            content = _given(layer.extractfile(member)).read()
            yield from (f"{name}: {what}" for what in _in_content(content, known))


def _in_content(content: bytes, known: Mapping[str, bytes]) -> Iterator[str]:
    for name, value in known.items():
        if value in content:
            yield f"the value of {name}"
    for what, text, pattern in _CONTENTS:
        if text in content:
            yield from (what for match in pattern.finditer(content) if not _EXAMPLE.search(match[0]))


def _given(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream
