"""Real captures, through a real Kafka and the real job, end as the source ended, or wait for a true reason.

The golden file holds one line for each table of each capture. To write it anew after a change that improves it, set
CDC_SYNC_WRITE_GOLDEN=1, and look at the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_sync.core.debezium.forms import RecordKind
from tests.corpus.agreement import disagreements
from tests.corpus.conftest import STEP_BY_STEP, InLake, InMemory
from tests.corpus.golden import REPORT, agrees
from tests.corpus.reader import CAPTURES
from tests.corpus.report import report, report_text
from tests.corpus.stepreport import report_text as steps_text
from tests.corpus.stepreport import verdict
from tests.corpus.steps import steps

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg, pytest.mark.timeout(1500)]

_STEPS = Path(__file__).parent / "steps.golden.txt"


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_table_ends_as_the_report_says(capture: str, in_lake: InLake) -> None:
    lines = report(capture, in_lake(capture))

    assert [f"{line.table}: {detail}" for line in lines for detail in line.details] == []
    agrees(REPORT, capture, report_text(capture, lines))


@pytest.mark.skipif(not STEP_BY_STEP, reason="CDC_SYNC_CORPUS_STEPS=1 asks for it: minutes for each capture")
@pytest.mark.parametrize("capture", ["postgres-json", "mariadb-avro"])
def test_after_every_step_the_tables_are_the_source_s(capture: str, in_memory: InMemory) -> None:
    found = [(seen, *verdict(capture, seen)) for seen in in_memory(capture)[1]]

    assert [
        f"{seen.table} after {seen.step.number}: {detail}" for seen, _, details in found for detail in details
    ] == []
    assert {(seen.step.number, seen.table) for seen, *_ in found} == {
        (step.number, table) for step in steps(capture) for table in step.tables
    }
    agrees(_STEPS, capture, steps_text(capture, [(seen.table, told) for seen, told, _ in found]))


@pytest.mark.parametrize("capture", CAPTURES)
def test_small_batches_into_memory_give_what_one_batch_gave_the_lake(
    capture: str, in_lake: InLake, in_memory: InMemory
) -> None:
    lake, (memory, _) = in_lake(capture), in_memory(capture)

    assert disagreements(lake, memory) == []
    assert memory.history == lake.history, "the same versions, byte for byte"


@pytest.mark.parametrize("database", ["postgres", "mariadb"])
def test_json_and_avro_of_a_table_agree(database: str, in_lake: InLake) -> None:
    json, avro = in_lake(f"{database}-json"), in_lake(f"{database}-avro")

    assert disagreements(json, avro, other_is_adjusted=True) == []


@pytest.mark.parametrize("capture", CAPTURES)
def test_paused_tables_say_what_would_let_them_go_on(capture: str, in_lake: InLake) -> None:
    paused = [status for status in in_lake(capture).statuses.values() if status.state == "paused"]

    assert [str(status.table) for status in paused if not status.remedy or not status.paused_at] == []


@pytest.mark.parametrize("capture", CAPTURES)
def test_records_without_rows_are_counted(capture: str, in_lake: InLake) -> None:
    counts = {
        "postgres": {RecordKind.LOGICAL_MESSAGE.value: 116},
        "mariadb": {RecordKind.SCHEMA_CHANGE.value: 161},
    }

    assert in_lake(capture).other_records == counts[capture.partition("-")[0]]


@pytest.mark.parametrize("capture", CAPTURES)
def test_nothing_is_set_aside(capture: str, in_lake: InLake) -> None:
    assert in_lake(capture).aside == ()


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_connector_that_replaces_null_is_warned_of(capture: str, in_lake: InLake) -> None:
    (warning,) = in_lake(capture).statuses["inv.wide"].warnings

    assert warning.startswith("a NULL in last_one arrives as the column's default")
