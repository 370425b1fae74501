"""Shows a table as the lake has it: columns with types, and its first rows."""

from __future__ import annotations

import sys

from cdc_sync.config import load_config
from cdc_sync.spark.session import build_session

config = load_config("/etc/cdc_sync/pipeline.yaml")
table = build_session(config).table(f"{config.target.catalog.name}.{sys.argv[1]}")
table.printSchema()
table.show(50, truncate=False)
