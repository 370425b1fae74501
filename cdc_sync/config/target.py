"""Where the tables are written."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticKnownError

from cdc_sync.config.fields import Location, Properties, Text, problem
from cdc_sync.config.formats import format_names, format_of
from cdc_sync.config.regimes import Kept, Readers
from cdc_sync.config.section import Section
from cdc_sync.core.migration.capabilities import Capabilities, SchemaEvolution


class Catalog(Section):
    """The catalog of the target's tables."""

    name: Text = "lake"
    type: Literal["jdbc", "hadoop", "hive", "rest"] = "jdbc"
    uri: Text | None = None
    warehouse: Location = "./warehouse"
    properties: Properties = {}

    @model_validator(mode="after")
    def _uri_fits_the_type(self) -> Catalog:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.name):
            problem("must be letters, digits and '_', because Spark's SQL names the catalog by it", "name")
        if self.name == "spark_catalog":
            problem("is the name of Spark's own session catalog; choose another", "name")
        match self.type:
            case "rest":
                if self.uri is None:
                    problem("has no uri, which type rest needs; add it")
            case "hadoop":
                if self.uri is not None:
                    problem("has no use with type hadoop, which needs the warehouse only; remove it", "uri")
            case "jdbc" | "hive":
                pass  # the target tells whether an embedded one will do
        return self

    @property
    def in_store(self) -> bool:
        """Whether the warehouse is not on a local disk."""
        return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", self.warehouse) is not None

    @property
    def service(self) -> str | None:
        """Address of the catalog service: as configured, or an SQLite file inside the warehouse for type jdbc."""
        if self.uri is None and self.type == "jdbc":
            return f"jdbc:sqlite:{self.warehouse.rstrip('/')}/catalog.db"
        return self.uri


_KEPT_STATES = 5


def _is_known(name: str) -> str:
    if name not in format_names():
        # The same error as of any choice: what is given may be a secret, and is said as it was written.
        *others, last = (repr(known) for known in format_names())
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(others)} or {last}"})
    return name


Format: TypeAlias = Annotated[str, AfterValidator(_is_known)]
"""One of `formats.format_names`."""


class Target(Section):
    """Where the tables are written."""

    format: Format = "iceberg"
    catalog: Catalog = Field(default_factory=Catalog)
    schema_evolution: SchemaEvolution = "on_write"
    kept_states: Annotated[int, Field(ge=2, le=1000)] = _KEPT_STATES
    readers: Readers = ()
    table_properties: Properties = {}

    @model_validator(mode="after")
    def _catalog_fits_the_format(self) -> Target:
        catalog = self.catalog
        if self.format == "iceberg" and catalog.uri is None:
            if catalog.type == "hive":
                problem("has no uri, which type hive needs; add it", "catalog")
            elif catalog.type == "jdbc" and catalog.in_store:
                problem("has no uri, and an SQLite file cannot live in an object store; add a jdbc: uri", "catalog")
        elif self.format == "parquet":
            if "type" in catalog.model_fields_set and catalog.type != "hive":
                problem("must be hive with format parquet, whose tables a Hive metastore names", "catalog", "type")
            self._check_metastore()
        elif self.metastore:
            self._check_metastore()
        elif self.format in ("delta", "hudi"):
            for name in sorted(catalog.model_fields_set - {"warehouse"}):
                reason = f"has no use with format {self.format}, which finds tables by their path; remove it"
                hint = ", or set type: hive to have them registered in a Hive metastore too"
                problem(f"{reason}{hint}", "catalog", name)
        return self

    @property
    def capabilities(self) -> Capabilities:
        """What tables are able to do that no rule says more of."""
        return format_of(self.format).capabilities(self.schema_evolution)

    @property
    def metastore(self) -> bool:
        """Whether a Hive metastore names the tables; Iceberg's own catalogs do not count."""
        return self.format == "parquet" or (self.format in ("delta", "hudi") and self.catalog.type == "hive")

    def _check_metastore(self) -> None:
        catalog = self.catalog
        if "name" in catalog.model_fields_set:
            problem(
                f"has no use with format {self.format}, whose tables a Hive metastore names; remove it",
                *("catalog", "name"),
            )
        if catalog.uri is None and catalog.in_store:
            problem(
                "has no uri, and an embedded metastore cannot live in an object store; add a thrift: uri", "catalog"
            )
        if catalog.uri is not None and not catalog.uri.startswith("thrift://"):
            problem("must begin with thrift://, as addresses of Hive metastores do", "catalog", "uri")

    @model_validator(mode="after")
    def _states_are_kept_where_they_are_copies(self) -> Target:
        if self.kept_states != _KEPT_STATES and self.format != "parquet":
            problem(
                f"has no use with format {self.format}, which keeps states by its own settings; remove it",
                "kept_states",
            )
        return self

    @model_validator(mode="after")
    def _readers_read_right(self) -> Target:
        own = "hoodie.schema.on.read.enable"
        if own in self.table_properties:
            problem(f"names {own}, which target.schema_evolution decides; remove it", "table_properties")
        self.kept.check()
        return self

    @property
    def kept(self) -> Kept:
        """How tables are kept that no rule says more of, and who reads them."""
        return Kept(
            format=self.format,
            table_properties=self.table_properties,
            evolution=self.schema_evolution,
            readers=self.readers,
        )
