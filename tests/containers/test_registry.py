"""Avro by a schema registry: the converter registers, the job looks up, and a table follows its changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from testcontainers.core.container import DockerContainer

from tests.containers import engine
from tests.containers.job import Job
from tests.containers.shop import SMALL, Shop, configuration, lake_of

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

_PREFIX = "avro"
_CONVERTER = {
    "": "io.apicurio.registry.utils.converter.AvroConverter",
    ".apicurio.registry.url": "http://registry:8080/apis/registry/v2",
    ".apicurio.registry.auto-register": "true",
}
_REGISTRY = "registry: {url: 'http://registry:8080', type: apicurio, ids: global, headers: true}\n"


@pytest.fixture
def registry(shop: Shop) -> Iterator[DockerContainer]:
    made = engine.container(engine.REGISTRY, shop.network, alias="registry", read_only=True)
    made.waiting_for(engine.Healthy())
    with made:
        yield made


@pytest.fixture
def job(shop: Shop, registry: DockerContainer, tmp_path: Path) -> Iterator[Job]:
    """A job over records in Avro."""
    text = configuration(tmp_path / "warehouse", name="avro", prefix=_PREFIX, more=_REGISTRY + SMALL)
    made = Job(tmp_path, shop.network, text)
    made.start()
    yield made
    made.remove()


def test_a_table_follows_its_changes_in_avro_and_the_registry_keeps_its_schemas_over_a_restart(
    shop: Shop, registry: DockerContainer, job: Job
) -> None:
    lake = lake_of(job.warehouse)
    with shop.source() as source:
        source.execute(
            [
                "create schema ship",
                "create table ship.boats (id int primary key, name text, length numeric(7,2), built timestamptz)",
                "insert into ship.boats select n, 'boat ' || n, n / 8.0, now() from generate_series(1, 50) n",
            ]
        )
        shop.capture(_PREFIX, schema="ship", converter=_CONVERTER)
        shop.wait_equal(lake, "ship.boats", job.log)

        # The converter gives up when it cannot register a schema, so the table does not change before it can.
        registry.get_wrapped_container().restart(timeout=20)
        assert engine.wait_for(lambda: engine.is_healthy(registry))
        source.execute(
            [
                "alter table ship.boats rename column name to called",
                "alter table ship.boats add column crew int default 3",
                "update ship.boats set crew = 4, called = null where id < 10",
                "delete from ship.boats where id > 40",
            ]
        )
        shop.wait_equal(lake, "ship.boats", job.log)
