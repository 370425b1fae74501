"""`scripts/demo migrate`: a report's table through two releases and one step back, read without Spark."""

from __future__ import annotations

import datetime
import shutil
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from cdc_sync.config.installed import folder

TABLE = "reports.sales"
_DAY = datetime.date(2024, 2, 29)
_ONE, _NEW = Decimal("1.00"), Decimal("9.50")


def main() -> int:
    """Play it; return 0 if the rows are in the end what they have to be."""
    with tempfile.TemporaryDirectory(prefix="cdc_sync_migrate_") as name:
        return _play(Path(name))


def _play(here: Path) -> int:
    migrations = here / "migrations"
    examples = folder("conf") / "migrations"
    migrations.mkdir()
    settings = (examples / "migrator.yaml").read_text(encoding="utf-8").replace("./", f"{here}/")
    (migrations / "migrator.yaml").write_text(settings, encoding="utf-8")

    _say("Release v1.0.0 makes a table, and a program that is not cdc_sync writes to it.")
    shutil.copytree(examples / "v1.0.0", migrations / "v1.0.0")
    _run("up", str(migrations), "--yes")
    table = _table(here)
    rows = [{"day": _DAY, "article": name, "qty": qty, "remark": remark} for name, qty, remark in _SOLD]
    table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
    _show(here)

    _say(
        "Release v1.1.0: a price, another name, another type. First columns, so that new rows can come; then the rows."
    )
    shutil.copytree(examples / "v1.1.0", migrations / "v1.1.0")
    _run("plan", str(migrations))
    _run("up", str(migrations), "--yes", "--no-fill")
    _run("backfill", str(migrations))
    _run("up", str(migrations), "--yes")
    found = _show(here)

    _say("The newest revision is taken back; rows stay.")
    _run("down", str(migrations), TABLE, "--yes")
    back = _show(here)
    _run("status", str(migrations))
    _run("history", str(migrations), TABLE)

    expected = [{"day": _DAY, "article": name, "price": _ONE, "remark": remark} for name, _, remark in _SOLD]
    right = found == [{**row, "quantity": Decimal(qty)} for row, (_, qty, _) in zip(expected, _SOLD, strict=True)]
    right = right and back == [{**row, "quantity": qty} for row, (_, qty, _) in zip(expected, _SOLD, strict=True)]
    _say("All rows are what they have to be." if right else "Rows are not what they have to be.")
    return 0 if right else 1


_SOLD = (("bread", 3, None), ("milk", 2, "cold"))


def _say(text: str) -> None:
    sys.stdout.write(f"\n{text}\n\n")
    sys.stdout.flush()


def _run(command: str, *arguments: str) -> None:
    """Show a command as somebody types it, and run it.

    Raises:
        SystemExit: if it fails; what is left to do is no failure.
    """
    typed = " ".join(("cdc-sync", "migrate", command, *arguments))
    sys.stdout.write(f"$ {typed}\n")
    sys.stdout.flush()
    code = subprocess.run([sys.executable, "-m", "cdc_sync", "migrate", command, *arguments], check=False).returncode
    if code not in (0, 2 if command == "plan" else 0, 4 if "--no-fill" in arguments else 0):
        raise SystemExit(code)


def _table(here: Path) -> Table:
    return SqlCatalog("lake", uri=f"sqlite:///{here}/warehouse/catalog.db").load_table(TABLE)


def _show(here: Path) -> list[dict[str, Any]]:
    """Show all rows, as PyIceberg reads them, and return them."""
    found: list[dict[str, Any]] = sorted(
        _table(here).scan().to_arrow().to_pylist(), key=lambda row: str(row["article"])
    )
    for row in found:
        sys.stdout.write("  " + ", ".join(f"{name}={value}" for name, value in row.items()) + "\n")
    return found


if __name__ == "__main__":
    sys.exit(main())
