"""Figures as the scripts tell them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import quantiles


def percentile_99(seconds: Sequence[float]) -> float:
    """Return the 99th percentile; of one value that value."""
    return quantiles(seconds, n=100, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]


def show(found: Mapping[str, object], *, as_json: bool) -> None:
    """Print figures, and what else was found, by their names."""
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    width = max(map(len, found))
    for label, value in found.items():
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        text = f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if is_whole else str(value)
        print(f"{label:{width}} {text:>12}")
