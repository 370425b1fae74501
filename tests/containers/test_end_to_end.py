"""From Postgres to the lake, all in containers, through changes of tables, crashes, cuts and an upgrade."""

from __future__ import annotations

import io
import json

import pytest

from cdc_sync.demo.lake import Lake
from tests.containers import engine
from tests.containers.job import CONFIGURATION, Job
from tests.containers.shop import Shop

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]


def test_a_table_stays_equal_through_every_alter(shop: Shop, job: Job, lake: Lake) -> None:
    with shop.source() as source:
        source.execute(
            [
                "create table inv.orders (id int primary key, note text, qty int, price numeric(9,2))",
                "insert into inv.orders select n, 'order ' || n, n, n / 4.0 from generate_series(1, 200) n",
            ]
        )
        shop.wait_equal(lake, "inv.orders", job.log)
        for number, alter in enumerate(
            [
                "alter table inv.orders add column placed timestamptz default '2026-01-02 03:04:05+00'",
                "alter table inv.orders rename column note to remark",
                "alter table inv.orders alter column qty type bigint",
                "alter table inv.orders alter column price type numeric(12,2)",
                "alter table inv.orders drop column placed",
                "alter table inv.orders add column tags text[]",
                "comment on column inv.orders.remark is 'what the customer said'",
                "alter table inv.orders alter column qty type text",
            ],
            start=201,
        ):
            source.execute([alter])
            source.execute(
                [
                    f"insert into inv.orders (id) values ({number})",
                    f"update inv.orders set price = {number} where id = {number - 200}",
                    f"delete from inv.orders where id = {number - 100}",
                ]
            )

    shop.wait_equal(lake, "inv.orders", job.log)

    code, answer = job.ask("status", CONFIGURATION, "--json")
    assert code == 0, answer
    status = json.loads(answer[answer.index("{") :])
    states = {table["table"]: table["state"] for table in status["tables"]}
    assert states["shop.inv.orders"] == "running"


def test_nothing_is_lost_or_doubled_when_it_is_killed(shop: Shop, job: Job, lake: Lake) -> None:
    with shop.source() as source:
        source.execute(
            [
                "create table inv.lines (id int primary key, a text)",
                "insert into inv.lines select n, 'first' from generate_series(1, 100) n",
            ]
        )
        shop.wait_equal(lake, "inv.lines", job.log)
        source.execute(["insert into inv.lines select n, 'many' from generate_series(101, 20000) n"])
        stamp = lake.stamp()
        source.execute(
            ["alter table inv.lines add column b int default 7", "update inv.lines set a = 'x' where id < 50"]
        )
        assert engine.wait_for(lambda: lake.stamp() != stamp)

        job.kill()
        job.start()

    shop.wait_equal(lake, "inv.lines", job.log)


def test_it_goes_on_when_its_container_was_restarted(shop: Shop, job: Job, lake: Lake) -> None:
    running = job.id
    with shop.source() as source:
        source.execute(["create table inv.boxes (id int primary key, a int)", "insert into inv.boxes values (1, 1)"])
        shop.wait_equal(lake, "inv.boxes", job.log)

        job.restart()
        source.execute(["alter table inv.boxes rename a to b", "insert into inv.boxes values (2, 2)"])

    shop.wait_equal(lake, "inv.boxes", job.log)
    assert (job.id, job.wrapped.status) == (running, "running")


def test_it_outlives_a_restart_of_the_broker(shop: Shop, job: Job, lake: Lake) -> None:
    running = job.id
    with shop.source() as source:
        source.execute(
            ["create table inv.parcels (id int primary key, a int)", "insert into inv.parcels values (1, 1)"]
        )
        shop.wait_equal(lake, "inv.parcels", job.log)

        shop.kafka.get_wrapped_container().restart(timeout=20)
        source.execute(["alter table inv.parcels add column b text", "insert into inv.parcels values (2, 2, 'b')"])

    shop.wait_equal(lake, "inv.parcels", job.log)
    assert (job.id, job.wrapped.status) == (running, "running")


def test_it_outlives_a_cut_of_its_network(shop: Shop, job: Job, lake: Lake) -> None:
    running = job.id
    with shop.source() as source:
        source.execute(["create table inv.visits (id int primary key, a int)", "insert into inv.visits values (1, 1)"])
        shop.wait_equal(lake, "inv.visits", job.log)

        cut_off = engine.client().networks.get(shop.network.id)
        cut_off.disconnect(job.id)
        source.execute(["alter table inv.visits rename a to b", "insert into inv.visits values (2, 2)"])
        engine.wait_for(lambda: "will try again" in job.log(), patience=8)
        shop.network.connect(job.id, network_aliases=["job"])

    shop.wait_equal(lake, "inv.visits", job.log)
    assert (job.id, job.wrapped.status) == (running, "running")


def test_it_stops_on_sigterm_and_a_later_image_goes_on_with_its_files(shop: Shop, job: Job, lake: Lake) -> None:
    program = f"FROM {engine.JOB}\nLABEL org.opencontainers.image.version=later\n".encode()
    later, _ = engine.client().images.build(fileobj=io.BytesIO(program), labels=engine.LABELS, rm=True)
    with shop.source() as source:
        source.execute(["create table inv.stock (id int primary key, a int)", "insert into inv.stock values (1, 1)"])
        shop.wait_equal(lake, "inv.stock", job.log)

        assert job.stop() == 0, job.log()[-3000:]
        assert "stopping" in job.log()

        source.execute(
            [
                "alter table inv.stock alter a type bigint",
                "alter table inv.stock rename a to b",
                "insert into inv.stock values (2, 5000000000)",
            ]
        )
    job.start(image=later.id)
    try:
        shop.wait_equal(lake, "inv.stock", job.log)
        assert job.wrapped.labels["org.opencontainers.image.version"] == "later"
    finally:
        job.remove()
        engine.client().images.remove(later.id, force=True)
