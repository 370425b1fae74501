"""The container engine that tests use, and what of theirs is left in it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import pytest
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.network import Network
from testcontainers.core.wait_strategies import WaitStrategy
from testcontainers.core.waiting_utils import WaitStrategyTarget

ROOT = Path(__file__).parents[2]
JOB = f"cdc-sync:{metadata.version('cdc-sync')}"
KAFKA = "cdc-sync-kafka:4.3.1"
CONNECT = "cdc-sync-connect:3.6.3"
POSTGRES = "cdc-sync-postgres:15"
REGISTRY = "cdc-sync-registry:3.3.3"
STORE = "cdc-sync-store:1.75.2"
TRINO = "cdc-sync-trino:476"
SERVICES = (KAFKA, CONNECT, POSTGRES, REGISTRY, STORE, TRINO)
IMAGES = (JOB, *SERVICES)
_BUILT = "CDC_SYNC_TEST_IMAGES"
"""Set where only some images were made, as docker/build calls them, and only tests that want no others are run."""

_LABEL = "cdc_sync.tests"
"""On all that tests make; its value is the process that made it, by which what a dead one left is known."""
LABELS = {_LABEL: str(os.getpid())}
_PROJECT = "cdcsynctests"
_OF_PROJECT = "com.docker.compose.project"
PROJECT = f"{_PROJECT}{os.getpid()}"
"""What tests call all that Docker Compose makes for them."""
_NO_CHECK = {"test": ["NONE"]}
"""Each check is a process of its own in the container: with ten containers half a core, all the time."""
_NEED_ENGINE = "CDC_SYNC_NEED_ENGINE"
"""Set where these tests have to run: without an engine or images they then fail instead of being skipped."""

# It would remove what is left behind, by an image that cannot be had everywhere; `sweep` does.
testcontainers_config.ryuk_disabled = True


def problem() -> str | None:
    """Return why tests cannot run here; None if they can."""
    try:
        engine = client()
        engine.ping()
    except DockerException as error:
        return f"no container engine answers ({error}); docker/engine start, or scripts/test-containers"
    missing = [name for name in expected(os.environ) if not _exists(engine, name)]
    return f"there is no image {', '.join(missing)}; docker/build makes them" if missing else None


def expected(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the images that there have to be."""
    built = environ.get(_BUILT, "").split()
    names = {"job": JOB} | {image.partition(":")[0].removeprefix("cdc-sync-"): image for image in SERVICES}
    return tuple(names[name] for name in built) or IMAGES


def give_up(problem: str, environ: Mapping[str, str]) -> NoReturn:
    """Skip the tests; or have them fail, where they must run."""
    if environ.get(_NEED_ENGINE):
        pytest.fail(f"{_NEED_ENGINE} is set, but {problem}", pytrace=False)
    pytest.skip(problem)


def judged(report: pytest.TestReport, environ: Mapping[str, str]) -> pytest.TestReport:
    """Return what became of a test: a failure if it was skipped, for whatever reason, where it must run."""
    if report.skipped and environ.get(_NEED_ENGINE):
        report.outcome = "failed"
        report.longrepr = f"{_NEED_ENGINE} is set, but this was skipped: {report.longreprtext}"
    return report


def client() -> Any:
    """Return the engine's own interface."""
    return DockerClient().client


def container(
    image: str, network: Network | None = None, *, alias: str | None = None, **settings: Any
) -> DockerContainer:
    """Return a container to start, labelled as the tests' own."""
    labels = {**LABELS, **settings.pop("labels", {})}
    made = DockerContainer(image).with_kwargs(labels=labels, healthcheck=_NO_CHECK, **settings)
    if network is not None:
        made = made.with_network(network).with_network_aliases(*([alias] if alias else []))
    return made


def network() -> Network:
    """Return a network to create, labelled as the tests' own."""
    return Network(docker_network_kw={"labels": LABELS})


def sweep() -> None:
    """Remove containers, networks, volumes and images of test runs whose process is gone."""
    engine = client()
    for container in engine.containers.list(all=True, ignore_removed=True):
        if _is_left_over(container.labels):
            with suppress(NotFound):
                container.remove(force=True, v=True)
    for item in (*engine.networks.list(), *engine.volumes.list()):
        if _is_left_over(item.attrs["Labels"] or {}):
            with suppress(NotFound):
                item.remove()
    for image in engine.images.list(filters={"label": _LABEL}):
        if _is_left_over(image.labels):
            with suppress(ImageNotFound):
                engine.images.remove(image.id, force=True)


def for_containers(folder: Path) -> Path:
    """Make a folder that the job's user may write to, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    return folder


def is_healthy(container: WaitStrategyTarget) -> bool:
    """Ask a container at once what its image's health check asks from time to time."""
    found = container.get_wrapped_container()
    _, *command = found.image.attrs["Config"]["Healthcheck"]["Test"]
    try:
        return bool(found.exec_run(command).exit_code == 0)
    except APIError:  # it is being started again
        return False


class Healthy(WaitStrategy):
    """Waits until a container that was started is healthy, by asking it."""

    def wait_until_ready(self, container: WaitStrategyTarget) -> None:
        """Return when it is; fail when it has ended."""

        def ready() -> bool:
            found = container.get_wrapped_container()
            found.reload()
            assert found.status != "exited", found.logs().decode()[-3000:]
            return is_healthy(container)

        assert wait_for(ready), container.get_logs()


def wait_for(condition: Callable[[], bool], *, patience: float = 240.0) -> bool:
    """Wait until something holds; return whether it does. A machine that others work on too gets the time it needs."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.25)
    return True


def _exists(engine: Any, image: str) -> bool:
    try:
        engine.images.get(image)
    except ImageNotFound:
        return False
    return True


def _is_left_over(labels: Mapping[str, str]) -> bool:
    owner = labels.get(_LABEL) or labels.get(_OF_PROJECT, "").removeprefix(_PROJECT)
    if not owner.isdecimal():
        return False
    try:
        os.kill(int(owner), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
