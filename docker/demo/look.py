"""Shows a table as the lake has it: columns with types, and its first rows."""

from __future__ import annotations

import sys

from cdc_sync.config import load_config
from cdc_sync.spark.session import build_session

table_name = sys.argv[1]
config = load_config(f"/etc/cdc_sync/{sys.argv[2] if len(sys.argv) > 2 else 'pipeline'}.yaml")
table = build_session(config).table(f"{config.target.catalog.name}.{table_name}")
table.printSchema()
table.show(50, truncate=False)
