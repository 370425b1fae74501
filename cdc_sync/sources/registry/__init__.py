"""Schemas of Avro records, from a schema registry and from the pipeline's own files."""

from cdc_sync.sources.registry.schemas import SchemaRegistry, check_properties

__all__ = ["SchemaRegistry", "check_properties"]
