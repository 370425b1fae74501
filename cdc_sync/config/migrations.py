"""The folder of a lake's migrations: its settings, `migrator.yaml`, and a revision in each other file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote

from pydantic import Field

from cdc_sync.config.document import Document, read
from cdc_sync.config.fields import FolderName, Location
from cdc_sync.config.load import checked, parse_as, text_of, together
from cdc_sync.config.models import Limits, Pipeline, Spark, secrets_in
from cdc_sync.config.revision_file import RevisionFile
from cdc_sync.config.secrets import Secret
from cdc_sync.config.section import Section
from cdc_sync.config.target import Target
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.revisions.order import problems
from cdc_sync.core.revisions.revision import Revision
from cdc_sync.core.revisions.squash import resolved
from cdc_sync.errors import ConfigError

SETTINGS = "migrator.yaml"


class BackfillSettings(Section):
    """How rows of before are filled."""

    unit_bytes: Annotated[int, Field(ge=1024 * 1024)] = 1024 * 1024 * 1024
    max_bytes_per_second: Annotated[int, Field(ge=1)] | None = None


class MigratorConfig(Section):
    """What `migrator.yaml` says: where the tables are, and where it is written down what was done to them."""

    name: FolderName
    state: Location = "./state"
    target: Target = Field(default_factory=Target)
    spark: Spark = Spark()
    backfill: BackfillSettings = BackfillSettings()

    @property
    def pipeline(self) -> Pipeline:
        """The same as a pipeline has it: a name, and a folder of that name."""
        return Pipeline(name=self.name, state=self.state)

    @property
    def limits(self) -> Limits:
        """No record is read; what Avro's reader of manifests may take is as for a pipeline."""
        return Limits()

    @property
    def secrets(self) -> frozenset[Secret]:
        """Every text that came from a reference, for whoever prints."""
        return frozenset(secrets_in(self))

    @property
    def root(self) -> str:
        """Folder or URL below which all that is written down lies."""
        return self.pipeline.root


def load_migrator(path: str | Path, *, environ: Mapping[str, str] | None = None) -> MigratorConfig:
    """Read and check a folder's settings, or the file that holds them.

    Raises:
        ConfigError: as `load_config`.
    """
    file = Path(path) / SETTINGS if Path(path).is_dir() else Path(path)
    return parse_as(MigratorConfig, text_of(file), path=str(file), environ=environ)


def load_revisions(path: str | Path) -> tuple[Revision, ...]:
    """Read every revision below a folder, `<release>/<schema>.<table>/<name>.yaml`, ordered by release and name.

    A file that names no `revision` is called by its release and name, and one that names no `parents` comes behind the
    file of its table before it.

    Args:
        path: the folder, or the file of its settings.

    Raises:
        ConfigError: the first that is wrong; the others are with it.
    """
    root = Path(path) if Path(path).is_dir() else Path(path).parent
    found: list[Revision] = []
    wrong: list[ConfigError] = []
    documents: dict[str, Document] = {}
    newest: dict[TargetName, str] = {}
    for file in _files(root):
        try:
            document = read(text_of(file), str(file))
            said = checked(RevisionFile, document, document.value)
            revision = _revision(file, root, said, newest, document)
        except ConfigError as error:
            wrong += [error, *error.others]
            continue
        documents[revision.file] = document
        newest[revision.table] = revision.id
        found.append(revision)
    found = list(resolved(found))
    if not wrong:
        files = {revision.id: revision.file for revision in found}
        wrong += [
            documents[files[item.id]].error(f"Cannot use this revision: {item.text}", ()) for item in problems(found)
        ]
    if wrong:
        raise together(wrong)
    return tuple(found)


def _files(root: Path) -> Iterator[Path]:
    found = (file for kind in ("*.yaml", "*.yml") for file in root.rglob(kind) if file.name != SETTINGS)
    files = {file: file.relative_to(root).parts for file in found}
    shown = (file for file, parts in files.items() if not any(part.startswith(".") for part in parts))
    yield from sorted(shown, key=lambda file: [_natural(part) for part in files[file]])


def _natural(text: str) -> list[tuple[int, str]]:
    """Order names so that v1.10.0 comes behind v1.9.0, and 10.yaml behind 9.yaml."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text)]


def _revision(
    file: Path, root: Path, said: RevisionFile, newest: Mapping[TargetName, str], document: Document
) -> Revision:
    parts = file.relative_to(root).parts
    names = parts[1].split(".") if len(parts) == 3 else []
    if len(names) != 2 or not all(names):
        raise document.error(
            "Cannot use this file: it must be <release>/<schema>.<table>/<name>.yaml below the folder of migrations; a "
            "dot inside a name is written %2E",
            (),
        )
    table = TargetName(namespace=unquote(names[0]), name=unquote(names[1]))
    before = newest.get(table)
    parents = said.parents if said.parents is not None else () if before is None else (before,)
    return Revision(
        id=said.revision or f"{parts[0]}/{parts[1]}/{file.stem}",
        table=table,
        parents=parents,
        depends_on=said.depends_on,
        release=parts[0],
        file=str(file),
        description="" if said.description == "-" else said.description,
        actions=tuple(item.action() for item in said.actions),
        irreversible=said.irreversible,
        replaces=said.replaces,
        lines=tuple(document.line(("actions", index)) for index in range(len(said.actions))),
        allow=said.allow,
    )
