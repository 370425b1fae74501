"""What `import cdc_sync` offers, and that the page about it is true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cdc_sync
from cdc_sync.core.planning.status import TableStatus
from cdc_sync.storage.state import StateStore
from tests.history.versions import versions

PAGE = (Path(__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
CONFIG = """
pipeline: {name: p, state: state}
kafka: {bootstrap_servers: 'localhost:1', topics: [t], request_timeout: 100ms, attempts: 1}
tables: [{pattern: '.*'}]
target: {catalog: {warehouse: w}}
"""


def test_every_public_name_is_there_and_no_other() -> None:
    for name in cdc_sync.__all__:
        assert getattr(cdc_sync, name).__doc__
    assert not hasattr(cdc_sync, "no_such_name")


def test_importing_it_loads_neither_spark_nor_kafka_nor_pydantic() -> None:
    program = "import cdc_sync, sys; print([n for n in ('pyspark', 'confluent_kafka', 'pydantic') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_page_names_every_function_and_no_other() -> None:
    table = PAGE.partition("| function |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+)\(", table))
    assert named | {"Config", "CdcSyncError", "Words"} == set(cdc_sync.__all__)


def test_its_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipeline.yaml").write_text(CONFIG)
    table = versions()[0].table
    store = StateStore(cdc_sync.load_config("pipeline.yaml").pipeline.root, create=True)
    store.save(TableStatus(table=table, target="t", state="paused", reason="somebody has to decide"))
    notebook, scheduler, service = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    exec(notebook, {})
    assert capsys.readouterr().out == f"{table} paused somebody has to decide\n"
    names: dict[str, object] = {}
    exec(scheduler, names)
    assert callable(names["load_what_is_new"])
    exec(service, names)
