"""References to secrets: `${env:NAME}`, `${file:PATH}`; and `${config_dir}`, which is no secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from typing_extensions import Self

_REFERENCE = re.compile(r"\$(\$\{)|\$\{([^{}]*)\}")
_CONFIG_DIR = re.compile(r"(\$\$\{)|\$\{config_dir\}")
HIDDEN = "********"
"""What a secret shows as that stands in the file itself."""
_SHORTEST_HIDDEN = 4
"""Shorter values are not searched for in output: a secret of three letters is none, and `1` is everywhere."""


class UnresolvedError(Exception):
    """A reference that cannot be resolved; the text says why and what to do."""


class Secret(str):
    """Text that came from a reference: works as the value, shows as the reference.

    Attributes:
        reference: the text as it stands in the file.
        parts: each resolved value with the reference it came from.
    """

    __slots__ = ("parts", "reference")
    reference: str
    parts: tuple[tuple[str, str], ...]

    def __new__(cls, value: str, *, reference: str, parts: tuple[tuple[str, str], ...]) -> Self:
        """Mark `value`; see the attributes."""
        self = super().__new__(cls, value)
        self.reference = reference
        self.parts = parts
        return self

    def __repr__(self) -> str:
        return repr(self.reference)

    def __reduce__(
        self,
    ) -> tuple[Callable[[str, str, tuple[tuple[str, str], ...]], Secret], tuple[object, ...]]:
        return _secret, (str(self), self.reference, self.parts)


def _secret(value: str, reference: str, parts: tuple[tuple[str, str], ...]) -> Secret:
    return Secret(value, reference=reference, parts=parts)


def resolve(text: str, *, config_dir: str, environ: Mapping[str, str]) -> str:
    """Put values in place of the references in a text; `$${` stands for a plain `${`.

    Returns:
        A `Secret` if a secret went in, else plain text.

    Raises:
        UnresolvedError: if a reference is unknown, or leads nowhere.
    """
    parts: list[tuple[str, str]] = []

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return "${"
        found = _look_up(match[2], environ)
        parts.append((found, match[0]))
        return found

    without = _REFERENCE.sub("", _CONFIG_DIR.sub("", text))
    if "${" in without:
        raise UnresolvedError(
            f"{without[without.index('${') :]!r} is never closed; add a }}, or write $${{ for a plain ${{"
        )
    # The folder goes in first, so that it may stand inside another reference: ${file:${config_dir}/password}.
    with_folder = _CONFIG_DIR.sub(lambda match: match[1] or config_dir, text)
    resolved = _REFERENCE.sub(value, with_folder)
    return Secret(resolved, reference=text, parts=tuple(parts)) if parts else resolved


def _look_up(name: str, environ: Mapping[str, str]) -> str:
    kind, separator, key = name.partition(":")
    match kind if separator else "":
        case "env":
            if key not in environ:
                raise UnresolvedError(f"environment variable {key} is not set; set it before the start")
            return environ[key]
        case "file":
            return secret_in(Path(key))
        case _:
            raise UnresolvedError(
                f"reference ${{{name}}} is unknown; there are ${{env:NAME}}, ${{file:PATH}} and ${{config_dir}}, and "
                "$${ stands for a plain ${"
            )


def secret_in(path: Path) -> str:
    """Return what a file holds, without the ends of lines behind it.

    Raises:
        UnresolvedError: if it cannot be read, or holds more than a secret may be.
    """
    try:
        return _text_of(path).rstrip("\r\n")
    except UnicodeDecodeError:
        raise UnresolvedError(f"file {path} is not UTF-8 text; store the secret as text") from None
    except OSError as error:
        raise UnresolvedError(
            f"file {path} cannot be read ({error.strerror}); create it or mend the path, which is relative to the "
            "current directory"
        ) from None


def _text_of(path: Path) -> str:
    """Read a secret; what is no file, or larger than any secret, would never end or fill the memory."""
    if path.exists() and not path.is_file():
        raise UnresolvedError(f"{path} is no file; name the file that holds the secret")
    with path.open("rb") as file:
        data = file.read(_LARGEST_SECRET + 1)
    if len(data) > _LARGEST_SECRET:
        raise UnresolvedError(f"file {path} is larger than {_LARGEST_SECRET} bytes, so it holds no secret")
    return data.decode("utf-8")


_LARGEST_SECRET = 1024 * 1024
"""Bytes: a certificate with its chain is some thousands."""
_SENSITIVE = re.compile(r"password|passwd|secret|token|jaas|credential|private|\bssl\.key|access.?key", re.IGNORECASE)


def hide_plain(properties: dict[str, str]) -> dict[str, str]:
    """Mark values that stand in the file as they are under a name such as `sasl.password`."""
    return {
        name: Secret(value, reference=HIDDEN, parts=((value, HIDDEN),))
        if _SENSITIVE.search(name) and value and not isinstance(value, Secret)
        else value
        for name, value in properties.items()
    }


def redact(text: str, secrets: Iterable[Secret]) -> str:
    """Put references back in place of every secret value that a text contains."""
    pairs = {pair for secret in secrets for pair in secret.parts if len(pair[0]) >= _SHORTEST_HIDDEN}
    # Longest first, so that a value that contains another one leaves nothing of itself behind.
    for value, reference in sorted(pairs, key=lambda pair: (-len(pair[0]), pair)):
        text = text.replace(value, reference)
    return text
