"""Moments as text, the same wherever one is written or shown: ISO 8601, whole seconds in UTC."""

from __future__ import annotations

from datetime import datetime, timezone


def utc(seconds: float) -> str:
    """Return seconds since the epoch as text."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


def seconds_of(text: str) -> float:
    """Return what `utc` wrote as seconds since the epoch."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def span(seconds: float) -> str:
    """Return how long something takes, in words that people read at a glance: 45 s, 12 min, 5 h, 3 d."""
    for unit, size, most in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48)):
        if seconds < most * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"
