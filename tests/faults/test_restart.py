"""What a run leaves behind may be lost, except the tables: the next run neither loses nor repeats anything."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from cdc_sync.local.kafka import KafkaServer
from cdc_sync.targets.iceberg.target import IcebergTarget
from cdc_sync.testing import TEXT, column
from tests.conftest import Produce
from tests.faults.conftest import NewPipeline
from tests.faults.pipeline import Pipeline, assert_equal
from tests.faults.shop import LostReplies, Shop

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.iceberg]


def test_a_restart_loses_nothing_and_repeats_nothing(pipeline: NewPipeline, produce: Produce) -> None:
    shop, lake = Shop("checkpoint", produce), pipeline("checkpoint")
    shop.open()
    shop.trade()
    lake.run()
    before = lake.commits(*shop.tables)

    lake.run()

    assert lake.commits(*shop.tables) == before, "a run without new events commits nothing"
    assert_equal(lake, *shop.tables)
    shop.alter()
    lake.run()
    assert_equal(lake, *shop.tables)


def test_a_damaged_status_stops_no_table(pipeline: NewPipeline, produce: Produce) -> None:
    shop, lake = Shop("damaged", produce), pipeline("damaged")
    shop.open()
    lake.run()
    first, second = sorted((lake.folder / "state" / lake.name / "tables").iterdir())
    first.write_bytes(b'{"format": 1, "table"\xff')
    shop.alter()

    report = lake.run()

    assert_equal(lake, *shop.tables)
    assert [status.state for status in report.tables] == ["running", "running"]
    damaged, sound = (lake.statuses()[name] for name in (first.stem.split(".")[-1], second.stem.split(".")[-1]))
    assert any(f"the file is kept as damaged/{first.name}" in warning for warning in damaged.warnings)
    assert not sound.warnings
    assert (first.parents[1] / "damaged" / first.name).read_bytes() == b'{"format": 1, "table"\xff'


def test_a_new_pipeline_name_goes_on_where_the_tables_are(pipeline: NewPipeline, produce: Produce) -> None:
    shop, lake = Shop("renamed", produce), pipeline("renamed")
    shop.open()
    shop.alter()
    lake.run()
    before = lake.commits(*shop.tables)
    again = lake.named("other")

    again.run()

    assert again.commits(*shop.tables) == before, "a run without new events commits nothing"
    shop.trade()
    shop.grow()
    again.run()
    assert_equal(again, *shop.tables)
    assert again.history_files() == lake.history_files()


def test_a_new_pipeline_name_meets_an_alter_before_it_has_read_anything(
    pipeline: NewPipeline, produce: Produce
) -> None:
    shop, lake = Shop("altered", produce), pipeline("altered")
    shop.open()
    lake.run()
    shop.alter()
    again = lake.named("other")

    again.run()

    assert_equal(again, *shop.tables)
    assert {status.version for status in again.statuses().values()} == {1, 3}


class TestAnOlderStateFolder:
    """It is brought back after the tables went on, and more has come since."""

    def test_what_it_lacks_is_read_off_the_topic_again(self, pipeline: NewPipeline, produce: Produce) -> None:
        shop, lake = _with_an_older_folder("older", pipeline, produce)
        shop.orders.rename_column("amount", "price")
        shop.orders.insert(id=61, customer="the newest")
        shop.send()

        lake.run()

        assert {status.state for status in lake.statuses().values()} == {"running"}
        assert_equal(lake, *shop.tables)
        whole = lake.named("whole")
        whole.run()
        assert whole.history_files() == lake.history_files(), "as if it had never been gone"

    def test_nothing_is_guessed_where_the_topic_has_not_all_of_it(
        self, pipeline: NewPipeline, produce: Produce, kafka: KafkaServer
    ) -> None:
        shop, lake = _with_an_older_folder("expired", pipeline, produce)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        place = TopicPartition(shop.orders.topic, 0, 1)
        admin.delete_records([place])[place].result()
        # As many changes as bring the history to the target's number, whatever they are.
        for number in range(4):
            shop.orders.add_column(column(f"more{number}", TEXT))
            shop.orders.insert(id=70 + number)
        shop.send()
        before = lake.history_files()

        lake.run()

        found = lake.statuses()["orders"]
        assert found.state == "paused"
        assert found.remedy == "restore the newest copy of the pipeline's state folder and start the job again"
        assert lake.history_files() == before, "nothing was recorded"

        shutil.copytree(lake.folder / "newest", lake.config.pipeline.root, dirs_exist_ok=True)
        lake.run()

        assert {status.state for status in lake.statuses().values()} == {"running"}
        assert_equal(lake, *shop.tables)


def _with_an_older_folder(prefix: str, pipeline: NewPipeline, produce: Produce) -> tuple[Shop, Pipeline]:
    shop, lake = Shop(prefix, produce), pipeline(prefix)
    shop.open()
    lake.run()
    root, copy = Path(lake.config.pipeline.root), lake.folder / "copy"
    shutil.copytree(root, copy)
    shop.alter()
    lake.run()
    shutil.move(root, lake.folder / "newest")
    shutil.copytree(copy, root)
    return shop, lake


@pytest.mark.parametrize("change", [Shop.grow, Shop.trade, Shop.alter], ids=["append", "merge", "migration"])
def test_a_commit_whose_reply_is_lost_is_not_made_again(
    change: Callable[[Shop], None], pipeline: NewPipeline, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"lost-{change.__name__}"
    shop, lake, replies = Shop(prefix, produce), pipeline(prefix), LostReplies(monkeypatch, IcebergTarget)
    shop.open()
    lake.run()
    change(shop)
    replies.lose(2)

    lake.run()

    assert replies.lost == 2
    assert_equal(lake, *shop.tables)
    assert {status.state for status in lake.statuses().values()} == {"running"}
    for table in shop.tables:
        contents = [marker[0] for marker in lake.progress_of_snapshots(table)]
        written = [end for number, end in enumerate(contents) if number == 0 or end != contents[number - 1]]
        assert written == sorted(set(written)), "no range of offsets is in two commits"
