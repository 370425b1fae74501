"""The manifests for Kubernetes hold what its API and the Spark operator's know, and name what this project has.

No engine and no Kubernetes: resources of Kubernetes are checked by the schemas in the package kubernetes-validate, a
SparkApplication by spark_application.json.gz, the schema that v2.3.0 of kubeflow/spark-operator installs (see crd.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from cdc_sync.config import load_config
from cdc_sync.spark.connectors import LOCKED_PYSPARK
from tests.containers import crd, engine

_FOLDER = engine.ROOT / "docker" / "kubernetes"
_DEPLOYMENT = _FOLDER / "deployment.yaml"
_APPLICATION = _FOLDER / "spark-application.yaml"
_RELEASES = ("1.29", kubernetes_validate.latest_version())
_OF_OPERATOR = jsonschema.Draft202012Validator(crd.schema())

Document = dict[str, Any]


def _documents(path: Path) -> list[Document]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def _one(path: Path, kind: str) -> Document:
    (found,) = (document for document in _documents(path) if document["kind"] == kind)
    return found


def _problem(document: Document, release: str = _RELEASES[-1]) -> str | None:
    """Return what the API of Kubernetes, or the operator's part of it, would not take or would drop."""
    try:
        if document["kind"] == "SparkApplication":
            _OF_OPERATOR.validate(document | {"metadata": {}})
            # What Kubernetes says of the metadata of any resource.
            document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": document["metadata"]}
        kubernetes_validate.validate(document, release, strict=True)
    except jsonschema.ValidationError as error:
        return str(error.message)
    return None


