"""Money moves between accounts while their table changes and the job is killed; no reader of the lake sees a sum off.

    .venv/bin/python bench/bank.py [--minutes 10] [--seed N]

Real Postgres, Debezium and Kafka. Several connections move money at the same time, open, close and renumber accounts,
each in one transaction; one pays in, always the same large sum. So the sum over all accounts is a multiple of that at
each commit of the source, and at no place within a transfer. `job.whole_transactions` is on. In the end each snapshot
that the lake ever had is read without Spark: its sum must be that of a commit, and never one from before the last
snapshot's. The rows of the last one must be the source's.
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg
from chaos import Connector, compare, kill_often, last_run, wait_for_connector
from psycopg import errors
from pyarrow import compute

from cdc_sync.demo.lake import Lake
from cdc_sync.demo.postgres import create_database
from cdc_sync.local.stack import LocalStack
from tests.live.job import JobProcess

_CONFIG = """\
pipeline: {{name: bank, state: '{folder}/state'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: 'src\\.app\\..*'}}
tables: [{{pattern: 'src\\.app\\..*'}}]
target: {{catalog: {{warehouse: '{folder}/bank'}}}}
# What many small merges leave is put together, and no snapshot goes.
maintenance: {{every: 1m, keep_for: 720h}}
job: {{trigger_interval: 200ms, max_offsets_per_batch: {most}, whole_transactions: {whole}}}
spark:
  master: local[2]
  conf:
    spark.driver.memory: 1g
    spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
"""
_ACCOUNTS, _PAID = 200, 10**12
"""How many accounts there are at first, and what is paid in at a time, which no transfers come to."""
_MOST = 300
"""Offsets of a batch: fewer than some transactions have."""


class Bank:
    """The accounts, and the threads that use them until `stop` is set.

    Attributes:
        counts: what was done, by kind.
        failures: what ended a thread too early.
    """

    def __init__(self, dsn: str, stop: threading.Event, connector: Connector, chance: random.Random) -> None:
        self.counts: Counter[str] = Counter()
        self.failures: list[Exception] = []
        self._dsn = dsn
        self._stop = stop
        self._connector = connector
        works = [self._move, self._move, self._move, self._pay_in, self._alter]
        seeds = [chance.randrange(10**9) for _ in works]
        self._threads = [
            threading.Thread(target=self._repeat, args=(work, random.Random(seed)))
            for work, seed in zip(works, seeds, strict=True)
        ]
        self._columns = ["note"]
        self._altered_at = 0

    def open(self) -> None:
        """Open the accounts, all in one transaction, and start."""
        with psycopg.connect(self._dsn) as connection:
            connection.execute(
                "insert into app.accounts select n, case n when 1 then %s else 0 end from generate_series(1, %s) n",
                [_PAID, _ACCOUNTS],
            )
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _repeat(self, work: object, chance: random.Random) -> None:
        assert callable(work)
        try:
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                while not self._stop.wait(chance.uniform(0.02, 0.3)):
                    try:
                        kind = work(connection, chance)
                    except (errors.DeadlockDetected, errors.UndefinedColumn):
                        continue  # another one came first; nothing was done
                    self.counts[kind] += 1
        except Exception as error:
            self.failures.append(error)

    def _move(self, connection: psycopg.Connection, chance: random.Random) -> str:
        """Move money between accounts that nobody else uses just then, a little of it or from all to all."""
        kind = chance.choices(["transfer", "round", "open", "close", "renumber"], weights=[70, 1, 8, 6, 12])[0]
        with connection.transaction():
            most = {"transfer": 2, "close": 2, "round": 1000}.get(kind, 1)
            found = connection.execute(
                "select id from app.accounts order by random() limit %s for update skip locked", [most]
            ).fetchall()
            ids = [int(row[0]) for row in found]
            if len(ids) < min(most, 2):
                return "nothing"
            amount = chance.randint(1, 1_000_000)
            new = chance.randrange(10**15)
            match kind:
                case "open":
                    self._add(connection, ids[0], -amount)
                    connection.execute("insert into app.accounts (id, balance) values (%s, %s)", [new, amount])
                case "close" if len(ids) == 2:
                    gone = connection.execute("delete from app.accounts where id = %s returning balance", ids[:1])
                    row = gone.fetchone()
                    assert row is not None
                    self._add(connection, ids[1], int(row[0]))
                case "renumber":
                    self._add(connection, ids[0], 0)
                    connection.execute("update app.accounts set id = %s where id = %s", [new, ids[0]])
                case _:
                    for here, there in zip(ids, ids[1:] + ids[:1], strict=True):
                        self._add(connection, here, -amount)
                        self._add(connection, there, amount)
            return kind

    def _pay_in(self, connection: psycopg.Connection, chance: random.Random) -> str:
        with connection.transaction():
            found = connection.execute("select id from app.accounts limit 1 for update skip locked").fetchall()
            if not found:
                return "nothing"
            self._add(connection, int(found[0][0]), _PAID)
        time.sleep(chance.uniform(0, 2))
        return "paid in"

    def _add(self, connection: psycopg.Connection, id_: int, amount: int) -> None:
        connection.execute("update app.accounts set balance = balance + %s where id = %s", [amount, id_])

    def _alter(self, connection: psycopg.Connection, chance: random.Random) -> str:
        """Change the table, and then a row that shows it; the next change waits until the connector saw that."""
        if not self._connector.has_seen(self._altered_at):
            time.sleep(0.2)
            return "nothing"
        name = f"c{chance.randrange(10**6)}"
        kind = chance.choice(["add", "drop", "rename"] if len(self._columns) > 2 else ["add"])
        # Behind a renamed one there has to be another: only there does its place prove what happened.
        old = chance.choice(self._columns[:-1] or self._columns)
        said = {
            "add": f"add column {name} text" + chance.choice(["", " default 'new'"]),
            "drop": f"drop column {old}",
            "rename": f"rename column {old} to {name}",
        }[kind]
        with connection.transaction():
            connection.execute(f"alter table app.accounts {said}")
            connection.execute(
                "update app.accounts set balance = balance where id = (select min(id) from app.accounts)"
            )
        columns = [column for column in self._columns if column != old or kind == "add"]
        if kind == "rename":
            columns.insert(self._columns.index(old), name)
        self._columns = [*columns, name] if kind == "add" else columns
        row = connection.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
        assert row is not None
        self._altered_at = int(row[0])
        time.sleep(chance.uniform(1, 6))
        return kind


def main() -> int:
    """Return 0 if every snapshot has the sum of a commit, and the last one the source's rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument(
        "--split", action="store_true", help="without job.whole_transactions, to see what readers see then"
    )
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="work there and leave everything")
    given = parser.parse_args()
    print(f"seed {given.seed}, {given.minutes:g} minutes", flush=True)
    with LocalStack(given.keep) as stack:
        return _run(stack, given.minutes * 60, random.Random(given.seed), split=given.split)


