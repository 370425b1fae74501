"""Who reads what: every engine, every format and regime, value by value, after a history of thirty-two steps.

    .venv/bin/python -m bench.readers [--only REGIME …] [--engines NAME …] [--together N]
                                   [--keep FOLDER] [--json]

It starts Kafka, a Hive metastore, Trino and Presto itself, on free ports and in a folder of its own. With --keep the
folder stays, and tables that are in it already are not written again. Exit code 1 if an engine shows anything but what
the source holds without having been refused beforehand (`target.readers`), or if a table could not be written.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.readers import install
from bench.readers.embedded import ENGINES
from bench.readers.history import STEPS, played
from bench.readers.hudi_sync import sync
from bench.readers.reading import Finding, Played, judge, read_embedded, read_server, read_spark
from bench.readers.regimes import REGIMES, Regime, configuration, topic_prefix
from bench.readers.report import show, wrong
from bench.readers.servers import Product, SqlServer
from cdc_sync.errors import SetupError
from cdc_sync.local.kafka import KafkaServer
from cdc_sync.local.ports import free_ports
from cdc_sync.testing import SourceTable
from tests.targets.hive import AS_ADVISED, start_metastore

_ROOT = Path(__file__).parents[2]
_SERVERS = {"trino": install.trino_product, "presto": install.presto_product}
_ALL = ("spark", *ENGINES, *_SERVERS)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="REGIME", choices=[kind.name for kind in REGIMES])
    parser.add_argument("--engines", nargs="+", metavar="NAME", choices=_ALL, default=_ALL)
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="work there and leave everything")
    parser.add_argument("--together", type=int, default=1, metavar="N", help="steps in a batch")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    kinds = [kind for kind in REGIMES if not given.only or kind.name in given.only]
    with ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cdc-sync-readers-")))
        folder = folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "metastore").mkdir(exist_ok=True)
        server, metastore = start_metastore(folder / "metastore", AS_ADVISED)
        stack.callback(server.stop)
        tables = _play(kinds, folder, metastore, given.together)
        findings = list(_read(tables, given.engines, folder, metastore))
    show(findings, kinds, as_json=given.json)
    return 1 if wrong(findings) or len(tables) < len(kinds) else 0


def _play(kinds: Sequence[Regime], folder: Path, metastore: str, together: int) -> list[Played]:
    """Write the tables that are not there yet; one that cannot be written is told of, and left out."""
    missing = [kind for kind in kinds if not (_folder(folder, kind) / "place").is_file()]
    if missing:
        ports = free_ports(2)
        with tempfile.TemporaryDirectory(prefix="cdc-sync-kafka-") as data:
            kafka = KafkaServer(Path(data), port=ports[0], controller_port=ports[1])
            kafka.start()
            try:
                for kind in missing:
                    _say(f"{kind.name}: {len(STEPS)} steps")
                    own = _folder(folder, kind)
                    own.mkdir(parents=True, exist_ok=True)
                    command = [sys.executable, "-m", "bench.readers.play", kind.name, str(own)]
                    with (own / "log").open("wb") as log:
                        done = subprocess.run(
                            [*command, kafka.bootstrap_servers, metastore, str(together)],
                            cwd=_ROOT,
                            stdout=log,
                            stderr=log,
                            check=False,
                        )
                    if done.returncode:
                        _say(f"{kind.name}: could not be written, see {own}/log\n{(own / 'log').read_text()[-1500:]}")
            finally:
                kafka.stop()
    return [
        Played(
            regime=kind.name,
            form=configuration(kind, own, "none:9", metastore).target.format,
            folder=own,
            place=(own / "place").read_text(),
        )
        for kind in kinds
        for own in (_folder(folder, kind),)
        if (own / "place").is_file()
    ]


def _folder(folder: Path, kind: Regime) -> Path:
    return folder / topic_prefix(kind)


def _read(tables: Sequence[Played], engines: Sequence[str], folder: Path, metastore: str) -> Iterator[Finding]:
    source = played("source")
    for name in engines:
        _say(f"reading with {name}")
        if name == "spark":
            for table in tables:
                yield judge(name, table, source, lambda table=table: read_spark(table, metastore))  # type: ignore[misc]
        elif name in ENGINES:
            yield from _read_embedded(name, tables, source)
        else:
            yield from _read_server(name, _SERVERS[name], tables, source, folder, metastore)


def _read_embedded(name: str, tables: Sequence[Played], source: SourceTable) -> Iterator[Finding]:
    try:
        python = install.python()
    except SetupError as error:
        yield from _not_to_be_had(name, tables, error)
        return
    for table in tables:
        if table.form in ENGINES[name][2]:
            yield judge(name, table, source, lambda table=table: read_embedded(python, name, table))  # type: ignore[misc]


def _read_server(
    name: str,
    product: Callable[[], Product],
    tables: Sequence[Played],
    source: SourceTable,
    folder: Path,
    metastore: str,
) -> Iterator[Finding]:
    try:
        with tempfile.TemporaryDirectory(prefix=f"cdc-sync-{name}-") as own:
            server = SqlServer(product(), Path(own), metastore)
            try:
                for table in tables:
                    if table.form == "hudi":
                        sync(table, folder, metastore)
                    yield judge(name, table, source, lambda table=table: read_server(server, table))  # type: ignore[misc]
            finally:
                server.stop()
    except SetupError as error:
        yield from _not_to_be_had(name, tables, error)


def _not_to_be_had(name: str, tables: Sequence[Played], error: SetupError) -> Iterator[Finding]:
    for table in tables:
        yield Finding(engine=name, version="", regime=table.regime, equal=None, text=f"not to be had: {error}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
