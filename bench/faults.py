"""Plays statements that once went wrong without a word on real Postgres and MariaDB, through real Debezium and the job.

    .venv/bin/python bench/faults.py [--only TEXT] [--keep FOLDER] [--json]

Each of `tests/live/faults.py` is a table. All are played at once; the job drains the topics after the first
statements and at the end, in two pipelines: one that has evidence of DDL (Postgres: `install-ddl-capture`, MariaDB:
the schema-change topic) and one that has none. A cell is `equal`; `marked` where what differs is a column that needs a
resync, or the table is paused, or a warning speaks of rows; `warned` where `status` says that nothing tells statements;
or `SILENT`. Exit code 1 if any is silent. Two minutes.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from cdc_sync.config import Config, parse_config
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.demo.compare import plain, same, shown
from cdc_sync.demo.mariadb import MariadbSource
from cdc_sync.demo.postgres import PostgresSource, create_database, install_ddl_capture
from cdc_sync.local.ports import free_ports
from cdc_sync.local.postgres import PostgresServer
from cdc_sync.local.stack import LocalStack
from cdc_sync.sources.databases.postgres import apply, install_sql
from cdc_sync.storage.state import StateStore
from tests.lakes.opening import open_lake
from tests.live.faults import FAULTS, SOURCES, Connector, Fault

_ROOT = Path(__file__).parents[1]
_PATIENCE = 120.0
_CONFIG = """
pipeline: {{name: {name}, state: '{folder}/{name}/state'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: '({sources})[.][a-z]+[.][a-z0-9]+'}}
{evidence}
tables: [{{pattern: '.*', target: '{{schema}}.{{table}}'}}]
target: {{format: iceberg, catalog: {{warehouse: '{folder}/{name}/warehouse'}}}}
spark: {{master: 'local[2]'}}
"""
_DONE = "done"


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", default="", metavar="TEXT", help="only tables whose name or source holds this")
    arguments.add_argument("--keep", metavar="FOLDER", type=Path, help="work there and leave everything")
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    faults = tuple(fault for fault in FAULTS if given.only in fault.name)
    kinds = {SOURCES[fault.source].kind for fault in faults}
    databases = tuple(kind for kind in ("postgres", "mariadb") if kind in kinds)
    with LocalStack(given.keep, databases=databases) as stack:
        cells = _Play(stack, faults).run()
    if given.json:
        print(json.dumps([{"table": c.fault, "pipeline": c.pipeline, "is": c.word, "why": c.why} for c in cells]))
    else:
        for cell in cells:
            print(
                f"{cell.word:7} {cell.pipeline:9} {cell.fault}", *(f"          {text}" for text in cell.why), sep="\n"
            )
    silent = sum(cell.word == "SILENT" for cell in cells)
    print(f"{len(cells)} cells, {silent} silent", file=sys.stderr)
    return 1 if silent else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    fault: str
    pipeline: str
    word: str
    why: tuple[str, ...]


class _Play:
    def __init__(self, stack: LocalStack, faults: Sequence[Fault]) -> None:
        self._stack = stack
        self._faults = faults
        self._connectors = {name: SOURCES[name] for name in dict.fromkeys(fault.source for fault in faults)}
        self._sources: dict[str, PostgresSource | MariadbSource] = {}
        self._servers = dict.fromkeys(self._connectors, stack.postgres)
        self._other: PostgresServer | None = None
        self._ends: dict[str, int] = {}
        messages = ", ".join(f"{name}.message" for name, it in self._connectors.items() if it.kind == "postgres")
        changes = ", ".join(name for name, it in self._connectors.items() if it.kind == "mariadb")
        told = ", ".join(
            [*([f"messages: [{messages}]"] if messages else []), *([f"schema_changes: [{changes}]"] if changes else [])]
        )
        self._configs = {
            "evidence": self._config("evidence", f"evidence: {{{told}}}"),
            "none": self._config("none", ""),
        }

    def run(self) -> tuple[_Cell, ...]:
        """Play everything and compare at the end."""
        try:
            return self._run()
        finally:
            if self._other is not None:
                self._other.stop()

    def _run(self) -> tuple[_Cell, ...]:
        for name, connector in self._connectors.items():
            self._make(name, connector)
        self._statements("before")
        for name, connector in self._connectors.items():
            self._register(name, connector, {})
        self._wait()
        self._jobs()
        for name, connector in self._connectors.items():
            if connector.later:
                self._register(name, connector, connector.later)
            if connector.anew:
                self._lose(name)
            if connector.moved:
                self._move(name)
        self._statements("between")
        for name, connector in self._connectors.items():
            if connector.anew:
                self._register(name, connector, {})
        self._wait()
        codes = self._jobs()
        return tuple(
            self._cell(fault, name, config, codes[name])
            for fault in self._faults
            for name, config in self._configs.items()
        )

    def _config(self, name: str, evidence: str) -> Config:
        text = _CONFIG.format(
            name=name,
            folder=self._stack.folder,
            servers=self._stack.kafka.bootstrap_servers,
            sources="|".join(self._connectors),
            evidence=evidence,
        )
        self._stack.folder.joinpath(f"{name}.yaml").write_text(text)
        return parse_config(text)

    def _make(self, name: str, connector: Connector) -> None:
        schemas = {fault.table.partition(".")[0] for fault in self._faults if fault.source == name}
        if connector.kind == "mariadb":
            source = MariadbSource(self._stack.mariadb.url)
            source.execute([f"create database {schema}" for schema in schemas])
            source.execute([f"create table shop.{_DONE} (id int auto_increment primary key)"])
            self._sources[name] = source
            return
        dsn = create_database(self._servers[name].dsn, name)
        self._sources[name] = PostgresSource(dsn)
        self._sources[name].execute([f"create schema {schema}" for schema in schemas])
        self._sources[name].execute([f"create table public.{_DONE} (id serial primary key)"])
        if connector.capture == "before":
            _capture(dsn)

    def _register(self, name: str, connector: Connector, later: Mapping[str, str]) -> None:
        extra = {**connector.extra, **later}
        if connector.kind == "mariadb":
            tables = [f"shop[.]({'|'.join(fault.table.partition('.')[2] for fault in self._of(name))}|{_DONE})"]
            self._stack.register_mariadb_connector(name, tables, extra=extra)
            source = self._sources[name]
            assert isinstance(source, MariadbSource)
            deadline = time.monotonic() + _PATIENCE
            while not source.is_replicated():
                assert time.monotonic() < deadline, "the connector does not begin to read the log"
                time.sleep(0.1)
            return
        server = self._servers[name]
        known = {"database.dbname": name, "database.port": str(server.port)}
        self._stack.register_postgres_connector(name, extra={**known, **extra})
        if "time.precision.mode" not in later and connector.capture == "behind":
            install_ddl_capture(psycopg.conninfo.make_conninfo(server.dsn, dbname=name), slot=name)

    def _of(self, source: str) -> tuple[Fault, ...]:
        return tuple(fault for fault in self._faults if fault.source == source)

    def _lose(self, name: str) -> None:
        """Lose a connector's slot and offsets, as if it had been made anew by somebody who had neither."""
        self._stack.connect.forget(name)
        with psycopg.connect(self._stack.postgres.dsn, autocommit=True) as connection:
            deadline = time.monotonic() + _PATIENCE
            while connection.execute(
                "select 1 from pg_replication_slots where slot_name = %s and active", (name,)
            ).fetchone():
                assert time.monotonic() < deadline, "the slot stays in use"
                time.sleep(0.1)
            connection.execute("select pg_drop_replication_slot(%s)", (name,))

    def _move(self, name: str) -> None:
        """Have a connector's database go on on another server, whose log is shorter."""
        self._stack.connect.forget(name)
        if self._other is None:
            self._other = PostgresServer(self._stack.folder / "other", port=free_ports(1)[0])
            self._other.start()
        self._servers[name] = self._other
        self._make(name, self._connectors[name])
        for fault in self._of(name):
            for statement in fault.before:
                self._sources[name].execute([statement])
        self._register(name, self._connectors[name], {"snapshot.mode": "no_data"})

    def _statements(self, which: str) -> None:
        for fault in self._faults:
            for statement in getattr(fault, which):
                self._sources[fault.source].execute([part.strip() for part in statement.split(";")])

    def _wait(self) -> None:
        """Return once everything that was done so far is in Kafka: a row written behind it is."""
        for name, connector in self._connectors.items():
            schema = "shop" if connector.kind == "mariadb" else "public"
            self._sources[name].execute([f"insert into {schema}.{_DONE} values (default)"])
            deadline = time.monotonic() + _PATIENCE
            while (end := self._end(f"{name}.{schema}.{_DONE}")) <= self._ends.get(name, 0):
                assert time.monotonic() < deadline, f"{name} does not send: {self._stack.connect.status(name)}"
                time.sleep(0.2)
            self._ends[name] = end
        time.sleep(2)

    def _end(self, topic: str) -> int:
        # A consumer remembers for long that a topic was not there.
        consumer = Consumer({"bootstrap.servers": self._stack.kafka.bootstrap_servers, "group.id": "faults"})
        try:
            return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)[1])
        except KafkaException as error:
            if error.args[0].code() not in (KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART):
                raise
            return 0
        finally:
            consumer.close()

    def _jobs(self) -> dict[str, int]:
        return {name: self._job(name) for name in self._configs}

    def _job(self, name: str) -> int:
        command = [sys.executable, "-m", "cdc_sync", "run", str(self._stack.folder / f"{name}.yaml"), "--once"]
        with self._stack.folder.joinpath(f"{name}.log").open("a") as log:
            return subprocess.run(command, cwd=_ROOT, stdout=log, stderr=log, timeout=600, check=False).returncode

    def _cell(self, fault: Fault, name: str, config: Config, code: int) -> _Cell:
        status = next(
            (
                it
                for it in StateStore(config.pipeline.root).tables()
                if _source_name(it) == fault.table and _is_of(it, fault)
            ),
            None,
        )
        wrong = self._differences(fault, config)
        if not wrong:
            return _Cell(fault=fault.name, pipeline=name, word="equal", why=())
        marks = _marks(status)
        if marks & set(self._sources[fault.source].key(fault.table)):
            marks |= {"rows"}
        open_ = {column: text for column, text in wrong.items() if not {column, "*"} & marks}
        told = (
            *(f"differs: {column}: {text}" for column, text in wrong.items()),
            *(f"status: {text}" for text in _words(status)),
            f"exit code {code}",
        )
        counted = status is not None and (
            status.state != "running" or (status.warnings and set(open_) <= {"rows", "columns"})
        )
        topics = {it.topic for it in StateStore(config.pipeline.root).dead_letters.counts()}
        aside = f"{fault.source}.{fault.table}" in topics
        warned = status is not None and any(
            "no topic is configured that tells statements" in it for it in status.evidence_gaps
        )
        word = "marked" if not open_ or counted or aside else "warned" if warned else "SILENT"
        return _Cell(fault=fault.name, pipeline=name, word=word, why=told)

    def _differences(self, fault: Fault, config: Config) -> dict[str, str]:
        """Return what is unlike the source, by column; `rows` for whole rows, `columns` for names and order."""
        image = self._sources[fault.source].image(fault.table)
        lake = open_lake(config.target)
        schema, _, table = fault.table.partition(".")
        try:
            found = lake.table((schema, table))
        finally:
            lake.close()
        if found is None:
            return {"rows": "there is no table"}
        wrong: dict[str, str] = {}
        names, theirs = [column.name for column in image.columns], [name for name, _ in found.columns]
        if names != theirs:
            wrong["columns"] = f"{', '.join(names)} at the source, {', '.join(theirs)} in the lake"
        key = self._sources[fault.source].key(fault.table)
        rows = {tuple(row.get(name) for name in key): {n: plain(v) for n, v in row.items()} for row in found.rows}
        wanted = {tuple(row[name] for name in key): row for row in image.records()}
        if rows.keys() != wanted.keys() or len(found.rows) != len(rows):
            wrong["rows"] = f"{sorted(wanted)} at the source, {sorted(rows)} in the lake, of {len(found.rows)} rows"
        for identity in sorted(wanted.keys() & rows.keys()):
            for column in (it for it in names if it in theirs):
                ours, other = wanted[identity][column], rows[identity][column]
                if not same(_as_kept(ours), other):
                    wrong.setdefault(
                        column, f"row {identity}: {_short(ours)} at the source, {_short(other)} in the lake"
                    )
        return wrong


def _capture(dsn: str) -> None:
    apply(dsn, install_sql())


def _as_kept(value: object) -> object:
    """Return a value as the lake keeps it: it has no type for times of a day."""
    return value.isoformat() if isinstance(value, datetime.time) else value


def _source_name(status: TableStatus) -> str:
    return f"{status.table.schema or status.table.database}.{status.table.table}"


def _is_of(status: TableStatus, fault: Fault) -> bool:
    return SOURCES[fault.source].kind == "mariadb" or status.table.database == fault.source


def _marks(status: TableStatus | None) -> set[str]:
    return {mark.column for mark in status.needs_resync} if status is not None else set()


def _words(status: TableStatus | None) -> tuple[Any, ...]:
    if status is None:
        return ("none",)
    return (
        f"{status.state} {status.reason or ''} {status.remedy or ''}",
        *(f"needs resync: {mark.column}: {mark.reason}" for mark in status.needs_resync),
        *(f"warning: {text}" for text in status.warnings),
        *(f"{name}: {count}" for name, count in status.counts.items()),
    )


def _short(value: object) -> str:
    text = shown(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


if __name__ == "__main__":
    sys.exit(main())