def _fields(node: Any) -> Iterator[tuple[Document, str]]:
    """Yield every field of a resource, with the object that holds it."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield node, name
            yield from _fields(value)
    elif isinstance(node, list):
        for value in node:
            yield from _fields(value)


@pytest.mark.parametrize("release", _RELEASES)
@pytest.mark.parametrize("path", sorted(_FOLDER.iterdir()), ids=lambda path: path.stem)
def test_all_that_a_manifest_says_is_known(path: Path, release: str) -> None:
    found = {
        f"{document['kind']} {document['metadata']['name']}": _problem(document, release)
        for document in _documents(path)
    }

    assert found
    assert {name: problem for name, problem in found.items() if problem is not None} == {}


@pytest.mark.parametrize(
    ("path", "kind", "field"),
    [
        (_DEPLOYMENT, "Deployment", "strategy"),
        (_DEPLOYMENT, "Deployment", "readOnlyRootFilesystem"),
        (_DEPLOYMENT, "PersistentVolumeClaim", "accessModes"),
        (_APPLICATION, "SparkApplication", "labels"),
        (_APPLICATION, "SparkApplication", "restartPolicy"),
        (_APPLICATION, "SparkApplication", "terminationGracePeriodSeconds"),
        (_APPLICATION, "SparkApplication", "preStop"),
        (_APPLICATION, "SparkApplication", "claimName"),
        (_APPLICATION, "Role", "resources"),
        (_APPLICATION, "RoleBinding", "roleRef"),
        (_APPLICATION, "ServiceAccount", "automountServiceAccountToken"),
    ],
)
def test_a_misspelt_field_is_found(path: Path, kind: str, field: str) -> None:
    document = next(one for one in reversed(_documents(path)) if one["kind"] == kind)
    holder, _ = next(found for found in _fields(document) if found[1] == field)
    holder[f"{field}x"] = holder[field]  # beside the right one: that a field is missing must not hide it

    assert f"{field}x" in (_problem(document) or "")


@pytest.mark.parametrize(("field", "wrong"), [("type", "Pyton"), ("arguments", "run"), ("sparkVersion", 3.5)])
def test_a_wrong_value_is_found(field: str, wrong: object) -> None:
    document = _one(_APPLICATION, "SparkApplication")
    document["spec"][field] = wrong

    assert _problem(document)


def test_manifests_name_the_versions_of_this_project() -> None:
    deployed = _one(_DEPLOYMENT, "Deployment")["spec"]["template"]["spec"]["containers"]
    submitted = _one(_APPLICATION, "SparkApplication")["spec"]

    assert [container["image"] for container in deployed] == [engine.JOB]
    assert submitted["image"] == engine.JOB
    assert submitted["sparkVersion"] == LOCKED_PYSPARK


def test_manifests_name_files_that_the_image_gets() -> None:
    build = (engine.ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    (copied,) = re.findall(r"^COPY (docker/\S.*) /opt/cdc_sync/$", build, re.MULTILINE)
    put = {f"/opt/cdc_sync/{Path(source).name}" for source in copied.split()}
    job = _one(_APPLICATION, "SparkApplication")["spec"]
    (container,) = _one(_DEPLOYMENT, "Deployment")["spec"]["template"]["spec"]["containers"]

    assert job["driver"]["lifecycle"]["preStop"]["exec"]["command"][-1] in put
    assert container["livenessProbe"]["exec"]["command"][-1] in put
    # Debian 12 has Python 3.11.
    assert "ARG BASE=debian:12-slim" in build
    assert job["mainApplicationFile"] == "local:///opt/cdc_sync/lib/python3.11/site-packages/cdc_sync/__main__.py"
    assert (engine.ROOT / "cdc_sync" / "__main__.py").exists()
    for role in ("driver", "executor"):
        assert job["sparkConf"][f"spark.{role}.extraClassPath"] == "/opt/cdc_sync/connectors/*"
    assert "/opt/cdc_sync/connectors/\n" in build


@pytest.mark.parametrize("path", [_DEPLOYMENT, _APPLICATION], ids=lambda path: path.stem)
def test_the_pipeline_in_a_manifest_can_be_used(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "from a secret")
    written = tmp_path / "pipeline.yaml"
    written.write_text(_one(path, "ConfigMap")["data"][written.name], encoding="utf-8")

    assert load_config(str(written)).tables


def test_both_manifests_are_the_same_job() -> None:
    deployed = _one(_DEPLOYMENT, "Deployment")["spec"]["template"]["spec"]
    submitted = _one(_APPLICATION, "SparkApplication")["spec"]
    (container,) = deployed["containers"]
    driver = submitted["driver"]

    for kind in ("ConfigMap", "PersistentVolumeClaim"):
        assert _one(_APPLICATION, kind) == _one(_DEPLOYMENT, kind)
    assert submitted["arguments"] == container["args"]
    assert driver["env"] == container["env"]
    assert driver["terminationGracePeriodSeconds"] == deployed["terminationGracePeriodSeconds"]
    for role in (driver, submitted["executor"]):
        assert role["podSecurityContext"] == deployed["securityContext"]
        assert role["securityContext"] == container["securityContext"]
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {mount["mountPath"] for mount in driver["volumeMounts"]} == mounted


def test_only_the_driver_gets_rights_and_only_those_of_its_own_namespace() -> None:
    job = _one(_APPLICATION, "SparkApplication")["spec"]
    binding = _one(_APPLICATION, "RoleBinding")
    accounts = {
        document["metadata"]["name"]: document
        for document in _documents(_APPLICATION)
        if document["kind"] == "ServiceAccount"
    }

    assert [subject["name"] for subject in binding["subjects"]] == [job["driver"]["serviceAccount"]]
    assert binding["roleRef"]["name"] == _one(_APPLICATION, "Role")["metadata"]["name"]
    assert accounts[job["executor"]["serviceAccount"]]["automountServiceAccountToken"] is False
    assert not {"ClusterRole", "ClusterRoleBinding"} & {document["kind"] for document in _documents(_APPLICATION)}


def test_every_volume_that_is_mounted_is_there() -> None:
    job = _one(_APPLICATION, "SparkApplication")["spec"]
    mounted = {mount["name"] for role in ("driver", "executor") for mount in job[role]["volumeMounts"]}

    assert mounted == {volume["name"] for volume in job["volumes"]}
