"""The schema of a SparkApplication: kept small, and refusing what Kubernetes would drop without a word.

`python -m tests.containers.crd FILE` makes spark_application.json.gz anew, where FILE is
config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml of kubeflow/spark-operator (Apache-2.0). Now it is that of
v2.3.0.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import yaml

_FILE = Path(__file__).with_name("spark_application.json.gz")
_VERSION = "v1beta2"


def schema() -> dict[str, Any]:
    """Return the schema of v1beta2 with no room for fields that it does not name; all of `metadata` is left open."""
    closed: dict[str, Any] = _closed(json.loads(gzip.decompress(_FILE.read_bytes())))
    return closed


def _closed(node: Any) -> Any:
    """Refuse other fields wherever some are listed, unless the schema says that others are kept."""
    if isinstance(node, list):
        return [_closed(one) for one in node]
    if not isinstance(node, dict):
        return node
    closed = {name: _closed(value) for name, value in node.items()}
    if isinstance(node.get("properties"), dict) and not node.get("x-kubernetes-preserve-unknown-fields"):
        closed.setdefault("additionalProperties", False)
    return closed


def _packed(definition: str) -> bytes:
    """Return the schema in a definition, without its descriptions; the same bytes every time."""
    versions = yaml.safe_load(definition)["spec"]["versions"]
    (found,) = (version["schema"]["openAPIV3Schema"] for version in versions if version["name"] == _VERSION)
    text = json.dumps(_bare(found), sort_keys=True, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def _bare(node: Any) -> Any:
    if isinstance(node, list):
        return [_bare(one) for one in node]
    if not isinstance(node, dict):
        return node
    # A field may be called description as well; what that holds is a schema.
    return {name: _bare(value) for name, value in node.items() if name != "description" or isinstance(value, dict)}


if __name__ == "__main__":
    _FILE.write_bytes(_packed(Path(sys.argv[1]).read_text(encoding="utf-8")))
