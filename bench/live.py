"""Random DDL and DML on real Postgres and MariaDB through real Debezium, with a job that is killed in between.

    .venv/bin/python bench/live.py [--histories 200] [--wave 20] [--format iceberg] [--seed N] [--keep FOLDER]

Each history is one table; a wave of them is played at once, a third of it while the connectors are stopped or killed.
At the end the ids of all columns are compared with what the source knows the columns by (Postgres: attnum; MariaDB: a
count of the statements that ran), and rows with rows, but for columns that are marked. Then the connectors read the
tables of those again, after which nothing may differ. The seed decides what is done; times depend on the machine.
Exit code 0 only if nothing differs.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from cdc_sync.local.stack import LocalStack
from tests.lakes.opening import FORMATS
from tests.live.databases import Database, MariadbDatabase, PostgresDatabase
from tests.live.run import Live, Outcome
from tests.targets.hive import AS_ADVISED, start_metastore


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--histories", type=int, default=200, help="half of them on each database")
    arguments.add_argument("--wave", type=int, default=20, help="how many at once")
    arguments.add_argument("--format", choices=FORMATS, default="iceberg", help="of the lake's tables")
    arguments.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    arguments.add_argument("--keep", metavar="FOLDER", type=Path, help="work there and leave everything")
    given = arguments.parse_args()
    began = time.monotonic()
    outcomes: list[Outcome] = []
    with LocalStack(given.keep, databases=("postgres", "mariadb")) as stack, _metastore(given.format, stack) as uri:
        databases: list[Database] = [PostgresDatabase(stack), MariadbDatabase(stack)]
        live = Live(stack, databases, stack.folder, format=given.format, metastore=uri)
        with live.running():
            while len(outcomes) < given.histories:
                started = time.monotonic()
                # `wave` is of both databases together.
                wave = live.wave(given.wave // 2, seed=given.seed + len(outcomes))
                outcomes += wave
                _show(wave, f"{len(outcomes)} histories, wave of {time.monotonic() - started:.0f} s")
    _sum_up(outcomes, given.seed, time.monotonic() - began)
    return 1 if any(outcome.problems for outcome in outcomes) else 0


@contextmanager
def _metastore(format_: str, stack: LocalStack) -> Iterator[str | None]:
    """Run a Hive metastore where the format needs one, with the settings that docs/parquet.md asks for."""
    if format_ != "parquet":
        yield None
        return
    folder = stack.folder / "metastore"
    folder.mkdir()
    server, uri = start_metastore(folder, AS_ADVISED)
    try:
        yield uri
    finally:
        server.stop()


def _show(wave: tuple[Outcome, ...], title: str) -> None:
    wrong = [outcome for outcome in wave if outcome.problems]
    print(f"{title}: {len(wave) - len(wrong)} right", flush=True)
    for outcome in wrong:
        print(f"  {outcome.name}")
        for text in outcome.problems[:8]:
            print(f"    {text}")
        for statement in outcome.statements:
            print(f"      {statement}")
    sys.stdout.flush()


def _sum_up(outcomes: list[Outcome], seed: int, seconds: float) -> None:
    print(f"\nseed {seed}, {len(outcomes)} histories, {seconds:.0f} s")
    for prefix, title in (("pglive", "Postgres"), ("malive", "MariaDB")):
        of = [outcome for outcome in outcomes if outcome.name.startswith(prefix)]
        verdicts = [outcome.verdict for outcome in of if outcome.verdict is not None]
        done = sum((outcome.counts for outcome in of), Counter[str]())
        print(f"{title}: {len(of)} histories, {sum(verdict.states for verdict in verdicts)} states with rows")
        print(f"  ids compared           {sum(verdict.columns for verdict in verdicts)}")
        print(f"  two columns as one     {sum(len(verdict.wrong) for verdict in verdicts)}")
        print(f"  one column as two      {sum(len(verdict.split) for verdict in verdicts)}")
        print(f"  names or order wrong   {sum(len(verdict.other) for verdict in verdicts)}")
        print(f"  tables paused          {sum(outcome.paused is not None for outcome in of)}")
        print(f"  tables with other rows {sum(bool(outcome.rows) for outcome in of)}")
        print(f"  tables marked          {sum(bool(outcome.marked) for outcome in of)}")
        print(f"  not equal after resync {sum(bool(outcome.left) for outcome in of)}")
        reasons = Counter(reason for outcome in of for reason in outcome.marked.values())
        print("  marks: " + ", ".join(f"{count} x {reason!r}" for reason, count in reasons.most_common()))
        print("  done: " + ", ".join(f"{count} x {kind}" for kind, count in done.most_common()))


if __name__ == "__main__":
    sys.exit(main())
