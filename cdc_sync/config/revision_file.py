"""What the file of a revision says: sections for each action, and their JSON Schema."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from cdc_sync.config.fields import Scalar, Text, problem
from cdc_sync.config.section import Section
from cdc_sync.core.revisions import actions
from cdc_sync.core.revisions.lint import CODES
from cdc_sync.core.schema.partitioning import Partitioning, PartitioningError
from cdc_sync.core.schema.type_words import parse_type
from cdc_sync.core.schema.types import DataType
from cdc_sync.core.schema.values import canonical_value
from cdc_sync.errors import SchemaError

_OURS = ("cdc_sync.", "delta.columnMapping.")
"""What names of properties begin with that no revision sets."""


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


class _SetProperties(Section):
    set: dict[Text, Text] = Field(default_factory=dict)
    unset: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _says_something(self) -> _SetProperties:
        if not (self.set or self.unset):
            problem("says nothing; add set: {NAME: VALUE} or unset: [NAME]")
        double = next((index for index, name in enumerate(self.unset) if name in self.set), None)
        if double is not None:
            problem("is set and unset; say one of the two", "unset", double)
        for field, names in (("set", self.set), ("unset", self.unset)):
            if any(name.startswith(_OURS) for name in names):
                problem("must not have cdc_sync's own properties, nor the mapping of columns", field)
        return self

    def action(self) -> actions.Action:
        gone: list[tuple[str, str | None]] = [(name, None) for name in self.unset]
        return actions.SetProperties(values=tuple(sorted([*self.set.items(), *gone])))


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


class _FillColumn(Section):
    name: Text
    sql: Text

    def action(self) -> actions.Action:
        return actions.FillColumn(name=self.name, sql=self.sql)


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
    fill_column: _FillColumn | None = None
    rename_column: _RenameColumn | None = None
    cast_column: _CastColumn | None = None
    move_column: _MoveColumn | None = None
    comment: _Comment | None = None
    partition_by: _PartitionBy | None = None
    properties: _SetProperties | None = None

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


def revision_schema() -> dict[str, object]:
    """Return the JSON Schema of a revision's file, by which editors complete and check it."""
    found = RevisionFile.model_json_schema(ref_template="#/definitions/{model}")
    return {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": found.pop("$defs"), **found}