def _run(stack: LocalStack, seconds: float, chance: random.Random, *, split: bool) -> int:
    folder, servers = stack.folder, stack.kafka.bootstrap_servers
    text = _CONFIG.format(folder=folder, servers=servers, most=_MOST, whole="false" if split else "true")
    (folder / "bank.yaml").write_text(text)
    dsn = create_database(stack.postgres.dsn, "src")
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("create schema app")
        admin.execute("create table app.accounts (id bigint primary key, balance bigint not null, note text)")
        admin.execute("create table public.pulse (id int primary key, beat bigint)")
    stack.register_postgres_connector("src", extra={"database.dbname": "src", "provide.transaction.metadata": "true"})
    stop, connector = threading.Event(), Connector(dsn)
    bank = Bank(dsn, stop, connector, chance)
    bank.open()
    try:
        kills = kill_often(JobProcess(folder / "bank.yaml"), time.monotonic() + seconds, chance, outages=False)
    finally:
        stop.set()
        bank.join()
    wait_for_connector(dsn, connector)
    # What is left after so many starts would take the small batches longer than all before.
    (folder / "bank.yaml").write_text(text.replace(f"max_offsets_per_batch: {_MOST}", "max_offsets_per_batch: 20000"))
    print("done: " + ", ".join(f"{count} x {kind}" for kind, count in sorted(bank.counts.items())))
    failures = [f"a writer ended: {failure!r}" for failure in bank.failures]
    failures += last_run(folder, "bank") + compare(folder, "bank", dsn) + _sums(folder)
    for failure in failures:
        print(f"  {failure}")
    print(f"{'WRONG' if failures else 'RIGHT'} after {kills} kills")
    return 1 if failures else 0


def _sums(folder: Path) -> list[str]:
    """Return which snapshots have a sum that no commit had, or one of before the snapshot before them."""
    lake = Lake(name="lake", service=f"jdbc:sqlite:{folder}/bank/catalog.db")
    table = lake.table("app.accounts")
    assert table is not None
    failures, before, sums = [], 0, set()
    snapshots = sorted(table.snapshots(), key=lambda it: it.sequence_number or 0)
    for snapshot in snapshots:
        data = table.scan(snapshot_id=snapshot.snapshot_id, selected_fields=("balance",)).to_arrow()
        found = int(compute.sum(data.column("balance")).as_py() or 0)
        paid, rest = divmod(found, _PAID)
        if rest or paid < before:
            failures.append(
                f"snapshot {snapshot.sequence_number}: {found} in {data.num_rows} accounts, {before} before"
            )
        before = paid
        sums.add(paid)
    print(f"{len(snapshots)} snapshots, {len(sums)} different sums, {len(failures)} of no commit")
    lake.close()
    return failures


if __name__ == "__main__":
    sys.exit(main())
