"""A registry that holds every captured schema under the id it has in the captured records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cdc_sync.errors import SetupError
from cdc_sync.local.ports import free_ports
from tests.corpus.reader import schemas
from tests.registry.ccompat import SmallRegistry, register_in_order
from tests.registry.server import RegistryServer


@contextmanager
def confluent_registry(folder: Path) -> Iterator[str]:
    """Give the URL of a real registry, or of our small one where no real one can run."""
    with ExitStack() as running:
        try:
            url = running.enter_context(apicurio_registry(folder)).confluent_url
        except SetupError:
            url = running.enter_context(SmallRegistry(dict(captured()))).confluent_url
        yield url


@contextmanager
def apicurio_registry(folder: Path) -> Iterator[RegistryServer]:
    """Give a real registry; raises SetupError where none can run."""
    port, management_port = free_ports(2)
    server = RegistryServer(folder, port=port, management_port=management_port)
    try:
        server.start()
        kept = register_in_order(server.confluent_url, captured())
        assert all(before == now for before, now in kept.items()), "the records name other ids than the registry gave"
        yield server
    finally:
        server.stop()


def captured() -> list[tuple[int, str]]:
    """Return the schemas of both Avro captures, which one registry gave their ids, by id."""
    return [item for database in ("postgres", "mariadb") for item in schemas(f"{database}-avro").items()]
