"""Runs the job over tables and columns with hostile names: each is held as it is, or refused; none silently wrong.

    .venv/bin/python bench/names.py [--only iceberg|delta|hudi|parquet …] [--list]

One local Kafka, one table for each name, which has a column of that name too, and one of the next name that is added
behind its first rows. `cdc-sync run --once` reads them into an empty lake; then each target is read, and compared:

- **safe**: all rows and columns are the source's, under the names that the target gives them.
- **refused**: the table is paused, or was refused with a reason; nothing of it is anywhere else.
- **set aside**: a record of it is kept aside, with the reason.
- **silent**: none of these.

Nothing may be in the lake beside the tables that there should be. Exit code 0 only if nothing is silent or strange.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from confluent_kafka import Producer

from bench.readers.regimes import regime
from cdc_sync.config import Config, load_config
from cdc_sync.local.kafka import running_kafka
from cdc_sync.storage.state import StateStore
from cdc_sync.testing import INT32, TEXT, SourceTable, Wal, column
from tests.targets.hive import AS_ADVISED, start_metastore

_ROOT = Path(__file__).parents[1]
_FORMATS = ("iceberg", "delta", "hudi", "parquet")
_CONFIG = """\
pipeline: {{name: names, state: '{folder}/state'}}
kafka: {{bootstrap_servers: '{servers}', topic_pattern: '{prefix}\\..*'}}
tables: [{{pattern: '(?s).*'}}]
target: {target}
limits: {{max_new_tables_per_hour: 10000}}
spark:
  master: local[2]
  conf:
    spark.driver.memory: 3g
    spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
