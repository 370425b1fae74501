"""The folder of a lake's migrations: its settings, `migrator.yaml`, and a revision in each other file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote

from pydantic import ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from cdc_sync.config.document import Document, read
from cdc_sync.config.fields import FolderName, Location, Scalar, Text, problem
from cdc_sync.config.load import checked, parse_as, text_of, together
from cdc_sync.config.models import Limits, Pipeline, Spark, secrets_in
from cdc_sync.config.secrets import Secret
from cdc_sync.config.section import Section
from cdc_sync.config.target import Target
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.revisions import actions
from cdc_sync.core.revisions.lint import CODES
from cdc_sync.core.revisions.order import problems
from cdc_sync.core.revisions.revision import Revision
from cdc_sync.core.revisions.squash import resolved
from cdc_sync.core.schema.partitioning import Partitioning, PartitioningError
from cdc_sync.core.schema.type_words import parse_type
from cdc_sync.core.schema.types import DataType
from cdc_sync.core.schema.values import canonical_value
from cdc_sync.errors import ConfigError, SchemaError

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


def _type(value: object) -> DataType:
    if not isinstance(value, str):
        problem("must be a type, as text")
    try:
        return parse_type(value)
    except SchemaError as error:
        problem(str(error))


Type = Annotated[
    DataType,
    PlainValidator(_type),
    WithJsonSchema(
        {"type": "string", "examples": ["bigint", "decimal(18, 2)", "timestamptz", "array<struct<sku: string>>"]}
    ),
]


class _Column(Section):
    name: Text
    type: Type
    comment: Text | None = None

    @property
    def new(self) -> actions.NewColumn:
        return actions.NewColumn(name=self.name, type=self.type, comment=self.comment)


class _Fill(Section):
    value: Scalar = None
    sql: Text | None = None

    @model_validator(mode="after")
    def _is_one(self) -> _Fill:
        if len(self.model_fields_set) != 1:
            problem("must say value or sql, one of the two")
        return self


def _place(after: str | None, *, first: bool) -> actions.Place:
    if first and after is not None:
        problem("says first and after; say one of the two", "first")
    return actions.Place(after=after, first=first)


def _partitioning(texts: tuple[str, ...], *place: str) -> Partitioning:
    try:
        return Partitioning.parse(texts)
    except PartitioningError as error:
        problem(error.reason, *place, error.index)


class _CreateTable(Section):
    columns: tuple[_Column, ...]
    partition_by: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _can_be_made(self) -> _CreateTable:
        if not self.columns:
            problem("must not be empty", "columns")
        names = [column.name.casefold() for column in self.columns]
        double = next((place for place, name in enumerate(names) if name in names[:place]), None)
        if double is not None:
            problem("is a column's name already; engines do not tell names apart by case", "columns", double, "name")
        _partitioning(self.partition_by, "partition_by")
        return self

    def action(self) -> actions.Action:
        columns = tuple(column.new for column in self.columns)
        return actions.CreateTable(columns=columns, partitioning=_partitioning(self.partition_by))


class _PartitionBy(Section):
    by: tuple[Text, ...]

    @model_validator(mode="after")
    def _can_be_read(self) -> _PartitionBy:
        _partitioning(self.by, "by")
        return self

    def action(self) -> actions.Action:
        return actions.PartitionBy(partitioning=_partitioning(self.by))


class _Adopt(Section):
    columns: tuple[_Column, ...] = ()

    def action(self) -> actions.Action:
        return actions.Adopt(columns=tuple(column.new for column in self.columns))


class _AddColumn(Section):
    name: Text
    type: Type
    comment: Text | None = None
    after: Text | None = None
    first: bool = False
    fill: _Fill | None = None

    @model_validator(mode="after")
    def _can_be_added(self) -> _AddColumn:
        _place(self.after, first=self.first)
        if self.fill is not None:
            try:
                canonical_value(self.fill.value, self.type)
            except SchemaError as error:
                problem(str(error), "fill", "value")
        return self

    def action(self) -> actions.Action:
        fill = None if self.fill is None else canonical_value(self.fill.value, self.type)
        column = actions.NewColumn(name=self.name, type=self.type, comment=self.comment)
        place, sql = _place(self.after, first=self.first), None if self.fill is None else self.fill.sql
        return actions.AddColumn(column=column, place=place, fill=fill, fill_sql=sql)


class _DropColumn(Section):
    name: Text

    def action(self) -> actions.Action:
        return actions.DropColumn(name=self.name)


class _RenameColumn(Section):
    from_: Annotated[Text, Field(alias="from")]
    to: Text

    def action(self) -> actions.Action:
        return actions.RenameColumn(old=self.from_, new=self.to)


class _CastColumn(Section):
    name: Text
    to: Type
    lost: Literal["refuse", "null"] = "refuse"
    way: Literal["exchange", "expand"] = "exchange"

    def action(self) -> actions.Action:
        return actions.CastColumn(name=self.name, type=self.to, lost=self.lost, way=self.way)


class _MoveColumn(Section):
    name: Text
    after: Text | None = None
    first: bool = False

    @model_validator(mode="after")
    def _says_where(self) -> _MoveColumn:
        _place(self.after, first=self.first)
        if not self.first and self.after is None:
            problem("does not say where the column goes; add after: NAME, or first: true")
        return self

    def action(self) -> actions.Action:
        return actions.MoveColumn(name=self.name, place=_place(self.after, first=self.first))


class _Comment(Section):
    column: Text
    text: Text | None

    def action(self) -> actions.Action:
        return actions.CommentColumn(name=self.column, comment=self.text)


class _Action(Section):
    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    create_table: _CreateTable | None = None
    adopt: _Adopt | None = None
    add_column: _AddColumn | None = None
    drop_column: _DropColumn | None = None
    rename_column: _RenameColumn | None = None
    cast_column: _CastColumn | None = None
    move_column: _MoveColumn | None = None
    comment: _Comment | None = None
    partition_by: _PartitionBy | None = None

    @model_validator(mode="after")
    def _is_one(self) -> _Action:
        if len(self.model_fields_set) != 1:
            problem(f"must be one action, not {len(self.model_fields_set)}; begin each with a - of its own")
        name = next(iter(self.model_fields_set))
        if getattr(self, name) is None:
            problem("must be a mapping, not nothing; write {} where there is nothing to say", name)
        return self

    def action(self) -> actions.Action:
        found: actions.Action = getattr(self, next(iter(self.model_fields_set))).action()
        return found


class RevisionFile(Section):
    """What a file says of one revision."""

    revision: Annotated[Text | None, Field(pattern=r"^[a-z0-9_./-]{1,100}$")] = None
    parents: tuple[Text, ...] | None = None
    depends_on: tuple[Text, ...] = ()
    description: Text = "-"
    actions: tuple[_Action, ...]
    irreversible: Text | None = None
    replaces: tuple[Text, ...] = ()
    allow: tuple[Literal[tuple(CODES)], ...] = ()  # type: ignore[valid-type]

    @model_validator(mode="after")
    def _does_something(self) -> RevisionFile:
        if not self.actions:
            problem("must not be empty", "actions")
        return self


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


def revision_schema() -> dict[str, object]:
    """Return the JSON Schema of a revision's file, by which editors complete and check it."""
    found = RevisionFile.model_json_schema(ref_template="#/definitions/{model}")
    return {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": found.pop("$defs"), **found}
