"""docs/readers.md: which engines read which tables right, from the table that configurations are checked by.

`python -m scripts.pages.readers` prints the page; a test compares it with the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from cdc_sync.core.migration.readers import ENGINES, REGIMES, Engine, why_not

_HEAD = """\
# Who reads the tables

Say what reads them, and what would read them wrong is refused when the configuration is read, before there are tables:

```yaml
target:
  format: iceberg
  readers: [trino, duckdb]
```

`cdc-sync validate` says why. Nothing else depends on it: tables are written in one way.

The table below is measured by `.venv/bin/python -m bench.readers` (how: `bench/README.md`): a table of all common
types lives through thirty-two steps, among them columns added, dropped, renamed, swapped, added again under a name of
before, widened and converted; then each engine reads all of it, and every value is compared with the source's. The
program acts by the same table (`cdc_sync/core/migration/readers.py`), which prints this page; a test compares them.

- **equal**: every row and column is as at the source.
- **no**: it fails, or shows something else; refused, for the reason below.
- Empty: it was not seen to read such tables, and is refused too.

Versions matter: what holds of one need not hold of the next.

"""
_TITLES = {name: name[0].upper() + name[1:] for name in REGIMES}


def render() -> str:
    """Return the page."""
    return _HEAD + "\n".join([*_table(), "", *_reasons(), *_settings()]) + "\n"


def _table() -> Iterator[str]:
    yield f"| engine | {' | '.join(_TITLES[regime] for regime in REGIMES)} |"
    yield "|---" * (len(REGIMES) + 1) + "|"
    for engine in ENGINES.values():
        yield f"| {engine.name} {engine.version} | {' | '.join(_cell(engine, regime) for regime in REGIMES)} |"


def _cell(engine: Engine, regime: str) -> str:
    if regime not in engine.readings:
        return ""
    if why_not(engine.name, regime) is not None:
        return "no"
    return "equal"


def _reasons() -> Iterator[str]:
    for engine in ENGINES.values():
        for regime, reading in engine.readings.items():
            if reading.why_not:
                yield f"- **{engine.name}, {regime}**: it {reading.why_not}."


def _settings() -> Iterator[str]:
    told = [engine for engine in ENGINES.values() if engine.setting]
    if told:
        yield "\n## What the engines have to be told\n"
    for engine in told:
        yield f"- **{engine.name}**: {engine.setting}"


if __name__ == "__main__":
    sys.stdout.write(render())
