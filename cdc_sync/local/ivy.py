"""Fetches Java artefacts with the Ivy that ships inside pyspark, so that no Maven is needed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from cdc_sync.errors import SetupError
from cdc_sync.local.artefact import Artefact
from cdc_sync.local.java import java_executable

MIRROR_VARIABLE = "CDC_SYNC_MAVEN_MIRROR"
"""Environment variable: root URL of the Maven repository to use instead of Ivy's default."""

_RETRIEVED = "[organisation]/[module]/[revision]/[artifact](-[classifier]).[ext]"
_SETTINGS = """<ivysettings>
  <settings defaultResolver="public"/>
  <caches defaultCacheDir={cache}/>
  <resolvers>
    <ibiblio name="public" m2compatible="true" useMavenMetadata="false" checksums="" usepoms="{poms}"{root}/>
  </resolvers>
</ivysettings>
"""
_MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="cdc_sync" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def pyspark_jars() -> Path:
    """The folder of jars inside the installed pyspark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError("Cannot find pyspark: install the package's requirements first")
    return Path(spec.origin).parent / "jars"


def start(artefacts: Sequence[Artefact], folder: Path, *, transitive: bool = False) -> subprocess.Popen[bytes]:
    """Starts one Ivy process that fetches into `folder`; its output goes to `folder/ivy.log`.

    Checksums are left to the caller: the manifest's SHA-256 says more than the repository's own sums.

    Args:
        artefacts: what to fetch.
        folder: an empty folder of the caller's; files land where `retrieved` says.
        transitive: also fetch what the artefacts depend on at run time, newest version of each.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mirror = os.environ.get(MIRROR_VARIABLE)
    settings = _SETTINGS.format(
        cache=quoteattr(str(folder / "cache")),
        poms="true" if transitive else "false",
        root=f" root={quoteattr(mirror)}" if mirror else "",
    )
    (folder / "settings.xml").write_text(settings, encoding="utf-8")
    modules: dict[tuple[str, str, str], list[Artefact]] = {}
    for artefact in artefacts:
        modules.setdefault((artefact.group, artefact.name, artefact.version), []).append(artefact)
    dependencies = "\n".join(_dependency(files, transitive) for files in modules.values())
    (folder / "ivy.xml").write_text(_MODULE.format(dependencies=dependencies), encoding="utf-8")
    ivy = next(pyspark_jars().glob("ivy-*.jar"))
    command = [
        *(str(java_executable()), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        *("-cp", str(ivy), "org.apache.ivy.Main"),
        *("-settings", str(folder / "settings.xml"), "-ivy", str(folder / "ivy.xml")),
        *("-retrieve", f"{folder}/lib/{_RETRIEVED}"),
    ]
    with (folder / "ivy.log").open("wb") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


def retrieved(artefact: Artefact, folder: Path) -> Path:
    """Where `start` puts this artefact under `folder`."""
    classifier = f"-{artefact.classifier}" if artefact.classifier else ""
    name = f"{artefact.name}{classifier}.{artefact.extension}"
    return folder / "lib" / artefact.group / artefact.name / artefact.version / name


def all_retrieved(folder: Path) -> tuple[Artefact, ...]:
    """Every artefact that lies under `folder`, sorted by coordinates; the inverse of `retrieved`."""
    found = []
    for path in (folder / "lib").glob("*/*/*/*"):
        group, name, version = path.parts[-4:-1]
        classifier, _, extension = path.name.removeprefix(name).partition(".")
        found.append(
            Artefact(
                group=group,
                name=name,
                version=version,
                classifier=classifier.removeprefix("-"),
                extension=extension,
            )
        )
    return tuple(sorted(found, key=str))


def _dependency(artefacts: Sequence[Artefact], transitive: bool) -> str:
    """Return one module's entry; what only has a classifier is an archive or a part, and depends on nothing."""
    first = artefacts[0]
    head = (
        f"    <dependency org={quoteattr(first.group)} name={quoteattr(first.name)} "
        f'rev={quoteattr(first.version)} conf="default->default"'
    )
    whole = transitive and not all(artefact.classifier for artefact in artefacts)
    if whole and len(artefacts) == 1:
        return f"{head}/>"
    files = "".join(map(_file, artefacts))
    return f"{head}>{files}</dependency>" if whole else f'{head} transitive="false">{files}</dependency>'


def _file(artefact: Artefact) -> str:
    # Ivy retrieves only the types jar and bundle unless told otherwise, so a tarball is called a jar here.
    classifier = f" m:classifier={quoteattr(artefact.classifier)}" if artefact.classifier else ""
    return f'<artifact name={quoteattr(artefact.name)} type="jar" ext={quoteattr(artefact.extension)}{classifier}/>'
