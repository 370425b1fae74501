"""What the images are: who they run as, what they need, what is not in them."""

from __future__ import annotations

import io
import os
import re
import tarfile
from pathlib import Path

import pytest
import yaml

from tests.containers import engine, layers
from tests.containers.job import CONFIGURATION, STATE
from tests.containers.shop import JAVA, configuration, lake_of

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|CREDENTIAL", re.IGNORECASE)
# Starts Spark with every connector, and writes a table.
_PROGRAM = f"""
from cdc_sync.config import load_config
from cdc_sync.spark.session import build_session
spark = build_session(load_config({CONFIGURATION!r}))
spark.sql("create table lake.inv.here (id int) using iceberg")
spark.sql("insert into lake.inv.here values (7)")
print("rows:", spark.table("lake.inv.here").collect())
"""
# Would download what is missing.
_CONNECTORS = """
from cdc_sync.local.jars import spark_jars
print(*(name for name in ("iceberg", "delta", "hudi", "s3") if set(spark_jars(name)) > set(spark_jars())))
"""


def test_without_a_network_and_with_nothing_writable_but_its_volumes_spark_starts_and_writes(tmp_path: Path) -> None:
    lake = engine.for_containers(tmp_path / "warehouse")
    settings = tmp_path / "pipeline.yaml"
    settings.write_text(
        configuration(
            lake, more=f"spark: {{conf: {{spark.driver.memory: 512m, spark.driver.extraJavaOptions: '{JAVA}'}}}}"
        )
    )

    assert "can be used" in _run(["validate", CONFIGURATION], settings=settings, lake=lake)
    assert "rows: [Row(id=7)]" in _run(["python", "-c", _PROGRAM], settings=settings, lake=lake)
    assert lake_of(lake).table("inv.here") is not None


def test_it_holds_the_connectors_of_every_format_and_store() -> None:
    assert _run(["python", "-c", _CONNECTORS]).split() == ["iceberg", "delta", "hudi", "s3"]


def test_it_runs_as_nobody_special_and_can_write_to_its_volumes_only() -> None:
    places = f"/ /opt/cdc_sync /etc/cdc_sync /tmp /warehouse {STATE}"
    said = _run(["-c", f"id -u; for f in {places}; do test -w $f && echo $f; done"], entrypoint="sh")

    user, *writable = said.split()
    assert int(user) > 0
    assert writable == ["/tmp", "/warehouse", STATE]


def test_it_holds_no_program_that_changes_the_user() -> None:
    assert _run(["-c", "find / -xdev -perm /6000 -type f 2>/dev/null; true"], entrypoint="sh") == ""


def test_the_program_that_the_spark_operator_is_told_to_start_is_there() -> None:
    documents = yaml.safe_load_all((engine.ROOT / "docker" / "kubernetes" / "spark-application.yaml").read_text())
    (application,) = (document for document in documents if document["kind"] == "SparkApplication")
    program = application["spec"]["mainApplicationFile"].removeprefix("local://")

    assert "Usage" in _run(["python", program, "--help"])


def test_it_says_what_it_is() -> None:
    image = engine.client().images.get(engine.JOB)
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in image.labels.items()}

    assert labels["title"] == "cdc_sync"
    assert labels["licenses"] == "Apache-2.0"
    assert labels["version"] == engine.JOB.partition(":")[2]
    assert re.fullmatch(r"[0-9a-f]{40}|unknown", labels["revision"])
    assert image.attrs["Config"]["User"] == "10001:10001"
    assert set(image.attrs["Config"]["Volumes"]) == {"/tmp", STATE, "/warehouse"}


def test_no_secret_is_in_any_layer() -> None:
    known = {name: value for name, value in os.environ.items() if _SECRET.search(name) and len(value) >= 8}
    images, names = engine.client().images, engine.expected(os.environ)

    assert [text for name in names for text in layers.in_settings(images.get(name))] == []
    assert layers.in_layers(names, known) == []


def test_a_secret_in_a_layer_is_found() -> None:
    files = {
        "Dockerfile": b"FROM scratch\nENV KAFKA_PASSWORD=x\nCOPY deep /opt/deep\n",
        "deep/a.txt": b"...-----BEGIN PRIVATE KEY-----\n" + b"A" * 64,
        "deep/b": b"our-own-secret",
        "deep/.netrc": b"machine",
    }
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    context.seek(0)
    client = engine.client()
    image, _ = client.images.build(fileobj=context, custom_context=True, labels=engine.LABELS, rm=True)
    try:
        settings = layers.in_settings(image)
        found = layers.in_layers([image.id], {"OURS": "our-own-secret"})
    finally:
        client.images.remove(image.id, force=True)

    assert "KAFKA_PASSWORD=x" in settings
    assert sorted(found) == [
        "opt/deep/.netrc: a file of that name",
        "opt/deep/a.txt: a private key",
        "opt/deep/b: the value of OURS",
    ]


def _run(
    command: list[str], *, entrypoint: str | None = None, settings: Path | None = None, lake: Path | None = None
) -> str:
    """Run a command in the job's image, locked up as far as can be; return what it said."""
    volumes = {}
    if settings is not None:
        settings.chmod(0o644)
        volumes[str(settings)] = {"bind": CONFIGURATION, "mode": "ro"}
    if lake is not None:
        volumes[str(lake)] = {"bind": str(lake), "mode": "rw"}
    container = engine.client().containers.create(
        engine.JOB,
        command,
        entrypoint=entrypoint,
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        volumes=volumes,
        labels=engine.LABELS,
    )
    try:
        container.start()
        code = container.wait(timeout=400)["StatusCode"]
        said = str(container.logs().decode())
    finally:
        container.remove(force=True, v=True)
    assert code == 0, said
    return said
