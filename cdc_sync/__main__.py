"""`python -m cdc_sync`, and `spark-submit cdc_sync/__main__.py`."""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # Run as a file, Python puts the package's own folder first, where its modules would pass for top-level ones.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from cdc_sync.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
