"""Figures as the scripts tell them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import quantiles


def percentile_99(seconds: Sequence[float]) -> float:
    """Return the 99th percentile; of one value that value."""
    return quantiles(seconds, n=100, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]


def show(found: Mapping[str, float], *, as_json: bool) -> None:
    """Print figures by their names."""
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    width = max(map(len, found))
    for label, value in found.items():
        print(f"{label:{width}} {value:12,.3f}" if isinstance(value, float) else f"{label:{width}} {value:12,}")
