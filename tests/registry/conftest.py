"""Registries that hold the captured schemas."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cdc_sync.errors import SetupError
from cdc_sync.local.java import java_executable_from
from tests.registry.ccompat import SmallRegistry
from tests.registry.server import REQUIRED_MAJOR, RegistryServer
from tests.registry.servers import apicurio_registry, captured


@pytest.fixture(scope="session")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryServer]:
    """A real one; skips where it cannot run."""
    try:
        java_executable_from(REQUIRED_MAJOR)
    except SetupError as error:
        pytest.skip(str(error))
    with apicurio_registry(tmp_path_factory.mktemp("registry")) as server:
        yield server


@pytest.fixture
def small() -> Iterator[SmallRegistry]:
    """One of our own."""
    with SmallRegistry(dict(captured())) as registry:
        yield registry