"""
_KINDS: dict[str, list[str]] = {
    "Spark's variables": [
        f"${{{name}}}"
        for name in (
            *("system:user.name", "env:HOME", "env:PATH", "spark.app.id", "hiveconf:x", "hivevar:y", "spark:app.name"),
            *("system:java.home", "env:USER}${env:HOME", "spark.sql.catalog.lake.warehouse", ""),
        )
    ],
    "templates": [
        "{schema}",
        "{table}",
        "{0}",
        "%s",
        "%(name)s",
        "{{x}}",
        "#{x}",
        "<%= x %>",
        "$x",
        "$1",
        "\\1",
        "\\g<0>",
        "@x",
        ":x",
        "?",
        "!!x",
    ],
    "SQL": [
        *(
            "'",
            '"',
            "`",
            "``",
            "'; DROP TABLE x; --",
            "`; DROP TABLE x; --",
            '"; DROP TABLE x; --',
            "' OR 1=1 --",
            "x--y",
        ),
        *(
            "/* x */",
            "x*/",
            ");",
            "x`.`y",
            "`x`",
            "'x'",
            '"x"',
            "a;b",
            "1",
            "1e5",
            "-1",
            "0x1F",
            "null",
            "NULL",
            "true",
        ),
        *("select", "table", "from", "order", "group", "default", "current_date", "*", "x.*", "count(*)", "x AS y"),
        *("array<int>", "map<a,b>", "struct<a:int>", "cast(x as int)", "/*+ x */", "N'x'", "$$x$$", "E'\\n'"),
    ],
    "paths": [
        *(
            ".",
            "..",
            "...",
            "/",
            "//",
            "/etc/passwd",
            "../x",
            "../../../x",
            "a/../b",
            "a/b",
            "\\",
            "a\\b",
            "C:\\x",
            "~",
            "~root",
        ),
        *(
            "%2e%2e",
            "%2F",
            "a%00b",
            "a%b",
            "file:///x",
            "s3://b/x",
            "hdfs:x",
            "a?b",
            "a#b",
            "a=b",
            "_x",
            ".x",
            "x.",
            "x ",
        ),
        *("metadata", "data", "_delta_log", ".hoodie", "_temporary", "_SUCCESS", "x=1", "__HIVE_DEFAULT_PARTITION__"),
        *("CON", "NUL", "lock", "x/", "/x", "x:y", "x;y", "x.parquet", "*.parquet", "[a]", "{a,b}", "a*", "a|b"),
    ],
    "names of ours and of formats": [
        *(
            "id_",
            "op",
            "ts_ms",
            "source",
            "before",
            "after",
            "created",
            "deleted",
            "c1",
            "v1",
            "value",
            "key",
            "offset",
            "partition",
        ),
        *(
            "topic",
            "_cdc_op",
            "_cdc_offset",
            "_source_table",
            "_file",
            "_pos",
            "_partition",
            "_spec_id",
            "_deleted",
            "_metadata",
        ),
        *(
            "_hoodie_commit_time",
            "_hoodie_record_key",
            "_hoodie_is_deleted",
            "_change_type",
            "_commit_version",
            "_row_id",
        ),
        *(
            "__debezium_unavailable_value",
            "__op",
            "__deleted",
            "hoodie_key",
            "path",
            "files",
            "history",
            "snapshots",
            "changes",
        ),
        *("branch_main", "tag_x", "at_timestamp_1", "snapshot_id_1", "x__dropped_2", "_x005F_file", "x_ro", "x_rt"),
    ],
    "characters": [
        *(
            " ",
            "  ",
            "\t",
            "\n",
            "\r\n",
            "a\nb",
            "a b",
            "\u00a0",
            "\u200b",
            "\u2028",
            "\u202eabc",
            "\u2066x\u2069",
            "\ufeffx",
            "\u0007",
        ),
        *(
            "\u001b[31mred",
            "\u001b]0;x\u0007",
            "\u0000",
            "a\u0000b",
            "\u007f",
            "\u0085",
            "é",
            "e\u0301",
            "ﬁ",
            "ſ",
            "ı",
            "İ",
            "ß",
            "ẞ",
        ),
        *(
            "漢字",
            "العربية",
            "עברית",
            "हिन्दी",
            "ไทย",
            "😀",
            "👩‍👩‍👧",
            "\U0001f1e9\U0001f1ea",
            "𝔞",
            "\ue000",
            "\uffff",
            "\U0010ffff",
            "Å",
            "Å",
            "Ω",
            "Ω",
        ),
    ],
    "length": [
        "x" * 63,
        "漢" * 21,
        "é" * 31,
        "\u0416" * 31,
        "😀" * 15,
        "`" * 63,
        "." * 63,
        "%" * 63,
        "a." * 31,
        "'" * 60,
        "x" * 100,
        "x" * 255,
    ],
    "case": ["Orders", "ORDERS", "orders", "oRDERS", "Straße", "STRASSE", "strasse", "I", "i"],
}


def main() -> int:
    """Run all formats that are asked for."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", nargs="+", default=_FORMATS, choices=_FORMATS)
    arguments.add_argument("--list", action="store_true", help="show what becomes of each name")
    arguments.add_argument("--read", metavar="CONFIG", type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.read is not None:
        print(json.dumps(_rows(load_config(given.read))))
        return 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kafka = stack.enter_context(running_kafka(folder / "kafka"))
        metastore = ""
        if "parquet" in given.only:
            (folder / "metastore").mkdir()
            server, metastore = start_metastore(folder / "metastore", AS_ADVISED)
            stack.callback(server.stop)
        fine = [_play(name, folder / name, kafka.bootstrap_servers, metastore, given.list) for name in given.only]
    return 0 if all(fine) else 1


def _tables(prefix: str) -> list[tuple[str, SourceTable]]:
    names = list(dict.fromkeys((kind, name) for kind, found in _KINDS.items() for name in found))
    wal, made = Wal(), []
    for number, (kind, name) in enumerate(names):
        after = names[(number + 1) % len(names)][1]
        table = SourceTable(name, [column("id", INT32, optional=False), column(name, TEXT)], prefix=prefix, wal=wal)
        table.topic = f"{prefix}.public.t{number}"
        for id_ in (1, 2):
            table.insert({"id": id_, name: f"{number} {id_}"})
        table.add_column(column(after, TEXT))
        table.update({"id": 1}, {after: f"{number} later"})
        made.append((kind, table))
    return made


def _play(name: str, folder: Path, servers: str, metastore: str, lists: bool) -> bool:
    folder.mkdir()
    kind = regime(name)
    tables = _tables(name)
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for _, table in tables:
        for record in table.records:
            producer.produce(table.topic, key=record.key, value=record.value)
    producer.flush()
    conf = folder / "conf.yaml"
    target = kind.target.format(warehouse=folder / "warehouse", metastore=metastore)
    conf.write_text(_CONFIG.format(folder=folder, servers=servers, prefix=name, target=target))
    began = time.monotonic()
    log = folder / "job.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "cdc_sync", "run", "--once", str(conf)]
        ended = subprocess.run(command, cwd=_ROOT, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    command = [sys.executable, __file__, "--read", str(conf)]
    read = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
    found: dict[str, list[list[Any]]] = json.loads(read)
    statuses = {status.table.table: status for status in StateStore(str(folder / "state" / "names")).tables()}
    refused = log.read_text(errors="replace")
    print(f"{name}: {len(tables)} names, {time.monotonic() - began:.0f} s, the job ended with {ended}", flush=True)
    counts: Counter[tuple[str, str]] = Counter()
    for group, table in tables:
        own, status = table.id.table, statuses.get(table.id.table)
        rows = sorted(map(tuple, found.get(own, [])))
        wanted = sorted(tuple(row[item.field or ""] for item in table.columns) for row in table.rows)
        said = (line for line in refused.splitlines() if f"topic={table.topic} " in line)
        reason = next(said, "") if status is None else status.reason or ""
        told = status is not None and status.state in ("paused", "failing", "waiting")
        aside = (folder / "state" / "names" / "dead-letters" / table.topic).exists()
        outcome = "safe" if rows == wanted else "refused" if told or reason else "set aside" if aside else "silent"
        counts[group, outcome] += 1
        if lists or outcome in ("set aside", "silent"):
            shown = "".join(item if item.isprintable() else f"<{ord(item):x}>" for item in own)
            print(f"    {outcome:9} {shown[:40]!r} {reason[:300]}")
    for group in _KINDS:
        line = ", ".join(f"{outcome} {number}" for (item, outcome), number in sorted(counts.items()) if item == group)
        print(f"  {group}: {line}")
    total = Counter(outcome for (_, outcome), number in counts.items() for _ in range(number))
    strange = sorted(path.name for path in folder.iterdir() if path.name not in _EXPECTED)
    held = [path.name for path in (folder / "warehouse").glob("*/*") if path.is_dir()]
    strange += [f"{len(held)} folders of {len(found)} tables"] if len(held) > len(found) else []
    print(f"  all: {dict(total)}; beside the lake: {strange or 'nothing'}", flush=True)
    return not total["silent"] and not strange


_EXPECTED = ("conf.yaml", "job.log", "state", "warehouse")


def _rows(config: Config) -> dict[str, list[list[Any]]]:
    """Return all rows of the tables, read by the target itself."""
    from cdc_sync.runtime.context import open_context
    from cdc_sync.runtime.job import SyncJob
    from cdc_sync.sources.kafka import KafkaClient
    from cdc_sync.spark.session import build_session

    context = open_context(config, build_session(config), KafkaClient(config.kafka))
    job = SyncJob(context)
    found = {}
    for table in context.history.tables():
        route = job.tables.route_of(table)
        if route is None:
            continue
        schema = context.history.load(table).head.schema
        try:
            rows = context.target.read(route.target, schema, [item.id for item in schema.live])
            found[table.table] = [list(row) for row in rows.collect()]
        except Exception as error:
            print(f"cannot read {table!s:.60}: {str(error)[:200]}", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
