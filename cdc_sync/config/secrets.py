"""References: `${env:NAME}`, `${file:PATH}` and `${config_dir}`; and which of their values are secrets.

What a secret is, its key says: a password, a setting of other software that comes from a reference or is named like a
password. Of other values one that comes from a file or a variable that is named like a password is, and an address with
a password inside. All others show as what they are.

A secret shows as its reference wherever it is a value of its own. Texts of ours do not hold any. Other software's may,
so `redact` looks through all that is shown; a password that may be a word is looked for only where a password stands,
because leaving it out everywhere would tell it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from typing_extensions import Self

_REFERENCE = re.compile(r"\$(\$\{)|\$\{([^{}]*)\}")
_CONFIG_DIR = re.compile(r"(\$\$\{)|\$\{config_dir\}")
HIDDEN = "********"
"""What a secret shows as that stands in the file itself."""


class UnresolvedError(Exception):
    """A reference that cannot be resolved; the text says why and what to do."""


class Secret(str):
    """Text that came from a reference: works as the value, shows as the reference.

    Attributes:
        reference: the text as it stands in the file.
        parts: what must not be shown of it, each with the reference it came from.
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
            f"file {path} cannot be read ({error.strerror}); create it or fix the path, which is relative to the "
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
_SENSITIVE = re.compile(
    r"password|passwd|passphrase|secret|token|jaas|credential|private|\bssl\.key|access.?key|account.?key|user\.info"
    r"|(?<![a-z])(?:pw|pwd|pass)(?![a-z])",
    re.IGNORECASE,
)
_IN_AN_ADDRESS = re.compile(r"://[^/@\s:]*:([^/@\s]+)@|(?:password|pwd)\s*=\s*([^&;\s'\"]+)", re.IGNORECASE)
"""A password inside a URL, or among the words that a driver connects with."""


def _is_sensitive(reference: str) -> bool:
    return reference.startswith("${file:") or _SENSITIVE.search(reference) is not None


def shown_unless_secret(value: str) -> str:
    """Return plain text in place of a value that is no secret, for a key that is not one's."""
    if not isinstance(value, Secret):
        return value
    inside = [found for match in _IN_AN_ADDRESS.finditer(value) for found in match.groups() if found]
    parts = tuple(part for part in value.parts if _is_sensitive(part[1]))
    parts += tuple((found, HIDDEN) for found in inside if found not in {part[0] for part in parts})
    return Secret(str(value), reference=value.reference, parts=parts) if parts else str(value)


def hide_plain(properties: dict[str, str]) -> dict[str, str]:
    """Mark values that stand in the file as they are under a name such as `sasl.password`.

    Those of references are marked already. They are looked for in other texts only if they are likely to be secrets.
    """
    return {name: _marked(name, value) for name, value in properties.items()}


def _marked(name: str, value: str) -> str:
    if isinstance(value, Secret):
        whole = _SENSITIVE.search(name) is not None
        left = shown_unless_secret(value)
        parts = value.parts if whole else left.parts if isinstance(left, Secret) else ()
        return Secret(str(value), reference=value.reference, parts=parts)
    if _SENSITIVE.search(name) and value:
        return Secret(value, reference=HIDDEN, parts=((value, HIDDEN),))
    return value


def redact(text: str, secrets: Iterable[Secret]) -> str:
    """Put references back in place of what a text shows of secrets; see the module on those that may be words."""
    pairs = {pair for secret in secrets for pair in secret.parts if pair[0]}
    # Longest first, so that a value that contains another one leaves nothing of itself behind.
    for value, reference in sorted(pairs, key=lambda pair: (-len(pair[0]), pair)):
        if value not in text:
            continue
        if _is_no_word(value):
            text = text.replace(value, reference)
        else:
            pieces = re.split(rf"({_BEFORE_A_PASSWORD}){re.escape(value)}(?![A-Za-z0-9_])", text)
            # Every second one is what stands before the value.
            text = "".join(piece + reference if number % 2 else piece for number, piece in enumerate(pieces))
    return text


_BEFORE_A_PASSWORD = r"""(?i:password|passwd|pwd|secret|token|key)["']?\s*[=:]\s*["']?|://[^/@\s:]*:"""


def _is_no_word(value: str) -> bool:
    """Whether a text that has the value in it has it from the secret, and not because people write so."""
    return len(value) >= 16 or (len(value) >= 6 and not value.isalpha() and not value.isdigit())
